"""Colours and lines in the figures of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from censcore_studies.kit.figures import AMBER, GREY, RED, TEAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "draw_line"]

COLOURS = {
    "Latent engression": GREY,
    "Naive observed engression": RED,
    "Censored engression": TEAL,
    "Independent Weibull": "#c4b5fd",
    "MLP independent Weibull": "#8b5cf6",
    "Clayton-Weibull": "#fcd34d",
    "Clayton-Weibull, margins first": "#f59e0b",
    "MLP Clayton-Weibull": AMBER,
    "Gumbel-Weibull": "#93c5fd",
    "Joint grid likelihood": "#2563eb",
}


def draw_line(axes: Axes, line: pd.DataFrame, x: str, method: str) -> None:
    """Excess over the truth against one setting, with its standard errors."""
    axes.errorbar(
        line[x],
        line["censored excess %"],
        yerr=line["censored excess se"].fillna(0.0),
        color=COLOURS[method],
        marker="o",
        ms=4,
        lw=2 if method == "Censored engression" else 1.2,
        label=method,
    )
    axes.set_yscale("symlog", linthresh=2)
    axes.set_yticks([0, 1, 2, 5, 10, 20, 50], ["0", "1", "2", "5", "10", "20", "50"])
    axes.grid(axis="y")
