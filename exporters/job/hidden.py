"""Hides what looks like a secret in a command line or a variable. Pure.

Where in doubt it hides: a lost fact is better than a told password.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

HIDDEN: Final = "(hidden)"
_SECRET: Final = frozenset(
    {"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "CREDENTIAL", "CREDENTIALS", "APIKEY", "KEY", "KEYS", "AUTH"}
    | {"AUTHORIZATION", "COOKIE", "SIGNATURE", "BEARER", "PAT"}
)
_VOCABULARY: Final = frozenset({"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK", "SPECIAL", "IMAGE", "END", "START"})  # as in --eos-token
_LONGEST: Final = 8000  # characters of a word that are looked at; it is cut far below that anyway
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAMES: Final = re.compile(r"""([\w.-]+)(?:["']?\s*[=:]\s*|\s+(?=[^\s-]))""")  # before its value: `name=`, `"name": `, `--name `
_VALUE: Final = re.compile(r""""[^"]*"|'[^']*'|[^\s;&|,}"']+""")
_SCHEME: Final = re.compile(r"\b(bearer|basic)\s+[^\s'\"]+", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(\b[A-Za-z][\w+.-]*://)[^/\s@'\"]+@")
_KNOWN: Final = re.compile(
    r"\bsk-[\w-]{16,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bhf_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.[\w-]{8,}(?:\.[\w-]*)?|-----BEGIN[\s\S]*"
)
_RANDOM: Final = re.compile(r"(?<![\w/])(?=[A-Za-z0-9+=]*[a-z])(?=[A-Za-z0-9+=]*[A-Z])(?=[A-Za-z0-9+=]*[0-9])[A-Za-z0-9+=]{32,}(?![\w/])")


def is_secret(name: str) -> bool:
    """Whether the thing called `name` (`--api-key`, `HF_TOKEN`, `dbPassword`) holds a secret; `--eos-token` and `--max-tokens` do not."""
    words = [w.upper() for w in _WORDS.findall(name)]
    if words[-1:] == ["TOKEN"] and len(words) > 1 and words[-2] in _VOCABULARY:
        return False
    return not _SECRET.isdisjoint(words)


def masked(text: str) -> str:
    """`text` without its secrets: values assigned to a name that holds one, logins in URLs, and what has the shape of a key."""
    text = text[:_LONGEST]
    text = _LOGIN.sub(rf"\1{HIDDEN}@", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _RANDOM.sub(HIDDEN, _KNOWN.sub(HIDDEN, _without_values(text)))


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line's words without their secrets, those that stand alone after their option too."""
    out: list[str] = []
    for n, word in enumerate(words):
        before = words[n - 1] if n else ""
        alone = before.startswith("-") and "=" not in before and is_secret(before) and not word.startswith("--")
        name, given, _ = word.partition("=")
        out.append(HIDDEN if alone else f"{name}={HIDDEN}" if given and " " not in name and is_secret(name) else masked(word))
    return out


def told(words: Sequence[str]) -> str:
    """A command line as a shell takes it, without its secrets."""
    return shlex.join(masked_words(words)).replace(shlex.quote(HIDDEN), HIDDEN)


def _without_values(text: str) -> str:
    out, done = [], 0
    for found in _NAMES.finditer(text):
        name = found[1]
        given = found[0].rstrip()[len(name) :] or name.startswith("-")  # a word before another one is a name where it is an option
        if found.start() < done or not given or not is_secret(name):
            continue
        if value := _VALUE.match(text, found.end()):
            out.append(f"{text[done : found.end()]}{HIDDEN}")
            done = value.end()
    return "".join([*out, text[done:]])
