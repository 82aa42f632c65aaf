"""The bare HTML of the report: a page without outside parts, notes and tables."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["grey", "note", "table", "whole_page"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Early acute kidney injury in intensive care</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1f2937 }}
body {{ max-width: 80rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.6rem; margin-bottom: .2rem }}
h2 {{ font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #e5e7eb }}
table {{ border-collapse: collapse; margin: .8rem 0; font-size: .85rem }}
table {{ font-variant-numeric: tabular-nums }}
th, td {{ padding: .22rem .5rem; text-align: right; border-bottom: 1px solid #eef0f3 }}
th {{ font-weight: 600; vertical-align: bottom }}
td:first-child, th:first-child {{ text-align: left }}
td {{ white-space: nowrap }}
.printed {{ color: #6b7280 }} .best {{ font-weight: 700 }} .error {{ color: #6b7280; font-size: .8rem }}
.note {{ color: #4b5563; font-size: .9rem; max-width: 52rem }} .wide {{ overflow-x: auto }}
img {{ max-width: 100% }} pre {{ font-size: .8rem; background: #f8fafc; padding: .8rem; overflow-x: auto }}
</style></head><body>
{body}
</body></html>
"""


def whole_page(sections: Sequence[str]) -> str:
    """The document with these sections."""
    return _PAGE.format(body="\n".join(sections))


def note(text: str) -> str:
    """A paragraph in small print."""
    return f'<p class="note">{text}</p>'


def grey(text: str) -> str:
    """Text that stands back, for printed numbers."""
    return f'<span class="printed">{text}</span>'


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
