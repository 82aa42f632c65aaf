"""What the intervals of forecast risks of the default stack cover, where the truth is known."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.kit.cells import Cell, finished_cells, run_cells
from censcore_studies.kit.tables import StudyTable
from censcore_studies.stack_scenarios.models import MODELS, OURS
from censcore_studies.stack_scenarios.scenarios import SCENARIOS, Scenario

__all__ = ["CHOSEN", "interval_cells", "interval_of", "report_intervals", "run_intervals"]

#: Raise the number when the same settings give other intervals.
STUDY = "stack-intervals 1"
CHOSEN = (
    "proportional hazards",
    "cure",
    "75 % censored",
    "crossing curves",
    "squares and products",
    "sine and sign, 30 covariates",
)
NEW, OTHERS, ALIKE, SHARES = 100, 1000, 30, (0.2, 0.4, 0.6)


def interval_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit the stack, and forecast the risks of the same new subjects for every seed.

    Parameters
    ----------
    settings : dict
        ``scenario``, ``n``, ``seed``.

    Returns
    -------
    dict
        Lists over new subjects, times and event times: ``forecast``, ``low`` and ``high`` ends, the ``true``
        risk, and ``alike``, the mean true risk of subjects with such a forecast: the 30 of 1,000 others whose
        forecasts are the nearest.
    """
    scenario, seed = SCENARIOS[settings["scenario"]], settings["seed"]
    rng = np.random.default_rng(7)
    X, others = (rng.normal(size=(n, scenario.covariates)) for n in (NEW, OTHERS))
    times = _times(scenario, others, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = MODELS[OURS](seed).fit(*scenario.sample(settings["n"], seed))
        ends = stack.risk_interval(X, times)
        p, of_others = (1 - stack.predict_survival_function(Z, times) for Z in (X, others))
    ends = ends.reshape(NEW, len(times), -1, 2)
    p, of_others = (values.reshape(len(values), len(times), -1) for values in (p, of_others))
    nearest = np.argsort(np.abs(p[:, None] - of_others), axis=1)[:, :ALIKE]
    alike = np.take_along_axis(_risk(scenario, others, times, 1000, rng)[None], nearest, axis=1).mean(axis=1)
    found = {"forecast": p, "low": ends[..., 0], "high": ends[..., 1], "alike": alike}
    found["true"] = _risk(scenario, X, times, 10_000, rng)
    return {name: values.round(5).tolist() for name, values in found.items()}


def _times(scenario: Scenario, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Times by which 20, 40 and 60 % of the events have come that come within four fifths of follow-up."""
    T = scenario.times(X, 1, rng)
    return np.quantile(T[0.8 * scenario.end > T], SHARES)


def _risk(
    scenario: Scenario, X: np.ndarray, times: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """P(T <= t) of subjects, times and event times."""
    T = scenario.times(X, draws, rng)
    return np.stack([(t >= T).mean(axis=1) for t in times], axis=1)


def interval_cells(sizes: Sequence[int], seeds: int) -> list[Cell]:
    """One cell per seed, size and scenario: all of the first seed, then of the second, ..."""
    return [
        Cell(
            f"intervals-{seed}-{n}-{scenario}".replace(" ", "-").replace(",", "").replace("%", "percent"),
            {"scenario": scenario, "n": n, "seed": seed},
            {"study": STUDY},
        )
        for seed in range(seeds)
        for n in sizes
        for scenario in CHOSEN
    ]


def run_intervals(
    out: str | os.PathLike[str], sizes: Sequence[int], seeds: int, *, jobs: int = 1, progress: bool = True
) -> None:
    """Compute intervals of all seeds; finished cells are kept in ``out/cells``."""
    run_cells(interval_of, interval_cells(sizes, seeds), out, jobs=jobs, progress=progress)


def report_intervals(out: str | os.PathLike[str]) -> StudyTable:
    """The table of what the intervals cover, of all finished cells."""
    groups: dict[tuple[int, str], list[dict[str, np.ndarray]]] = {}
    for cell in finished_cells(out, STUDY):
        settings = cell["settings"]
        values = {name: np.array(cell[name]) for name in ("forecast", "low", "high", "alike", "true")}
        groups.setdefault((settings["n"], settings["scenario"]), []).append(values)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], CHOSEN.index(item[0][1])))
    table = pd.DataFrame([_row(n, scenario, cells) for (n, scenario), cells in ordered])
    view = table.copy()
    for name in ("mean forecast", "such forecasts", "own risk"):
        view[name] = [f"{100 * value:.1f} %" for value in table[name]]
    view["width"] = [f"{value:.3f}" for value in table["width"]]
    caption = (
        "How often 95 % intervals of the default stack cover the mean forecast of the stacks of all other "
        "data sets, the mean true risk of subjects with such a forecast, and the true risk of the subject; "
        "over data sets, 100 new subjects, three times and all event times."
    )
    return StudyTable("intervals", table, view.astype(str), caption)


def _row(n: int, scenario: str, cells: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    total, count = np.sum([cell["forecast"] for cell in cells], axis=0), len(cells)

    def covered(target: str) -> float:
        return float(
            np.mean([(cell["low"] <= cell[target]) & (cell[target] <= cell["high"]) for cell in cells])
        )

    for cell in cells:
        cell["others"] = (
            (total - cell["forecast"]) / (count - 1) if count > 1 else np.full_like(total, np.nan)
        )
    return {
        "n": n,
        "scenario": scenario,
        "data sets": count,
        "mean forecast": covered("others"),
        "such forecasts": covered("alike"),
        "own risk": covered("true"),
        "width": float(np.mean([cell["high"] - cell["low"] for cell in cells])),
    }
