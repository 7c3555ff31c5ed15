"""The settings file as plain data: YAML whose keys are text, each once."""

from pathlib import Path
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipeline.errors import SettingsError

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
# The parser's own errors, and what it lets through for a value that its tag does not fit, such as a 13th month.
_BAD_YAML: Final = (yaml.YAMLError, ValueError, LookupError, AttributeError, ArithmeticError)


def read(path: Path, what: str = "settings file") -> dict[str, Any]:
    """What stands in the file, {} for an empty one. `what` is what a message calls it.

    Raises SettingsError, one line, for a file that cannot be read, is not YAML, or has a key that is not text or stands twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                _check_keys(path, node)
            given = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except OSError as e:
        raise SettingsError(f"cannot read the {what} {path}: {e.strerror}") from e
    except RecursionError:
        raise SettingsError(f"{path} is not valid YAML for settings: it is nested too deep") from None
    except _BAD_YAML as e:
        raise SettingsError(f"{path} is not valid YAML: {' '.join(str(e).split())}") from e
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise SettingsError(f"{path} must hold keys and values, not a {type(given).__name__}")
    return given


def _check_keys(path: Path, root: Node) -> None:
    """YAML takes numbers for keys, and of two equal ones the last in silence."""
    waiting: list[Node] = [root]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # under another name
            continue
        seen.add(id(node))
        if isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            _check_mapping(path, node)
            waiting += [value for _, value in node.value]


def _check_mapping(path: Path, node: MappingNode) -> None:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.tag == _MERGE:
            continue
        if not isinstance(key, ScalarNode) or key.tag != _TEXT:
            shown = f"the key {key.value!r}" if isinstance(key, ScalarNode) else "a key"
            raise SettingsError(f"{path}, line {line}: {shown} is not text")
        if key.value in lines:
            raise SettingsError(f"{path}, line {line}: the key {key.value} stands twice, first in line {lines[key.value]}")
        lines[key.value] = line
