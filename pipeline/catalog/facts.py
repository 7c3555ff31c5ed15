"""What an attempt ran with, as facts: name -> text. The groups of names, in the order in which a person looks, and their limits.

A fact's name is its group, a dot, and what it is about: `code.commit`, `package.torch`, `env.NCCL_DEBUG`.
"""

from enum import StrEnum
from typing import Final


class FactGroup(StrEnum):
    """What a fact is about. The order is that of suspicion: what people change most often comes first."""

    CODE = "code"
    PACKAGE = "package"
    DRIVER = "driver"
    ENVIRONMENT = "env"
    PLACE = "place"
    START = "start"


ARGV: Final = "code.argv"
COMMIT: Final = "code.commit"
DIFF: Final = "code.diff"  # of what is not committed: a hash and the files
FOLDER: Final = "code.folder"  # that the command was started in
IMAGE_VARIABLE: Final = "SUREFOOT_IMAGE"  # in the environment: names the container image that a command runs in
IMAGE: Final = "code.image"
NODES: Final = "place.nodes"  # derived from who sent facts
RESUMED: Final = "start.resumed_from"

MAX_FACTS: Final = 1500  # of one attempt on one node
MAX_NAME: Final = 200  # characters
MAX_TEXT: Final = 2000


class ChangeKind(StrEnum):
    """What somebody changed."""

    DEPLOY = "deploy"
    DRIVER = "driver"
    CONFIG = "config"
    CODE = "code"


MAX_WHAT: Final = 500  # characters that describe a change


def group(name: str) -> str:
    """The group of a fact: "code" of "code.commit"."""
    return name.split(".", 1)[0]
