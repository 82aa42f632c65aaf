"""Pictures of the multivariate study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore_studies.kit.figures import AMBER, FAINT, GREY, INK, RED, TEAL, new_figure, picture
from censcore_studies.multivariate.calibration import JOINT_EVENTS
from censcore_studies.multivariate.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_calibration", "draw_dimension", "draw_excess", "draw_extension"]

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
_LAWS = {"true": "true law", "cox": "Cox, given x", "kaplan-meier": "Kaplan-Meier, pooled"}


def _block_title(world: str, k: int) -> str:
    return f"{'two regimes' if world == 'mixture' else 'one regime'}, k = {k}"


@picture
def draw_excess(summary: pd.DataFrame) -> Figure:
    """Excess over the truth of every method, ours filled and the printed one hollow; a row per block."""
    censorings = _everywhere(summary, ["world", "k"])
    summary = summary[summary["censoring"].isin(censorings)]
    blocks = list(dict.fromkeys(zip(summary["world"], summary["k"], strict=True)))
    inside = {(w, k): summary[(summary["world"] == w) & (summary["k"] == k)] for w, k in blocks}
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
        "excess of the censored energy score over the true law, % (hollow: printed)", fontsize=10
    )
    return figure


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
    """Excess over the truth as the number of event times grows, in the mixture world."""
    part = summary[summary["world"] == "mixture"]
    censorings = _everywhere(part, ["k"])
    figure = new_figure(3.6 * len(censorings) + 0.6, 3.9)
    panels = figure.subplots(1, len(censorings), sharey=True, squeeze=False)[0]
    for axes, censoring in zip(panels, censorings, strict=True):
        for method, line in part[part["censoring"] == censoring].groupby("method", sort=False):
            if line["k"].nunique() > 1:
                _line(axes, line.sort_values("k"), "k", str(method))
        axes.set_xscale("log")
        axes.set_xticks(sorted(part["k"].unique()), [str(k) for k in sorted(part["k"].unique())])
        axes.minorticks_off()
        axes.set_title(f"{censoring} censoring")
        axes.set_xlabel("event times, k")
    panels[0].set_ylabel("excess over the true law, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _line(axes: Axes, line: pd.DataFrame, x: str, method: str) -> None:
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


@picture
def draw_extension(summary: pd.DataFrame, setting: str, label: str) -> Figure:
    """Excess over the truth against one setting, a line per method; laws of C are names, not numbers."""
    summary = summary[summary["method"] != "DGP"]
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    if summary[setting].dtype == object:
        y = np.arange(len(summary))
        colours = [COLOURS[m] for m in summary["method"]]
        error = summary["censored excess se"].fillna(0.0)
        axes.barh(y, summary["censored excess %"], xerr=error, color=colours, ecolor=INK)
        names = summary["method"] if setting == "method" else summary[setting].map(_LAWS)
        axes.set_yticks(y, names)
        axes.invert_yaxis()
        axes.set_xlabel("excess over the true law, %")
        return figure
    for method, line in summary.groupby("method", sort=False):
        _line(axes, line.sort_values(setting), setting, str(method))
    ticks = sorted(summary[setting].unique())
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylabel("excess over the true law, %")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


@picture
def draw_calibration(calibration: dict[str, dict[str, Any]]) -> Figure:
    """Share of rows with a joint event against its predicted probability, a line per method."""
    figure = new_figure(3.1 * len(JOINT_EVENTS) + 0.4, 4.0)
    panels = figure.subplots(1, len(JOINT_EVENTS), sharey=True)
    for axes, event in zip(panels, JOINT_EVENTS, strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, lw=3, zorder=0)
        for method, events in calibration.items():
            curve = pd.DataFrame(events[event]).query("rows >= 20")
            axes.plot(curve["predicted"], curve["happened"], "o-", ms=4, color=COLOURS[method], label=method)
        axes.set_title(event)
        axes.set_xlabel("predicted probability")
        axes.set_aspect("equal")
    panels[0].set_ylabel("share with the event")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure
