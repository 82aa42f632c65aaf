"""D-calibration by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.rivals import d_calibration


def test_contributions_by_hand():
    """Four bins; S = 0.6 with an event, S = 0.6 censored, S = 0.2 censored."""
    times = -np.log([0.6, 0.6, 0.2])
    found = d_calibration(cs.RightCensored(times, [1, 0, 0]), cs.Exponential(1.0), bins=4)
    expected = [
        [0, 0, 1, 0],
        [0.25 / 0.6, 0.25 / 0.6, 0.1 / 0.6, 0],
        [1, 0, 0, 0],
    ]
    np.testing.assert_allclose(found.contributions, expected, atol=1e-12)
    np.testing.assert_allclose(found.shares, np.mean(expected, axis=0))
    observed = np.sum(expected, axis=0)
    assert found.statistic == pytest.approx(((observed - 0.75) ** 2 / 0.75).sum())


def test_contributions_sum_to_one_also_at_the_ends():
    y = cs.RightCensored([0.0, 0.0, 5.0, 5.0], [1, 0, 1, 0])
    found = d_calibration(y, cs.Uniform(0.0, 5.0))
    np.testing.assert_allclose(found.contributions.sum(axis=1), 1.0)
    assert found.contributions[0, -1] == 1.0  # S = 1 belongs to the last bin
    assert found.contributions[2, 0] == 1.0


def test_the_truth_passes_and_a_shifted_law_fails(rng):
    n = 4000
    scale = np.exp(0.5 * rng.standard_normal(n))
    T, c = scale * rng.weibull(1.5, n), rng.exponential(2.0, n)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    assert d_calibration(y, cs.Weibull(1.5, scale)).p_value > 1e-3
    assert d_calibration(y, cs.Weibull(1.5, 1.3 * scale)).p_value < 1e-6


def test_it_cannot_see_what_the_covariates_say(rng):
    """A law blind to the covariates passes, though every proper score puts it behind the truth."""
    n = 2000
    scale = np.exp(0.5 * rng.standard_normal(n))
    T = scale * rng.exponential(1.0, n)
    y = cs.RightCensored(T, np.ones(n))
    levels = np.arange(1, 51) / 50
    blind = cs.PiecewiseLinear(np.quantile(T, levels), cdf=levels[None, :])
    assert d_calibration(y, blind).p_value > 0.9
    assert cs.crps(y, blind).mean() > 1.02 * cs.crps(y, cs.Exponential(1 / scale)).mean()


def test_one_bin_is_refused():
    with pytest.raises(InvalidInputError, match="bins"):
        d_calibration(cs.RightCensored([1.0], [1]), cs.Exponential(1.0), bins=1)
