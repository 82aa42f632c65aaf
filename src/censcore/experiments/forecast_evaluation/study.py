"""The three tables of the study, and what replication adds to them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from censcore._arrays import to_numpy
from censcore.experiments._cells import Cell, run_cells
from censcore.experiments.forecast_evaluation.arena import REGIMES, StudySettings, build_arena
from censcore.experiments.forecast_evaluation.printed import PRINTED_RANKS, PRINTED_RAW, PRINTED_SENSITIVITY
from censcore.experiments.forecast_evaluation.rules import RULES

__all__ = [
    "oracle_rank",
    "oracle_ranks",
    "rank_table",
    "raw_scores",
    "replicated_cells",
    "score_cell",
    "sensitivity",
]

OURS = ("CRPS, ours", "Pinball, ours", "Brier, ours")
ESTIMATORS = ("kaplan-meier", "weibull", "cox", "weibull-x", "kaplan-meier-cv", "cox-cv")


def score_cell(settings: dict[str, Any]) -> dict[str, Any]:
    """Mean loss and its standard error by rule and forecast, for one regime and one seed.

    Examples
    --------
    >>> from censcore.experiments.forecast_evaluation import score_cell
    >>> result = score_cell({"regime": "B", "n": 200, "seed": 1, "rules": ["CRPS, ours"]})
    >>> min(result["means"]["CRPS, ours"], key=result["means"]["CRPS, ours"].get)
    'F0'
    """
    study = replace(StudySettings(), severity=settings.get("severity", 1.0))
    arena = build_arena(settings["regime"], settings["n"], settings["seed"], study, settings.get("estimator"))
    means: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    for rule in settings.get("rules") or list(RULES):
        losses = {name: to_numpy(RULES[rule](arena, f)) for name, f in arena.candidates.items()}
        means[rule] = {name: float(loss.mean()) for name, loss in losses.items()}
        errors[rule] = {name: _standard_error(loss) for name, loss in losses.items()}
    return {"means": means, "errors": errors, "event_rate": float(arena.y.event.mean())}


def _standard_error(loss: np.ndarray) -> float:
    if not np.isfinite(loss).all():
        return float("inf")
    return float(loss.std(ddof=1) / np.sqrt(len(loss)))


def replicated_cells(regimes: Sequence[str], n: int, replications: int, seed: int, **more: Any) -> list[Cell]:
    """One cell per regime and seed; what is left at its default is left out, so that studies share cells."""
    return [
        Cell(f"{regime.replace(' ', '_')}-n{n}-{r}", {"regime": regime, "n": n, "seed": seed + r, **more})
        for regime in regimes
        for r in range(replications)
    ]


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
    >>> from censcore.experiments.forecast_evaluation import oracle_ranks
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


def oracle_rank(means: dict[str, float]) -> int:
    """One plus the number of forecasts with a smaller mean loss than F0."""
    return 1 + sum(value < means["F0"] for name, value in means.items() if name != "F0")


def raw_scores(
    n: int = 1000,
    replications: int = 20,
    *,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Mean scores of the oracle and of its best competitor beside the printed ones.

    ``z`` is the difference from the printed oracle score in standard deviations of one draw of ``n`` rows:
    the printed value is one such draw.
    """
    cells = replicated_cells(list(REGIMES), n, replications, seed)
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    records = []
    for rule, by_regime in PRINTED_RAW.items():
        for regime, (printed_oracle, printed_rival) in by_regime.items():
            means = [r["means"][rule] for r in results if r["settings"]["regime"] == regime]
            oracle = np.array([m["F0"] for m in means])
            rival = np.array([min(v for name, v in m.items() if name != "F0") for m in means])
            spread = float(oracle.std(ddof=1)) if len(oracle) > 1 else float("nan")
            records.append(
                {
                    "rule": rule,
                    "regime": regime,
                    "oracle": float(oracle.mean()),
                    "se": spread / np.sqrt(len(oracle)),
                    "printed oracle": printed_oracle,
                    "z": (printed_oracle - float(oracle.mean())) / spread if spread > 1e-9 else float("nan"),
                    "best competitor": float(rival.mean()),
                    "printed competitor": printed_rival,
                    "ratio": float(rival.mean() / oracle.mean()),
                    "printed ratio": printed_rival / printed_oracle,
                }
            )
    return pd.DataFrame(records)


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
    """Our scores under the true law of C and under estimates of it: means, and how often the oracle is first.

    Pooled estimates ignore the covariates, which is wrong in regime C; conditional and cross-fitted ones are
    not in the publication.
    """
    cells = [
        cell
        for estimator in (None, *estimators)
        for cell in _namedreplicated_cells(
            estimator, replicated_cells(["B", "C"], n, replications, seed, rules=list(OURS))
        )
    ]
    results = run_cells(score_cell, cells, out, jobs=jobs, progress=progress)
    records = []
    for regime in ("B", "C"):
        for estimator in (None, *estimators):
            chosen = [r for r in results if _is(r, regime, estimator)]
            for rule in OURS:
                records.append(_sensitivity_row(regime, estimator, rule, chosen))
    return pd.DataFrame(records)


def _namedreplicated_cells(estimator: str | None, cells: list[Cell]) -> list[Cell]:
    return [Cell(f"{estimator or 'true'}-{c.name}", {**c.settings, "estimator": estimator}) for c in cells]


def _is(result: dict[str, Any], regime: str, estimator: str | None) -> bool:
    return result["settings"]["regime"] == regime and result["settings"]["estimator"] == estimator


def _sensitivity_row(
    regime: str, estimator: str | None, rule: str, results: list[dict[str, Any]]
) -> dict[str, Any]:
    score = rule.split(",")[0]
    printed = PRINTED_SENSITIVITY.get((regime, estimator or ""), {}).get(score, {})
    means = {
        f: float(np.mean([r["means"][rule][f] for r in results])) for f in ("F0", "F1", "F2", "F3", "F4")
    }
    first = float(np.mean([oracle_rank(r["means"][rule]) == 1 for r in results]))
    row: dict[str, Any] = {
        "regime": regime,
        "law of C": estimator or "true",
        "score": score,
        "oracle first": first,
    }
    return row | means | {f"printed {f}": value for f, value in printed.items()}
