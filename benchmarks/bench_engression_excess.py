"""Excess of the default stack over the true distribution, with 4,000 subjects.

The mixture scenario: one C uniform on [0, 5], with known distribution, is shared by k event times; seeds 100
to 104. The excess is the energy distance between forecast and truth after censoring, on 3,000 new covariates,
in per cent of the score of the truth: what the censored energy score exceeds that of the truth by, without
the noise of outcomes. CPU seconds of the fit, and excess and CPU seconds of one network alone, without a
second training on all subjects, for the first seed.

``python -m benchmarks.bench_engression_excess --sizes 3 --seeds 100 101`` runs some of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import censcore as cs
from censcore.simulation import LogNormalScenario, SimulatedData
from censcore_studies.kit import energy_distance

SUBJECTS, NEW, DRAWS, SEEDS, SIZES = 4000, 3000, 192, range(100, 105), (3, 5, 10)


def excess(scenario: LogNormalScenario, model: Any, seed: int) -> tuple[float, float]:
    """Energy distance to the truth after censoring, and its standard error, in per cent."""
    X = scenario.sample(NEW, seed=seed + 1000).X
    rng = np.random.default_rng(seed)
    C = rng.uniform(0, scenario.c_max, (NEW, DRAWS))
    F = model.sample(X, DRAWS).astype(float)[:, rng.permutation(DRAWS)]  # generators are in turn
    G = np.asarray(scenario.event_distribution(X).sample(DRAWS, [seed, 9]))
    return energy_distance.excess(F, G, C)


def fitted(model: Any, data: SimulatedData) -> tuple[Any, float]:
    """The model, and the processor seconds of its fit."""
    C = LogNormalScenario(data.T.shape[1], censoring="uniform").censoring_distribution(data.X)
    start = time.process_time()
    model.fit(data.X, data.y, censoring=C)
    return model, time.process_time() - start


def main(sizes: Sequence[int] = SIZES, seeds: Sequence[int] = SEEDS) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    alone = f"{'one network alone: excess %, CPU s':>37s}"
    print(f"{'k':>3s}{'seed':>6s}{'excess %':>10s}{'error':>7s}{'CPU s':>7s}{alone}")
    for k in sizes:
        scenario = LogNormalScenario(k, censoring="uniform")
        for seed in seeds:
            data = scenario.sample(SUBJECTS, seed=seed)
            shared: dict[str, Any] = {"random_state": seed, "device": "cpu"}
            model, taken = fitted(cs.BestForecast(**shared), data)
            value, error = excess(scenario, model, seed)
            line = f"{k:3d}{seed:6d}{value:10.2f}{error:7.2f}{taken:7.0f}"
            if seed == seeds[0]:
                alone_ = cs.CensoredEngression(n_networks=1, **shared)
                single, seconds = fitted(alone_, data)
                line += f"{excess(scenario, single, seed)[0]:29.2f}{seconds:8.0f}"
            print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    main(**vars(parser.parse_args()))
