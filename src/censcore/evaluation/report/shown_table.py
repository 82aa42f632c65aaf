"""A table in words, for pages, papers and notes: CSV, LaTeX, Markdown, Word and HTML from one object."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from censcore.evaluation.report.export import latex_table, markdown_table
from censcore.evaluation.report.page import table
from censcore.exceptions import MissingPackageError
from censcore.files import as_path, write_atomically
from censcore.plain_text import html_text, one_line


@dataclass(frozen=True)
class ShownTable:
    """Plain text in rows, with a caption above and notes below.

    Examples
    --------
    >>> from censcore.evaluation.report.shown_table import ShownTable
    >>> print(ShownTable("Size.", ["measure", "value"], [["AUC", "0.68"]], []).markdown())
    Size.
    <BLANKLINE>
    | measure | value |
    |:--------|------:|
    | AUC     |  0.68 |
    <BLANKLINE>
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def latex(self) -> str:
        """For the package booktabs; notes are in the caption."""
        return latex_table(self.head, self.rows, " ".join([self.caption, *self.notes]))

    def markdown(self) -> str:
        """A pipe table between caption and notes."""
        parts = [self.caption, markdown_table(self.head, self.rows), *self.notes]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """A table of a page."""
        rows = [[html_text(cell) for cell in row] for row in self.rows]
        notes = "".join(f"<p class='soft'>{html_text(note)}</p>" for note in self.notes)
        head = [html_text(name) for name in self.head]
        return table(head, rows, name=self.caption, caption=html_text(self.caption)) + notes

    def text(self) -> list[str]:
        """Lines in columns, the first aligned left."""
        lines = [[one_line(cell) for cell in row] for row in (self.head, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return [
            "  ".join(f"{c:{'>' if j else '<'}{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in lines
        ]

    def word(self, path: str | PathLike[str]) -> None:
        """A Word document, by python-docx."""
        try:
            from docx import Document
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                "Word documents need python-docx: pip install 'censcore[word]'. to_markdown() and to_csv() "
                "need nothing."
            ) from error
        as_path(path)
        document, stream = Document(), io.BytesIO()
        document.add_paragraph(one_line(self.caption), style="Caption")
        grid = document.add_table(rows=0, cols=len(self.head), style="Table Grid")
        for row in (self.head, *self.rows):
            for cell, text in zip(grid.add_row().cells, row, strict=True):
                cell.text = one_line(text)
        for note in self.notes:
            document.add_paragraph(one_line(note))
        document.save(stream)
        write_atomically(path, stream.getvalue())
