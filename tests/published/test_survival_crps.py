"""The Survival-CRPS: its formula, and the wrong distribution that minimises it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import censcore as cs
from censcore.published import survival_crps


@pytest.mark.parametrize("event", [0, 1])
@pytest.mark.parametrize("distribution", [cs.Weibull(1.5, 2.0), cs.LogNormal(0.2, 0.7)], ids=repr)
def test_equals_its_integrals(distribution, event):
    y = 1.3
    below = quad(lambda s: float(distribution.cdf([[s]])[0, 0]) ** 2, 0, y, epsabs=1e-11)[0]
    above = quad(lambda s: float(distribution.sf([[s]])[0, 0]) ** 2, y, np.inf, epsabs=1e-11)[0]
    found = survival_crps(cs.RightCensored([y], [event]), distribution)[0]
    assert found == pytest.approx(below + event * above, rel=1e-7)


def test_a_known_upper_bound_adds_the_tail_beyond_it():
    distribution, y, U = cs.Exponential(1.0), cs.RightCensored([1.0, 1.0], [0, 1]), 3.0
    plain, bounded = survival_crps(y, distribution), survival_crps(y, distribution, upper=U)
    tail = np.exp(-2 * U) / 2  # the integral of exp(-2 s) beyond U
    np.testing.assert_allclose(bounded - plain, [tail, 0.0], rtol=1e-6)


def test_events_alone_give_the_crps(rng):
    y = cs.RightCensored(rng.exponential(1.0, 20), np.ones(20))
    distribution = cs.Weibull(1.2, 1.1)
    np.testing.assert_allclose(survival_crps(y, distribution), cs.crps(y, distribution), rtol=1e-9)


def test_for_exponential_event_and_censoring_times_the_minimiser_is_tanh():
    """T and C iid Exp(1): F*(s) = tanh s has the smallest mean score, smaller than the truth."""
    # min(T, C) is Exp(2) and independent of which came first: quantiles of it stand for all data
    time = -np.log1p(-(np.arange(400) + 0.5) / 400) / 2
    y = cs.RightCensored(np.tile(time, 2), np.repeat([1, 0], 400))
    knots = np.linspace(0.05, 8.0, 160)

    def curve(cdf) -> cs.PiecewiseLinear:
        return cs.PiecewiseLinear(knots, cdf=np.append(cdf(knots[:-1]), 1.0)[None, :])

    distributions = {
        "tanh": curve(np.tanh),
        "the truth": curve(lambda s: -np.expm1(-s)),
        "sharper": curve(lambda s: np.tanh(s) ** 0.9),
        "wider": curve(lambda s: np.tanh(s) ** 1.1),
        "earlier": curve(lambda s: np.tanh(1.1 * s)),
        "later": curve(lambda s: np.tanh(0.9 * s)),
    }
    expected = {name: survival_crps(y, distribution).mean() for name, distribution in distributions.items()}
    assert min(expected, key=expected.get) == "tanh", expected
    assert expected["the truth"] > 1.05 * expected["tanh"]
    # at the minimum the score is flat: both ways cost about the same
    assert expected["earlier"] - expected["tanh"] == pytest.approx(
        expected["later"] - expected["tanh"], rel=0.5
    )
    # under the censoring distribution the proper score has the truth first
    proper = {
        name: cs.crps(y, distribution, cs.Exponential(1.0)).mean()
        for name, distribution in distributions.items()
    }
    assert min(proper, key=proper.get) == "the truth", proper
