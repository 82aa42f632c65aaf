"""Parameters near the ends of the floating-point numbers have the limits that they should have."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

TIME, EVENT = np.array([0.5, 1.0, 1.0, 2.0, 3.0, 0.25]), np.array([1, 0, 1, 1, 0, 1], dtype=bool)
Y, F, C = cs.RightCensored(TIME, EVENT), cs.Weibull(1.3, np.linspace(1.0, 3.0, 6)), cs.Uniform(0.0, 5.0)


def test_a_tail_that_ends_at_once_has_an_area():
    """A rate times a time beyond the largest float leaves nothing of the tail, without a warning."""
    cells = np.array([[[0.3, 0.1], [0.2, 0.4]]])
    steep, edge = (cs.JointGrid([0.0, 1.0], cells, tail=rate).marginal(0) for rate in (1e16, 1e300))
    np.testing.assert_allclose(steep.mean(), 0.4 * 0.5 + 0.6, rtol=1e-12)
    np.testing.assert_allclose(edge.sf([[0.5, 1.0, 1e300]]), [[0.8, 0.6, 0.0]])
    assert steep.integrated_sf(0.0, 1e300) == pytest.approx(0.8, rel=1e-12)


def test_a_small_hazard_reaches_no_jump():
    forecast = cs.distributions.ProportionalHazards([1.0, 2.0], [0.1, 0.5], risk=[1e-310, 1.0])
    np.testing.assert_array_equal(forecast.icdf(0.3), [np.inf, 2.0])
    np.testing.assert_array_equal(forecast.icdf_beyond(0.5, 0.3), [np.inf, 2.0])


def test_large_logits_make_probabilities():
    logits = np.array([[[1e20, 1e20], [0.0, -1e20]]])
    grid = cs.JointGrid.from_logits([0.0, 1.0], logits, tail="infinity")
    assert np.allclose(grid.probabilities, [[[0.5, 0.5], [0.0, 0.0]]])


def test_numbers_that_single_precision_does_not_hold():
    F = cs.Weibull(np.float32([1.5]), np.float32([2.0]))
    with pytest.raises(InvalidInputError, match=r"up to 1e\+100, which float32 does not hold"):
        cs.crps(Y, F, cs.Uniform(0.0, 1e100))


def test_one_rate_for_all_times_has_quantiles():
    X = np.linspace(-1.0, 1.0, 6)[:, None]
    F = cs.PiecewiseExponentialRegression(breaks=0, alpha=0.1).fit(X, Y).predict_distribution(X)
    np.testing.assert_allclose(F.sf(F.icdf(0.3)), 0.7)
