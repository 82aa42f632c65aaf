"""A comparison as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.inference import MINIMUM_EVENTS
from censcore.evaluation.tables import CANNOT_TELL, NOT_AVAILABLE, Line, mean_lines

if TYPE_CHECKING:
    from censcore.evaluation.case_scores import CaseScore
    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.discrimination import Measure

__all__ = ["label", "lines_of", "p_text", "text_of"]


def label(score: str, at: float, axis: str) -> str:
    """A line of the table: the score, and the time or level it is taken at."""
    if np.isnan(at):
        return score
    return f"{score}, {'t = ' if axis == 'time' else 'level '}{at:.4g}"


def p_text(p: float) -> str:
    """A p-value in words; never zero, and "cannot tell" where there is none."""
    if np.isnan(p):
        return CANNOT_TELL
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def lines_of(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Score lines of all subjects: a title, and one cell per model."""
    known: list[CaseScore | Measure] = list(comparison.scores)
    if comparison.discrimination:
        known += comparison.pair_measures.measures
    of_name = {score.name: score for score in known}
    lines = [line for line in mean_lines(comparison) if line["by"] == ""]
    found = []
    for start in range(0, len(lines), len(comparison.models)):
        block = lines[start : start + len(comparison.models)]
        score, at = of_name[block[0]["score"]], block[0]["at"]
        name = label(score.title, at, score.axis) + ("" if block[0]["proper"] else " *")
        found.append((name, [_cell(line) for line in block]))
    return found


def _cell(line: Line) -> str:
    mean, error = line["mean"], line["standard_error"]
    if line["note"].startswith(NOT_AVAILABLE):
        return NOT_AVAILABLE
    if np.isinf(mean):
        return f"inf ({line['infinite']} subjects) "
    if line["note"].startswith(CANNOT_TELL):
        return f"{mean:.4f} ({CANNOT_TELL}) "
    best = "!" if line["rank"] == 1 else " "
    return f"{mean:.4f}{best}" if np.isnan(error) else f"{mean:.4f} ± {error:.4f}{best}"


def text_of(comparison: Comparison) -> str:
    """The table of all subjects, as plain text."""
    lines = lines_of(comparison)
    settings = comparison.settings
    width = max(len(name) for name, _ in lines)
    widths = [
        max(len(model), *(len(cells[i]) for _, cells in lines)) for i, model in enumerate(comparison.models)
    ]
    head = " " * width + "".join(f"  {m:>{w}}" for m, w in zip(comparison.models, widths, strict=True))
    body = [
        f"{name:{width}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
        for name, cells in lines
    ]
    text = [
        f"Comparison of {len(comparison.models)} forecasts on {settings['subjects']} subjects "
        f"({settings['events']} events), horizon {settings['horizon']:.6g}",
        "mean loss ± standard error, lower is better; ! marks the best",
        "",
        head,
        *body,
        "",
        f"censoring distribution: {settings['censoring distribution']}",
        f"standard errors: {settings['standard errors']}",
    ]
    if any(CANNOT_TELL in cell for _, cells in lines for cell in cells):
        text.append(
            f"{CANNOT_TELL}: fewer than {MINIMUM_EVENTS} effective events, or subjects beyond the time"
        )
    if any(name.endswith(" *") for name, _ in lines):
        text.append("* descriptive, not proper; higher is better")
    text += [f"note: {note}" for note in comparison.notes]
    text += [f"warning: {warning}" for warning in comparison.censoring.warnings]
    return "\n".join(line.rstrip() for line in text)
