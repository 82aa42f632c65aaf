"""Independent coordinates: every joint number is a product or a sum of those of the coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from censcore.distributions import Independent, PointMass, Weibull
from censcore.exceptions import InvalidInputError, InvalidTypeError

A = Weibull(1.3, [1.0, 2.0, 0.5])
B = Weibull([0.7, 1.0, 2.0], 3.0)
DISTRIBUTION = Independent([A, B])
T = np.array([[0.3, 1.0], [2.0, 0.1], [0.4, 4.0]])


def test_survival_is_the_product():
    np.testing.assert_allclose(DISTRIBUTION.sf(T), A.sf(T[:, 0]) * B.sf(T[:, 1]), rtol=1e-14)


def test_likelihood_is_the_sum_over_coordinates_for_every_pattern_of_events():
    event = np.array([[1, 0], [1, 1], [0, 0]])
    expected = sum(distribution.log_likelihood(T[:, j], event[:, j]) for j, distribution in enumerate((A, B)))
    np.testing.assert_allclose(DISTRIBUTION.log_likelihood(T, event), expected, rtol=1e-14)


def test_first_of_two_weibulls_of_one_shape_is_weibull():
    first = Independent([Weibull(2.0, [1.0, 3.0]), Weibull(2.0, 2.0)]).first()
    exact = Weibull(2.0, (np.array([1.0, 3.0]) ** -2 + 2.0**-2) ** -0.5)
    t = np.linspace(0.05, 4.0, 7)[None, :]
    for word in ("sf", "sf_left", "cdf", "logsf", "logpdf"):
        np.testing.assert_allclose(getattr(first, word)(t), getattr(exact, word)(t), rtol=1e-12)
    p = np.array([[1e-9, 0.2, 0.5, 0.99]])
    np.testing.assert_allclose(first.icdf(p), exact.icdf(p), rtol=1e-12)
    np.testing.assert_allclose(first.isf(p), exact.isf(p), rtol=1e-12)
    np.testing.assert_allclose(first.mean(), exact.mean(), rtol=1e-10)


def test_first_keeps_atoms_and_mass_at_infinity():
    first = Independent([PointMass(2.0), Weibull(1.0, 1.0)]).first()
    assert float(first.sf(2.0)[0]) == 0.0
    np.testing.assert_allclose(first.sf_left(2.0), np.exp(-2.0), rtol=1e-14)
    np.testing.assert_allclose(first.mean(), -np.expm1(-2.0), rtol=1e-10)
    never = Independent([PointMass(np.inf), PointMass([np.inf, 1.0])]).first()
    np.testing.assert_array_equal(never.mass_at_infinity(), [1.0, 0.0])
    np.testing.assert_allclose(never.mean(), [np.inf, 1.0], rtol=4e-16)  # the last bit depends on summation


def test_first_without_a_density_says_so():
    with pytest.raises(TypeError, match="no density"):
        Independent([PointMass(2.0), Weibull(1.0, 1.0)]).first().logpdf(1.0)


def test_a_distribution_shared_by_all_rows_is_drawn_anew_in_every_row():
    draws = Independent([Weibull(1.0, 1.0), Weibull(1.0, np.ones(3))]).sample(5, seed=1)
    assert draws.shape == (3, 5, 2)
    assert len(np.unique(draws)) == 30


def test_sample_agrees_with_the_distribution():
    draws = DISTRIBUTION.sample(40_000, seed=3)
    share = (draws > T[:, None, :]).all(axis=2).mean(axis=1)
    np.testing.assert_allclose(share, DISTRIBUTION.sf(T), atol=0.01)


@pytest.mark.parametrize(
    "tau", [1.0, np.array([0.5, 1.0, 2.0]), np.array([[0.5, 1.0], [1.0, 0.1], [2.0, 9.0]])]
)
def test_censoring_coordinate_by_coordinate(tau):
    cut = DISTRIBUTION.censor_at(tau)
    limit = np.broadcast_to(tau if np.ndim(tau) != 1 else tau[:, None], (3, 2))
    np.testing.assert_array_equal(
        cut.sample(50, seed=4), np.minimum(DISTRIBUTION.sample(50, seed=4), limit[:, None, :])
    )
    np.testing.assert_allclose(cut.sf(T), np.where((limit > T).all(axis=1), DISTRIBUTION.sf(T), 0.0))


def test_rows_are_taken_and_shared_distributions_stay_shared():
    distribution = Independent([Weibull(1.0, 1.0), B])
    taken = distribution[[2, 0]]
    assert taken.shape == (2, 2)
    assert len(taken.marginal(0)) == 1
    np.testing.assert_array_equal(taken.marginal(1).sf(1.0), B.sf(1.0)[[2, 0]])


def test_torch_equals_numpy_and_gradients_flow():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64, requires_grad=True)
    distribution = Independent([Weibull(1.3, scale), Weibull(2.0, 3.0)])
    exact = Independent([A, Weibull(2.0, 3.0)])
    event = np.array([[1, 0], [1, 1], [0, 1]])
    value = distribution.log_likelihood(torch.as_tensor(T), torch.as_tensor(event))
    np.testing.assert_allclose(value.detach().numpy(), exact.log_likelihood(T, event), rtol=1e-14)
    (gradient,) = torch.autograd.grad(value.sum() + distribution.first().mean().sum(), scale)
    step = 1e-6

    def total(shift: float) -> float:
        moved = Independent([Weibull(1.3, np.array([1.0 + shift, 2.0, 0.5])), Weibull(2.0, 3.0)])
        return float(moved.log_likelihood(T, event).sum() + moved.first().mean().sum())

    assert float(gradient[0]) == pytest.approx((total(step) - total(-step)) / (2 * step), rel=1e-6)


def test_errors_name_the_mistake():
    with pytest.raises(InvalidInputError, match="empty list"):
        Independent([])
    with pytest.raises(InvalidTypeError, match="got Independent"):
        Independent([DISTRIBUTION, A])
    with pytest.raises(InvalidInputError, match="numbers of subjects differ"):
        Independent([A, Weibull(1.0, [1.0, 2.0])])
    with pytest.raises(InvalidInputError, match="number 2"):
        DISTRIBUTION.marginal(2)
    with pytest.raises(InvalidInputError, match=r"\(n, 2\)"):
        DISTRIBUTION.sf(T[:, 0])
    with pytest.raises(InvalidInputError, match="shape of time"):
        DISTRIBUTION.log_likelihood(T, [[1, 0]])
    with pytest.raises(InvalidInputError, match="non-negative"):
        DISTRIBUTION.sf(-T)
