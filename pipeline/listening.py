"""Why a part cannot listen where it should, in words that name the setting to change."""

import errno
import socket


def cannot_listen(part: str, host: str, port: int, error: OSError) -> str:
    """One line: what failed, and whether the part's host or its port is to blame."""
    host_is_wrong = isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    setting = f"{part}.host" if host_is_wrong else f"{part}.port"
    return f"{part} cannot use {host}:{port} ({error.strerror}): set {setting} in the settings"
