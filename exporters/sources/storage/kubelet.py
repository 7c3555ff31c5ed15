"""What the kubelet of this node measures of the volumes that its pods use (`/stats/summary`)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import requests
from urllib3.exceptions import HTTPError

from exporters.sources.web import token, why
from pipeline.sizes import bound

_MOST: Final = 64 << 20  # bytes of an answer: a node with hundreds of pods gives some megabytes
_BIGGEST: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Door:
    """How to ask: the kubelet's address ("" for none), and the files that hold the token and the certificates that are trusted.

    With `ca_file` "" the kubelet's certificate is believed unseen: on its own node most sign it themselves.
    """

    url: str
    token_file: str
    ca_file: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Volume:
    """A claim's volume: bytes and inodes; `healthy` is None where its driver does not say; `pods` of this node use it."""

    namespace: str
    claim: str
    size: int | None
    free: int | None
    used: int | None
    inodes: int | None
    inodes_free: int | None
    healthy: bool | None
    pods: int


def ask(door: Door) -> str | None:
    """The kubelet's summary as it came; None where no kubelet is named. Raises OSError that says why it cannot be had."""
    if not door.url:
        return None
    secret = token(door.token_file)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    with requests.Session() as session:
        session.trust_env = False  # no proxy: the token goes to the kubelet alone
        where = door.url.rstrip("/") + "/stats/summary"
        trust: bool | str = door.ca_file or False
        try:
            with session.get(where, headers=headers, timeout=door.timeout, verify=trust, allow_redirects=False, stream=True) as answer:
                body = bytes(answer.raw.read(_MOST + 1, decode_content=True))
                if answer.status_code != 200:
                    raise OSError(f"the kubelet at {where} answered with status {answer.status_code}")
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"the kubelet at {where} does not answer: {why(e)}") from e
    if len(body) > _MOST:
        raise OSError(f"the kubelet at {where} answered with more than {bound(_MOST)}")
    return body.decode("utf-8", "replace")


def volumes(summary: str) -> list[Volume]:
    """The claims' volumes in a summary, each once; what is malformed is left out. Raises OSError where it is no JSON object."""
    try:
        told = json.loads(summary)
    except (ValueError, RecursionError) as e:
        raise OSError("the kubelet's summary is no JSON") from e
    if not isinstance(told, dict):
        raise OSError("the kubelet's summary is no JSON object")
    found: dict[tuple[str, str], Volume] = {}
    for pod in _dicts(told.get("pods")):
        for volume in _dicts(pod.get("volume")):
            claim = volume.get("pvcRef")
            if isinstance(claim, dict) and isinstance(name := claim.get("name"), str) and isinstance(space := claim.get("namespace"), str):
                pods = found[space, name].pods if (space, name) in found else 0
                found[space, name] = _volume(space, name, volume, pods + 1)
    return list(found.values())


def _volume(namespace: str, claim: str, told: Mapping[str, Any], pods: int) -> Volume:
    health = told.get("volumeHealthStats")
    abnormal = health.get("abnormal") if isinstance(health, dict) else None
    return Volume(
        namespace,
        claim,
        _count(told.get("capacityBytes")),
        _count(told.get("availableBytes")),
        _count(told.get("usedBytes")),
        _count(told.get("inodes")),
        _count(told.get("inodesFree")),
        not abnormal if isinstance(abnormal, bool) else None,
        pods,
    )


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _BIGGEST else None
