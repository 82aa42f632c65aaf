"""Pages that need nothing else: one file with its style and figures inside, no scripts, nothing to fetch.

The comparison report and the pages of studies are built from these parts. Cells, notes and sections are HTML
already: what comes from data goes through :func:`html.escape` first.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from censcore.evaluation.style import svg_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["image", "image_source", "note", "soft", "table", "whole_page"]


def whole_page(title: str, sections: Sequence[str], *, skip_to: str = "", style: str = "") -> str:
    """The document with these sections below its title.

    Parameters
    ----------
    title : str
        Plain text.
    sections : sequence of str
        HTML.
    skip_to : str
        The id of the section that a link at the top leads to, for those who use a keyboard.
    style : str
        Rules that are added to the common style sheet.

    Examples
    --------
    >>> from censcore.evaluation.page import note, table, whole_page
    >>> lines = [["CRPS", "0.25"]]
    >>> page = whole_page("Cox & others", [note("Lower is better."), table(["score", "mean"], lines)])
    >>> "<title>Cox &amp; others</title>" in page
    True
    """
    body = "\n".join([f"<h1>{escape(title)}</h1>", *sections])
    skip = f"<a class='skip' href='#{skip_to}'>Skip to the {skip_to}</a>\n" if skip_to else ""
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>\n{_style_sheet()}{style}</style>\n</head>\n<body>\n{skip}"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _style_sheet() -> str:
    return files("censcore.evaluation").joinpath("report.css").read_text(encoding="utf-8")


def note(text: str) -> str:
    """A paragraph in small print."""
    return f"<p class='soft'>{text}</p>"


def soft(text: str) -> str:
    """Text that stands back."""
    return f"<span class='soft'>{text}</span>"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    name: str = "Table",
    caption: str = "",
    text_columns: int = 1,
) -> str:
    """A table that scrolls by itself where it is too wide; the first cell of a row is its header.

    Parameters
    ----------
    head, rows : sequences of str
        HTML of the cells.
    name : str
        What screen readers call it.
    caption : str
        HTML above the table.
    text_columns : int
        The first columns, which hold text and are aligned left.
    """
    kinds = [" class='text'" if i < text_columns else "" for i in range(len(head))]
    top = "".join(f"<th scope='col'{kind}>{cell}</th>" for cell, kind in zip(head, kinds, strict=True))
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        lines.append(f"<tr><th scope='row'>{first}</th>{cells}</tr>")
    above = f"<caption>{caption}</caption>" if caption else ""
    return (
        f"<div class='scroll' role='region' aria-label='{escape(name)}' tabindex='0'><table>"
        f"{above}<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def image(figure: Figure, alternative: str) -> str:
    """A figure inside the page; ``alternative`` describes it for screen readers."""
    return f"<img alt='{escape(alternative, quote=True)}' src='{image_source(figure)}'>"


def image_source(figure: Figure) -> str:
    """A figure as the address of an image that holds its content, the same bytes for the same figure."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg_of(figure)).decode()
