"""Names as inert text: terminals, pages and figures show them and never interpret them."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

# control characters, formatting (which turns the direction of writing), halves of pairs, breaks of lines
_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_KEPT = "\n\t\u200c\u200d"  # lines of a text; joiners belong to letters of Persian and to emoji


def visible(text: str) -> str:
    r"""The text with every character that a terminal or page would interpret written as its escape.

    Escape sequences of terminals, marks that turn the direction of writing and halves of surrogate pairs
    are shown as Python writes them. Lines and tabs stay.

    >>> print(visible("cox \x1b[31m"), visible("\u202exoc"), visible("Größe"))
    cox \x1b[31m \u202exoc Größe
    """
    if text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode()
        if letter not in _KEPT and unicodedata.category(letter) in _OBEYED
        else letter
        for letter in text
    )


def one_line(name: str) -> str:
    r"""A name of a model, an outcome or a group on one line, see :func:`visible`.

    >>> one_line("cox,\n  stratified")
    'cox, stratified'
    """
    return visible(" ".join(name.split()))


def shown(value: object) -> str:
    """Return what an error message says was got: a number or a text, cut where it is long; else its type.

    >>> shown("crps"), shown([1.0, 2.0]), shown(10**60)
    ("'crps'", 'list', 'an integer of 50 digits or more')
    """
    if isinstance(value, int) and abs(value) >= 10**50:
        return "an integer of 50 digits or more"
    if value is None or isinstance(value, int | float | str | bytes):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return type(value).__name__


def some_of(names: Sequence[str], limit: int = 10) -> str:
    """Names in a message, without listing thousands of them.

    >>> some_of(["a", "b", "c", "d"], limit=2)
    'a, b and 2 more'
    """
    first = ", ".join(one_line(name) for name in names[:limit])
    return first + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def some_values(values: Any, limit: int = 10) -> str:
    """Values in a message, as Python writes them, without printing thousands.

    >>> some_values(range(1000), limit=3), some_values(["a", 2])
    ('[0, 1, 2 and 997 more]', "['a', 2]")
    """
    values = values.tolist() if hasattr(values, "tolist") else values
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    return f"[{some_of([f'{value!r:.60}' for value in listed], limit)}]"


def html_text(text: str) -> str:
    """Text for a page, between tags or within the quotes of an attribute, see :func:`visible`.

    >>> html_text("<b>cox</b> & 'others'")
    '&lt;b&gt;cox&lt;/b&gt; &amp; &#x27;others&#x27;'
    """
    return html.escape(visible(text), quote=True)


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A small table for a notebook, all of it plain text.

    >>> html_table("one", ["time"], [["2"]])
    '<div><p>one</p><table><tr><th>time</th></tr><tr><td>2</td></tr></table></div>'
    """
    top = "".join(f"<th>{html_text(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{html_text(x)}</td>" for x in row) + "</tr>" for row in rows)
    return f"<div><p>{html_text(title)}</p><table><tr>{top}</tr>{lines}</table></div>"
