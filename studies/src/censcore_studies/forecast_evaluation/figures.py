"""Pictures of the forecast study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.rules import family
from censcore_studies.forecast_evaluation.views import LAWS
from censcore_studies.kit.figures import AMBER, FAINT, GREY, INK, RED, TEAL, new_figure, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_convergence", "draw_ranks", "draw_raw", "draw_sensitivity", "draw_severity"]

COLOURS = {"latent": GREY, "plug-in": RED, "oracle weights": AMBER, "ours": TEAL}
TITLES = {
    "latent": "latent times, known to nobody",
    "plug-in": "weights from the forecast (plug-in)",
    "oracle weights": "weights from the truth",
    "ours": "forecast censored like the data",
}
REGIME_TITLES = {
    "A": "A  end of study",
    "B": "B  random",
    "C": "C  depends on x",
    "D": "D  trap",
    "lung cancer": "like lung cancer",
    "breast cancer": "like breast cancer",
    "kidney transplant": "like kidney transplant",
}
_MARKERS = {"NLL": "o", "Brier MC": "v", "Brier": "s", "Pinball": "^", "RPS": "D", "CRPS": "P"}


@picture
def draw_ranks(table: pd.DataFrame) -> Figure:
    """How often each rule puts the truth first, as a chart of coloured cells."""
    from matplotlib.colors import LinearSegmentedColormap

    rules, regimes = list(table["rule"].unique()), list(table["regime"].unique())
    first = table.pivot_table(index="rule", columns="regime", values="rank 1", sort=False).loc[rules, regimes]
    figure = new_figure(7.4, 0.33 * len(rules) + 1.3)
    axes = figure.subplots()
    colours = LinearSegmentedColormap.from_list("share", ["#fecaca", "#fef3c7", "#99f6e4"])
    axes.imshow(first, cmap=colours, vmin=0, vmax=1, aspect="auto")
    for i in range(len(rules)):
        for j in range(len(regimes)):
            axes.text(j, i, f"{100 * first.iat[i, j]:.0f} %", ha="center", va="center", fontsize=9)
    for edge in np.flatnonzero(np.diff([list(COLOURS).index(family(r)) for r in rules])) + 0.5:
        axes.axhline(edge, color="white", lw=4)
    axes.set_xticks(range(len(regimes)), [REGIME_TITLES[r] for r in regimes])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rules)), rules)
    for label, rule in zip(axes.get_yticklabels(), rules, strict=True):
        label.set_color(COLOURS[family(rule)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.suptitle("How often the true forecast comes first", x=0.02, ha="left", fontsize=12)
    return figure


@picture
def draw_convergence(table: pd.DataFrame) -> Figure:
    """Share of replications with the truth first against the number of rows, a panel per regime."""
    figure = _panels(table[table["severity"] == 1.0], "n", "rows in the evaluation data")
    figure.suptitle("More data help a proper rule, and only a proper rule", x=0.02, ha="left", fontsize=12)
    return figure


@picture
def draw_severity(table: pd.DataFrame) -> Figure:
    """Share of replications with the truth first against what divides the censoring times, at 1000 rows."""
    label = "censoring times divided by; events"
    figure = _panels(table[table["n"] == 1000], "severity", label)
    figure.suptitle("Heavier censoring to the right, 1000 rows", x=0.02, ha="left", fontsize=12)
    return figure


def _panels(table: pd.DataFrame, x: str, label: str) -> Figure:
    regimes = list(table["regime"].unique())
    columns = min(3, len(regimes))
    rows = -(-len(regimes) // columns)
    figure = new_figure(3.7 * columns + 0.4, 2.9 * rows + 0.9)
    panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).ravel()
    for axes, regime in zip(panels, regimes, strict=False):
        _lines(axes, table[table["regime"] == regime], x)
        axes.set_title(REGIME_TITLES.get(regime, regime))
        axes.set_xscale("log")
        if x == "severity":
            _event_rates(axes, table[table["regime"] == regime])
    for axes in panels[len(regimes) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("truth comes first")
    for axes in panels[max(0, len(regimes) - columns) : len(regimes)]:
        axes.set_xlabel(label)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _event_rates(axes: Axes, table: pd.DataFrame) -> None:
    rates = table.groupby("severity")["event rate"].mean()
    labels = [f"{severity:g}\n{100 * rate:.0f} %" for severity, rate in rates.items()]
    axes.set_xticks(list(rates.index), labels)
    axes.minorticks_off()


def _lines(axes: Axes, table: pd.DataFrame, x: str) -> None:
    for rule, line in table.groupby("rule", sort=False):
        kind = family(str(rule))
        line = line.sort_values(x)
        axes.plot(
            line[x],
            line["oracle first"],
            color=COLOURS[kind],
            marker=_MARKERS[str(rule).removeprefix("Censored ").split(",")[0]],
            ms=4,
            lw=1.8 if kind in ("ours", "plug-in") else 1.0,
            alpha=1.0 if kind in ("ours", "plug-in") else 0.55,
            zorder=3 if kind == "ours" else 2,
        )
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks([0, 0.5, 1], ["never", "half", "always"])
    axes.grid(axis="y")


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    kinds = [Line2D([], [], color=COLOURS[kind], lw=2.5, label=TITLES[kind]) for kind in COLOURS]
    marks = [
        Line2D([], [], color=INK, marker=mark, ls="", ms=5, label=name) for name, mark in _MARKERS.items()
    ]
    return [*kinds, *marks]


@picture
def draw_raw(table: pd.DataFrame) -> Figure:
    """Printed oracle scores against ours, in standard deviations of one draw of that size."""
    table = table.dropna(subset=["z"])
    rules = list(table["rule"].unique())
    figure = new_figure(7.6, 0.3 * len(rules) + 1.4)
    axes = figure.subplots()
    axes.axvspan(-2, 2, color=FAINT, zorder=0)
    for regime, mark in zip(table["regime"].unique(), "os^D", strict=False):
        line = table[table["regime"] == regime]
        y = np.array([rules.index(r) for r in line["rule"]]) + 0.14 * ("ABCD".index(regime) - 1.5)
        axes.scatter(line["z"], y, marker=mark, s=22, color=INK, alpha=0.75, label=f"regime {regime}")
    axes.set_yticks(range(len(rules)), rules)
    axes.invert_yaxis()
    axes.set_xlabel("printed minus ours, in standard deviations of one draw")
    axes.set_xlim(-3, 3)
    figure.suptitle("Printed scores of the oracle look like draws of ours", x=0.02, ha="left", fontsize=12)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@picture
def draw_sensitivity(table: pd.DataFrame) -> Figure:
    """How often the truth comes first when the law of C is estimated, and the bias of its score."""
    laws = list(table["law of C"].unique())
    figure = new_figure(10.5, 0.38 * len(laws) + 1.7)
    panels = figure.subplots(1, 4, sharey=True)
    for panel, (column, regime) in zip(
        panels, [(c, r) for r in ("B", "C") for c in ("oracle first", "bias %")], strict=True
    ):
        part = table[table["regime"] == regime]
        for i, (score, mark) in enumerate((("CRPS", "P"), ("Pinball", "^"), ("Brier", "s"))):
            line = part[part["score"] == score]
            y = [laws.index(name) + 0.18 * (i - 1) for name in line["law of C"]]
            panel.scatter(line[column], y, marker=mark, s=26, color=TEAL, alpha=0.85, label=score)
        panel.set_title(f"{REGIME_TITLES[regime]}: {'truth first' if column != 'bias %' else 'bias, %'}")
        panel.grid(axis="x")
        if column == "bias %":
            panel.axvline(0, color=GREY, lw=1)
        else:
            panel.set_xlim(-0.02, 1.02)
    panels[0].set_yticks(range(len(laws)), [LAWS.get(name, name) for name in laws])
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
