"""Piecewise-linear distributions: np.interp, areas, flat parts, density, bad curves, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censcore.distributions import PiecewiseLinear
from censcore.exceptions import InvalidInputError, NoDensityError

TIMES = np.array([1.0, 2.0, 4.0, 5.0])
SF = np.array([[0.8, 0.5, 0.5, 0.2], [0.9, 0.6, 0.1, 0.0]])
GRID = np.linspace(0, 6, 61)[None, :]


@pytest.fixture(params=["common sf", "per row sf", "common cdf"])
def distribution(request):
    times = np.stack([TIMES, TIMES]) if "per row" in request.param else TIMES
    return PiecewiseLinear(times, sf=SF) if "sf" in request.param else PiecewiseLinear(times, cdf=1 - SF)


def interpolated(t):
    return np.array([np.interp(t, [0, *TIMES], [1, *row]) for row in SF])


@pytest.mark.parametrize("t", [GRID, np.repeat(GRID, 2, axis=0)], ids=["grid", "per row"])
def test_survival_is_interpolated(distribution, t):
    expected = interpolated(GRID[0])
    np.testing.assert_allclose(distribution.sf(t), expected, atol=1e-15)
    np.testing.assert_allclose(distribution.sf_left(t), expected, atol=1e-15)
    np.testing.assert_allclose(distribution.cdf(t), 1 - expected, atol=1e-15)


def test_knots_come_back_exactly():
    np.testing.assert_array_equal(PiecewiseLinear(TIMES, sf=SF).sf(TIMES[None, :]), SF)
    np.testing.assert_array_equal(PiecewiseLinear(TIMES, cdf=SF[:, ::-1]).cdf(TIMES[None, :]), SF[:, ::-1])


def test_ends(distribution):
    np.testing.assert_array_equal(distribution.sf(0.0), [1, 1])
    np.testing.assert_array_equal(distribution.sf(-1.0), [1, 1])
    np.testing.assert_array_equal(distribution.sf(np.inf), [0, 0])
    np.testing.assert_allclose(distribution.mass_at_infinity(), [0.2, 0], atol=1e-15)
    np.testing.assert_array_equal(np.isinf(distribution.mean()), [True, False])


def test_quantiles_invert_the_curve_and_take_the_lower_end_of_flat_parts(distribution):
    p = np.array([[0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0]])
    first = [0, 0.5, 1, 1.5, 2, 4.5, 5, np.inf, np.inf]
    second = [0, 1, 4 / 3, 11 / 6, 2.4, 3, 3.6, 4, 5]
    np.testing.assert_allclose(distribution.icdf(p), [first, second], rtol=1e-14)
    q = np.array([[1.0, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.0]])
    np.testing.assert_allclose(distribution.isf(q), [first, second], rtol=1e-14)


def test_small_levels_keep_their_digits(distribution):
    p = np.array([[1e-12, 1e-18, 1e-30]])
    np.testing.assert_allclose(distribution.icdf(p), p / [[0.2], [0.1]], rtol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(1e-9, 1))
def test_quantile_is_the_first_time_that_reaches_the_level(levels, p):
    cdf = np.sort(np.round(levels, 6))  # between levels that differ in the last digit there is no other
    distribution = PiecewiseLinear(np.arange(1.0, len(cdf) + 1), cdf=cdf)
    t = distribution.icdf(p)[0]
    if np.isinf(t):
        assert cdf[-1] < p
    else:
        assert distribution.cdf(t)[0] == pytest.approx(p, abs=1e-12)
        assert distribution.cdf(t * (1 - 1e-6) - 1e-9)[0] < p


def test_integral_is_the_area(distribution):
    fine = np.linspace(0, 6, 60_001)
    curve = interpolated(fine)
    for low, high in [(0.0, 1.0), (0.0, 6.0), (0.25, 0.5), (1.5, 4.5), (5.5, 6.0), (2.0, 2.0)]:
        inside = (fine >= low - 1e-9) & (fine <= high + 1e-9)
        area = np.trapezoid(curve[:, inside], fine[inside], axis=1)
        np.testing.assert_allclose(distribution.integrated_sf(low, high), area, atol=1e-9)
    assert distribution.integrated_sf(0.0, np.inf)[1] == pytest.approx(0.95 + 0.75 + 0.7 + 0.05)


def test_density_is_the_slope_of_the_segment_that_ends_here(distribution):
    t = np.array([[0.0, 0.5, 1.0, 1.5, 3.0, 4.5, 5.0, 5.5]])
    expected = [[0.2, 0.2, 0.2, 0.3, 0.0, 0.3, 0.3, 0.0], [0.1, 0.1, 0.1, 0.3, 0.25, 0.1, 0.1, 0.0]]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(distribution.logpdf(t), np.log(expected), atol=1e-13)


def test_log_likelihood(distribution):
    np.testing.assert_allclose(distribution.log_likelihood([1.5, 1.5], [1, 0]), np.log([0.3, 0.75]))


def test_first_segment_may_start_at_zero():
    distribution = PiecewiseLinear([0.0, 2.0], sf=[1.0, 0.5])
    assert distribution.logpdf(0.0) == pytest.approx(np.log(0.25))
    assert distribution.sf(1.0) == 0.75


def test_mass_at_time_zero_is_an_atom():
    distribution = PiecewiseLinear([0.0, 2.0], sf=[[1 - 1e-9, 0.5], [0.75, 0.5]])
    np.testing.assert_array_equal(distribution.sf(0.0), [1, 0.75])
    np.testing.assert_array_equal(distribution.sf_left(0.0), [1, 1])
    np.testing.assert_array_equal(distribution.icdf(0.25), [1, 0])
    np.testing.assert_allclose(distribution.integrated_sf(0.0, 2.0), [1.5, 1.25])
    assert distribution[[0]].logpdf(1.0) == pytest.approx(np.log(0.25))
    with pytest.raises(NoDensityError, match=r"mass at time 0.*1 subject \(1\)"):
        distribution.logpdf(1.0)


def test_exponential_tail_goes_on_with_the_mean_hazard_of_the_second_half():
    t = np.linspace(0.5, 4, 8)
    exact, steep = np.exp(-0.3 * t), np.exp(-(t**2) / 4)
    distribution = PiecewiseLinear(t, sf=np.stack([exact, steep]), tail="exponential")
    rate = (np.log(steep[3]) - np.log(steep[7])) / 2
    far = np.array([[5.0, 9.0]])
    np.testing.assert_allclose(distribution.sf(far)[0], np.exp(-0.3 * far[0]))
    np.testing.assert_allclose(distribution.sf(far)[1], steep[7] * np.exp(-rate * (far[0] - 4)))
    np.testing.assert_allclose(np.exp(distribution.logpdf(far)[0]), 0.3 * np.exp(-0.3 * far[0]))
    np.testing.assert_allclose(distribution.isf(np.exp(-6)), [20, 4 + 2 / rate])
    np.testing.assert_allclose(distribution.integrated_sf(4.0, np.inf)[0], exact[7] / 0.3)


def test_an_exponential_tail_needs_a_hazard():
    flat = PiecewiseLinear([1.0, 4.0], sf=[[0.6, 0.6], [0.5, 0.0]], tail="exponential")
    np.testing.assert_array_equal(flat.mass_at_infinity(), [0.6, 0.0])
    never = PiecewiseLinear([1.0, 2.0, 4.0], sf=[0.6, 0.6, 0.6], tail="exponential")
    assert never.mass_at_infinity() == 0.6
    assert never.sf(1e9) == 0.6
    assert never.icdf(0.5) == np.inf
    assert never.mean() == np.inf
    assert PiecewiseLinear([0.0], sf=[0.6], tail="exponential").mass_at_infinity() == 0.6


def test_the_rest_may_sit_at_the_last_time():
    distribution = PiecewiseLinear([1.0, 4.0], sf=[0.6, 0.3], tail="last")
    assert distribution.sf(4.0) == 0
    assert distribution.sf_left(4.0) == pytest.approx(0.3)
    assert distribution.mean() == pytest.approx(0.8 + 3 * 0.45)
    with pytest.raises(InvalidInputError, match="tail must be one of"):
        PiecewiseLinear([1.0], sf=[0.6], tail="weibull")


def test_quantiles_beyond_y(distribution):
    p = np.array([[0.1, 0.5, 0.9]])
    t = distribution.icdf_beyond([1.5, 3.0], p)
    survivors = distribution.sf_left([1.5, 3.0])[:, None]
    finite = np.isfinite(t)
    given = 1 - distribution.sf(np.where(finite, t, 0.0)) / survivors
    np.testing.assert_allclose(given[finite], np.broadcast_to(p, (2, 3))[finite], atol=1e-12)
    assert np.isinf(t[0, 2])


def test_samples_and_take(distribution):
    draws = distribution.sample(40_000, seed=0)
    np.testing.assert_allclose((draws > 1.5).mean(axis=1), distribution.sf(1.5), atol=0.01)
    np.testing.assert_array_equal(distribution[[1]].sf(GRID), distribution.sf(GRID)[1:])


def test_unsorted_times_and_bad_curves():
    order = [3, 0, 2, 1]
    distribution = PiecewiseLinear(TIMES[order], sf=SF[:, order])
    np.testing.assert_array_equal(distribution.sf(GRID), PiecewiseLinear(TIMES, sf=SF).sf(GRID))
    with pytest.raises(InvalidInputError, match="must not increase"):
        PiecewiseLinear(TIMES, sf=SF[:, ::-1])
    with pytest.raises(InvalidInputError, match="transposed"):
        PiecewiseLinear(TIMES, sf=SF.T)


def test_torch_agrees_and_gradients_flow(distribution):
    torch = pytest.importorskip("torch")
    twin = distribution.like(torch.zeros(1, dtype=torch.float64))
    np.testing.assert_allclose(twin.sf(torch.tensor(GRID)).numpy(), distribution.sf(GRID), atol=1e-15)
    times = torch.tensor(TIMES, requires_grad=True)
    sf = torch.tensor([[0.8, 0.5, 0.4, 0.2], [0.9, 0.6, 0.1, 0.05]], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([[0.3, 1.7], [3.1, 4.4]], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([[0.25, 0.35], [0.3, 0.7]], dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck

    def tail(times, sf, t):
        distribution = PiecewiseLinear(times, sf=sf, tail="exponential")
        return distribution.sf(t + 3), distribution.integrated_sf(t, t + 5), distribution.logpdf(t + 5)

    assert check(tail, (times, sf, t))
    assert check(lambda times, sf, t: PiecewiseLinear(times, sf=sf).sf(t), (times, sf, t))
    assert check(lambda times, sf, t: PiecewiseLinear(times, sf=sf).integrated_sf(t / 2, t), (times, sf, t))
    assert check(lambda times, sf, p: PiecewiseLinear(times, sf=sf).icdf(p), (times, sf, p))
    assert check(lambda times, sf, p: PiecewiseLinear(times, cdf=1 - sf).isf(p), (times, sf, p))
    assert check(lambda times, sf: PiecewiseLinear(times, sf=sf).logpdf(t.detach()), (times, sf))
    flat = torch.tensor([3.0, 1.5], dtype=torch.float64)
    level = torch.tensor(SF, requires_grad=True)
    PiecewiseLinear(times, sf=level).logpdf(flat)[1].backward()
    assert torch.isfinite(level.grad).all()
