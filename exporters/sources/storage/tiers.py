"""What a file system lies on: memory, a solid-state disk, a disk that turns, an object store, or another machine."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from exporters.sources.attributes import text
from exporters.sources.procfs import Mount


class Tier(StrEnum):
    """From fast and dear to slow and cheap, roughly."""

    MEMORY = "memory"
    SSD = "ssd"
    HDD = "hdd"
    REMOTE = "remote"
    OBJECT = "object"


_MEMORY: Final = frozenset("tmpfs ramfs".split())
_REMOTE: Final = re.compile(
    r"nfs4?|lustre|ceph|cifs|smb3|9p|afs|gpfs|beegfs|wekafs|pvfs2|orangefs|glusterfs|virtiofs|ocfs2|gfs2|panfs"
    r"|fuse\.(sshfs|glusterfs|ceph(-fuse)?|cvmfs2|beegfs)"
)
_OBJECT: Final = re.compile(
    r"fuse\.(juicefs|s3fs|goofys|gcsfuse|rclone|blobfuse2?|ossfs2?|cosfs|obsfs|mountpoint-s3|geesefs|alluxio(-fuse)?|goosefs(-fuse)?|s3ql|objectivefs)"
)


def tier(mount: Mount, sys: Path) -> Tier | None:
    """The tier of `mount`, None where it cannot be told. `sys` is the root, /sys on a live machine."""
    if mount.type in _MEMORY:
        return Tier.MEMORY
    if _REMOTE.fullmatch(mount.type):
        return Tier.REMOTE
    if _OBJECT.fullmatch(mount.type) or (mount.type == "fuse" and _OBJECT.fullmatch("fuse." + mount.source.partition(":")[0].lower())):
        return Tier.OBJECT
    return _of_disk(mount, sys)


def _of_disk(mount: Mount, sys: Path) -> Tier | None:
    """By the disk's own word; btrfs and others have no device number of their own, and are mounted from a device file."""
    places = [sys / "dev/block" / mount.device]
    if mount.source.startswith("/dev/"):
        places.append(sys / "class/block" / mount.source.rpartition("/")[2])
    for place in places:
        for queue in (place / "queue", place / "../queue"):  # a partition has no queue, its disk has
            said = text(queue / "rotational")
            if said in ("0", "1"):
                return Tier.HDD if said == "1" else Tier.SSD
    return None
