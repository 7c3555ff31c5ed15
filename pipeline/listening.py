"""Listening sockets, and why a part cannot listen where it should, in words that name the setting to change."""

import errno
import os
import socket
from typing import Final

BACKLOG: Final = 1024  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """A TCP socket that listens. Raises OSError.

    What is accepted from it sends at once: asyncio does so by itself only for sockets that name their protocol, and these do
    not, so that the second half of each small answer would wait 40 ms for the first half's acknowledgement.
    """
    listener = socket.create_server((host, port), backlog=BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the accepted ones inherit it
    return listener


def cannot_listen(part: str, host: str, port: int, error: OSError) -> str:
    """One line: what failed, and whether the part's host or its port is to blame."""
    host_is_wrong = isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    setting = f"{part}.host" if host_is_wrong else f"{part}.port"
    why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)  # the bare words, without the call's own
    return f"{part} cannot use {host}:{port} ({why}): set {setting} in the settings"
