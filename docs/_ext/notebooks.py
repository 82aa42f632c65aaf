"""Every page of the gallery as a notebook, with its outputs, to be downloaded from the page.

The outputs are those that the page shows, which the tests compare with what its code prints.
"""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*\.md)[^)]*\)")


def picture_of(page: Path) -> Path | None:
    """The picture that the page draws as ``figure``, if it draws one."""
    picture = page.with_suffix(".svg")
    return picture if f"]({picture.name})" in page.read_text(encoding="utf-8") else None


def notebook(page: Path) -> dict[str, Any]:
    """The page as a notebook in format 4.5."""
    text, cells, end = page.read_text(encoding="utf-8"), [], 0
    for fence in _FENCE.finditer(text):
        cells += prose(text[end : fence.start()], page)
        cells += code(*fence.groups())
        end = fence.end()
    cells += [shown(picture_of(page))] if picture_of(page) else []
    cells += prose(text[end:], page)
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def prose(text: str, page: Path) -> list[dict[str, Any]]:
    """A cell of text without pictures; links to other pages become their titles."""

    def title(link: re.Match[str]) -> str:
        found = re.search(r"^# (.+)$", (page.parent / link[2]).read_text(encoding="utf-8"), re.MULTILINE)
        return link[1] or (f"*{found[1]}*" if found else "")

    text = _LINK.sub(title, re.sub(r"!\[[^\]]*\]\([^)]*\)\n?", "", text)).strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": text}] if text else []


def code(language: str, source: str) -> list[dict[str, Any]]:
    """Cells that end where something is printed; commands of a shell begin with an exclamation mark."""
    if language == "console":
        command, _, output = source.removeprefix("$ ").partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command += "\n" + more
        return [cell("!" + command, output)]
    if ">>>" not in source:
        return [cell(source, "")]
    cells, lines = [], ""
    for example in doctest.DocTestParser().get_examples(source):
        lines += example.source
        if example.want:
            cells.append(cell(lines, example.want.replace("<BLANKLINE>\n", "\n")))
            lines = ""
    return cells + ([cell(lines, "")] if lines else [])


def cell(source: str, output: str) -> dict[str, Any]:
    found = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return _code_cell(source.rstrip("\n"), found)


def shown(picture: Path | None) -> dict[str, Any]:
    """A cell that shows ``figure``."""
    assert picture is not None
    svg = picture.read_text(encoding="utf-8")
    data = {"image/svg+xml": svg, "text/plain": "<Figure>"}
    return _code_cell("figure", [{"output_type": "display_data", "data": data, "metadata": {}}])


def _code_cell(source: str, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": source,
    }


def write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "generated" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for page in (Path(app.srcdir) / "gallery").glob("*.md"):
        if picture_of(page):
            (folder / f"{page.stem}.ipynb").write_text(json.dumps(notebook(page), indent=1), encoding="utf-8")


def offer(app: Sphinx, name: str, source: list[str]) -> None:
    """A link at the end of the page."""
    folder, _, stem = name.rpartition("/")
    if folder == "gallery" and picture_of(Path(app.srcdir) / f"{name}.md"):
        source[0] += f"\n\n{{download}}`This page as a notebook </generated/notebooks/{stem}.ipynb>`\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write, priority=1)
    app.connect("source-read", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
