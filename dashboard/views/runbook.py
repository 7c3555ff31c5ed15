"""Runbook: what a fault means, how to confirm it by hand, what Surefoot does about it, and what to do if that fails."""

import re
from pathlib import Path
from typing import Final

import streamlit as st

import dashboard
from dashboard import parts
from dashboard.markup import join, link, show
from pipeline.catalog.faults import BY_NAME

_HERE: Final = Path(dashboard.__file__).parent
FOLDERS: Final = (_HERE / "runbooks", _HERE.parent / "docs" / "runbooks")  # of an installed Surefoot, and of its repository
_CODE: Final = "```"
_HEADING: Final = re.compile(r"^(#+ )", re.M)
_NEXT: Final = re.compile(r"\]\(([a-z_]+)\.md\)")


def page() -> None:
    """Draw the runbook that the address names; without one, all of them by name."""
    fault = st.query_params.get("fault", "")
    parts.tab(f"Runbook {fault}" if fault else "Runbooks")
    text = read(fault)
    if text:
        st.markdown(_as_part_of_a_page(text))
        return
    show(parts.title("Runbooks", "one for each fault that can page"))
    if fault:
        show(parts.empty(f"There is no runbook for {fault}.", "These are there:"))
    for one in (f for f in BY_NAME.values() if read(f.name)):
        show(join(link("runbook", one.name, fault=one.name), f": {one.summary}"))


def _as_part_of_a_page(text: str) -> str:
    """With links to the console's pages, and headings of a size that fits them; what stands in code stays as it is."""
    pieces = _NEXT.sub(r"](runbook?fault=\1)", text).split(_CODE)
    return _CODE.join(piece if n % 2 else _HEADING.sub(r"##\1", piece) for n, piece in enumerate(pieces))


def read(fault: str) -> str:
    """The text for a fault; "" where there is none."""
    paths = (folder / f"{fault}.md" for folder in FOLDERS if fault in BY_NAME)
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")
