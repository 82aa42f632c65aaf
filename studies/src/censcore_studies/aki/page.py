"""The bare HTML of the report: a page without outside parts, notes and tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

__all__ = ["grey", "note", "table", "whole_page"]

_OWN_STYLE = """body { max-width: 80rem; } table { width: auto; font-size: .85rem; }
.scroll { width: fit-content; max-width: 100%; margin: .8rem 0; }
th, td { padding: .25rem .5rem; } thead th { white-space: normal; vertical-align: bottom; }
th[scope=row] { font-weight: 400; } th:first-child { text-align: left; }
.error { color: var(--soft); font-size: .8rem; }
pre { overflow-x: auto; background: var(--shade); padding: .8rem; }
.panels { display: flex; flex-wrap: wrap; gap: .5rem 1rem; } .panels img { max-width: 100%; height: auto; }
@media (min-width: 60rem) { th[scope=row] { white-space: nowrap; } }
"""


def whole_page(title: str, sections: Sequence[str]) -> str:
    """The document with these sections, in the style of the library's other pages."""
    style = resources.files("censcore.evaluation").joinpath("report.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}{_OWN_STYLE}</style></head>\n"
        f"<body><main>\n<h1>{title}</h1>\n" + "\n".join(sections) + "\n</main></body></html>\n"
    )


def note(text: str) -> str:
    """A paragraph in small print."""
    return f'<p class="soft">{text}</p>'


def grey(text: str) -> str:
    """Text that stands back, for printed numbers."""
    return f'<span class="soft">{text}</span>'


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first one names the line and stays in sight."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for name, *cells in lines
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
