"""The rank table and its figure: where each rule puts the true forecast, and how often."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.looks import COLOURS, REGIME_TITLES
from censcore_studies.forecast_evaluation.printed import PRINTED_RANKS
from censcore_studies.forecast_evaluation.rules import family
from censcore_studies.forecast_evaluation.scenario import REGIMES
from censcore_studies.forecast_evaluation.scoring import oracle_rank, replicated_cells, score_cell
from censcore_studies.kit.cells import run_cells
from censcore_studies.kit.figures import new_figure, picture
from censcore_studies.kit.tables import StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_ranks", "oracle_ranks", "rank_table", "rank_view", "report_ranks"]


def oracle_ranks(
    replications: int = 200,
    n: int = 1000,
    *,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """How often the oracle forecast has each rank, by rule and regime, beside the printed rank.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import oracle_ranks
    >>> table = oracle_ranks(replications=2, n=100, progress=False)
    >>> list(table.columns)
    ['rule', 'regime', 'printed', 'mode', 'rank 1', 'rank 2', 'rank 3', 'rank 4', 'rank 5', 'reproduced']
    """
    cells = replicated_cells(list(REGIMES), n, replications, seed)
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    return rank_table(results)


def rank_table(results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rank frequencies from the results of cells."""
    records = []
    for rule, printed in PRINTED_RANKS.items():
        for regime, expected in zip(REGIMES, printed, strict=True):
            ranks = [oracle_rank(r["means"][rule]) for r in results if r["settings"]["regime"] == regime]
            share = np.bincount(ranks, minlength=6)[1:6] / len(ranks)
            mode = int(share.argmax()) + 1
            row = {"rule": rule, "regime": regime, "printed": expected, "mode": mode}
            row |= {f"rank {i + 1}": float(s) for i, s in enumerate(share)}
            records.append(row | {"reproduced": bool(share[expected - 1] > 0.5)})
    return pd.DataFrame(records)


def rank_view(table: pd.DataFrame) -> pd.DataFrame:
    """Per rule and regime the printed rank, and the share of replications that reproduce it."""
    rows = []
    for rule, block in table.groupby("rule", sort=False):
        row = {"rule": rule}
        for line in block.to_dict(orient="records"):
            share = line[f"rank {line['printed']}"]
            row[line["regime"]] = (
                f"{line['printed']} ({100 * share:.0f} %){'' if line['reproduced'] else ' *'}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


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


def report_ranks(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """The rank table; draws ``oracle_ranks.png``."""
    draw_ranks(out / "oracle_ranks.png", table)
    caption = (
        f"Printed rank of the true forecast, and in brackets the share of {replications} draws of {n} "
        "subjects that reproduce it; * marks a rank that half of the draws or fewer reproduce."
    )
    return StudyTable("oracle_ranks", table, rank_view(table), caption)
