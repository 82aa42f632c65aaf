"""Survivors to a time that the forecast gives a chance too small for a float."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore._numerics import next_float
from censcore.exceptions import InvalidInputError

F = cs.Weibull([0.8, 1.2, 2.0], [1.0, 2.0, 1.5])
TIMES = np.array([[0.0, 0.3, 2.5, 1e3, 1e300]])


def test_left_limits_and_means_have_digits_where_the_chance_to_survive_underflows():
    given = F.given_survival([0.1, 700.0, 0.25])
    np.testing.assert_array_equal(given.sf_left(TIMES), given.sf(TIMES))
    np.testing.assert_array_equal(given.mass_at_infinity(), 0.0)
    rate = 1.2 / 2 * (700 / 2) ** 0.2  # the hazard at 700, where the excess is almost exponential
    np.testing.assert_allclose(given.mean()[1] - 700, 1 / rate, rtol=2e-3)


def test_the_first_of_several_event_times_has_them_too():
    first = cs.Independent([F, cs.Exponential(0.5)]).given_survival([0.1, 163124.0, 0.25]).first()
    np.testing.assert_allclose(first.sf_left(TIMES), first.sf(TIMES), rtol=1e-9)
    assert np.isfinite(first.mean()).all()


def test_the_integral_has_digits_where_the_mean_is_no_float():
    """Weibull with shape 0.005: Gamma(201) is too large. Against quadrature in log t."""
    flat, u = cs.Weibull([0.005, 0.001], 1.0), np.linspace(np.log(2.0), -80.0, 200_001)[::-1]
    for shape, area in zip((0.005, 0.001), flat.integrated_sf(0.0, 2.0), strict=True):
        np.testing.assert_allclose(area, np.trapezoid(np.exp(u - np.exp(shape * u)), u), rtol=1e-6)
    np.testing.assert_array_equal(flat.mean(), np.inf)
    np.testing.assert_allclose(
        flat.integrated_sf(1.0, 2.0), flat.integrated_sf(0.0, 2.0) - flat.integrated_sf(0.0, 1.0)
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: cs.Weibull(5e-324, 1.0),
        lambda: cs.Weibull(1.0, 1e-300),
        lambda: cs.Gompertz(1e-300, 1.0),
        lambda: cs.Gamma(1e300, 1.0),
        lambda: cs.LogNormal(0.0, 1e300),
        lambda: cs.LogNormal(800.0, 1.0),
    ],
)
def test_parameters_without_digits_are_an_error(make):
    with pytest.raises(InvalidInputError, match=r"between .* where the formulas have digits; got"):
        make()


@pytest.mark.parametrize("F", [cs.Weibull(2.0, 1e-100), cs.Exponential(1e100), cs.Gamma(2.0, 1e100)])
def test_a_hazard_beyond_the_largest_float_is_infinite_without_a_warning(F):
    np.testing.assert_array_equal(F.sf(1e300), 0.0)
    np.testing.assert_array_equal(F.logpdf(1e300), -np.inf)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_largest_float_is_a_time_like_any_other(library):
    largest = np.finfo(np.float64).max
    parts = [cs.Weibull([0.8, 1.2], [1.0, 2.0]), cs.Exponential(0.5)]
    F = cs.Independent(parts).given_survival(0.1)
    F = F if library == "numpy" else F.to("cpu")
    first, censored = F.first(), F.censor_at(largest).first()
    np.testing.assert_allclose(censored.integrated_sf(0.0, 2.5), first.integrated_sf(0.0, 2.5), rtol=1e-9)
    np.testing.assert_allclose(censored.mean(), first.mean(), rtol=1e-9)
    assert next_float(np.array([largest])) == np.inf
