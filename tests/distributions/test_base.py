"""What the base class derives from a survival function alone, and distributions of a user's own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from censcore.distributions import Exponential, Univariate, Weibull
from censcore.distributions._panels import RunningSums, merge_edges
from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.testing import check_distribution

INF = float("inf")


class Pareto(Univariate):
    """P(T > t) = (1 + t) ** -a, with mass at infinity if asked for: known by survival and density only."""

    def __init__(self, a, never=0.0):
        self.store(a=a, never=never)
        self._a, self._never = self._a.reshape(-1, 1), self._never.reshape(-1, 1)

    def sf_at(self, t):
        xp = self.xp
        endless = xp.isinf(t)
        s = self._never + (1 - self._never) * (1 + xp.where(endless, xp.ones_like(t), t)) ** -self._a
        return xp.where(endless, xp.zeros_like(s), s)

    def logpdf_at(self, t):
        return self.xp.log((1 - self._never) * self._a) - (self._a + 1) * self.xp.log1p(t)

    def prob_never(self):
        return self._never[:, 0]


def test_a_distribution_of_two_formulas_keeps_the_contract():
    check_distribution(Pareto([1.5, 3.0]))
    check_distribution(Pareto([2.5, 3.0], never=0.25))


@pytest.mark.parametrize("a", [1.02, 1.5, 3.0, 20.0])
def test_power_distribution_tails_are_integrated_to_infinity(a):
    distribution = Pareto(a)
    assert_allclose(distribution.mean(), [1 / (a - 1)], rtol=1e-9)
    t = np.array([[3.0, 1e4, 1e9]])
    assert_allclose(distribution.integrated_sf(t, INF), (1 + t) ** (1 - a) / (a - 1), rtol=1e-8)


@pytest.mark.parametrize("a", [0.2, 0.9, 1.0])
def test_tails_too_heavy_for_a_mean_are_found(a):
    distribution = Pareto(a)
    assert distribution.mean()[0] == INF
    t = np.array([[1.0, 1e6, 1e40]])
    exact = np.log1p(t) if a == 1 else np.expm1((1 - a) * np.log1p(t)) / (1 - a)
    assert_allclose(distribution.integrated_sf(0.0, t), exact, rtol=1e-8)


def test_mass_at_infinity_takes_its_share_of_every_interval():
    distribution = Pareto(3.0, never=0.25)
    assert distribution.mean()[0] == INF
    t = np.array([[2.0, 1e3, 1e12]])
    exact = 0.25 * t + 0.75 * (1 - (1 + t) ** -2.0) / 2
    assert_allclose(distribution.integrated_sf(0.0, t), exact, rtol=1e-9)


def test_single_precision_finds_heavy_tails_too():
    a = np.array([0.9, 1.5], dtype=np.float32)
    mean = Pareto(a).mean()
    assert mean.dtype == np.float32
    assert mean[0] == INF
    assert_allclose(mean[1], 2.0, rtol=1e-4)


def test_gradients_of_what_is_derived():
    torch = pytest.importorskip("torch")
    a = torch.tensor([1.3, 3.0], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([[0.2, 1.0, 40.0]], dtype=torch.float64)
    p = torch.tensor([[0.1, 0.5, 0.99]], dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck
    assert check(lambda a, p: Pareto(a).icdf(p), (a, p))
    assert check(lambda a, p: Pareto(a).isf(p), (a, p))
    assert check(lambda a, p: Pareto(a).icdf_beyond(t[:, 1], p), (a, p))
    assert check(lambda a: Pareto(a).integrated_sf(t, 50.0), a)
    assert check(lambda a: Pareto(a).mean(), a)
    assert check(lambda a: Pareto(a).sample(3, seed=0), a)


def test_many_times_are_integrated_in_blocks(monkeypatch):
    from censcore.distributions import _panels

    distribution, t = Pareto([1.5, 3.0]), np.linspace(0.0, 5.0, 41)[None, :]
    whole = distribution.integrated_sf(0.0, t)
    monkeypatch.setattr(_panels, "CHUNK_NUMBERS", 100)
    np.testing.assert_array_equal(distribution.integrated_sf(0.0, t), whole)


def test_merged_edges_ascend_and_are_finite():
    merged = merge_edges(np.array([[3.0, INF]]), np.array([[1.0], [5.0]]))
    assert merged.tolist() == [[1.0, 3.0, 3.0], [3.0, 5.0, 5.0]]
    assert merge_edges(np.array([[INF, INF]])).tolist() == [[0.0, 0.0]]


def test_running_sums_lose_no_small_panel_beside_a_large_one():
    sums = RunningSums(np.array([[1e20, 1.0, 1e-20]]))
    at = lambda i, j: sums.between(np.array([[i]]), np.array([[j]]))[0, 0]  # noqa: E731
    assert at(1, 3) == 1.0
    assert at(2, 3) == 1e-20
    assert at(0, 1) == 1e20
    assert at(2, 2) == 0


# ---- shapes -----------------------------------------------------------------------------------------


def test_every_mix_of_shapes():
    distribution = Weibull([1.0, 2.0, 3.0], 2.0)
    assert distribution.sf(1.0).shape == (3,)
    assert distribution.sf([1.0, 2.0, 3.0]).shape == (3,)
    assert distribution.sf([[1.0, 2.0]]).shape == (3, 2)
    assert distribution.sf(np.ones((3, 1))).shape == (3, 1)
    assert distribution.integrated_sf(0.0, np.ones((3, 1))).shape == (3, 1)
    assert distribution.integrated_sf(np.zeros((1, 4)), 1.0).shape == (3, 4)
    assert distribution.integrated_sf([0.0, 0.1, 0.2], np.ones((1, 4))).shape == (3, 4)
    assert distribution.icdf_beyond(1.0, [[0.1, 0.2]]).shape == (3, 2)
    assert distribution.icdf_beyond(np.ones((3, 4)), 0.5).shape == (3, 4)
    assert distribution.log_likelihood([1.0, 2.0, 3.0], [1, 0, 1]).shape == (3,)
    shared = Weibull(1.5, 2.0)
    assert shared.sf(np.ones(7)).shape == (7,)
    assert shared.mean().shape == (1,)
    assert shared.sample(4, 0).shape == (1, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda distribution: distribution.sf(np.ones((2, 2))), "t has 2, distribution has 3"),
        (lambda distribution: distribution.sf(np.ones((1, 1, 1))), r"t must be a number, \(n,\) or \(n, q\)"),
        (lambda distribution: distribution.sf(np.nan), "t must be free of NaN"),
        (lambda distribution: distribution.icdf(1.5), "p must be between 0 and 1; got 1.5"),
        (
            lambda distribution: distribution.isf([-0.1, 0.5, 0.5]),
            r"p must be between 0 and 1; got -0.1, in 1 subject \(0\)",
        ),
        (lambda distribution: distribution.integrated_sf(2.0, 1.0), "needs a <= b"),
        (lambda distribution: distribution.integrated_sf(INF, INF), "a must be non-negative and finite"),
        (lambda distribution: distribution.integrated_sf(-1.0, 1.0), "a must be non-negative"),
        (lambda distribution: distribution.icdf_beyond(-1.0, 0.5), "y must be non-negative"),
        (
            lambda distribution: distribution.icdf_beyond(np.nan, 0.5),
            "y must be non-negative and finite; got nan",
        ),
        (
            lambda distribution: distribution.log_likelihood([1.0, -1.0, 1.0], [1, 1, 1]),
            "time must be non-negative",
        ),
        (lambda distribution: distribution.censor_at([1.0, 2.0]), "distribution has 3, tau has 2"),
        (lambda distribution: distribution.censor_at(np.ones((3, 2))), "tau must be a number or one per sub"),
        (lambda distribution: distribution.sample(0), "m, the number of draws"),
        (lambda distribution: distribution.marginal(1), "has 1 event times; number 1 was asked for"),
    ],
)
def test_bad_questions_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(Weibull([1.0, 2.0, 3.0], 2.0))


def test_likelihood_of_a_distribution_without_density_needs_no_density_where_nothing_happened():
    distribution = Exponential(1.0).censor_at(2.0)
    assert_allclose(distribution.log_likelihood([1.0], [0]), [-1.0])
    with pytest.raises(NoDensityError, match="Censored has no density"):
        distribution.log_likelihood([1.0], [1])


def test_draws_never_fall_on_an_end():
    class Ends(np.random.Generator):
        def random(self, size):
            return np.resize([0.0, 1.0 - 2.0**-53], size)

    rng = Ends(np.random.PCG64(0))
    for dtype in (np.float32, np.float64):
        distribution = Exponential(np.ones(1, dtype))
        draws = distribution.draw(2, rng)
        assert np.isfinite(draws).all()
        assert (draws > 0).all()


# ---- what is settled once ------------------------------------------------------------------------


def test_nothing_is_copied_where_nothing_changes():
    distribution = Weibull(1.5, np.array([1.0, 2.0, 3.0]))
    assert distribution.like(np.zeros(1)) is distribution
    assert distribution.detach() is distribution
    assert distribution.take(slice(0, 3)) is distribution
    assert distribution.like(np.zeros(1, np.float32)) is not distribution
    assert distribution.take(slice(0, 2)) is not distribution


def test_plain_numbers_join_a_library_once():
    distribution = Weibull(1.5, 2.0)
    single = distribution.like(np.zeros(1, np.float32))
    assert single is distribution.like(np.ones((3, 2), np.float32))
    assert single.sf(1.0).dtype == np.float32
    assert distribution.like(np.zeros(1)).sf(1.0).dtype == np.float64


def test_the_library_is_asked_once_and_left_out_of_copies(monkeypatch):
    distribution = Weibull(1.5, np.array([1.0, 2.0]))
    expected = distribution.sf(1.0)
    monkeypatch.setattr("censcore.distributions.distribution.namespace", None)  # asked before, not again
    np.testing.assert_array_equal(distribution.sf(1.0), expected)
    for copied in (pickle.loads(pickle.dumps(distribution)), copy.deepcopy(distribution)):
        assert "xp" not in vars(copied)


def test_a_copy_in_another_library_has_the_namespace_of_that_library():
    torch = pytest.importorskip("torch")
    distribution = Weibull(1.5, np.array([1.0, 2.0]))
    distribution.sf(1.0)
    tensors = distribution.like(torch.ones(1, dtype=torch.float64))
    assert isinstance(tensors.sf(1.0), torch.Tensor)
    np.testing.assert_allclose(tensors.sf(1.0), distribution.sf(1.0), rtol=1e-14)
