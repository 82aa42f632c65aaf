"""How tables and figures of the study show a method and a number."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import pandas as pd

from censcore_studies.kit.figures import AMBER, GREY, RED, TEAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "draw_line", "number", "percent", "plus_minus"]

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


def plus_minus(value: float, error: float) -> str:
    """A number and its error, where there is one."""
    return f"{value:.4f}" if isnan(error) else f"{value:.4f} ± {error:.4f}"


def percent(value: float, error: float = float("nan")) -> str:
    """A share and its error in per cent; nothing where it is unknown."""
    if isnan(value):
        return ""
    return f"{value:.1f} %" if isnan(error) else f"{value:.1f} ± {error:.1f} %"


def number(value: float, form: str = ".4f") -> str:
    """A number; nothing where it is unknown."""
    return "" if isnan(value) else f"{value:{form}}"
