"""Whether what is mounted, or how, has changed: the kernel tells whoever has its list open."""

import os
import select
from contextlib import suppress
from pathlib import Path


class MountChanges:
    """Looks at the lists of this process and of process 1, as `procfs.mounts` reads both. `proc` is /proc; where none can be opened,
    or they are saved files, nothing ever changes."""

    def __init__(self, proc: Path) -> None:
        self._poll = select.poll()
        self._open: list[int] = []
        for whose in ("self", "1"):
            with suppress(OSError):
                opened = os.open(proc / whose / "mountinfo", os.O_RDONLY | os.O_CLOEXEC)
                self._open.append(opened)
                self._poll.register(opened, select.POLLPRI)

    def seen(self) -> bool:
        """Whether something was mounted, remounted or unmounted since the last call. Never waits.

        A file system that the kernel itself turns read-only is not told here, but in the kernel's log.
        """
        return any(what & select.POLLPRI for _, what in self._poll.poll(0))

    def close(self) -> None:
        """Gives the lists back."""
        for opened in self._open:
            self._poll.unregister(opened)
            os.close(opened)
        self._open.clear()
