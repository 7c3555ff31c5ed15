"""HTML that is safe by construction: text becomes HTML only through `el`, which escapes it."""

from html import escape
from urllib.parse import urlencode

import streamlit as st


class Html(str):
    """Markup that `el` has made. Everything else is text."""

    __slots__ = ()


Child = str | None


def el(tag: str, *children: Child, cls: str = "", style: str = "", **attributes: str) -> Html:
    """An element. Children that are not `Html` are escaped; None is left out. `style` and the attributes are escaped too."""
    given = {"class": cls, "style": style, **attributes}
    head = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"' for name, value in given.items() if value)
    return Html(f"<{tag}{head}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """The children one after another, text escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child, quote=True) for child in children if child is not None))


def div(cls: str, *children: Child, **attributes: str) -> Html:
    """A `div` of class `cls`."""
    return el("div", *children, cls=cls, **attributes)


def span(cls: str, *children: Child, **attributes: str) -> Html:
    """A `span` of class `cls`."""
    return el("span", *children, cls=cls, **attributes)


def link(page: str, label: Child, cls: str = "", style: str = "", **query: str) -> Html:
    """A link to one of the console's pages, relative, so that it works behind any prefix."""
    return el("a", label, cls=cls, style=style, href=f"{page}?{urlencode(query)}" if query else page)


def show(*parts: Child) -> None:
    """Draw the parts."""
    st.html(join(*parts))
