"""Piecewise constant hazards."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from censcore.distributions import Exponential, PiecewiseExponential
from censcore.exceptions import InvalidInputError

INF = float("inf")


def test_equal_rates_are_exponential():
    distribution, same = PiecewiseExponential([0.5, 2.0], [[0.7, 0.7, 0.7]]), Exponential(0.7)
    t = np.array([[0.0, 0.1, 0.5, 1.0, 2.0, 9.0, INF]])
    for word in ("sf", "cdf", "logsf", "logpdf", "sf_left"):
        assert_allclose(getattr(distribution, word)(t), getattr(same, word)(t), rtol=1e-14)
    assert_allclose(
        distribution.integrated_sf(t[:, :-1], INF), same.integrated_sf(t[:, :-1], INF), rtol=1e-14
    )
    p = np.array([[0.0, 1e-9, 0.3, 0.9, 1.0]])
    assert_allclose(distribution.icdf(p), same.icdf(p), rtol=1e-14)
    assert_allclose(PiecewiseExponential([], [0.7]).icdf(p), same.icdf(p), rtol=1e-14)


def test_hazard_is_right_continuous():
    distribution = PiecewiseExponential([1.0], [0.5, 2.0])
    assert_allclose(np.exp(distribution.logpdf(1.0) - distribution.logsf(1.0)), [2.0])


def test_quantiles_skip_intervals_without_hazard():
    distribution = PiecewiseExponential([1.0, 3.0], [0.5, 0.0, 2.0])
    at_flat = distribution.sf(2.0)
    assert distribution.isf(at_flat + 1e-12)[0] == pytest.approx(1.0)
    assert distribution.isf(at_flat - 1e-9)[0] == pytest.approx(3.0)
    start = PiecewiseExponential([1.0], [0.0, 2.0])
    assert start.icdf(0.0)[0] == 0
    assert start.icdf(1e-300)[0] == 1.0
    assert start.logpdf(0.5)[0] == -np.inf


def test_a_last_rate_of_zero_leaves_mass_at_infinity():
    distribution = PiecewiseExponential([1.0], [[0.5, 0.0], [0.5, 1.0]])
    assert_allclose(distribution.mass_at_infinity(), [np.exp(-0.5), 0.0])
    assert distribution.mean()[0] == INF
    assert distribution.mean()[1] == pytest.approx((1 - np.exp(-0.5)) / 0.5 + np.exp(-0.5))
    assert distribution.icdf(0.5).tolist() == pytest.approx([INF, 1 + np.log(2) - 0.5])
    assert_allclose(distribution.integrated_sf(2.0, 5.0)[0], 3 * np.exp(-0.5))
    never = PiecewiseExponential([1.0], [0.0, 0.0])
    assert never.mass_at_infinity()[0] == 1


def test_gradient_reaches_a_rate_of_zero():
    torch = pytest.importorskip("torch")
    rates = torch.tensor([[0.0, 0.5, 0.0]], dtype=torch.float64, requires_grad=True)
    distribution = PiecewiseExponential([1.0, 2.0], rates)
    t = torch.tensor([[0.5, 1.5, 4.0, INF]], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(distribution.logsf(t[:, :3]).sum(), rates)
    assert_allclose(gradient, [[-0.5 - 1 - 1, -0.5 - 1, -2.0]])
    (gradient,) = torch.autograd.grad(distribution.sf(t).sum() + distribution.sf_left(t).sum(), rates)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("times", "rates", "message"),
    [
        ([1.0, 2.0], [0.5, 0.5], r"one rate more than times.*got \(1, 2\) and \(1, 2\)"),
        ([2.0, 1.0], [0.5, 0.5, 0.5], "times must ascend without ties; they do not in 1 subject"),
        ([1.0, 1.0], [0.5, 0.5, 0.5], "times must ascend"),
        ([0.0, 1.0], [0.5, 0.5, 0.5], "times must be positive"),
        ([INF], [0.5, 0.5], "times must be positive and finite"),
        ([1.0], [0.5, -0.5], "rates must be non-negative"),
        ([1.0], [0.5, np.nan], "rates must be non-negative"),
        ([[1.0], [2.0]], np.ones((3, 2)), "times has 2, rates has 3"),
        (np.ones((1, 1, 1)), [0.5, 0.5], "one rate more than times"),
    ],
)
def test_bad_input_is_refused(times, rates, message):
    with pytest.raises(InvalidInputError, match=message):
        PiecewiseExponential(times, rates)
