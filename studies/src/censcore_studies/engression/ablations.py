"""What each choice in censored engression contributes: the excess over the truth without it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from censcore.distributions import Ensemble
from censcore.exceptions import InvalidInputError
from censcore.scores import energy_score, mean_loss
from censcore.simulation import LogNormalScenario
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.kit.networks import ONE_NETWORK, engression
from censcore_studies.kit.tables import StudyTable

__all__ = ["VARIANTS", "ablation_cells", "excess_cell", "report_ablations", "run_ablations"]

_PAPER = {
    "activation": "relu",
    "output": "softplus",
    "skip": False,
    "residual": False,
    "layer_norm": False,
    "noise_dim": 128,
    "depth": 2,
    "samples": 16,
    "epochs": 200,
    "schedule": "constant",
    "warmup": 0.0,
    "averaging": None,
    "weight_decay": 0.0,
    "tolerance": 0.0,
}

#: Raise the number when the same settings give other scores.
STUDY = "ablations 1"
SIZES: dict[str, Any] = {"n_train": 4000, "n_valid": 1000, "n_test": 4000, "members": 512}
DEFAULTS: dict[str, Any] = SIZES | {"device": "cpu"}

#: Departures from the default settings of :class:`~censcore.CensoredEngression`, by name.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "plain: the paper's settings, learning rate 3e-4": _PAPER | {"learning_rate": 3e-4},
    "plain, learning rate 1e-3": _PAPER | {"learning_rate": 1e-3},
    "plain, with schedule, averaging and decay": _PAPER
    | {"learning_rate": 1e-3, "schedule": "cosine", "averaging": 0.99, "weight_decay": 0.01},
    "without residual layers": {"residual": False},
    "without layer norm": {"layer_norm": False},
    "without the linear skip": {"skip": False},
    "one hidden layer": {"depth": 1},
    "two hidden layers": {"depth": 2},
    "ReLU": {"activation": "relu"},
    "softplus output": {"output": "softplus"},
    "noise of 16": {"noise_dim": 16},
    "16 samples": {"samples": 16},
    "dropout 0.1": {"dropout": 0.1},
    "beta 0.5": {"beta": 0.5},
    "no averaging": {"averaging": None},
    "constant learning rate": {"schedule": "constant"},
    "keep the best validation loss": {"tolerance": 0.0},
    "four generators": {"n_networks": 4},
    "naive": {"objective": "naive"},
}


def excess_cell(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit one variant on the main design and give its excess over the truth, in per cent.

    The mixture scenario with 4,000 training and 1,000 validation subjects, C uniform on [0, 5]; the excess is
    a paired difference of censored energy scores on ``n_test`` new subjects.
    """
    options = DEFAULTS | settings
    scenario = LogNormalScenario(options["k"], censoring="uniform")
    sets = [scenario.sample(options[f"n_{p}"], [options["repetition"], 5, i]) for i, p in enumerate(_PARTS)]
    train, valid, test = sets
    C = scenario.censoring_distribution(test.X)  # the same for all subjects
    variant = ONE_NETWORK | VARIANTS[options["variant"]]
    model = engression(random_state=options["repetition"], device=options["device"], **variant)
    model.fit(train.X, train.y, censoring=C, eval_set=(valid.X, valid.y, C))
    forecasts = {
        "model": Ensemble(model.sample(test.X, options["members"]).astype(np.float64)),
        "truth": Ensemble(
            scenario.event_distribution(test.X).sample(options["members"], [options["repetition"], 9])
        ),
    }
    loss = {name: energy_score(test.y, F, C, fair=True) for name, F in forecasts.items()}
    return {
        "excess": 100 * float(np.mean(loss["model"] - loss["truth"]) / loss["truth"].mean()),
        "epochs": len(model.history_.epochs),
    }


_PARTS = ("train", "valid", "test")


def ablation_cells(
    variants: Sequence[str] = tuple(VARIANTS),
    repetitions: int = 5,
    k: int = 3,
    settings: Mapping[str, Any] | None = None,
) -> list[Cell]:
    """One cell per variant and repetition; ``settings`` may change ``SIZES`` and the device."""
    shared = {"k": k, **(settings or {})}
    unknown = sorted(set(variants) - set(VARIANTS))
    if unknown:
        raise InvalidInputError(f"There is no variant {unknown}; there are {list(VARIANTS)}.")
    return [
        Cell(
            f"ablation-{list(VARIANTS).index(v)}-{r}",
            {"variant": v, "repetition": r, **shared},
            {"study": STUDY, **DEFAULTS, "departures": VARIANTS[v]},
        )
        for v in variants
        for r in range(repetitions)
    ]


def run_ablations(
    out: str | os.PathLike[str] | None = None, *, jobs: int = 1, progress: bool = True, **chosen: Any
) -> pd.DataFrame:
    """Mean excess over the truth and its standard error over repetitions, by variant."""
    results = run_cells(excess_cell, ablation_cells(**chosen), out, jobs=jobs, progress=progress)
    found: dict[str, list[float]] = {}
    for result in results:
        found.setdefault(result["settings"]["variant"], []).append(result["excess"])
    means = {variant: mean_loss(np.array(values)) for variant, values in found.items()}
    return pd.DataFrame(
        [
            {
                "variant": variant,
                "excess %": mean,
                "error %": error,
                "repetitions": len(found[variant]),
            }
            for variant, (mean, error) in means.items()
        ]
    )


def report_ablations(table: pd.DataFrame, k: int = 3) -> StudyTable:
    """The table to read."""
    view = pd.DataFrame(
        {
            "variant": table["variant"],
            "excess over the truth": [
                f"{mean:.2f} ± {error:.2f} %"
                for mean, error in zip(table["excess %"], table["error %"], strict=True)
            ],
        }
    )
    caption = f"Excess of the censored energy score over the truth, k = {k}, by departure from the defaults."
    return StudyTable("ablations", table, view, caption)
