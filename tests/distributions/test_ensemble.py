"""Ensembles: the empirical distribution against counting, weights, several event times, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import censcore as cs
from censcore import _numerics
from censcore.distributions import Ensemble, Step
from censcore.exceptions import InvalidInputError, NoDensityError

SAMPLES = np.array([[3.0, 1.0, 2.0, 2.0, 7.0], [4.0, 0.0, 6.0, np.inf, 6.0]])
WEIGHTS = np.array([[1.0, 2.0, 0.0, 3.0, 4.0], [1.0, 1.0, 1.0, 2.0, 5.0]])
T = np.array([[0.0, 1.0, 1.5, 2.0, 3.0, 6.0, 7.0, 50.0]])


@pytest.fixture(params=["equal", "shared", "per row"])
def distribution(request):
    return Ensemble(SAMPLES, {"equal": None, "shared": WEIGHTS[0], "per row": WEIGHTS}[request.param])


def weights_of(distribution):
    weights = np.ones((1, 5)) / 5 if distribution.weights is None else distribution.weights
    return np.broadcast_to(weights, (2, 5))


def test_probabilities_by_counting(distribution):
    w = weights_of(distribution)
    above = (w[:, :, None] * (SAMPLES[:, :, None] > T[0])).sum(axis=1)
    from_here = (w[:, :, None] * (SAMPLES[:, :, None] >= T[0])).sum(axis=1)
    np.testing.assert_allclose(distribution.sf(T), above, atol=1e-15)
    np.testing.assert_allclose(distribution.sf_left(T), from_here, atol=1e-15)
    np.testing.assert_allclose(distribution.cdf(T), 1 - above, atol=1e-15)


def test_nothing_is_beyond_infinity(distribution):
    never = (weights_of(distribution) * np.isinf(SAMPLES)).sum(axis=1)
    np.testing.assert_allclose(distribution.mass_at_infinity(), never)
    np.testing.assert_array_equal(distribution.sf(np.inf), [0, 0])
    np.testing.assert_allclose(distribution.sf_left(np.inf), never)


def test_integral_is_the_mean_length(distribution):
    """The integral of P(T > s) over [a, b] is the mean of what each member has of [a, b]."""
    a, b = np.array([0.5, 1.0]), np.array([2.5, 20.0])
    lengths = np.clip(SAMPLES, a[:, None], b[:, None]) - a[:, None]
    np.testing.assert_allclose(
        distribution.integrated_sf(a, b), (weights_of(distribution) * lengths).sum(axis=1)
    )
    assert distribution.mean()[0] == pytest.approx((weights_of(distribution)[0] * SAMPLES[0]).sum())
    assert distribution.mean()[1] == np.inf


def test_a_member_without_weight_may_be_infinite():
    distribution = Ensemble([[1.0, float("inf"), 3.0]], weights=[1.0, 0.0, 1.0])
    assert distribution.mean() == 2.0
    assert distribution.mass_at_infinity() == 0.0
    assert distribution.icdf(1.0) == 3.0


@pytest.mark.parametrize("m", [1, 3, 10, 49, 1000])
def test_quantiles_at_exact_levels_are_the_order_statistics(m, rng):
    samples = rng.random((2, m))
    levels = np.arange(1, m + 1)[None, :] / m
    np.testing.assert_array_equal(Ensemble(samples).icdf(levels), np.sort(samples, axis=1))
    inverted = np.quantile(samples, [0.1, 0.37, 0.9], axis=1, method="inverted_cdf").T
    np.testing.assert_array_equal(Ensemble(samples).icdf(np.array([[0.1, 0.37, 0.9]])), inverted)


def test_quantiles_beyond_y_are_those_of_the_members_left(rng):
    samples = rng.random((50, 20))
    y, p = rng.random(50) * 0.5, np.array([[0.1, 0.5, 1.0]])
    got = Ensemble(samples).icdf_beyond(y, p)
    for row, x, found in zip(samples, y, got, strict=True):
        left = np.sort(row[row >= x])
        np.testing.assert_array_equal(found, left[np.ceil(p[0] * len(left) - 1e-9).astype(int) - 1])


def test_equals_the_step_distribution_of_its_jumps(rng):
    samples = np.sort(rng.random((4, 9)), axis=1)
    step = Step(samples, cdf=np.arange(1, 10) / 9)
    distribution = Ensemble(samples[:, ::-1])
    t, y = rng.random((4, 6)), rng.random(4)
    np.testing.assert_array_equal(distribution.sf(t), step.sf(t))
    np.testing.assert_array_equal(distribution.icdf_beyond(y, t), step.icdf_beyond(y, t))
    np.testing.assert_array_equal(distribution.integrated_sf(0.0, y), step.integrated_sf(0.0, y))
    for ours, theirs in zip(distribution.steps(), step.steps(), strict=True):
        np.testing.assert_array_equal(np.broadcast_to(ours, (4, 9)), np.broadcast_to(theirs, (4, 9)))


@given(st.lists(st.floats(0, 1e6) | st.just(np.inf), min_size=1, max_size=12), st.floats(1e-6, 1))
def test_quantile_is_the_first_time_that_reaches_the_level(samples, p):
    distribution = Ensemble([samples])
    t = distribution.icdf(p)[0]
    assert distribution.cdf(t)[0] >= p
    earlier = [x for x in samples if x < t]
    assert not earlier or distribution.cdf(max(earlier))[0] < p


def test_take_keeps_rows_weights_and_order(distribution):
    part = distribution.take([1])
    np.testing.assert_array_equal(part.samples, SAMPLES[1:])
    distribution.sf(1.0)
    np.testing.assert_array_equal(distribution.take([1]).sf(5.0), distribution.sf(5.0)[1:])
    np.testing.assert_array_equal(distribution.samples, SAMPLES)


def test_resampling_follows_the_weights(distribution):
    draws = distribution.sample(60_000, seed=3)
    assert draws.shape == (2, 60_000)
    np.testing.assert_allclose((draws <= 2.0).mean(axis=1), distribution.cdf(2.0), atol=0.01)
    assert set(np.unique(draws[0])) <= set(SAMPLES[0])


def test_sorting_does_not_depend_on_blocks(monkeypatch, rng):
    samples = rng.random((101, 7))
    monkeypatch.setattr("censcore.distributions.joint.ensemble._SORTED_AT_ONCE", 20)
    np.testing.assert_array_equal(Ensemble(samples).steps()[0], np.sort(samples, axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [1, 255, 257, 300, 512, 513, 1000, 1025, 3000])
def test_members_of_any_number_are_sorted(rng, m, dtype):
    rows = rng.exponential(size=(6, m)).astype(dtype)
    rows[0, : m // 2] = np.inf
    rows[1] = 1.0
    rows[2].sort()
    rows[3] = rows[2, ::-1]
    np.testing.assert_array_equal(Ensemble(rows).steps()[0], np.sort(rows, axis=1))


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (900, 600), (2, 400_000)])
def test_samples_stay_as_they_are(rng, shape):
    rows = rng.random(shape)
    before = rows.copy()
    np.testing.assert_array_equal(Ensemble(rows).steps()[0], np.sort(rows, axis=1))
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_array_equal(Ensemble(rows.T).steps()[0], np.sort(rows.T, axis=1))


def test_sorting_inside_the_thread_pool_does_not_wait_for_the_pool(monkeypatch, rng):
    monkeypatch.setenv("CENSCORE_THREADS", "2")
    monkeypatch.setattr("censcore.distributions.joint.ensemble._SORTED_AT_ONCE", 20)
    distributions = [Ensemble(rng.random((50, 7))) for _ in range(8)]
    means = _numerics.run_threads(lambda distribution: distribution.mean(), distributions)
    np.testing.assert_allclose(means, [distribution.samples.mean(axis=1) for distribution in distributions])


# ---- several event times -------------------------------------------------------------------------


@pytest.fixture
def joint(rng):
    return Ensemble(rng.random((3, 6, 2)), weights=rng.random((3, 6)))


def test_joint_shape_and_parts(joint):
    assert joint.shape == (3, 2)
    assert joint.k == 2
    np.testing.assert_array_equal(joint.marginal(1).samples, joint.samples[:, :, 1])
    np.testing.assert_array_equal(joint.marginal(-1).samples, joint.samples[:, :, 1])
    np.testing.assert_array_equal(joint.first().samples, joint.samples.min(axis=2))
    np.testing.assert_array_equal(joint.first().weights, joint.weights)
    assert joint.take([0, 2]).shape == (2, 2)
    with pytest.raises(InvalidInputError, match="2 event times; number 2"):
        joint.marginal(2)


@pytest.mark.parametrize("tau", [0.5, [0.2, 0.5, 0.9], [[0.1, 0.5], [0.2, np.inf], [0.0, 0.3]]])
def test_joint_censoring(joint, tau):
    limit = np.asarray(tau)
    limit = limit[:, None, :] if limit.ndim == 2 else limit.reshape(-1, 1, 1)
    np.testing.assert_array_equal(joint.censor_at(tau).samples, np.minimum(joint.samples, limit))


def test_univariate_censoring(distribution):
    np.testing.assert_array_equal(
        distribution.censor_at([2.0, 5.0]).samples, np.minimum(SAMPLES, [[2.0], [5.0]])
    )
    assert distribution.censor_at(2.0).mean()[1] < 2.0


def test_joint_draws_keep_coordinates_together():
    samples = np.array([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]])
    draws = Ensemble(samples, weights=[1.0, 0.0, 3.0]).sample(4000, seed=0)
    np.testing.assert_array_equal(draws[..., 1], 10 * draws[..., 0])
    assert (draws[..., 0] == 3).mean() == pytest.approx(0.75, abs=0.03)


def test_draws_are_rows_of_their_own(joint):
    draws = joint.sample(10, seed=0)
    for drawn, own in zip(draws, joint.samples, strict=True):
        assert set(map(tuple, drawn)) <= set(map(tuple, own))


@pytest.mark.parametrize("word", ["sf", "cdf", "sf_left", "logsf"])
def test_joint_ensemble_names_marginal_when_asked_about_one_time(joint, word):
    with pytest.raises(InvalidInputError, match=r"marginal\(j\)"):
        getattr(joint, word)(1.0)
    with pytest.raises(InvalidInputError, match=r"marginal\(j\)"):
        joint.icdf(0.5)


def test_no_likelihood(joint, distribution):
    for ensemble, time in ((joint, np.ones((3, 2))), (distribution, np.ones(2))):
        with pytest.raises(NoDensityError, match="energy_score"):
            ensemble.log_likelihood(time, time > 0)
    with pytest.raises(NoDensityError):
        distribution.logpdf(1.0)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "weights", "message"),
    [
        ([1.0, 2.0], None, r"shape \(n, m\).*samples\[None, :\]"),
        (np.ones((2, 0)), None, "at least one member"),
        ([[1.0, np.nan]], None, "samples must be non-negative; got nan, in 1 subject"),
        ([[1.0, 2.0], [1.0, -2.0]], None, r"samples must be non-negative; got -2.0, in 1 subject \(1\)"),
        ([[1.0, 2.0]], [1.0, -1.0], "weights must be non-negative and finite"),
        ([[1.0, 2.0]], [np.inf, 1.0], "weights must be non-negative and finite"),
        ([[1.0, 2.0]], [1.0, 1.0, 1.0], "one per member"),
        ([[1.0, 2.0]] * 3, [[1.0, 1.0]] * 2, "samples has 3, weights has 2"),
        ([[1.0, 2.0]] * 2, [[1.0, 1.0], [0.0, 0.0]], r"not all be zero; they are in 1 subject \(1\)"),
    ],
)
def test_bad_ensembles(samples, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        Ensemble(np.array(samples), None if weights is None else np.array(weights))


def test_tau_that_does_not_fit(joint, distribution):
    with pytest.raises(InvalidInputError, match="tau must be a number"):
        joint.censor_at(np.ones((3, 3)))
    with pytest.raises(InvalidInputError, match="tau must be a number"):
        distribution.censor_at(np.ones((2, 1)))
    with pytest.raises(InvalidInputError, match="numbers of subjects differ"):
        distribution.censor_at(np.ones(3))


# ---- torch ---------------------------------------------------------------------------------------


def test_torch_gives_the_same_numbers(distribution):
    torch = pytest.importorskip("torch")
    twin = distribution.like(torch.zeros(1, dtype=torch.float64))
    p = np.array([[0.0, 0.2, 0.55, 1.0]])
    np.testing.assert_allclose(twin.sf(torch.tensor(T)).numpy(), distribution.sf(T), atol=1e-15)
    np.testing.assert_array_equal(twin.icdf(torch.tensor(p)).numpy(), distribution.icdf(p))
    y = torch.tensor([1.5, 7.0], dtype=torch.float64)
    np.testing.assert_allclose(twin.integrated_sf(0.0, y).numpy(), distribution.integrated_sf(0.0, y.numpy()))
    assert twin.sample(5, seed=0).shape == (2, 5)
    np.testing.assert_array_equal(twin.sample(5, seed=0).numpy(), distribution.sample(5, seed=0))


def test_gradients_reach_samples_and_weights(rng):
    torch = pytest.importorskip("torch")
    x = torch.tensor(rng.random((2, 4)), requires_grad=True)
    w = torch.tensor(rng.random((2, 4)), requires_grad=True)
    b = torch.tensor([0.4, 0.9], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w, b: Ensemble(x, w).integrated_sf(0.0, b), (x, w, b))
    assert torch.autograd.gradcheck(lambda x: Ensemble(x).icdf(torch.full((2, 1), 0.3)), (x,))
    joint = torch.tensor(rng.random((2, 4, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Ensemble(x).first().censor_at(0.6).mean(), (joint,))


def test_plain_numbers_follow_the_library_of_the_question():
    torch = pytest.importorskip("torch")
    distribution = Ensemble([[1.0, 2.0]])
    assert distribution.sf(torch.tensor([1.0])).dtype == torch.float32
    assert distribution.censor_at(1.5).sf(torch.tensor([1.0])).dtype == torch.float32


def test_one_event_time_may_have_an_axis_of_its_own():
    draws = np.random.default_rng(0).exponential(size=(5, 20, 1))
    y = cs.RightCensored(np.ones(5), np.ones(5))
    np.testing.assert_array_equal(cs.crps(y, cs.Ensemble(draws)), cs.crps(y, cs.Ensemble(draws[:, :, 0])))
