"""The sensitivity table and its figure: scores and ranks under estimated censoring distributions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.looks import REGIME_TITLES
from censcore_studies.forecast_evaluation.printed import PRINTED_SENSITIVITY
from censcore_studies.forecast_evaluation.scoring import oracle_rank, replicated_cells, score_cell, spread
from censcore_studies.kit.cells import run_cells
from censcore_studies.kit.figures import GREY, TEAL, new_figure, picture
from censcore_studies.kit.tables import StudyTable, number, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ESTIMATORS", "draw_sensitivity", "report_sensitivity", "sensitivity", "sensitivity_view"]

FORECASTS = ("F0", "F1", "F2", "F3", "F4")

OURS = ("CRPS, ours", "Pinball, ours", "Brier, ours")

ESTIMATORS = ("kaplan-meier", "weibull", "cox", "weibull-x", "kaplan-meier-cv", "cox-cv", "weibull-x-cv")

TITLES = {
    "true": "true",
    "kaplan-meier": "Kaplan-Meier",
    "weibull": "Weibull",
    "cox": "Cox | x",
    "weibull-x": "Weibull | x",
    "kaplan-meier-cv": "Kaplan-Meier, cross-fitted",
    "weibull-cv": "Weibull, cross-fitted",
    "cox-cv": "Cox | x, cross-fitted",
    "weibull-x-cv": "Weibull | x, cross-fitted",
}


def sensitivity(
    n: int = 1000,
    replications: int = 20,
    *,
    estimators: Sequence[str] = ESTIMATORS,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Our scores under the true censoring distribution and under estimates of it, beside the printed ones.

    Pooled estimates ignore the covariates, which is wrong in regime C; conditional and cross-fitted ones are
    not in the publication. Columns: ``oracle first``, the share of replications; mean scores of F0 to F4;
    ``bias %``, what the estimate adds to the score of F0; ``z``, the printed score of F0 minus ours in
    standard deviations of one draw of ``n`` subjects.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import sensitivity
    >>> table = sensitivity(n=200, replications=2, estimators=["cox"], progress=False)
    >>> table.groupby("censoring distribution", sort=False).size().to_dict()
    {'true': 6, 'cox': 6}
    """
    names = (None, *estimators)
    cells = [
        replace(cell, name=f"{name or 'true'}-{cell.name}", settings={**cell.settings, "estimator": name})
        for name in names
        for cell in replicated_cells(["B", "C"], n, replications, seed, rules=list(OURS))
    ]
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    means: dict[tuple[str, str | None], list[Any]] = {}
    for r in results:
        means.setdefault((r["settings"]["regime"], r["settings"]["estimator"]), []).append(r["means"])
    return pd.DataFrame(
        [
            _row(regime, name, rule, means[regime, name], means[regime, None])
            for regime in ("B", "C")
            for name in names
            for rule in OURS
        ]
    )


def _row(
    regime: str, estimator: str | None, rule: str, means: list[Any], under_truth: list[Any]
) -> dict[str, Any]:
    score = rule.split(",")[0]
    printed = PRINTED_SENSITIVITY.get((regime, estimator or ""), {}).get(score, {})
    by_forecast = {f: np.array([m[rule][f] for m in means]) for f in FORECASTS}
    oracle, exact = by_forecast["F0"], np.array([m[rule]["F0"] for m in under_truth])
    row: dict[str, Any] = {
        "regime": regime,
        "censoring distribution": estimator or "true",
        "score": score,
        "oracle first": float(np.mean([oracle_rank(m[rule]) == 1 for m in means])),
    }
    row |= {f: float(values.mean()) for f, values in by_forecast.items()}
    row |= {"F0 sd": spread(oracle), "bias %": float(100 * (oracle / exact - 1).mean())}
    if not printed:
        return row
    row["z"] = (printed["F0"] - float(oracle.mean())) / spread(oracle)
    return row | {f"printed {f}": value for f, value in printed.items()}


def sensitivity_view(table: pd.DataFrame) -> pd.DataFrame:
    """How often the oracle is first, and what the estimate does to its score."""
    return pd.DataFrame(
        [
            {
                "censoring distribution": TITLES[line["censoring distribution"]],
                "regime": line["regime"],
                "score": line["score"],
                "oracle first": f"{100 * line['oracle first']:.0f} %",
                "oracle ± sd": plus_minus(line["F0"], line["F0 sd"]),
                "printed": number(line.get("printed F0")),
                "z": number(line.get("z"), "+.1f"),
                "bias": f"{line['bias %']:+.1f} %",
            }
            for line in table.to_dict(orient="records")
        ]
    )


@picture
def draw_sensitivity(table: pd.DataFrame) -> Figure:
    """How often the truth comes first under estimated censoring distributions, and the bias of its score."""
    names = list(table["censoring distribution"].unique())
    figure = new_figure(10.5, 0.38 * len(names) + 1.7)
    panels = figure.subplots(1, 4, sharey=True)
    for panel, (column, regime) in zip(
        panels, [(c, r) for r in ("B", "C") for c in ("oracle first", "bias %")], strict=True
    ):
        part = table[table["regime"] == regime]
        for i, (score, mark) in enumerate((("CRPS", "P"), ("Pinball", "^"), ("Brier", "s"))):
            line = part[part["score"] == score]
            y = [names.index(name) + 0.18 * (i - 1) for name in line["censoring distribution"]]
            panel.scatter(line[column], y, marker=mark, s=26, color=TEAL, alpha=0.85, label=score)
        panel.set_title(f"{REGIME_TITLES[regime]}: {'truth first' if column != 'bias %' else 'bias, %'}")
        panel.grid(axis="x")
        if column == "bias %":
            panel.axvline(0, color=GREY, lw=1)
        else:
            panel.set_xlim(-0.02, 1.02)
    panels[0].set_yticks(range(len(names)), [TITLES[name] for name in names])
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def report_sensitivity(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """Estimated censoring distributions; draws ``sensitivity.png``."""
    draw_sensitivity(out / "sensitivity.png", table)
    caption = (
        f"Our scores under estimated censoring distributions, {replications} draws of {n} subjects: how "
        "often the truth comes first, its mean score, the printed one, z as for the raw scores, and what the "
        "estimate adds to it."
    )
    return StudyTable("sensitivity", table, sensitivity_view(table), caption)
