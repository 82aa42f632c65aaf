"""Energy score: exact pairs against scoringrules and SciPy, and the default estimator against brute force.

The second part follows the usual protocol for a random C: 512 random draws of C per subject where it is
unknown, all pairs of 1,024 members for each. Brute force runs on the same compiled kernel, on all cores, so
that the ratio is due to the estimator alone; errors of both are against all pairs at 128 stratified draws.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scoringrules
from scipy.spatial.distance import cdist, pdist

import censcore as cs
from benchmarks.timing import alternate, cost, one_thread
from censcore._numerics import chunked_rows
from censcore.scores.inputs.compatible_times import compatible_times, known_rows
from censcore.scores.kernels.energy_pairs import energy_loss, fastest_terms
from censcore.simulation import LogNormalScenario


def pdist_scores(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Fair energy scores, one subject at a time, with SciPy's distances."""
    return np.array([cdist(zi, yi[None]).mean() - pdist(zi).mean() / 2 for yi, zi in zip(y, z, strict=True)])


def exact_pairs() -> None:
    rng = np.random.default_rng(0)
    y, z = rng.exponential(size=(200, 2)), rng.exponential(size=(200, 1024, 2))
    outcome, ensemble = cs.RightCensored(y, np.ones_like(y)), cs.Ensemble(z)
    functions: dict[str, Callable[[], Any]] = {
        "censcore": lambda: cs.energy_score(outcome, ensemble, fair=True),
        "scipy pdist": lambda: pdist_scores(y, z),
        "scoringrules": lambda: scoringrules.es_ensemble(y, z, estimator="fair", backend="numba"),
    }
    values = [function() for function in functions.values()]
    worst = max(float(np.abs(value / values[0] - 1).max()) for value in values)
    times = {name: spent.wall for name, spent in alternate(3, **functions).items()}
    with one_thread():
        one_core = alternate(3, censcore=functions["censcore"])["censcore"].wall
    print(
        f"exact all pairs, 200 subjects x 1,024 members x k=2, fair; largest relative difference {worst:.1e}"
    )
    print(f"{'':34s} {'seconds':>9s} {'of censcore':>12s}")
    for name, spent in times.items():
        print(f"{name:34s} {spent:9.3f} {spent / times['censcore']:12.1f}")
    print(f"{'censcore on one core':34s} {one_core:9.3f} {one_core / times['censcore']:12.1f}")


def marginalized(n: int = 1000, m: int = 1024, draws: int = 512) -> None:
    scenario = LogNormalScenario(k=3, censoring="uniform")
    data = scenario.sample(n, seed=0)
    forecast = cs.Ensemble(scenario.event_distribution(data.X).sample(m, 1))
    C = scenario.censoring_distribution(data.X)
    known = known_rows(data.y, C)

    def brute(seed: int = 2) -> np.ndarray:
        """All pairs at random draws of C where it is unknown, at the known C elsewhere."""
        loss = cs.energy_score(data.y, forecast, C, pairs="all", draws=1)
        loss[~known] = _at_random_draws(data.y[~known], forecast[~known], C, draws, seed)
        return loss

    reference = cs.energy_score(data.y, forecast, C, pairs="all", draws=128, seed=3)
    seeds = [cs.energy_score(data.y, forecast, C, seed=seed) for seed in range(5)]
    by_default = float(np.sqrt(np.mean((np.array(seeds) - reference) ** 2)))
    start = time.perf_counter()
    by_force = float(np.sqrt(np.mean((brute() - reference) ** 2)))
    spent_force = time.perf_counter() - start
    spent = alternate(7, default=lambda: cs.energy_score(data.y, forecast, C))["default"].wall
    slice_ = np.minimum(forecast.samples[:8], 2.0)
    per_draw = cost(lambda: [pdist(zi).mean() for zi in slice_]).wall / 8
    spent_pdist = per_draw * (draws * int((~known).sum()) + int(known.sum()))
    print(f"\nmarginalized, {n:,} subjects x {m:,} members x k=3, C unknown for {int((~known).sum())}")
    print(f"{'':34s} {'seconds':>9s} {'of default':>12s} {'RMS error':>10s}")
    print(f"{'default (32 draws, one lag each)':34s} {spent:9.3f} {1:12.0f} {by_default:10.6f}")
    for name, other, error in (
        (f"{draws} random draws, all pairs", spent_force, f"{by_force:10.6f}"),
        ("the same by pdist, scaled from 8", spent_pdist, ""),
    ):
        print(f"{name:34s} {other:9.1f} {other / spent:12.0f} {error}".rstrip())
    print(f"the RMS error is pooled over all subjects; the scores have mean {reference.mean():.4f}")


def _at_random_draws(y: cs.RightCensored, forecast: cs.Ensemble, C: Any, draws: int, seed: int) -> np.ndarray:
    levels = np.random.default_rng(seed).random((len(y), draws, 1))
    terms = fastest_terms(forecast.samples, None, 1e12)

    def part(rows: slice) -> np.ndarray:
        c = compatible_times(y[rows], C, levels[rows])
        return energy_loss(forecast.samples[rows], y.time[rows], c, fair=False, terms=terms)

    return chunked_rows(part, len(y), 1, forecast.samples, 4)


def memory(n: int = 100_000, m: int = 200) -> None:
    scenario = LogNormalScenario(k=2, censoring="uniform")
    data = scenario.sample(n, seed=0)
    forecast = cs.Ensemble(np.random.default_rng(1).exponential(size=(n, m, 2)))
    C = scenario.censoring_distribution(data.X)
    cs.energy_score(data.y[:2000], forecast[:2000], C)
    spent = cost(lambda: cs.energy_score(data.y, forecast, C)).wall
    tracemalloc.start()
    cs.energy_score(data.y, forecast, C)
    extra = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    size = forecast.samples.nbytes / 2**20
    print(
        f"{n:,} subjects x {m} members x k=2 ({size:.0f} MiB): {spent:.1f} s, "
        f"{extra:.0f} MiB of working memory\n"
    )


def main() -> None:
    memory()
    exact_pairs()
    marginalized()


if __name__ == "__main__":
    main()
