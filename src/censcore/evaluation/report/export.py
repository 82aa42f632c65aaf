r"""A comparison for papers, notes and programs: LaTeX (booktabs), Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.report.table_lines import difference_lines, mean_lines, shown_lines
from censcore.evaluation.report.text import Grid, capital, legend_of, shown_grids
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}", "%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#", "<": r"\textless{}",
    ">": r"\textgreater{}", "±": r"$\pm$", "−": "$-$", "*": r"$^*$", "≤": r"$\le$", "≥": r"$\ge$",
    "[": "{[}", "]": "{]}",  # the end of a line before would take them for its argument
}  # fmt: skip
MARKDOWN = "\\`*_[]<>|~#&$"  # letters that would be read as markup


def comparison_json(comparison: Comparison) -> str:
    """Verdict, settings, means, differences and notes of a comparison."""
    document = {
        "verdict": comparison.verdict.to_dict(),
        "verdicts": [verdict.to_dict() for verdict in comparison.verdicts],
        "settings": comparison.settings,
        "means": shown_lines(comparison, mean_lines(comparison)),
        "differences": shown_lines(comparison, difference_lines(comparison)),
        "censoring": comparison.censoring.to_dict(),
        "notes": comparison.notes,
    }
    return as_json(document)


def as_json(document: Any) -> str:
    """A document as JSON, in which None stands for NaN and "inf" for infinity."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: None and "inf" stand for them."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def comparison_latex(comparison: Comparison) -> str:
    """The tables of a comparison, the verdict in the caption of the first."""
    grids = shown_grids(comparison)
    tables = []
    for i, grid in enumerate(grids):
        words = [*(str(v) for v in comparison.verdicts), *legend_of(grids)] if i == 0 else []
        caption = " ".join([capital(grid.title) + ".", *(word.rstrip(".") + "." for word in words)])
        tables.append(latex_table(["forecast", *grid.columns], _rows(grid), caption))
    return "\n".join(tables)


def comparison_markdown(comparison: Comparison) -> str:
    """The verdict and the tables of a comparison."""
    grids = shown_grids(comparison)
    parts = [_inert(str(verdict)) for verdict in comparison.verdicts]
    for grid in grids:
        parts += [_inert(capital(grid.title)) + ":", markdown_table(["forecast", *grid.columns], _rows(grid))]
    return "\n\n".join([*parts, *map(_inert, legend_of(grids))]) + "\n"


def _rows(grid: Grid) -> list[list[str]]:
    return [[model, *(cell.text + cell.mark for cell in row)] for model, row in grid.rows.items()]


def latex_text(text: str) -> str:
    r"""Text with every letter that LaTeX reads as a command made inert.

    Examples
    --------
    >>> from censcore.evaluation.report.export import latex_text
    >>> print(latex_text("a_b & 5 % ± 1"))
    a\_b \& 5 \% $\pm$ 1
    """
    return "".join(LATEX.get(letter, letter) for letter in one_line(text))


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    r"""A table of the booktabs package; the first column is aligned left.

    Examples
    --------
    >>> from censcore.evaluation.report.export import latex_table
    >>> print(latex_table(["rule", "first"], [["CRPS", "98 %"]], "Ranks."))
    \begin{table}
    \centering
    \caption{Ranks.}
    \begin{tabular}{lr}
    \toprule
    rule & first \\
    \midrule
    CRPS & 98 \% \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    lines = [" & ".join(map(latex_text, row)) + r" \\" for row in (head, *rows)]
    parts = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        lines[0],
        r"\midrule",
        *lines[1:],
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(parts)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], inert: bool = True) -> str:
    """A pipe table; the first column is aligned left. ``inert=False`` keeps markup within cells.

    Examples
    --------
    >>> from censcore.evaluation.report.export import markdown_table
    >>> print(markdown_table(["rule", "rank"], [["CRPS", "1"]]))
    | rule | rank |
    |:-----|-----:|
    | CRPS |    1 |
    """
    shown = [[_inert(text) if inert else text.replace("|", r"\|") for text in row] for row in (head, *rows)]
    widths = [max(3, *(len(row[j]) for row in shown)) for j in range(len(head))]
    lines = []
    for row in shown:
        cells = [f"{c:>{w}}" if j else f"{c:<{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("| " + " | ".join(cells) + " |")
    rule = [":" + "-" * (w + 1) if j == 0 else "-" * (w + 1) + ":" for j, w in enumerate(widths)]
    lines.insert(1, "|" + "|".join(rule) + "|")
    return "\n".join(lines)


def _inert(text: str) -> str:
    escaped = "".join(f"\\{letter}" if letter in MARKDOWN else letter for letter in one_line(text))
    return re.sub(r"^(\d*)([-+.)])(?=\s|$)", r"\1\\\2", escaped)  # would begin a list
