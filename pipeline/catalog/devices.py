"""The integer id of a device: computed from what identifies it, so that no one has to hand it out."""

from collections.abc import Mapping
from hashlib import blake2b

from pipeline.catalog.metrics import Family

_SEPARATOR = "\x1f"


def device_id(family: Family, identity: Mapping[str, str]) -> int:
    """The 64-bit id of the device of `family` that `identity` names.

    Raises KeyError naming the attribute where one of `family.identity` is missing.
    """
    words = (family.name, *(identity[key] for key in family.identity))
    return int.from_bytes(blake2b(_SEPARATOR.join(words).encode(), digest_size=8).digest(), "big")
