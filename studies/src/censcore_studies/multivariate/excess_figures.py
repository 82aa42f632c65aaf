"""The figures of excess over the truth: by method in every block, and by number of event times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from censcore_studies.kit.figures import new_figure, picture
from censcore_studies.multivariate.looks import COLOURS, draw_line
from censcore_studies.multivariate.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_dimension", "draw_excess"]


@picture
def draw_excess(summary: pd.DataFrame) -> Figure:
    """Excess over the truth of every method, ours filled and the printed one hollow; a row per block."""
    censorings = _everywhere(summary, ["scenario", "k"])
    summary = summary[summary["censoring"].isin(censorings)]
    blocks = list(dict.fromkeys(zip(summary["scenario"], summary["k"], strict=True)))
    inside = {(w, k): summary[(summary["scenario"] == w) & (summary["k"] == k)] for w, k in blocks}
    methods = {b: [m for m in METHODS if m in set(part["method"])] for b, part in inside.items()}
    heights = [len(methods[b]) + 1.5 for b in blocks]
    figure = new_figure(3.4 * len(censorings) + 1.7, 0.22 * sum(heights) + 0.6)
    grid = figure.subplots(
        len(blocks), len(censorings), sharex=True, sharey="row", squeeze=False, height_ratios=heights
    )
    for row, block in zip(grid, blocks, strict=True):
        for axes, censoring in zip(row, censorings, strict=True):
            part = inside[block]
            _dots(axes, part[part["censoring"] == censoring], methods[block])
            axes.set_title(f"{_block_title(*block)}, {censoring}", fontsize=9.5)
        row[0].set_yticks(range(len(methods[block])), methods[block], fontsize=9)
        row[0].set_ylim(len(methods[block]) - 0.4, -0.6)
    grid[0, 0].set_xscale("symlog", linthresh=2)
    grid[0, 0].set_xticks([0, 1, 2, 5, 10, 20, 50], ["0", "1", "2", "5", "10", "20", "50"])
    grid[0, 0].set_xlim(-0.15, 70)
    figure.supxlabel(
        "excess of the censored energy score over the true distribution, % (hollow: printed)", fontsize=10
    )
    return figure


def _block_title(scenario: str, k: int) -> str:
    return f"{'two regimes' if scenario == 'mixture' else 'one regime'}, k = {k}"


def _everywhere(summary: pd.DataFrame, within: list[str]) -> list[str]:
    """The kinds of censoring that all parts have; all kinds, if there is none of that sort."""
    kinds = list(summary["censoring"].unique())
    parts = [set(part["censoring"]) for _, part in summary.groupby(within)]
    return [kind for kind in kinds if all(kind in part for part in parts)] or kinds


def _dots(axes: Axes, part: pd.DataFrame, methods: list[str]) -> None:
    axes.grid(axis="x")
    for line in part.to_dict(orient="records"):
        y, colour = methods.index(line["method"]), COLOURS[line["method"]]
        error = 0.0 if np.isnan(line["censored excess se"]) else 2 * line["censored excess se"]
        axes.errorbar(line["censored excess %"], y, xerr=error, fmt="o", ms=5, color=colour, lw=1.5)
        printed = line.get("printed excess %", np.nan)
        if not np.isnan(printed):
            axes.plot(printed, y, "o", ms=7, mfc="none", color=colour, alpha=0.8)


@picture
def draw_dimension(summary: pd.DataFrame) -> Figure:
    """Excess over the truth as the number of event times grows, in the mixture scenario."""
    part = summary[summary["scenario"] == "mixture"]
    censorings = _everywhere(part, ["k"])
    figure = new_figure(3.6 * len(censorings) + 0.6, 3.9)
    panels = figure.subplots(1, len(censorings), sharey=True, squeeze=False)[0]
    for axes, censoring in zip(panels, censorings, strict=True):
        for method, line in part[part["censoring"] == censoring].groupby("method", sort=False):
            if line["k"].nunique() > 1:
                draw_line(axes, line.sort_values("k"), "k", str(method))
        axes.set_xscale("log")
        axes.set_xticks(sorted(part["k"].unique()), [str(k) for k in sorted(part["k"].unique())])
        axes.minorticks_off()
        axes.set_title(f"{censoring} censoring")
        axes.set_xlabel("event times, k")
    panels[0].set_ylabel("excess over the true distribution, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure
