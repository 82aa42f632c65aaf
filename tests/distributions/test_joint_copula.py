"""Copulas against high-precision derivatives of their survival functions, and against simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from censcore.distributions import Copula, Independent, PointMass, Weibull
from censcore.exceptions import InvalidInputError, InvalidTypeError

mpmath = pytest.importorskip("mpmath")

UNIT = Weibull(1.0, 1.0)  # H(t) = t and log h = 0, so that times are cumulative hazards


def exact_log_likelihood(family: str, theta: float, H: tuple[float, ...], event: tuple[int, ...]) -> float:
    """log of |d^r S / dH_D| with digits to spare."""

    def survival(*h):
        if family == "gumbel":
            return mpmath.exp(-(sum(x**theta for x in h) ** (1 / theta)))
        return (1 + sum(mpmath.expm1(theta * x) for x in h)) ** (-1 / theta)

    with mpmath.workdps(900 if theta > 20 else 80):
        theta = mpmath.mpf(theta)
        derivative = mpmath.diff(survival, tuple(mpmath.mpf(h) for h in H), event, relative=True)
        return float(mpmath.log(abs(derivative)))


CLAYTON = [1e-12, 1e-5, 0.02, 0.5, 3.0, 60.0]
GUMBEL = [1.0, 1 + 1e-9, 1.2, 3.0, 25.0]
PAIRS = [(0.3, 0.9), (1e-6, 2.0), (12.0, 0.4), (60.0, 55.0), (0.7, 0.7)]
TRIPLES = [(0.3, 0.9, 2.0), (15.0, 1e-5, 0.6)]


@pytest.mark.parametrize(
    ("family", "theta", "H"),
    [
        *(("clayton", theta, H) for theta in CLAYTON for H in PAIRS + TRIPLES),
        *(("gumbel", theta, H) for theta in GUMBEL for H in PAIRS),
    ],
)
def test_every_pattern_of_events_is_a_derivative_of_the_survival_function(family, theta, H):
    k = len(H)
    patterns = list(itertools.product((0, 1), repeat=k))
    distribution = Copula(family, [UNIT] * k, theta)
    time = np.array([H] * len(patterns))
    expected = [exact_log_likelihood(family, theta, H, pattern) for pattern in patterns]
    np.testing.assert_allclose(
        distribution.log_likelihood(time, np.array(patterns)), expected, rtol=1e-11, atol=1e-11
    )
    np.testing.assert_allclose(distribution.logsf(time[:1]), expected[0], rtol=1e-12)


@pytest.mark.parametrize(("family", "theta"), [("clayton", 0.0), ("gumbel", 1.0)])
def test_independence_is_a_member_of_both_families(family, theta):
    marginals = [Weibull(1.3, [1.0, 2.0]), Weibull(0.8, 0.5)]
    distribution, free = Copula(family, marginals, theta), Independent(marginals)
    time, event = np.array([[0.4, 2.0], [3.0, 0.2]]), np.array([[1, 1], [1, 0]])
    np.testing.assert_allclose(
        distribution.log_likelihood(time, event), free.log_likelihood(time, event), rtol=1e-13
    )
    np.testing.assert_allclose(distribution.sf(time), free.sf(time), rtol=1e-13)
    np.testing.assert_allclose(distribution.first().mean(), free.first().mean(), rtol=1e-12)
    assert distribution.kendall_tau == pytest.approx(0.0)


@pytest.mark.parametrize(("family", "theta"), [("clayton", 2.0), ("gumbel", 2.0)])
def test_hazards_beyond_any_probability_stay_finite(family, theta):
    """exp(-H) is zero in floating point here, the likelihood is not."""
    distribution = Copula(family, [UNIT, UNIT], theta)
    time = np.array([[5e3, 1.0], [5e3, 6e3], [1e5, 1e5]])
    for event in itertools.product((0, 1), repeat=2):
        value = distribution.log_likelihood(time, np.broadcast_to(event, (3, 2)))
        assert np.isfinite(value).all()
        assert (value < 0).all()


def test_zero_survival_of_a_censored_coordinate_is_impossible_and_of_an_event_is_not():
    distribution = Copula("clayton", [PointMass(2.0), UNIT], 1.5)
    value = distribution.log_likelihood(np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([[0, 1], [0, 1]]))
    assert value[0] == -np.inf
    np.testing.assert_allclose(value[1], -1.0, rtol=1e-14)
    assert distribution.sf([[2.0, 1.0]])[0] == 0.0


def test_events_at_time_zero_have_their_limits():
    distribution = Copula("gumbel", [UNIT, UNIT], 2.0)
    assert distribution.log_likelihood([[0.0, 1.0]], [[1, 0]])[0] == -np.inf
    assert distribution.log_likelihood([[0.0, 0.0]], [[1, 1]])[0] == np.inf
    assert distribution.log_likelihood([[0.0, 0.0]], [[0, 0]])[0] == 0.0
    assert Copula("gumbel", [UNIT, UNIT], 1.0).log_likelihood([[0.0, 0.0]], [[1, 1]])[0] == 0.0
    clayton = Copula("clayton", [UNIT, UNIT], 2.0).log_likelihood([[0.0, 0.0]], [[1, 1]])
    np.testing.assert_allclose(clayton, np.log(3.0), rtol=1e-14)


@pytest.mark.parametrize(
    ("family", "theta", "k"),
    [("clayton", 0.7, 3), ("clayton", 40.0, 2), ("gumbel", 1.0, 2), ("gumbel", 4.0, 2)],
)
def test_draws_have_the_joint_survival_and_the_rank_correlation(family, theta, k):
    from scipy.stats import kendalltau

    distribution = Copula(family, [Weibull(1.5, 2.0)] * k, theta)
    draws = distribution.sample(40_000, seed=8)[0]
    for t in (np.full(k, 1.0), np.array([0.4, 2.5, 1.3])[:k]):
        assert (draws > t).all(axis=1).mean() == pytest.approx(
            float(distribution.sf([t.tolist()])[0]), abs=0.01
        )
    tau = kendalltau(draws[:, 0], draws[:, -1]).statistic
    assert tau == pytest.approx(float(distribution.kendall_tau[0]), abs=0.012)
    first = np.sort(draws.min(axis=1))
    np.testing.assert_allclose(
        distribution.first().cdf(first[::2000]), np.arange(0, 40_000, 2000) / 40_000, atol=0.012
    )


def test_extreme_dependence_draws_finite_equal_hazards():
    draws = Copula("clayton", [UNIT, UNIT], 1e4).sample(500, seed=0)[0]
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=0.01)
    draws = Copula("gumbel", [UNIT, UNIT], 1e3).sample(500, seed=0)[0]
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], rtol=0.05)


@pytest.mark.parametrize(("family", "theta"), [("clayton", 1.7), ("gumbel", 1.7)])
def test_the_first_event_has_the_density_of_its_survival_function(family, theta):
    distribution = Copula(family, [Weibull(1.3, [1.0, 2.0]), Weibull(0.8, 0.5)], theta)
    first, t, step = distribution.first(), np.array([[0.1, 0.5, 1.4]]), 1e-6
    slope = (first.sf(t - step) - first.sf(t + step)) / (2 * step)
    np.testing.assert_allclose(np.exp(first.logpdf(t)), slope, rtol=1e-7)
    np.testing.assert_allclose(first.cdf(first.icdf([[0.01, 0.5, 0.9]])), [[0.01, 0.5, 0.9]] * 2, rtol=1e-12)


def test_censoring_keeps_the_copula():
    distribution = Copula("clayton", [Weibull(1.3, [1.0, 2.0]), UNIT], 2.0)
    tau = np.array([[0.5, 2.0], [1.0, 0.3]])
    cut = distribution.censor_at(tau)
    np.testing.assert_array_equal(
        cut.sample(60, seed=2), np.minimum(distribution.sample(60, seed=2), tau[:, None, :])
    )
    assert cut.kendall_tau == pytest.approx(0.5)
    np.testing.assert_allclose(cut.sf([[0.4, 0.2]]), distribution.sf([[0.4, 0.2]]))


def test_one_theta_per_row_follows_its_row():
    distribution = Copula("gumbel", [UNIT, UNIT], [1.0, 2.0, 3.0])
    one = Copula("gumbel", [UNIT, UNIT], 3.0)
    t = np.array([[0.5, 1.0]])
    np.testing.assert_allclose(distribution[[2]].sf(t), one.sf(t))
    assert distribution.shape == (3, 2)
    np.testing.assert_allclose(distribution[1:].kendall_tau, [0.5, 2 / 3])


@pytest.mark.parametrize("family", ["clayton", "gumbel"])
@pytest.mark.parametrize("start", [0.0, 1e-7, 1e-3, 0.4, 5.0])
def test_gradients_are_right_near_and_far_from_independence(family, start):
    torch = pytest.importorskip("torch")
    theta = torch.tensor([start + (family == "gumbel")], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor([0.5, 1.0, 2.0, 1.3], dtype=torch.float64, requires_grad=True)
    time = torch.tensor([[0.3, 1.0], [2.0, 0.4], [0.9, 0.9], [9.0, 4.0]], dtype=torch.float64)
    event = torch.tensor([[1, 1], [1, 0], [0, 0], [1, 1]])

    def likelihood(theta, scale):
        return Copula(family, [Weibull(1.2, scale), Weibull(0.8, 1.1)], theta).log_likelihood(time, event)

    if start >= 1e-3:
        assert torch.autograd.gradcheck(likelihood, (theta, scale), eps=1e-6, atol=1e-6)
    gradient = torch.autograd.grad(likelihood(theta, scale).sum(), (theta, scale))
    assert all(torch.isfinite(part).all() for part in gradient)
    step = 1e-6  # one-sided, of second order: theta may sit on the edge of its range
    values = [likelihood(theta + i * step, scale).sum().item() for i in range(3)]
    slope = (-3 * values[0] + 4 * values[1] - values[2]) / (2 * step)
    assert float(gradient[0]) == pytest.approx(slope, rel=2e-6, abs=2e-7)


def test_single_precision_keeps_the_gradient_of_a_tiny_theta():
    torch = pytest.importorskip("torch")
    H = torch.tensor([[0.5, 1.5]])
    for value in (0.0, 1e-9, 1e-5):
        theta = torch.tensor([value], requires_grad=True)
        logsf = Copula("clayton", [Weibull(torch.ones(1), torch.ones(1))] * 2, theta).logsf(H)
        (slope,) = torch.autograd.grad(logsf.sum(), theta)
        # -g = -(S_1 + theta (S_2 - S_1^2) / 2 + ...) with power sums S_p of the hazards
        assert float(slope) == pytest.approx((2.0**2 - 2.5) / 2, rel=1e-4)
        assert logsf.dtype == torch.float32


def test_single_precision_is_finite_at_extremes():
    torch = pytest.importorskip("torch")
    time = torch.tensor([[0.0, 1.0], [1e4, 1e-8], [1e4, 1e4], [1e-12, 1e-12]])
    event = torch.tensor([[0, 1], [1, 1], [1, 0], [1, 1]])
    for family, value in (("clayton", 1e-8), ("clayton", 30.0), ("gumbel", 1.0), ("gumbel", 20.0)):
        theta = torch.tensor([value], requires_grad=True)
        scale = torch.tensor([1.0], requires_grad=True)
        loss = Copula(family, [Weibull(1.0, scale), Weibull(1.0, scale)], theta).log_likelihood(time, event)
        assert torch.isfinite(loss).all()
        gradient = torch.autograd.grad(loss.sum(), (theta, scale))
        assert all(torch.isfinite(part).all() for part in gradient)


def test_errors_name_the_mistake():
    with pytest.raises(InvalidInputError, match="clayton"):
        Copula("frank", [UNIT, UNIT], 1.0)
    with pytest.raises(InvalidInputError, match="at least 1"):
        Copula("gumbel", [UNIT, UNIT], 0.5)
    with pytest.raises(InvalidInputError, match="two event times"):
        Copula("gumbel", [UNIT] * 3, 2.0)
    with pytest.raises(InvalidInputError, match="non-negative"):
        Copula("clayton", [UNIT, UNIT], -0.5)
    with pytest.raises(InvalidInputError, match="numbers of subjects differ"):
        Copula("clayton", [Weibull(1.0, [1.0, 2.0]), UNIT], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match="one value per subject"):
        Copula("clayton", [UNIT, UNIT], [[1.0, 2.0]])
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidTypeError, match="different libraries"):
        Copula("clayton", [Weibull(1.0, np.ones(2)), UNIT], torch.ones(2))
