"""The table of raw scores and its figure: mean scores of the oracle and of its best competitor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore.scores import mean_loss
from censcore_studies.forecast_evaluation.printed import PRINTED_RAW
from censcore_studies.forecast_evaluation.scenario import REGIMES
from censcore_studies.forecast_evaluation.scoring import best_competitor, replicated_cells, score_cell, spread
from censcore_studies.kit.cells import run_cells
from censcore_studies.kit.figures import FAINT, INK, new_figure, picture
from censcore_studies.kit.tables import StudyTable, number, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_raw", "raw_scores", "raw_view", "report_raw"]


def raw_scores(
    n: int = 1000,
    replications: int = 20,
    *,
    large_n: int | None = None,
    large_replications: int = 4,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Mean scores of the oracle and of its best competitor beside the printed ones.

    ``z`` is the difference from the printed oracle score in standard deviations of one draw of ``n``
    subjects, since the printed value is one such draw. With ``large_n`` the oracle's mean in samples of that
    size and its standard error are given too: a better reference than any draw of 1000 subjects.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import raw_scores
    >>> table = raw_scores(n=100, replications=2, progress=False)
    >>> table.query("rule == 'RPS, Yanagisawa oracle' and regime == 'D'")["oracle"].round(4).item()
    6.25
    """
    cells = replicated_cells(list(REGIMES), n, replications, seed)
    large = [] if large_n is None else replicated_cells(list(REGIMES), large_n, large_replications, seed)
    results = run_cells(score_cell, cells + large, out, jobs=jobs, progress=progress)
    drawn, reference = results[: len(cells)], results[len(cells) :]
    return pd.DataFrame(
        [
            _raw_row(rule, regime, _of(drawn, regime), _of(reference, regime))
            for rule, by_regime in PRINTED_RAW.items()
            for regime in by_regime
        ]
    )


def _of(results: Sequence[dict[str, Any]], regime: str) -> list[dict[str, dict[str, float]]]:
    return [r["means"] for r in results if r["settings"]["regime"] == regime]


def _raw_row(
    rule: str,
    regime: str,
    drawn: list[dict[str, dict[str, float]]],
    reference: list[dict[str, dict[str, float]]],
) -> dict[str, Any]:
    printed_oracle, printed_best = PRINTED_RAW[rule][regime]
    oracle, best = np.array([(m[rule]["F0"], best_competitor(m[rule])) for m in drawn]).T
    sd = spread(oracle)
    row = {
        "rule": rule,
        "regime": regime,
        "oracle": oracle.mean(),
        "oracle sd": sd,
        "printed oracle": printed_oracle,
        "z": (printed_oracle - oracle.mean()) / sd if sd > 1e-9 else float("nan"),
        "best competitor": best.mean(),
        "printed competitor": printed_best,
        "gap": (best - oracle).mean(),
        "gap sd": spread(best - oracle),
        "printed gap": printed_best - printed_oracle,
    }
    if reference:
        far, far_best = np.array([(m[rule]["F0"], best_competitor(m[rule])) for m in reference]).T
        row |= {
            "large-n oracle": far.mean(),
            "large-n oracle se": mean_loss(far).standard_error,
            "large-n gap": (far_best - far).mean(),
            "large-n gap se": mean_loss(far_best - far).standard_error,
        }
    return {name: float(v) if isinstance(v, np.floating) else v for name, v in row.items()}


def raw_view(table: pd.DataFrame) -> pd.DataFrame:
    """Oracle score: mean and spread of one draw, printed, difference in such spreads, and at large n."""
    rows = []
    for line in table.to_dict(orient="records"):
        row = {
            "rule": line["rule"],
            "regime": line["regime"],
            "oracle ± sd": plus_minus(line["oracle"], line["oracle sd"]),
            "printed": f"{line['printed oracle']:.4f}",
            "z": number(line["z"], "+.1f"),
            "gap to the next": plus_minus(line["gap"], line["gap sd"]),
            "printed gap": f"{line['printed gap']:+.4f}",
        }
        if "large-n oracle" in line:
            row["large n ± se"] = plus_minus(line["large-n oracle"], line["large-n oracle se"])
            row["large-n gap"] = plus_minus(line["large-n gap"], line["large-n gap se"])
        rows.append(row)
    return pd.DataFrame(rows)


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


def report_raw(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """Mean scores; draws ``raw_scores.png`` where there are several draws."""
    if replications > 1:
        draw_raw(out / "raw_scores.png", table)
    caption = (
        f"Mean score of the true forecast over {replications} draws of {n} subjects with the standard "
        "deviation of one draw; z is the printed score minus ours in such standard deviations."
    )
    return StudyTable("raw_scores", table, raw_view(table), caption)
