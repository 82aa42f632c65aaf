"""The plot of ``censcore demo``: how good each forecast is over time, and its gain over the simplest."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import censcore as cs
from censcore.evaluation.report.style import AMBER, GREY, TEAL, new_figure, styled
from censcore.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

COLOURS = {"Kaplan-Meier": GREY, "Weibull": AMBER, "Cox": TEAL}
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11, "pad": 10}


def draw(curves: dict[str, np.ndarray], times: np.ndarray, path: Path) -> Path:
    """Draw Brier scores (subjects, times) of each model, and paired gains over the first, with 95 % bands."""
    reference, *others = curves
    with styled(grid=True):
        figure = new_figure(11.5, 5.0)
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
        level, gain = figure.subplots(1, 2)
        for model, losses in curves.items():
            _band(level, times, losses, COLOURS[model])
        for model in others:
            _band(gain, times, curves[reference] - curves[model], COLOURS[model])
        gain.axhline(0, color=COLOURS[reference], lw=2.2)
        _label_ends(level, times, {model: losses.mean(axis=0) for model, losses in curves.items()})
        gains = {model: (curves[reference] - curves[model]).mean(axis=0) for model in others}
        _label_ends(gain, times, {reference: np.zeros_like(times), **gains})
        level.set_title("Brier score, IPCW scale (lower is better)", **TITLE)
        gain.set_title(f"Brier score saved against {reference} (higher is better)", **TITLE)
        for axes in (level, gain):
            axes.set_xlabel("years of follow-up")
            axes.set_xlim(0, np.ceil(times[-1]))
            axes.margins(y=0.03)
        level.set_ylim(bottom=0)
        women = len(curves[reference])
        figure.suptitle(
            f"Forecasting breast-cancer recurrence: {women} women, out of sample, 95 % bands",
            x=0.0115, ha="left", fontsize=13.5, fontweight="bold",
        )  # fmt: skip
        picture = io.BytesIO()
        figure.savefig(picture, dpi=160)
    return write_atomically(path, picture.getvalue())


def _band(axes: Axes, times: np.ndarray, losses: np.ndarray, colour: str) -> None:
    """Mean over the subjects with its pointwise 95 % interval."""
    mean, error = cs.mean_loss(losses)
    low, high = mean - 1.96 * error, mean + 1.96 * error
    axes.fill_between(times, low, high, color=colour, alpha=0.08, lw=0)
    for edge in (low, high):
        axes.plot(times, edge, color=colour, lw=0.8, alpha=0.45)
    axes.plot(times, mean, color=colour, lw=2.2, solid_capstyle="round")


def _label_ends(axes: Axes, times: np.ndarray, means: dict[str, np.ndarray]) -> None:
    """Write each name at the end of its line, pushed apart where lines meet."""
    low, high = axes.get_ylim()
    gap, last = 0.05 * (high - low), -np.inf
    for model in sorted(means, key=lambda model: means[model][-1]):
        height = max(float(means[model][-1]), last + gap)
        last = height
        axes.annotate(
            model, (np.ceil(times[-1]), height), xytext=(6, 0), textcoords="offset points", va="center",
            color=COLOURS[model], fontweight="bold", annotation_clip=False,
        )  # fmt: skip
