"""The errors that cross a part's edge. Foreign errors are mapped to these once, where they enter.

`permanent` alone decides whether a retry makes sense.
"""


class SurefootError(Exception):
    """Anything that Surefoot reports to a person: one line that says what to do."""

    permanent = True


class SettingsError(SurefootError):
    """The settings cannot be used; start is refused."""


class NotPossible(SurefootError):
    """This machine, or who we are on it, does not allow what was asked. The message says what is missing."""


class InputError(SurefootError):
    """What somebody sent cannot be used, and sending it again will not help."""


class TooLarge(InputError):
    """The input is over its size limit, before or after decompression."""


class StoreError(SurefootError):
    """The store answered with an error. `code` is ClickHouse's number (0 where there is none)."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class StoreUnavailable(StoreError):
    """The store did not answer, or was too busy: the same call may succeed later."""

    permanent = False


class QueryTimeout(StoreError):
    """The query ran past its limit and was stopped."""


class StreamFailure(StoreError):
    """The answer broke off in the middle: what was read of it is not the whole."""

    permanent = False


class DatabaseOwned(StoreError):
    """Another process owns the embedded store's folder."""


class SpoolFull(SurefootError):
    """The spool holds all that it may; the sender should come back later."""

    permanent = False


class ControlUnavailable(SurefootError):
    """The control plane did not answer."""

    permanent = False


class ControlRefused(SurefootError):
    """The control plane answered that it does not take us. `taken`: another launcher has our place, or the run is begun otherwise.

    `passing`: the other one may end soon, and then we are let in.
    """

    def __init__(self, message: str, *, taken: bool, passing: bool = False) -> None:
        super().__init__(message)
        self.taken, self.passing = taken, passing
        self.permanent = not taken


class DeliveryError(SurefootError):
    """A receiver did not take a notification."""

    def __init__(self, message: str, *, permanent: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after
