"""Nothing that comes from data becomes HTML."""

from dashboard import parts
from dashboard.markup import Html, div, el, join, link


def test_text_is_escaped_wherever_it_is_put() -> None:
    bad = "<img src=x onerror=alert(1)>\"'&"
    safe = "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;"
    assert div("c", bad) == f'<div class="c">{safe}</div>'
    assert el("p", "x", title=bad, style=bad) == f'<p style="{safe}" title="{safe}">x</p>'
    assert join("a", None, el("b", bad)) == f"a<b>{safe}</b>"


def test_markup_inside_markup_is_kept() -> None:
    assert el("ul", el("li", "1 < 2")) == "<ul><li>1 &lt; 2</li></ul>"
    assert isinstance(join("x"), Html)


def test_a_string_that_is_changed_is_text_again() -> None:
    assert not isinstance(el("b", "x").upper(), Html)


def test_a_link_quotes_what_it_leads_to() -> None:
    assert link("incident", "go", incident='a b&c"') == '<a href="incident?incident=a+b%26c%22">go</a>'
    assert link("now", "Now") == '<a href="now">Now</a>'


def test_a_command_breaks_between_its_words_only() -> None:
    assert parts.command("run --step-time <1>") == (
        '<span class="sf-word">run</span> <span class="sf-word">--step-time</span> <span class="sf-word">&lt;1&gt;</span> '
    )
