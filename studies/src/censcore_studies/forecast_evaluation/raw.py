"""Mean scores beside the printed ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from censcore.scores import mean_loss
from censcore_studies.forecast_evaluation.arena import REGIMES
from censcore_studies.forecast_evaluation.printed import PRINTED_RAW
from censcore_studies.forecast_evaluation.scoring import (
    best_competitor,
    replicated_cells,
    score_cell,
    spread,
)
from censcore_studies.kit.cells import run_cells

__all__ = ["raw_scores"]


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

    ``z`` is the difference from the printed oracle score in standard deviations of one draw of ``n`` rows,
    since the printed value is one such draw. With ``large_n`` the oracle's mean in samples of that size and
    its standard error are given too: a better reference than any draw of 1000 rows.

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
    printed_oracle, printed_rival = PRINTED_RAW[rule][regime]
    oracle, rival = np.array([(m[rule]["F0"], best_competitor(m[rule])) for m in drawn]).T
    sd = spread(oracle)
    row = {
        "rule": rule,
        "regime": regime,
        "oracle": oracle.mean(),
        "oracle sd": sd,
        "printed oracle": printed_oracle,
        "z": (printed_oracle - oracle.mean()) / sd if sd > 1e-9 else float("nan"),
        "best competitor": rival.mean(),
        "printed competitor": printed_rival,
        "gap": (rival - oracle).mean(),
        "gap sd": spread(rival - oracle),
        "printed gap": printed_rival - printed_oracle,
    }
    if reference:
        far, far_rival = np.array([(m[rule]["F0"], best_competitor(m[rule])) for m in reference]).T
        row |= {
            "large-n oracle": far.mean(),
            "large-n oracle se": mean_loss(far).standard_error,
            "large-n gap": (far_rival - far).mean(),
            "large-n gap se": mean_loss(far_rival - far).standard_error,
        }
    return {name: float(v) if isinstance(v, np.floating) else v for name, v in row.items()}
