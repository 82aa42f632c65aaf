"""Distributions with a shared baseline equal the step distribution of each subject, without its matrix."""

from __future__ import annotations

import numpy as np
import pytest

from censcore.distributions import Step
from censcore.distributions.univariate.proportional_hazards import ProportionalHazards
from censcore.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
TIMES = np.sort(RNG.uniform(0, 5, 40))
HAZARD = np.cumsum(RNG.exponential(0.05, 40))
RISK = np.array([1.0, 0.02, 0.7, 3.0, 40.0])
DISTRIBUTION = ProportionalHazards(TIMES, HAZARD, RISK)
ROWS = Step(TIMES, sf=np.exp(-RISK[:, None] * HAZARD))
AT = np.sort(np.concatenate([TIMES, RNG.uniform(0, 6, 30), [0.0, np.inf]]))[None, :]


@pytest.mark.parametrize("word", ["sf", "cdf", "sf_left", "logsf"])
def test_words_at_times(word):
    np.testing.assert_allclose(
        getattr(DISTRIBUTION, word)(AT), getattr(ROWS, word)(AT), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("word", ["icdf", "isf"])
def test_quantiles_including_those_at_the_levels_of_the_jumps(word):
    levels = np.concatenate([RNG.uniform(size=50), [0.0, 0.999]])[None, :]
    np.testing.assert_array_equal(getattr(DISTRIBUTION, word)(levels), getattr(ROWS, word)(levels))
    at = DISTRIBUTION.sf(TIMES[None, :]) if word == "isf" else DISTRIBUTION.cdf(TIMES[None, :])
    distinct = (np.diff(at, axis=1, prepend=-1.0) != 0) & (at < 1)  # a risk of 40 soon leaves nothing
    jumps = np.where(distinct, getattr(DISTRIBUTION, word)(at), TIMES)
    np.testing.assert_array_equal(jumps, np.broadcast_to(TIMES, jumps.shape))


def test_areas_are_exact_and_do_not_depend_on_chunks(monkeypatch):
    a = np.concatenate([np.zeros(20), RNG.uniform(0, 3, 20)])[None, :]
    b = a + RNG.exponential(2.0, 40)
    expected = ROWS.integrated_sf(a, b)
    np.testing.assert_allclose(DISTRIBUTION.integrated_sf(a, b), expected, rtol=1e-12, atol=1e-14)
    monkeypatch.setattr("censcore._numerics.CHUNK_NUMBERS", 200)
    np.testing.assert_array_equal(DISTRIBUTION.integrated_sf(a, b), DISTRIBUTION.integrated_sf(a, b))
    np.testing.assert_allclose(DISTRIBUTION.integrated_sf(a, b), expected, rtol=1e-12, atol=1e-14)
    assert np.isinf(DISTRIBUTION.mean()).all()
    assert (DISTRIBUTION.integrated_sf(0.0, np.inf) == np.inf).all()


def test_conditional_quantiles():
    y = np.array([0.0, 1.0, float(TIMES[7]), 4.9, 5.5])
    p = np.concatenate([RNG.uniform(size=30), [0.0, 1.0]])[None, :]
    np.testing.assert_array_equal(DISTRIBUTION.icdf_beyond(y, p), ROWS.icdf_beyond(y, p))


def test_censoring_and_mass_at_infinity():
    np.testing.assert_allclose(DISTRIBUTION.mass_at_infinity(), ROWS.mass_at_infinity())
    for tau in (2.0, float(TIMES[3]), np.array([1.0, 2.0, 3.0, 9.0, np.inf])):
        cut, rows = DISTRIBUTION.censor_at(tau), ROWS.censor_at(tau)
        for word in ("sf", "sf_left", "cdf"):
            np.testing.assert_allclose(getattr(cut, word)(AT), getattr(rows, word)(AT), atol=1e-14)
        np.testing.assert_allclose(cut.mean(), rows.mean())
        np.testing.assert_array_equal(cut.icdf(0.4), rows.icdf(0.4))
    assert isinstance(DISTRIBUTION.censor_at(2.0), ProportionalHazards)


def test_rows_share_the_baseline():
    taken = DISTRIBUTION[[4, 0]]
    assert taken._times.shape == (1, 40)
    np.testing.assert_array_equal(taken.risk, RISK[[4, 0]])
    times, sf = taken.steps()
    assert (times.shape, sf.shape) == ((1, 40), (2, 40))


def test_many_rows_and_jumps_take_little_memory():
    import tracemalloc

    n = 20_000
    tracemalloc.start()
    distribution = ProportionalHazards(
        np.arange(1.0, n + 1), np.linspace(1e-4, 2.0, n), np.linspace(0.5, 2.0, n)
    )
    distribution.sf(np.full(n, 100.0))
    distribution.icdf(0.5)
    distribution.sample(2, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 8 * n  # a curve per row would be n times larger than n numbers


def test_torch_and_gradients():
    torch = pytest.importorskip("torch")
    risk = torch.as_tensor(RISK).requires_grad_()
    times, hazard = torch.as_tensor(TIMES), torch.as_tensor(HAZARD)
    t = torch.linspace(0, 6, 9, dtype=torch.float64)[None, :]
    distribution = ProportionalHazards(times, hazard, risk)
    np.testing.assert_allclose(distribution.sf(t).detach(), DISTRIBUTION.sf(t.numpy()), rtol=1e-13)

    def words(risk):
        distribution = ProportionalHazards(times, hazard, risk)
        return distribution.sf(t), distribution.logsf(t), distribution.integrated_sf(0.5, 3.0)

    assert torch.autograd.gradcheck(words, (risk,))


def test_a_hazard_beyond_the_largest_float_is_infinite():
    F = ProportionalHazards([1.0, 2.0], [0.5, 1e300], [1.0, 1e100])
    np.testing.assert_array_equal(F.sf([[0.5, 1.0, 2.0]]), [[1.0, np.exp(-0.5), 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(F.icdf([[0.2, 0.9]]), [[1.0, 2.0], [1.0, 1.0]])


def test_errors_name_the_mistake():
    with pytest.raises(InvalidInputError, match="increase strictly"):
        ProportionalHazards([2.0, 1.0], [0.1, 0.2], 1.0)
    with pytest.raises(InvalidInputError, match="not decrease"):
        ProportionalHazards([1.0, 2.0], [0.2, 0.1], 1.0)
    with pytest.raises(InvalidInputError, match="equally long"):
        ProportionalHazards([1.0, 2.0], [0.2], 1.0)
    with pytest.raises(InvalidInputError, match="risk must be positive"):
        ProportionalHazards([1.0], [0.2], [1.0, 0.0])
