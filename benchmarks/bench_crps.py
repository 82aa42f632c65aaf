"""CRPS of ensembles against scoringrules (numba, its fastest exact estimator), with and without censoring.

The peer has no censoring: its uncensored score is the reference for the marginalized one as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scoringrules

import censcore as cs
from benchmarks.timing import alternate, one_thread, print_ratios

SUBJECTS, MEMBERS, REPEATS = 2_000, 1_000, 15


def censored(T: np.ndarray, c: np.ndarray) -> cs.RightCensored:
    return cs.RightCensored(np.minimum(T, c), c >= T)


def censoring_distribution(rng: np.random.Generator) -> cs.Distribution:
    """The Kaplan-Meier estimate from as many other subjects."""
    train = censored(rng.weibull(1.5, SUBJECTS), rng.exponential(1.5, SUBJECTS))
    return cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution(np.zeros((SUBJECTS, 1)))


def compare(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.weibull(1.5, (SUBJECTS, MEMBERS)).astype(dtype)
    T = rng.weibull(1.5, SUBJECTS).astype(dtype)
    seen, C = cs.RightCensored(T, np.ones(SUBJECTS)), censoring_distribution(rng)
    y, end = censored(T, rng.exponential(1.5, SUBJECTS).astype(dtype)), 3.0

    def peer() -> Any:
        return scoringrules.crps_ensemble(T, x, estimator="qd", backend="numba")

    def single(function: Callable[[], Any]) -> Callable[[], Any]:
        def alone() -> Any:
            with one_thread():
                return function()

        return alone

    def uncensored() -> Any:
        return cs.crps(seen, cs.Ensemble(x), cs.PointMass(np.inf))

    def marginalized() -> Any:
        return cs.crps(y, cs.Ensemble(x), C, horizon=end)

    def all_events() -> Any:
        return cs.crps(seen.censor_at(end), cs.Ensemble(x), C, horizon=end)

    worst = np.abs(uncensored() - peer()).max()
    jumps = int(C.marginal(0).steps()[0].shape[1])
    title = f"{SUBJECTS:,} x {MEMBERS:,} {np.dtype(dtype).name} (largest difference {worst:.0e})"
    print_ratios(
        title,
        alternate(
            REPEATS,
            **{
                "censcore, uncensored": uncensored,
                "censcore, uncensored, one thread": single(uncensored),
                f"censcore, marginalized, Kaplan-Meier with {jumps} jumps": marginalized,
                "censcore, marginalized, all events": all_events,
                "censcore, marginalized, one thread": single(marginalized),
                "scoringrules, uncensored": peer,
            },
        ),
    )


def smooth() -> None:
    """The cost of distributions without a finite sum; there is no peer."""
    rng = np.random.default_rng(1)
    F = cs.Weibull(rng.uniform(0.8, 2, SUBJECTS), rng.uniform(0.5, 2, SUBJECTS))
    knots = np.linspace(0.05, 5, 100)
    linear = cs.PiecewiseLinear(knots, sf=F.sf(knots[None, :]) * (knots < 5))
    C = censoring_distribution(rng)
    y = censored(rng.weibull(1.5, SUBJECTS), rng.exponential(1.5, SUBJECTS))
    print_ratios(
        f"{SUBJECTS:,} subjects, forecasts without a finite sum",
        alternate(
            3,
            **{
                "Weibull, Kaplan-Meier censoring": lambda: cs.crps(y, F, C, horizon=3.0),
                "Weibull, exponential censoring": lambda: cs.crps(y, F, cs.Exponential(1 / 1.5)),
                "piecewise linear (100 knots), Kaplan-Meier censoring": lambda: cs.crps(
                    y, linear, C, horizon=3.0
                ),
            },
        ),
    )


def main() -> None:
    compare(np.float64)
    compare(np.float32)
    smooth()


if __name__ == "__main__":
    main()
