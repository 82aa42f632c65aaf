"""The rank table: where each rule puts the true forecast, and how often."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.forecast_evaluation.arena import REGIMES
from censcore_studies.forecast_evaluation.printed import PRINTED_RANKS
from censcore_studies.forecast_evaluation.scoring import oracle_rank, replicated_cells, score_cell
from censcore_studies.kit.cells import run_cells

__all__ = ["oracle_ranks", "rank_table"]


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
