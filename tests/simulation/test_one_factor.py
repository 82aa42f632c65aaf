"""The one-factor log-normal distribution against multivariate normal probabilities and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.simulation import LogNormalScenario, OneFactorLogNormal
from censcore.testing import check_distribution

MU = np.array([[[0.1, -0.3, 0.4], [0.9, 0.2, 1.1]]])
SIGMA = np.array([[[0.5, 0.4, 0.6], [0.7, 0.5, 0.3]]])
RHO, PI = [0.7, 0.2], np.array([[0.35, 0.65]])
DISTRIBUTION = OneFactorLogNormal(MU, SIGMA, RHO, PI)
TIMES = np.array([[0.5, 1.0, 2.0], [1.3, 0.4, 3.0], [4.0, 2.0, 0.2]])


def moments(regime: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the log-times."""
    corr = np.full((3, 3), RHO[regime]) + (1 - RHO[regime]) * np.eye(3)
    scale = SIGMA[0, regime]
    return MU[0, regime], scale[:, None] * corr * scale


def orthant(t: np.ndarray) -> float:
    """P(T_1 > t_1, ..., T_k > t_k) by scipy's integration of the multivariate normal density."""
    total = 0.0
    for regime in range(2):
        mean, cov = moments(regime)
        total += PI[0, regime] * stats.multivariate_normal.cdf(
            -np.log(t), -mean, cov, maxpts=400_000, abseps=1e-9, releps=1e-9
        )
    return total


@pytest.mark.parametrize("t", TIMES, ids=str)
def test_survival_is_an_orthant_probability(t):
    assert DISTRIBUTION.sf(t[None, :])[0] == pytest.approx(orthant(t), rel=2e-5)


@pytest.mark.parametrize("t", TIMES, ids=str)
def test_density_is_a_mixture_of_lognormal_densities(t):
    density = (
        sum(PI[0, r] * stats.multivariate_normal.pdf(np.log(t), *moments(r)) for r in range(2)) / t.prod()
    )
    found = DISTRIBUTION.log_likelihood(t[None, :], np.ones((1, 3), dtype=bool))
    assert found[0] == pytest.approx(np.log(density), rel=1e-7)


@pytest.mark.parametrize("event", list(itertools.product([False, True], repeat=3)), ids=str)
def test_likelihood_is_a_mixed_derivative_of_survival(event):
    """Differences of the survival function in the coordinates with an event."""
    t, h = np.array([0.9, 0.8, 1.4]), 1e-3
    total = 0.0
    seen = [j for j in range(3) if event[j]]
    for signs in itertools.product([-1, 1], repeat=len(seen)):
        at = t.copy()
        at[seen] += h * np.array(signs)
        total += np.prod(signs) * (-1) ** len(seen) * DISTRIBUTION.sf(at[None, :])[0]
    expected = np.log(total / (2 * h) ** len(seen))
    found = DISTRIBUTION.log_likelihood(t[None, :], np.array([event]))[0]
    assert found == pytest.approx(expected, abs=2e-5)


def test_simulation_agrees_with_survival_margins_and_the_first_event():
    draws = DISTRIBUTION.sample(200_000, 1)[0]
    for t in TIMES:
        share, exact = (draws > t).all(axis=1).mean(), DISTRIBUTION.sf(t[None, :])[0]
        assert abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / len(draws)) + 1e-6
    for j in range(3):
        assert (
            stats.kstest(draws[:, j], lambda t, j=j: DISTRIBUTION.marginal(j).cdf(t[None, :])[0]).pvalue
            > 1e-3
        )
    first = DISTRIBUTION.first()
    t = np.array([[0.2, 0.5, 1.0]])
    np.testing.assert_allclose(first.sf(t)[0], [(draws.min(axis=1) > s).mean() for s in t[0]], atol=5e-3)


@pytest.mark.parametrize("j", range(3))
def test_margins_keep_the_contract(j):
    check_distribution(DISTRIBUTION.marginal(j))


def test_one_coordinate_has_the_survival_of_its_margin():
    """Times of zero in the other coordinates leave the margin."""
    for j in range(3):
        at = np.zeros((4, 3))
        at[:, j] = [0.1, 0.7, 1.5, 6.0]
        distribution = DISTRIBUTION.take(np.zeros(4, dtype=int))
        np.testing.assert_allclose(
            distribution.sf(at), DISTRIBUTION.marginal(j).sf(at[None, :, j])[0], rtol=1e-6, atol=1e-12
        )


def test_factor_quadrature_holds_for_the_strongest_dependence_of_the_study():
    """Ten coordinates with correlation 0.7, far in the tail and in the middle."""
    scenario = LogNormalScenario(10)
    X = np.zeros((2, 4))
    distribution = scenario.event_distribution(X)
    draws = distribution.sample(200_000, 0)
    for level in (0.3, 0.8, 2.0):
        t = np.full((2, 10), level)
        share = (draws > level).all(axis=2).mean(axis=1)
        np.testing.assert_allclose(distribution.sf(t), share, atol=5e-3)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="mu and sigma must be"):
        OneFactorLogNormal(MU, SIGMA[:, :1], RHO, PI)
    with pytest.raises(InvalidInputError, match="mu and sigma must be"):
        OneFactorLogNormal(MU, SIGMA, [0.5], PI)


def test_torch_is_refused_at_once():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidTypeError, match=r"NumPy only; got a torch tensor.*marginal\(j\)"):
        DISTRIBUTION.like(torch.ones(1))
