"""The plot of ``censcore demo``: how good each forecast is over time, and by how much it beats the simplest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

COLOURS = {"Kaplan-Meier": "#6b7280", "Weibull": "#d97706", "Cox": "#0f766e"}
INK, FAINT = "#1f2937", "#e5e7eb"


def draw(curves: dict[str, np.ndarray], times: np.ndarray, path: Path) -> Path:
    """Brier scores (one row per woman, one column per time) over time, and paired gains over the first model.

    Parameters
    ----------
    curves : dict of array, (n, q)
        Losses of each model; the first model is the reference.
    times : array, (q,)
        Years.
    path : Path
        Where to write the picture.

    Returns
    -------
    Path
        ``path``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), dpi=160, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    level, gain = figure.subplots(1, 2, sharex=True)
    reference = next(iter(curves))
    for model, losses in curves.items():
        _band(level, times, losses, model)
        if model != reference:
            _band(gain, times, curves[reference] - losses, model)
    gain.axhline(0, color=COLOURS[reference], lw=2)
    _dress(level, "Brier score (IPCW), lower is better")
    _dress(gain, f"Brier score saved against {reference}, higher is better")
    figure.suptitle("Forecasts of breast-cancer recurrence, 686 women, five-fold out of sample", ...)
    figure.savefig(path)
    return path
