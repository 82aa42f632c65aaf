"""What an estimated law of C does to the scores and to the ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.printed import PRINTED_SENSITIVITY
from censcore_studies.forecast_evaluation.scoring import (
    oracle_rank,
    replicated_cells,
    score_cell,
    spread,
)
from censcore_studies.kit.cells import run_cells

__all__ = ["ESTIMATORS", "sensitivity"]

FORECASTS = ("F0", "F1", "F2", "F3", "F4")
OURS = ("CRPS, ours", "Pinball, ours", "Brier, ours")
ESTIMATORS = ("kaplan-meier", "weibull", "cox", "weibull-x", "kaplan-meier-cv", "cox-cv", "weibull-x-cv")


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
    """Our scores under the true law of C and under estimates of it, beside the printed ones.

    Pooled estimates ignore the covariates, which is wrong in regime C; conditional and cross-fitted ones are
    not in the publication. Columns: ``oracle first``, the share of replications; mean scores of F0 to F4;
    ``bias %``, what the estimate adds to the score of F0; ``z``, the printed score of F0 minus ours in
    standard deviations of one draw of ``n`` rows.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import sensitivity
    >>> table = sensitivity(n=200, replications=2, estimators=["cox"], progress=False)
    >>> table.groupby("law of C", sort=False).size().to_dict()
    {'true': 6, 'cox': 6}
    """
    laws = (None, *estimators)
    cells = [
        replace(cell, name=f"{law or 'true'}-{cell.name}", settings={**cell.settings, "estimator": law})
        for law in laws
        for cell in replicated_cells(["B", "C"], n, replications, seed, rules=list(OURS))
    ]
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    means: dict[tuple[str, str | None], list[Any]] = {}
    for r in results:
        means.setdefault((r["settings"]["regime"], r["settings"]["estimator"]), []).append(r["means"])
    return pd.DataFrame(
        [
            _row(regime, law, rule, means[regime, law], means[regime, None])
            for regime in ("B", "C")
            for law in laws
            for rule in OURS
        ]
    )


def _row(regime: str, law: str | None, rule: str, means: list[Any], under_truth: list[Any]) -> dict[str, Any]:
    score = rule.split(",")[0]
    printed = PRINTED_SENSITIVITY.get((regime, law or ""), {}).get(score, {})
    by_forecast = {f: np.array([m[rule][f] for m in means]) for f in FORECASTS}
    oracle, exact = by_forecast["F0"], np.array([m[rule]["F0"] for m in under_truth])
    row: dict[str, Any] = {
        "regime": regime,
        "law of C": law or "true",
        "score": score,
        "oracle first": float(np.mean([oracle_rank(m[rule]) == 1 for m in means])),
    }
    row |= {f: float(values.mean()) for f, values in by_forecast.items()}
    row |= {"F0 sd": spread(oracle), "bias %": float(100 * (oracle / exact - 1).mean())}
    if not printed:
        return row
    row["z"] = (printed["F0"] - float(oracle.mean())) / spread(oracle)
    return row | {f"printed {f}": value for f, value in printed.items()}
