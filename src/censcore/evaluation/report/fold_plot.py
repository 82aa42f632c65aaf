"""A picture of the folds of a cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.lines import Line
from censcore.evaluation.report.draw import label_of
from censcore.evaluation.report.style import GREY, INK, new_figure, styled
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from censcore.evaluation.comparison import Comparison

__all__ = ["plot_folds"]


def plot_folds(comparison: Comparison, score: str | None = None, column: int = 0) -> Figure:
    """Mean losses of every fold, joined by fold, and the mean over all subjects with its interval.

    Parameters
    ----------
    comparison : Comparison
        What to draw.
    score : str, optional
        Which score; the first one if omitted.
    column : int
        Which of its times or levels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    known = {each.name: each for each in comparison.scores}
    name = next(iter(known)) if score is None else score
    if name not in known:
        raise InvalidInputError(f"score: got {name!r}, expected one of {', '.join(known)}.")
    places = comparison.design.places(comparison, known[name])
    if not 0 <= column < len(places):
        raise InvalidInputError(f"column: got {column}, expected 0 to {len(places) - 1}.")
    at = float(places[column])
    lines = [line for line in comparison.design.fold_lines(comparison) if line["score"] == name]
    lines = [line for line in lines if np.isnan(at) or line["at"] == at]
    with styled(grid=True):
        figure = new_figure(6.0, 1.6 + 0.5 * len(comparison.models))
        axes = figure.subplots()
        _draw_folds(axes, comparison.models, lines)
        for row, model in enumerate(comparison.models):
            estimate = comparison.estimate(model, name)
            if estimate is not None:
                _draw_mean(axes, row, estimate, column, comparison.confidence)
        axes.set_yticks(range(len(comparison.models)), [label_of(model) for model in comparison.models])
        axes.set_ylim(len(comparison.models) - 0.5, -0.5)
        where = "" if np.isnan(at) else f" at {at:.4g}"
        axes.set_xlabel(f"{label_of(known[name].title)}{where}: folds, and the mean with its interval")
        return figure


def _draw_folds(axes: Axes, models: list[str], lines: list[Line]) -> None:
    """One thin line per fold, so that folds that are hard for all models show as such."""
    folds = sorted({(line["repeat"], line["fold"]) for line in lines})
    for fold in folds:
        means = {line["model"]: line["mean"] for line in lines if (line["repeat"], line["fold"]) == fold}
        x = [means[model] for model in models]
        axes.plot(x, range(len(models)), color=GREY, lw=0.8, marker="o", ms=3.5, alpha=0.7, zorder=2)


def _draw_mean(axes: Axes, row: int, estimate: Estimate, column: int, confidence: float) -> None:
    low, high = (float(end[column]) for end in estimate.interval(confidence))
    value = float(estimate.value[column])
    axes.plot([low, high], [row, row], color=INK, lw=5, alpha=0.25, solid_capstyle="butt", zorder=1)
    axes.plot([value], [row], color=INK, marker="D", ms=6, zorder=4)
