"""What is wrong with a setting's value, in words for whoever writes the file: pydantic's are for whoever writes the program."""

import re
from typing import Final

EXAMPLES: Final = {
    "store": "{port: 18123}",
    "ingest": "{url: http://ingest.example:4318}",
    "agent": "{interval: 10}",
    "agent.compat": "[node]",
    "agent.probe_paths": "[/scratch, /data]",
    "agent.tiers": "{/scratch: ssd}",
    "agent.scrape": "[{name: engine, url: 'http://127.0.0.1:8000/metrics'}]",
    "agent.scrape.labels": "{cell: a}",
    "agent.schedulers": "[slurm]",
    "agent.slurm": "{scontrol: scontrol}",
    "agent.kubernetes": "{url: 'https://10.0.0.1:6443'}",
    "agent.redfish": "{url: 'https://bmc.example', user: monitor}",
    "job": "{grace: 10}",
    "detect": "{stall_floor: 3}",
    "detect.phase_limits": "{checkpoint: 900}",
    "recovery": "{window: 3600}",
    "recovery.modes": "{restart_run: approve}",
    "receivers": "[{kind: log}]",
    "console": "{port: 8501}",
}
"""A value of every setting that holds others, as it stands behind the last part of its name and a colon."""

_LISTS: Final = frozenset({"tuple_type", "list_type"})
_GROUPS: Final = frozenset({"dict_type", "model_type", "model_attributes_type"})
_PLAIN: Final = {
    "string_type": "must be text: put it in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "missing": "is missing",
}


def words(kind: str, message: str, key: str) -> str:
    """What to say of an error of pydantic's `kind` with its `message` about the setting `key`, whose parts numbers may be among."""
    name = ".".join(part for part in key.split(".") if not part.isdecimal())
    last = name.rpartition(".")[2]
    if kind in _LISTS:
        return f"must be a list, as in {last}: {EXAMPLES.get(name, '[…]')}"
    if kind in _GROUPS and key != name and key.rpartition(".")[2].isdecimal():  # an entry of a list
        return f"must have keys of its own, as in {last}: {EXAMPLES.get(name, '[{…}]')}"
    if kind in _GROUPS:
        return f"must have keys of its own, as in {last}: {EXAMPLES.get(name, '{…}')}"
    said = _PLAIN.get(kind) or message.removeprefix("Value error, ")
    return re.sub(r"^Input should (?:have|be)", lambda found: "must " + found[0].split()[-1], said)
