"""Censored engression on a CPU: the cost of censoring, and how soon the ``engression`` package is reached.

An epoch of 4,000 subjects with default settings, k = 3 and k = 10, under uniform censoring with C unknown for
the uncensored ones, against the same network and data without censoring: no draws of C, no minima. Then, on
uncensored data, the seconds after which a fit is as good on held-out subjects as the ``engression`` package
is after its fit, with its defaults (one hidden layer of 100 units, noise 100) and the same network size here.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import censcore as cs
from censcore.learning import Network, Training
from censcore.learning.engression.loss import EngressionTask
from censcore.learning.training.loop import Run
from censcore.scores.kernels.energy_pairs import energy_loss
from censcore.simulation import LogNormalScenario, SimulatedData

CPU = torch.device("cpu")
SUBJECTS, HELD_OUT, MEMBERS, ROUNDS = 4000, 1000, 512, 9
SAME_SIZE = Network(width=100, depth=1, noise_dim=100)


class Uncensored(EngressionTask):
    """The task of ordinary engression, without C."""

    def loss(self, network: Any, rows: Any, random: Any) -> torch.Tensor:
        """The energy score of the samples as they are."""
        return energy_loss(self.generate(network, rows["x"], random["noise"]), rows["y"], beta=self.beta)


def prepared(k: int, censoring: str) -> Run:
    """A run of the estimator's own task, with its own data and recipe, ready for its next epoch."""
    found: dict[str, Any] = {}

    class Stop(Exception):
        pass

    def look(*run: Any) -> Any:
        found["run"] = run
        raise Stop

    scenario = LogNormalScenario(k, censoring=censoring)
    data = scenario.sample(SUBJECTS, seed=0)
    model = cs.CensoredEngression(random_state=0, device="cpu", training=Training(validation_fraction=0.0))
    with patch("censcore.learning.neural_estimator.Run", look), suppress(Stop):
        model.fit(data.X, data.y, censoring=scenario.censoring_distribution(data.X))
    task, *others = found["run"]
    if censoring == "none":
        task = Uncensored(task.network, task.scale, task.samples, task.beta, task.mixed)
    return Run(task, *others)


def epochs() -> None:
    """Medians over rounds in which both take turns, in CPU seconds, which other load hardly changes."""
    print(f"epoch of {SUBJECTS:,} subjects, defaults{'':12s} {'CPU ms':>8s} {'ratio':>7s}")
    for k in (3, 10):
        runs = {"uncensored": prepared(k, "none"), "censored": prepared(k, "uniform")}
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                start = time.process_time()
                run.epoch()
                taken[name].append(time.process_time() - start)
        ratio = np.median(np.array(taken["censored"]) / np.array(taken["uncensored"]))
        for name, seconds in taken.items():
            shown = f"{ratio:7.2f}" if name == "censored" else ""
            print(f"  k = {k:2d}, {name:32s} {1e3 * np.median(seconds):8.0f} {shown}", flush=True)
    print()


def reach() -> None:
    """Fits of growing length until the held-out energy scores of the other package are reached."""
    scenario = LogNormalScenario(k=3, censoring="none", clip=50.0)
    train, test = scenario.sample(SUBJECTS, seed=0), scenario.sample(HELD_OUT, seed=1)
    print(
        f"{SUBJECTS:,} uncensored subjects, k = 3{'':17s} "
        f"{'wall s':>8s} {'CPU s':>8s} {'held-out score':>15s}"
    )
    truth = held_out(scenario.event_distribution(test.X).sample(MEMBERS, 2), test.T)
    print(f"  {'the true distribution':45s} {'':8s} {'':8s} {truth:15.4f}")
    goals = {
        "engression, its defaults": peer(train, test),
        "engression, ten times its learning rate": peer(train, test, lr=1e-3),
    }
    for name, (wall, cpu, score) in goals.items():
        print(f"  {name:45s} {wall:8.2f} {cpu:8.2f} {score:15.4f}", flush=True)
    for count in (1, 2, 3, 5, 8, 12, 20, 40, 80):
        wall, cpu, score = ours(train, test, count)
        name = f"censcore, same network, {count} epochs"
        print(f"  {name:45s} {wall:8.2f} {cpu:8.2f} {score:15.4f}", flush=True)
        for goal in [goal for goal, result in goals.items() if score <= result[2]]:
            theirs = goals.pop(goal)
            print(f"    reaches {goal} in 1/{theirs[0] / wall:.0f} of its wall time, ", end="")
            print(f"1/{theirs[1] / cpu:.0f} of its CPU time", flush=True)
        if not goals:
            return


def peer(train: SimulatedData, test: SimulatedData, **settings: Any) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and held-out score of the ``engression`` package."""
    from engression import engression

    torch.manual_seed(0)
    x, y = (torch.from_numpy(a).float() for a in (train.X, train.T))
    start = time.perf_counter(), time.process_time()
    model = engression(x, y, verbose=False, **settings)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    with torch.no_grad():
        draws = model.sample(torch.from_numpy(test.X).float(), sample_size=MEMBERS)
    # it does not know that times are positive; negative ones count as zero, which can only help it
    return wall, cpu, held_out(np.moveaxis(draws.numpy(), 2, 1).clip(min=0), test.T)


def ours(train: SimulatedData, test: SimulatedData, epochs: int) -> tuple[float, float, float]:
    """The same of a fit of so many epochs here, its validation included."""
    model = cs.CensoredEngression(epochs=epochs, random_state=0, device="cpu", network=SAME_SIZE)
    start = time.perf_counter(), time.process_time()
    model.fit(train.X, train.latent)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return wall, cpu, held_out(model.sample(test.X, MEMBERS), test.T)


def held_out(samples: np.ndarray, times: np.ndarray) -> float:
    """Mean fair energy score."""
    y = cs.RightCensored(times, np.ones(times.shape))
    return float(cs.energy_score(y, cs.Ensemble(np.asarray(samples, dtype=np.float64)), fair=True).mean())


def main() -> None:
    torch.set_num_threads(1)
    epochs()
    reach()


if __name__ == "__main__":
    main()
