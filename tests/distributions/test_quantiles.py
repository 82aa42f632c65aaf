"""Quantile tables: they come back, each tail rule, atoms, crossings, gradients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate

from censcore.distributions import PiecewiseLinear, Quantiles, Step
from censcore.exceptions import InvalidInputError, InvalidTypeError, NoDensityError

LEVELS = np.array([0.1, 0.5, 0.9])
VALUES = np.array([[1.0, 2.0, 5.0], [2.0, 3.0, 4.0]])
TAILS = ["exponential", "infinity", "last"]


@pytest.fixture(params=TAILS)
def distribution(request):
    return Quantiles(LEVELS, VALUES, tail=request.param)


def test_the_table_comes_back(distribution):
    np.testing.assert_array_equal(distribution.icdf(LEVELS[None, :]), VALUES)
    np.testing.assert_allclose(distribution.isf(1 - LEVELS[None, :]), VALUES)
    np.testing.assert_array_equal(distribution.levels, LEVELS)
    np.testing.assert_array_equal(distribution.values, VALUES)
    assert distribution.tail in repr(distribution)


def test_linear_from_zero_to_the_last_quantile(distribution):
    for row, values in enumerate(VALUES):
        t = np.linspace(0, values[-1] * (1 - 1e-12), 50)
        expected = np.interp(t, [0, *values], [0, *LEVELS])
        np.testing.assert_allclose(distribution.take([row]).cdf(t[None, :])[0], expected, atol=1e-12)


def test_infinity_is_a_piecewise_linear_distribution():
    distribution, twin = Quantiles(LEVELS, VALUES, tail="infinity"), PiecewiseLinear(VALUES, cdf=LEVELS)
    t = np.linspace(0, 7, 29)[None, :]
    np.testing.assert_array_equal(distribution.sf(t), twin.sf(t))
    np.testing.assert_array_equal(distribution.logpdf(t), twin.logpdf(t))
    np.testing.assert_allclose(distribution.mass_at_infinity(), [0.1, 0.1])
    np.testing.assert_array_equal(distribution.icdf(0.95), [np.inf, np.inf])
    assert distribution.form == "lines"


def test_last_puts_an_atom_at_the_last_quantile():
    distribution = Quantiles(LEVELS, VALUES, tail="last")
    np.testing.assert_allclose(distribution.sf_left([5.0, 4.0]), [0.1, 0.1])
    np.testing.assert_array_equal(distribution.sf([5.0, 4.0]), [0, 0])
    np.testing.assert_array_equal(distribution.icdf(1.0), [5, 4])
    np.testing.assert_allclose(distribution.mean(), [0.05 + 0.6 + 1.4 + 0.5, 0.1 + 1.0 + 1.4 + 0.4])
    with pytest.raises(NoDensityError, match="tail='last'"):
        distribution.logpdf(1.0)


def test_exponential_tail_goes_on_with_the_hazard_of_the_last_two_quantiles():
    distribution = Quantiles(LEVELS, VALUES)
    rate = np.log(0.5 / 0.1) / (VALUES[:, 2] - VALUES[:, 1])
    beyond = np.array([0.5, 2.0, 40.0])[None, :]
    t = VALUES[:, 2:] + beyond
    np.testing.assert_allclose(distribution.sf(t), 0.1 * np.exp(-rate[:, None] * beyond), rtol=1e-13)
    np.testing.assert_allclose(distribution.logpdf(t), np.log(0.1 * rate[:, None]) - rate[:, None] * beyond)
    p = np.array([[0.05, 1e-3, 1e-200]])
    np.testing.assert_allclose(distribution.isf(p), VALUES[:, 2:] + np.log(0.1 / p) / rate[:, None])
    np.testing.assert_allclose(distribution.icdf(1 - p[:, :2]), distribution.isf(p[:, :2]))
    np.testing.assert_array_equal(distribution.icdf(1.0), [np.inf, np.inf])
    np.testing.assert_array_equal(distribution.mass_at_infinity(), [0, 0])
    np.testing.assert_array_equal(distribution.sf(np.inf), [0, 0])


@pytest.mark.parametrize(
    ("a", "b"), [(0.0, 1.5), (0.0, 30.0), (3.0, 9.0), (8.0, 12.0), (0.0, np.inf), (6.0, np.inf)]
)
def test_integral_of_the_exponential_tail(a, b):
    distribution = Quantiles(LEVELS, VALUES)
    got = distribution.integrated_sf(a, b)
    for row in range(2):
        stops = [a, *[v for v in VALUES[row] if a < v < b], b]
        area = sum(
            scipy.integrate.quad(lambda t: distribution.take([row]).sf(t)[0], low, high, epsabs=1e-13)[0]  # noqa: B023
            for low, high in pairwise(stops)
        )
        assert got[row] == pytest.approx(area, rel=1e-8)


def test_far_areas_keep_their_digits():
    distribution = Quantiles(LEVELS, VALUES[1])
    rate = np.log(5)
    expected = 0.1 * np.exp(-rate * 36) * (1 - np.exp(-rate)) / rate
    assert distribution.integrated_sf(40.0, 41.0)[0] == pytest.approx(expected, rel=1e-10)


def test_equal_quantiles_are_atoms():
    distribution = Quantiles(LEVELS, [[2.0, 2.0, 5.0], [1.0, 5.0, 5.0], [0.0, 1.0, 2.0]])
    np.testing.assert_allclose(distribution.cdf([2.0, 5.0, 0.0]), [0.5, 0.9, 0.1])
    np.testing.assert_allclose(distribution.sf_left([2.0, 5.0, 0.0]), [0.9, 0.5, 1.0])
    np.testing.assert_array_equal(distribution.icdf([0.3, 0.7, 0.05]), [2, 5, 0])
    assert not distribution.has_density
    with pytest.raises(NoDensityError, match=r"3 subjects \(0, 1, 2\)"):
        distribution.logpdf(1.0)


def test_rate_looks_back_to_the_last_smaller_quantile():
    distribution = Quantiles(LEVELS, [[1.0, 5.0, 5.0], [3.0, 3.0, 3.0]])
    np.testing.assert_allclose(
        distribution.sf([6.0, 4.0]), 0.1 * np.exp([-np.log(0.9 / 0.1) / 4, -np.log(1 / 0.1) / 3])
    )


def test_one_quantile():
    distribution = Quantiles([0.5], [[2.0]])
    np.testing.assert_allclose(distribution.sf([[1.0, 4.0]]), [[0.75, 0.25]])


def test_many_quantiles_approach_the_distribution_they_come_from(rng):
    samples = np.sort(rng.weibull(1.5, (3, 999)), axis=1)
    levels = np.arange(1, 1000) / 1000
    distribution = Quantiles(levels, samples)
    t = np.array([[0.3, 0.9, 1.5]])
    np.testing.assert_allclose(
        distribution.sf(t), Step(samples, cdf=np.arange(1, 1000) / 999).sf(t), atol=3e-3
    )


def test_unsorted_levels_take_their_columns_along():
    order = [2, 0, 1]
    distribution = Quantiles(LEVELS[order], VALUES[:, order])
    np.testing.assert_array_equal(distribution.icdf(0.5), [2, 3])


def test_take_keeps_the_tail(distribution):
    np.testing.assert_array_equal(distribution[[1]].sf(4.5), distribution.sf(4.5)[1:])


@pytest.mark.parametrize(
    ("levels", "values", "options", "message"),
    [
        (
            LEVELS,
            [[1.0, 3.0, 2.0]],
            {},
            r"cross.*from level 0.5 to 0.9 they go from 3 to 2, in 1 subject \(0\)",
        ),
        ([0.1, 0.1, 0.5], VALUES, {}, "levels must be distinct"),
        ([0.0, 0.5, 0.9], VALUES, {}, "strictly between 0 and 1"),
        ([10, 50, 90], VALUES, {}, "strictly between 0 and 1"),
        (LEVELS, [[1.0, np.nan, 2.0]], {}, "values must be non-negative and finite"),
        (LEVELS, [[-1.0, 1.0, 2.0]], {}, "values must be non-negative and finite"),
        (LEVELS, [[1.0, 2.0, np.inf]], {}, "values must be non-negative and finite"),
        (LEVELS, VALUES.T[:, :1], {}, "transposed"),
        (LEVELS, VALUES[:, :2], {}, "levels must have shape"),
        (LEVELS, VALUES, {"tail": "flat"}, "tail must be one of"),
        (LEVELS, [[0.0, 0.0, 0.0]], {}, "no scale"),
    ],
)
def test_bad_tables(levels, values, options, message):
    with pytest.raises(InvalidInputError, match=message):
        Quantiles(np.array(levels), np.array(values), **options)


def test_text_is_refused_by_its_name():
    with pytest.raises(InvalidTypeError, match="values must hold numbers"):
        Quantiles([0.5], np.array([["a"]]))


@pytest.mark.parametrize("tail", TAILS)
def test_gradients_flow(tail):
    torch = pytest.importorskip("torch")
    values = torch.tensor(VALUES, requires_grad=True)
    levels = torch.tensor(LEVELS)
    t = torch.tensor([[1.5, 3.7], [3.3, 6.0]], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([[0.2, 0.95], [0.6, 0.99]], dtype=torch.float64)
    check = torch.autograd.gradcheck
    assert check(lambda v, t: Quantiles(levels, v, tail=tail).sf(t), (values, t))
    assert check(lambda v, t: Quantiles(levels, v, tail=tail).integrated_sf(t / 3, t), (values, t))
    if tail != "infinity":
        assert check(lambda v: Quantiles(levels, v, tail=tail).icdf(p), (values,))
        assert check(lambda v: Quantiles(levels, v, tail=tail).mean(), (values,))
    if tail != "last":
        assert check(lambda v: Quantiles(levels, v, tail=tail).logpdf(t.detach()[:, :1]), (values,))
