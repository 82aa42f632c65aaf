"""Excess over the truth of every model, scenario, size and seed; where the stack is best or level."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.kit.cells import Cell, finished_cells, run_cells
from censcore_studies.kit.tables import StudyTable
from censcore_studies.stack_scenarios.models import MODELS, OURS, draws_of
from censcore_studies.stack_scenarios.scenarios import SCENARIOS

__all__ = ["SIZES", "report_scenarios", "run_scenarios", "scenario_cells", "score_model"]

#: Raise the number when the same settings give other scores.
STUDY = "stack-scenarios 1"
SIZES = (300, 1000)


def score_model(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit a model to n subjects and measure the excess of its forecasts over the truth.

    Parameters
    ----------
    settings : dict
        ``scenario``, ``n``, ``seed``, ``model``.

    Returns
    -------
    dict
        ``excess`` in per cent, ``cpu`` seconds of the fit, ``weights`` of a stack.
    """
    scenario = SCENARIOS[settings["scenario"]]
    X, y = scenario.sample(settings["n"], settings["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = MODELS[settings["model"]](settings["seed"]).fit(X, y)
        cpu = time.process_time() - start
        excess = scenario.excess(draws_of(model), settings["seed"])
    return {"excess": excess, "cpu": round(cpu, 2), "weights": getattr(model, "weights_", {})}


def scenario_cells(
    sizes: Sequence[int] = SIZES, seeds: int = 5, models: Sequence[str] | None = None
) -> list[Cell]:
    """One cell per seed, size, scenario and model: all of the first seed, then of the second, ..."""
    return [
        Cell(
            f"{seed}-{n}-{scenario}-{model}".replace(" ", "-").replace(",", "").replace("%", "percent"),
            {"scenario": scenario, "n": n, "seed": seed, "model": model},
            {"study": STUDY},
        )
        for seed in range(seeds)
        for n in sizes
        for scenario in SCENARIOS
        for model in models or MODELS
    ]


def run_scenarios(
    out: str | os.PathLike[str],
    sizes: Sequence[int] = SIZES,
    seeds: int = 5,
    models: Sequence[str] | None = None,
    *,
    jobs: int = 1,
    progress: bool = True,
) -> None:
    """Fit and score the chosen models; finished cells are kept in ``out/cells``."""
    run_cells(score_model, scenario_cells(sizes, seeds, models), out, jobs=jobs, progress=progress)


def report_scenarios(out: str | os.PathLike[str]) -> list[StudyTable]:
    """Tables of all finished cells: every excess, means by scenario and size, how often the stack is best."""
    rows = [
        {**found["settings"], "excess": found["excess"], "cpu": found["cpu"]}
        for found in finished_cells(out, STUDY)
    ]
    table = pd.DataFrame(rows)
    wide = table.pivot(index=["scenario", "n", "seed"], columns="model", values="excess")
    wide = wide[[model for model in MODELS if model in wide]].dropna(subset=[OURS])
    every = [StudyTable("excess", table, table, "Every fit: excess over the truth in per cent, CPU seconds.")]
    leads = _leads(wide)
    if leads.empty:
        return every
    return [*every, *(_by_size(wide, leads, n) for n in sorted(set(table["n"]))), _counts(leads)]


def _leads(wide: pd.DataFrame) -> pd.DataFrame:
    """The stack and the best other model of each scenario and size, with the error of their difference."""
    rows = []
    for (scenario, n), part in wide.groupby(["scenario", "n"], sort=False):
        others = part.drop(columns=OURS).dropna(axis=1)  # models that were run on all seeds of the stack
        if others.empty:
            continue
        best = str(others.mean().idxmin())
        difference = (part[OURS] - others[best]).to_numpy()
        error = difference.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else 0.0
        row = {"scenario": scenario, "n": n, "seeds": len(part), "fresh": SCENARIOS[str(scenario)].fresh}
        row |= {OURS: part[OURS].mean(), "best other": best, "its excess": others[best].mean()}
        rows.append(row | {"difference": difference.mean(), "error": error})
    leads = pd.DataFrame(rows)
    if leads.empty:  # the stack alone
        return leads
    leads["best"] = leads["difference"] <= 0
    leads["best or level"] = leads["difference"] <= leads["error"]
    order = list(SCENARIOS)
    return leads.sort_values(
        ["n", "scenario"], key=lambda c: c.map(order.index) if c.name == "scenario" else c
    )


def _by_size(wide: pd.DataFrame, leads: pd.DataFrame, n: int) -> StudyTable:
    means = wide.xs(n, level="n").groupby("scenario").mean()
    means = means.loc[[name for name in SCENARIOS if name in means.index]]
    view = means.map(lambda value: "" if np.isnan(value) else f"{value:.2f}")
    chosen = leads[leads["n"] == n].set_index("scenario").loc[means.index]
    view.insert(0, "seeds", chosen["seeds"].astype(str))
    view["stack minus best other"] = [
        f"{row.difference:+.2f}" + (f" ± {row.error:.2f}" if row.seeds > 1 else "")
        for row in chosen.itertuples()
    ]
    caption = (
        f"n = {n:,}: excess of the censored energy score over the truth in per cent, means over seeds, and "
        "the difference from the best other model with its standard error over seeds."
    )
    return StudyTable(f"excess_{n}", means.reset_index(), view.reset_index(), caption)


def _counts(leads: pd.DataFrame) -> StudyTable:
    """In how many of the scenarios the stack is best, or within one standard error of the best."""
    rows = []
    for n, part in leads.groupby("n"):
        for title, some in (("all", part), ("never used for a choice", part[part["fresh"]])):
            row = {"n": n, "scenarios": title, "of": len(some), "best": int(some["best"].sum())}
            rows.append(row | {"best or level": int(some["best or level"].sum())})
    table = pd.DataFrame(rows)
    view = table.astype(str)
    caption = "Scenarios in which the stack has the smallest excess, or is within one standard error of it."
    return StudyTable("counts", table, view, caption)
