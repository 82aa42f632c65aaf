"""A comparison as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.inference import MINIMUM_EVENTS

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["label", "p_text", "text_of"]

CANNOT_TELL = "cannot tell"


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
    frame = comparison.frame()
    frame = frame[frame["by"] == ""]
    axes = {score.name: (score.title, score.axis) for score in comparison.scores}
    lines = []
    for (score, at), block in frame.groupby(["score", "at"], sort=False, dropna=False):
        title, axis = axes.get(score, (score.replace(":", ", "), "time"))
        cells = {row.model: _cell(row) for row in block.itertuples()}
        name = label(title, float(at), axis) + ("" if block["proper"].all() else " *")
        lines.append((name, [cells[model] for model in comparison.models]))
    return lines


def _cell(row: object) -> str:
    mean, error = row.mean, row.standard_error  # type: ignore[attr-defined]
    if row.note.startswith("not available"):  # type: ignore[attr-defined]
        return "not available"
    if np.isinf(mean):
        return f"inf ({row.infinite} subjects) "  # type: ignore[attr-defined]
    if row.note.startswith(CANNOT_TELL):  # type: ignore[attr-defined]
        return f"{mean:.4f} ({CANNOT_TELL}) "
    best = "!" if row.rank == 1 else " "  # type: ignore[attr-defined]
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
        f"Comparison of {len(comparison.models)} forecasts on {settings['rows']} rows "
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
