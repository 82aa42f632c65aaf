"""Cells of the study: one method in one scenario under one kind of censoring, fitted and scored."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from array_api_compat import to_device

from censcore.distributions import Copula, Distribution, Ensemble
from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.outcomes import RightCensored
from censcore.scores import energy_score, log_score, mean_loss
from censcore.simulation import LogNormalScenario
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.multivariate.calibration import joint_calibration
from censcore_studies.multivariate.methods import LINEAR, METHODS, OTHER_METHODS, fit_method, methods_for

__all__ = [
    "CENSORINGS",
    "DEFAULTS",
    "EARLIER_NAMES",
    "STUDY",
    "SCENARIOS",
    "TAGS",
    "as_frame",
    "made_with",
    "multivariate_cells",
    "run_multivariate",
    "score_cell",
    "tag_of",
]

#: The tag of a cell; raised when the same settings give other scores, for the methods that it concerns.
STUDY = "multivariate 1"
_LATER = dict.fromkeys(LINEAR, "multivariate 2")  # since they are fitted to convergence
TAGS = (STUDY, *dict.fromkeys(_LATER.values()))
SCENARIOS = ("mixture", "lognormal")
CENSORINGS = ("administrative", "uniform", "conditional", "componentwise")
SIZES = {"n_train": 4000, "n_valid": 1000, "n_test": 1000, "members": 1024, "draws": 32, "clip": 50.0}
DEFAULTS: dict[str, Any] = SIZES | {"severity": 1.0, "censoring_distribution": "true", "device": "cpu"}
#: What the first cells called some settings, and their names now.
EARLIER_NAMES: dict[str, str] = json.loads(
    (Path(__file__).parent / "earlier_names.json").read_text(encoding="utf-8")
)


def tag_of(method: str) -> str:
    """The tag of the present cells of a method.

    Examples
    --------
    >>> from censcore_studies.multivariate.study import tag_of
    >>> tag_of("Censored engression"), tag_of("Clayton-Weibull")
    ('multivariate 1', 'multivariate 2')
    """
    return _LATER.get(method, STUDY)


def score_cell(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit one method in one scenario and score it, and the truth, on held-out subjects.

    The excess over the truth is a paired difference on the same subjects; its standard error is far smaller
    than that of either score.

    Examples
    --------
    >>> from censcore_studies.multivariate import score_cell
    >>> cell = {"scenario": "lognormal", "k": 2, "censoring": "uniform", "method": "Independent Weibull"}
    >>> small = {"n_train": 300, "n_valid": 100, "n_test": 100, "members": 64}
    >>> result = score_cell({**cell, **small, "repetition": 0})
    >>> sorted(result)[1:5]
    ['censored', 'censored_excess', 'censored_excess_se', 'censored_truth']
    """
    options = DEFAULTS | settings
    scenario = LogNormalScenario(
        options["k"],
        options["scenario"] == "mixture",
        options["censoring"],
        severity=options["severity"],
        clip=options["clip"],
    )
    # data depend on the scenario, the mechanism and the repetition alone: all methods see the same subjects
    seed = [options["repetition"], options["k"], SCENARIOS.index(options["scenario"])]
    train, valid, test = (
        scenario.sample(options[f"n_{p}"], [*seed, i]) for i, p in enumerate(("train", "valid", "test"))
    )
    start = time.perf_counter()
    fitted = fit_method(options["method"], scenario, train, valid, options | {"seed": options["repetition"]})
    seconds = time.perf_counter() - start
    forecast = fitted.predict(test.X)
    truth = _members(scenario.event_distribution(test.X), options, 11)
    model = truth if options["method"] == "DGP" else _members(forecast, options, 12)
    C = scenario.censoring_distribution(test.X)
    result: dict[str, Any] = {
        "fit_seconds": round(seconds, 2),
        "epochs": fitted.epochs,
        "event_rate": float(test.y.event.mean()),
    }
    for name, y, by in (("censored", test.y, C), ("latent", test.latent, None)):
        result |= _scores(name, y, model, truth, by, options)
    result |= _likelihood(test.y, forecast, C)
    if options["k"] > 1:
        result["calibration"] = joint_calibration(_on_cpu(model.samples), _on_cpu(truth.samples), test.T)
    return result


def _likelihood(y: RightCensored, F: Distribution, C: Distribution) -> dict[str, float]:
    """The log score where F has a density, and the strength of dependence where it is a copula."""
    try:
        found = {"log_score": float(_on_cpu(log_score(y, F, C)).mean())}
    except NoDensityError:
        return {}
    if isinstance(F, Copula):
        found["theta"] = float(np.mean(_on_cpu(F.theta)))
    return found


def _members(F: Distribution, options: dict[str, Any], stream: int) -> Ensemble:
    """F as an ensemble: itself where it is one, otherwise a sample."""
    if isinstance(F, Ensemble):
        return F
    samples = F.sample(options["members"], [options["repetition"], stream])
    return Ensemble(_on_cpu(samples).astype(np.float32))


def _scores(
    name: str,
    y: RightCensored,
    model: Ensemble,
    truth: Ensemble,
    C: Distribution | None,
    options: dict[str, Any],
) -> dict[str, float]:
    y, C, (model, truth) = _on_device(options["device"], y, C, (model, truth))
    pairs = "lagged" if C is None else "auto"
    losses, best = (
        _on_cpu(energy_score(y, F, C, fair=True, draws=options["draws"], pairs=pairs)) for F in (model, truth)
    )
    excess = losses - best
    return {
        name: float(losses.mean()),
        f"{name}_truth": float(best.mean()),
        f"{name}_excess": float(excess.mean()),
        f"{name}_excess_se": float(mean_loss(excess).standard_error),
    }


def _on_device(
    device: str, y: RightCensored, C: Any, forecasts: tuple[Any, ...]
) -> tuple[Any, Any, tuple[Any, ...]]:
    """All parts of a score as tensors on a GPU, where one was asked for."""
    if not device.startswith("cuda"):
        return y, C, forecasts
    import torch

    like = torch.zeros(1, device=device)
    return y.like(like), None if C is None else C.like(like), tuple(f.like(like) for f in forecasts)


def _on_cpu(array: Any) -> np.ndarray:
    return np.asarray(to_device(array, "cpu"))


def multivariate_cells(
    k: Sequence[int] = (2, 3, 5, 10),
    scenarios: Sequence[str] = SCENARIOS,
    censorings: Sequence[str] = CENSORINGS[:3],
    methods: Sequence[str] | None = None,
    repetitions: int = 5,
    **more: Any,
) -> list[Cell]:
    """The cells of the tables; the log-normal scenario has two event times, unless it is asked for alone."""
    for what, asked, known in (
        ("scenario", scenarios, SCENARIOS),
        ("censoring", censorings, CENSORINGS),
        ("method", methods or [], [*METHODS, *OTHER_METHODS]),
    ):
        if unknown := [name for name in asked if name not in known]:
            raise InvalidInputError(f"The {what} must be one of {list(known)}; got {unknown}.")
    cells = []
    for scenario in scenarios:
        for size in k:
            if scenario == "lognormal" and size != 2 and len(scenarios) > 1:
                continue
            for censoring in censorings:
                for method in methods or methods_for(size):
                    if method not in [*methods_for(size), *OTHER_METHODS]:
                        continue
                    fixed = {"study": tag_of(method), **DEFAULTS}
                    for r in range(repetitions):
                        name = f"{scenario}-k{size}-{censoring}-{method.replace(' ', '_')}-{r}"
                        settings = {"scenario": scenario, "k": size, "censoring": censoring, "method": method}
                        cells.append(Cell(name, settings | {"repetition": r} | more, fixed))
    return cells


def run_multivariate(
    cells: Sequence[Cell],
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Compute the cells (those already in ``out`` excepted): one row per cell."""
    return as_frame(run_cells(score_cell, cells, out, jobs=jobs, dask=dask, progress=progress))


def as_frame(results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """One row per cell: all settings that it was made with, and its numbers."""
    rows = [
        made_with(r) | {name: value for name, value in r.items() if not isinstance(value, dict)}
        for r in results
    ]
    return pd.DataFrame(rows)


def made_with(result: dict[str, Any]) -> dict[str, Any]:
    """All settings of a finished cell, those at their defaults included."""
    settings = result.get("fixed", {"study": STUDY, **DEFAULTS}) | result["settings"]
    return {EARLIER_NAMES.get(name, name): value for name, value in settings.items()}
