"""How often each rule finds the truth, by number of subjects and by severity of censoring."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.data_regimes import DATA_REGIMES
from censcore_studies.forecast_evaluation.looks import COLOURS, REGIME_TITLES
from censcore_studies.forecast_evaluation.rules import RULES, family
from censcore_studies.forecast_evaluation.scenario import REGIMES
from censcore_studies.forecast_evaluation.scoring import oracle_rank, replicated_cells, score_cell
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.kit.figures import INK, new_figure, picture
from censcore_studies.kit.tables import StudyTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "SEVERITIES",
    "SIZES",
    "convergence",
    "convergence_view",
    "draw_convergence",
    "draw_severity",
    "report_convergence",
]

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)

SEVERITIES = (0.5, 1.0, 2.0, 4.0, 8.0)

_FEWEST = 4

_N_AT_SEVERITY = 1000

_LARGEST_DATA_SCENARIO = 10_000

TITLES = {
    "latent": "latent times (unknown in practice)",
    "plug-in": "weights from the forecast (plug-in)",
    "oracle weights": "weights from the truth",
    "ours": "forecast censored like the data",
}

_MARKERS = {"NLL": "o", "Brier MC": "v", "Brier": "s", "Pinball": "^", "RPS": "D", "CRPS": "P"}


def convergence(
    sizes: Sequence[int] = SIZES,
    severities: Sequence[float] = SEVERITIES,
    replications: int = 100,
    *,
    regimes: Sequence[str] = ("A", "B", "C", *DATA_REGIMES),
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """How often each rule puts the oracle first, by number of subjects and by severity of censoring.

    ``replications`` are those up to 1000 subjects. Means of larger samples vary less and cost more, so that
    their number falls as 1/n, but never below four. Severity divides the censoring times and is varied at
    1000 subjects. Scenarios like real studies go up to 10,000 subjects.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import convergence
    >>> table = convergence([100], [1.0], replications=2, regimes=["B"], progress=False)
    >>> list(table.columns)
    ['regime', 'n', 'severity', 'rule', 'oracle first', 'event rate', 'replications']
    """
    cells = [
        cell
        for regime in regimes
        for n in sizes
        if regime in REGIMES or n <= _LARGEST_DATA_SCENARIO
        for cell in replicated_cells([regime], n, _replications(n, replications), seed)
    ]
    for severity in severities:
        if severity != 1.0:
            r = _replications(2 * _N_AT_SEVERITY, replications)
            cells += [_severe(c, severity) for c in replicated_cells(regimes, _N_AT_SEVERITY, r, seed)]
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    frame = pd.DataFrame([row for result in results for row in _rows(result)])
    by = frame.groupby(["regime", "n", "severity", "rule"], sort=False)
    table = by.agg({"oracle first": "mean", "event rate": "mean"})
    return table.assign(replications=by.size()).reset_index()


def _replications(n: int, most: int) -> int:
    return min(most, max(_FEWEST, most * 1000 // n))


def _severe(cell: Cell, severity: float) -> Cell:
    settings = {**cell.settings, "severity": severity}
    return replace(cell, name=f"{cell.name}-severity{severity:g}", settings=settings)


def _rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    settings = result["settings"]
    return [
        {
            "regime": settings["regime"],
            "n": settings["n"],
            "severity": settings.get("severity", 1.0),
            "event rate": result["event_rate"],
            "rule": rule,
            "oracle first": oracle_rank(result["means"][rule]) == 1,
        }
        for rule in RULES
    ]


def convergence_view(table: pd.DataFrame) -> pd.DataFrame:
    """Share of replications with the oracle first, by number of subjects; one line per regime and rule."""
    sizes = table[table["severity"] == 1.0]
    wide = sizes.pivot_table(index=["regime", "rule"], columns="n", values="oracle first", sort=False)
    view = wide.map(lambda share: "" if isnan(share) else f"{100 * share:.0f} %").reset_index()
    view.columns = [f"n = {name:,}" if isinstance(name, int) else str(name) for name in view.columns]
    return view


@picture
def draw_convergence(table: pd.DataFrame) -> Figure:
    """Share of replications with the truth first against the number of subjects, a panel per regime."""
    figure = _panels(table[table["severity"] == 1.0], "n", "subjects in the evaluation data")
    figure.suptitle("More data help a proper rule, and only a proper rule", x=0.02, ha="left", fontsize=12)
    return figure


@picture
def draw_severity(table: pd.DataFrame) -> Figure:
    """Share of replications with the truth first against the severity of censoring, at 1000 subjects."""
    label = "censoring times divided by; events"
    figure = _panels(table[table["n"] == 1000], "severity", label)
    figure.suptitle("Heavier censoring to the right, 1000 subjects", x=0.02, ha="left", fontsize=12)
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


def report_convergence(out: Path, table: pd.DataFrame) -> StudyTable:
    """How often the truth comes first; draws ``convergence.png``, and ``severity.png`` where that varies."""
    draw_convergence(out / "convergence.png", table)
    if table["severity"].nunique() > 1:
        draw_severity(out / "severity.png", table)
    caption = (
        "Share of draws in which a rule puts the true forecast first, by number of subjects; "
        f"{table['replications'].max()} draws of up to 1,000 subjects, fewer of more subjects, at least "
        f"{table['replications'].min()}."
    )
    return StudyTable("convergence", table, convergence_view(table), caption)
