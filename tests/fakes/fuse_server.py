"""A FUSE file system in memory that can stop answering: run as a program with the folder to mount at. For root; standard library only.

A line on standard input is an order: `stop` answers nothing any more, `go` answers again what came meanwhile, and `mute` answers all
but what would write, for ever. It writes `ready` once it
is mounted, and a line after each order. When standard input ends, the connection ends with it. Layout: <linux/fuse.h>.
"""

import ctypes
import errno
import os
import struct
import sys
import threading
import time
from collections.abc import Callable

LOOKUP, FORGET, GETATTR, SETATTR, UNLINK, OPEN, READ, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 10, 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, CREATE, INTERRUPT, BATCH_FORGET = 20, 25, 26, 27, 28, 29, 34, 35, 36, 42
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
ROOT = 1
HEAD = 40  # bytes of a request's header
BLOCK, BLOCKS, FREE = 4096, 1_000_000, 600_000


class Refused(Exception):
    """A request that is answered with an error number."""


class Server:
    """The file system's content and its answers. Files lie in the root, there are no other folders."""

    def __init__(self) -> None:
        self.files: dict[int, bytearray] = {}
        self.names: dict[bytes, int] = {}
        self.next = ROOT + 1

    def answer(self, opcode: int, node: int, body: bytes) -> bytes:
        """The body of the answer. Raises Refused."""
        ways: dict[int, Callable[[int, bytes], bytes]] = {
            INIT: lambda _, b: struct.pack(
                "<IIIIHHIIHHII24x", 7, min(31, *struct.unpack_from("<I", b, 4)), 1 << 17, 0, 12, 9, 1 << 17, 1, 0, 0, 0, 0
            ),
            LOOKUP: lambda _, b: self.entry(self.named(b.rstrip(b"\0"))),
            GETATTR: lambda n, _: struct.pack("<QII", 0, 0, 0) + self.attributes(n),
            SETATTR: lambda n, _: struct.pack("<QII", 0, 0, 0) + self.attributes(n),
            UNLINK: self.unlink,
            OPEN: lambda n, _: struct.pack("<QII", n, 1, 0),  # 1: past the kernel's memory
            OPENDIR: lambda n, _: struct.pack("<QII", n, 0, 0),
            READ: self.read,
            WRITE: self.write,
            STATFS: lambda *_: struct.pack("<QQQQQIIII24x", BLOCKS, FREE, FREE, 1000, 900, BLOCK, 255, BLOCK, 0),
            CREATE: self.create,
            **dict.fromkeys((RELEASE, RELEASEDIR, FSYNC, FLUSH, READDIR, ACCESS), lambda *_: b""),
        }
        if opcode not in ways:
            raise Refused(errno.ENOSYS)
        return ways[opcode](node, body)

    def named(self, name: bytes) -> int:
        if name not in self.names:
            raise Refused(errno.ENOENT)
        return self.names[name]

    def entry(self, node: int) -> bytes:
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def attributes(self, node: int) -> bytes:
        size = len(self.files.get(node, b""))
        mode = 0o40755 if node == ROOT else 0o100644
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, BLOCK, 0)

    def create(self, _: int, body: bytes) -> bytes:
        node, self.next = self.next, self.next + 1
        self.names[body[16:].split(b"\0")[0]] = node
        self.files[node] = bytearray()
        return self.entry(node) + struct.pack("<QII", node, 1, 0)

    def unlink(self, _: int, body: bytes) -> bytes:
        self.files.pop(self.names.pop(body.rstrip(b"\0"), 0), None)
        return b""

    def write(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        self.files[node][offset : offset + size] = body[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self.files[node][offset : offset + size])


def serve(fuse: int, going: threading.Event, mute: threading.Event) -> None:
    """Answers until the connection ends, while `going` is set; nothing that would write once `mute` is."""
    server = Server()
    while True:
        going.wait()
        try:
            request = os.read(fuse, 1 << 20)
        except OSError as e:
            if e.errno in (errno.EINTR, errno.ENOENT):
                continue
            return
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        going.wait()  # what came before the order to stop is not answered after it
        if opcode in UNANSWERED or (mute.is_set() and opcode in (CREATE, WRITE, FSYNC)):
            continue
        try:
            error, body = 0, server.answer(opcode, node, request[HEAD:])
        except Refused as e:
            error, body = -e.args[0], b""
        try:
            os.write(fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        except OSError:  # the one who asked is gone, or the connection is
            time.sleep(0)


def main() -> None:
    """Mounts, serves and takes orders."""
    fuse = os.open("/dev/fuse", os.O_RDWR)
    going, mute = threading.Event(), threading.Event()
    going.set()
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"surefoot-test", sys.argv[1].encode(), b"fuse.surefoot", 0, options):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    threading.Thread(target=serve, args=(fuse, going, mute), daemon=True).start()  # before the mount there is nothing to be read
    os.write(1, b"ready\n")
    for line in sys.stdin:
        word = line.strip()
        if word == "mute":
            mute.set()
        elif word == "go":
            going.set()
        else:
            going.clear()
        os.write(1, line.encode())
    os._exit(0)


if __name__ == "__main__":
    main()
