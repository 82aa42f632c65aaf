"""Pages that need nothing else: one file with its style, figures and a small script inside, nothing to fetch.

The comparison report and the pages of studies are built from these parts. Cells, notes and sections are HTML
already: what comes from data goes through :func:`~censcore.plain_text.html_text` first.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from censcore.evaluation.report.style import PALETTE
from censcore.plain_text import html_text, one_line


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
    >>> from censcore.evaluation.report.page import table, whole_page
    >>> page = whole_page("Cox & others", [table(["score", "mean"], [["CRPS", "0.25"]])])
    >>> "<title>Cox &amp; others</title>" in page
    True
    """
    body = "\n".join([f"<h1>{html_text(title)}</h1>", *sections])
    skip = f"<a class='skip' href='#{skip_to}'>Skip to the {skip_to}</a>\n" if skip_to else ""
    script = f"\n{_file('report.js')}"
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f"<meta http-equiv='Content-Security-Policy' content=\"{_policy(script)}\">\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{html_text(title)}</title>\n<style>\n{style_sheet()}{style}</style>\n</head>\n<body>\n{skip}"
        f"<main>\n{body}\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _policy(script: str) -> str:
    """What browsers allow a page: its style, its pictures and this script; no other, and nothing to fetch."""
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"
    )


def style_sheet() -> str:
    """The rules of all pages, with the colours of figures on a light and on a dark ground."""
    light, dark = (
        "".join(f"--{name}: {colours[i]}; " for name, colours in PALETTE.items()) for i in range(2)
    )
    at_night = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}"
    classes = " ".join(f".c-{name} {{ fill: var(--{name}); stroke: var(--{name}); }}" for name in PALETTE)
    return f":root {{ {light}}}\n{at_night}\n{classes}\n{_file('report.css')}"


def _file(name: str) -> str:
    return files("censcore.evaluation").joinpath(name).read_text(encoding="utf-8")


def cell(text: str, hover: str = "") -> str:
    """The HTML of a cell with what it shows on hover.

    Examples
    --------
    >>> from censcore.evaluation.report.page import cell
    >>> cell("0.25 ± 0.01", "skill 10 %")
    "<td title='skill 10 %'>0.25 ± 0.01</td>"
    """
    title = f" title='{html_text(hover)}'" if hover else ""
    return f"<td{title}>{text}</td>"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    name: str = "Table",
    caption: str = "",
    text_columns: int = 1,
    sortable: bool = False,
    of_rows: Sequence[str] = (),
    of_columns: Sequence[str] = (),
) -> str:
    """A table that scrolls by itself where it is too wide; the first cell of a row is its header.

    Parameters
    ----------
    head, rows : sequences of str
        HTML of the cells; a cell may be a whole ``<td>``, see :func:`cell`.
    name : str
        What screen readers call it.
    caption : str
        HTML above the table.
    text_columns : int
        The first columns, which hold text and are aligned left.
    sortable : bool
        Whether a click on the head of a column sorts the rows by it. On a phone the script makes a list of
        such a table, with the head of its column before every cell.
    of_rows, of_columns : sequences of str
        The model that each row, and the time that each column is about, empty for none: readers choose them.
    """
    kinds = [" class='text'" if i < text_columns else "" for i in range(len(head))]
    times = [f" data-time='{time}'" if time else "" for time in of_columns] or [""] * len(head)
    heads = [f"<button type='button'>{title}</button>" if sortable else title for title in head]
    top = "".join(
        f"<th scope='col'{kind}{time}>{title}</th>"
        for title, kind, time in zip(heads, kinds, times, strict=True)
    )
    lines = []
    for i, (first, *others) in enumerate(rows):
        cells = "".join(
            text if text.startswith("<td") else f"<td{kind}>{text}</td>"
            for text, kind in zip(others, kinds[1:], strict=True)
        )
        model = f" data-model='{html_text(one_line(of_rows[i]))}'" if of_rows else ""
        lines.append(f"<tr{model}><th scope='row'>{first}</th>{cells}</tr>")
    above = f"<caption>{caption}</caption>" if caption else ""
    kind = " class='sortable'" if sortable else ""
    return (
        f"<div class='scroll' role='region' aria-label='{html_text(name)}' tabindex='0'>"
        f"<table{kind}>{above}<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def pairs_table(caption: str, lines: Sequence[tuple[str, str]]) -> str:
    """A table of what and value, both plain text."""
    rows = [[html_text(name), html_text(value)] for name, value in lines]
    return table(["what", "value"], rows, name=caption, caption=caption, text_columns=2)
