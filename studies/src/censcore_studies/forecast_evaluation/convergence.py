"""How surely each rule finds the truth: as data grow, as censoring gets heavier, in worlds like real ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from censcore_studies.forecast_evaluation.arena import REGIMES
from censcore_studies.forecast_evaluation.data_regimes import DATA_REGIMES
from censcore_studies.forecast_evaluation.rules import RULES
from censcore_studies.forecast_evaluation.scoring import oracle_rank, replicated_cells, score_cell
from censcore_studies.kit.cells import Cell, run_cells

__all__ = ["SEVERITIES", "SIZES", "convergence"]

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
SEVERITIES = (0.5, 1.0, 2.0, 4.0, 8.0)
_FEWEST = 4
_ROWS_AT_SEVERITY = 1000
_LARGEST_DATA_WORLD = 10_000


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
    """How often each rule puts the oracle first, by number of rows and by severity of censoring.

    ``replications`` are those up to 1000 rows. Means of larger samples vary less and cost more, so their
    number falls as 1/n, though never below four. Severity divides the censoring times and is varied at 1000
    rows. Worlds like real studies go up to 10,000 rows.

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
        if regime in REGIMES or n <= _LARGEST_DATA_WORLD
        for cell in replicated_cells([regime], n, _replications(n, replications), seed)
    ]
    for severity in severities:
        if severity != 1.0:
            r = _replications(2 * _ROWS_AT_SEVERITY, replications)
            cells += [_severe(c, severity) for c in replicated_cells(regimes, _ROWS_AT_SEVERITY, r, seed)]
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
