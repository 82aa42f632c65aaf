"""Step distributions: every word against its definition, left limits, exact levels, bad curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censcore.distributions import Censored, PointMass, Step
from censcore.exceptions import InvalidInputError, InvalidTypeError, NoDensityError

TIMES = np.array([1.0, 2.0, 4.0])
SF = np.array([[0.8, 0.5, 0.5], [0.9, 0.6, 0.0]])


def tabulated(times, sf, t, *, left=False):
    """P(T > t) or P(T >= t) of one row, by looking through the jumps one at a time."""
    level = 1.0
    for time, after in zip(times, sf, strict=True):
        if time < t or (time == t and not left):
            level = after
    return level


@pytest.fixture(params=["common", "per row"])
def distribution(request):
    times = TIMES if request.param == "common" else np.stack([TIMES, TIMES])
    return Step(times, sf=SF)


QUERIES = np.array([[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0]])


@pytest.mark.parametrize("t", [QUERIES, np.repeat(QUERIES, 2, axis=0)], ids=["grid", "per row"])
def test_survival_and_left_limit_by_table(distribution, t):
    expected = [[tabulated(TIMES, row, x) for x in QUERIES[0]] for row in SF]
    left = [[tabulated(TIMES, row, x, left=True) for x in QUERIES[0]] for row in SF]
    np.testing.assert_array_equal(distribution.sf(t), expected)
    np.testing.assert_array_equal(distribution.sf_left(t), left)
    np.testing.assert_array_equal(distribution.cdf(t), 1 - np.array(expected))


def test_negative_and_infinite_times(distribution):
    np.testing.assert_array_equal(distribution.sf(-1.0), [1, 1])
    np.testing.assert_array_equal(distribution.sf(np.inf), [0, 0])
    np.testing.assert_array_equal(distribution.cdf(np.inf), [1, 1])
    np.testing.assert_array_equal(distribution.sf_left(np.inf), [0.5, 0])
    np.testing.assert_array_equal(distribution.mass_at_infinity(), [0.5, 0])


def test_quantiles_are_the_inverted_cdf(distribution):
    p = np.array([[0.0, 1e-20, 0.1, 0.2, 0.4, 0.5, 0.6, 1.0]])
    expected = [[0, 1, 1, 1, 2, 2, np.inf, np.inf], [0, 1, 1, 2, 2, 4, 4, 4]]
    np.testing.assert_array_equal(distribution.icdf(p), expected)
    np.testing.assert_array_equal(distribution.isf(1 - p[:, 2:]), np.array(expected)[:, 2:])
    np.testing.assert_array_equal(distribution.isf(1.0), [0, 0])


@pytest.mark.parametrize("count", [3, 7, 10, 49, 1000])
def test_quantiles_at_exact_levels(count):
    """At every level i / m the quantile is the i-th time, however the levels round."""
    times = np.arange(1.0, count + 1)
    levels = np.arange(1, count + 1) / count
    for distribution in (Step(times, cdf=levels), Step(times, sf=1 - levels)):
        np.testing.assert_array_equal(distribution.icdf(levels[None, :])[0], times)
        np.testing.assert_array_equal(distribution.isf(1 - levels[None, :])[0], times)
    decimal = Step(times, sf=(count - times) / count)
    np.testing.assert_array_equal(decimal.icdf(levels[None, :])[0], times)


def test_cdf_comes_back_as_given():
    distribution = Step([1.0, 2.0], cdf=[0.3, 0.7])
    np.testing.assert_array_equal(distribution.cdf([[1.0, 2.0]]), [[0.3, 0.7]])


def test_atom_at_zero():
    distribution = Step([0.0, 3.0], sf=[0.75, 0.0])
    assert distribution.sf(0.0) == 0.75
    assert distribution.sf_left(0.0) == 1.0
    assert distribution.icdf(0.25) == 0.0
    assert distribution.mean() == pytest.approx(0.75 * 3)


def test_integral_is_the_area(distribution):
    a = np.array([0.0, 0.5, 1.0, 1.7, 4.5, 0.0, 2.0])
    b = np.array([0.0, 0.7, 4.0, 3.9, 9.0, 30.0, 2.0])
    grid = np.linspace(0, 30, 30_001)
    for i, (low, high) in enumerate(zip(a, b, strict=True)):
        inner = grid[(grid >= low) & (grid < high)][None, :]
        riemann = distribution.sf(inner).sum(axis=1) * 1e-3 if inner.size else np.zeros(2)
        got = distribution.integrated_sf(np.full(2, low), np.full(2, high))
        np.testing.assert_allclose(got, riemann, atol=1e-8, err_msg=str(i))
    np.testing.assert_array_equal(distribution.mean() == np.inf, [True, False])
    assert distribution.mean()[1] == pytest.approx(1 + 0.9 + 2 * 0.6)


def test_integral_between_close_times_keeps_its_digits():
    distribution = Step([1.0, 1e6], sf=[1e-9, 0.0])
    a = 5e5 + 0.125
    assert distribution.integrated_sf(a, a + 2**-20)[0] == pytest.approx(1e-9 * 2**-20, rel=1e-9)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True),
    st.lists(st.integers(0, 10), min_size=8, max_size=8),
    st.floats(0, 35),
    st.sampled_from([i / 16 for i in range(17)]),
)
def test_quantiles_beyond_y_by_search(times, drops, y, p):
    """inf{t >= y: P(T <= t | T >= y) >= p}, found by trying every candidate."""
    times = np.sort(np.array(times, dtype=float))
    total = sum(drops[: len(times)]) + drops[-1] + 1
    sf = 1 - np.cumsum(drops[: len(times)]) / total
    distribution = Step(times, sf=sf)
    survivors = distribution.sf_left(y)[0]
    candidates = [y, *times[times >= y], np.inf]
    reached = (
        [t for t in candidates if 1 - distribution.sf(t)[0] / survivors >= p - 1e-12]
        if survivors > 0
        else [y]
    )
    assert distribution.icdf_beyond(y, p)[0] == (min(reached) if p > 0 else y)


def test_quantiles_beyond_y_follow_the_conditional_distribution():
    distribution = Step(TIMES, sf=SF)
    p = np.array([[0.0, 0.25, 1 / 3, 0.4, 1.0]])
    got = distribution.icdf_beyond([1.5, 2.0], p)
    np.testing.assert_array_equal(got, [[1.5, 2, 2, np.inf, np.inf], [2, 2, 2, 4, 4]])


def test_one_curve_serves_all_rows_and_stays_shared():
    distribution = Step(TIMES, sf=SF[1])
    assert distribution.shape == (1,)
    assert distribution.take([0, 0, 0]).shape == (1,)
    np.testing.assert_array_equal(distribution.sf([1.0, 2.0, 3.0]), [0.9, 0.6, 0.6])


def test_take_and_indexing(distribution):
    np.testing.assert_array_equal(distribution[[1, 0]].sf(2.0), [0.6, 0.5])
    np.testing.assert_array_equal(distribution.take(np.array([False, True])).icdf(0.5), [4.0])
    distribution.mean()  # derived arrays of the whole must not reach the part
    np.testing.assert_allclose(distribution.take([1]).mean(), [3.1])


def test_steps_and_breaks(distribution):
    times, sf = distribution.steps()
    np.testing.assert_array_equal(sf, SF)
    np.testing.assert_array_equal(distribution.breaks(), times)


def test_samples_have_the_distribution(rng):
    draws = Step(TIMES, sf=SF).sample(40_000, seed=1)
    for t in TIMES:
        np.testing.assert_allclose((draws > t).mean(axis=1), Step(TIMES, sf=SF).sf(t), atol=0.01)
    np.testing.assert_allclose(np.isinf(draws).mean(axis=1), [0.5, 0], atol=0.01)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 3.0, 4.0, 9.0, np.inf])
def test_censored_at_is_the_distribution_of_the_minimum(distribution, tau):
    cut, reference = distribution.censor_at(tau), Censored(distribution, tau)
    t = np.array([[0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 8.0]])
    for word in ("sf", "sf_left", "cdf"):
        np.testing.assert_array_equal(getattr(cut, word)(t), getattr(reference, word)(t))
    np.testing.assert_array_equal(cut.icdf(t / 8), reference.icdf(t / 8))
    np.testing.assert_allclose(cut.mean(), reference.mean())
    np.testing.assert_array_equal(cut.mass_at_infinity(), reference.mass_at_infinity())


def test_censored_at_one_time_per_row():
    distribution = Step(TIMES, sf=SF[1]).censor_at([1.5, 3.0])
    np.testing.assert_array_equal(distribution.sf(2.0), [0.0, 0.6])
    times, sf = distribution.steps()
    np.testing.assert_array_equal(distribution.sf(times), sf)


def test_point_mass_is_a_step_distribution():
    c = PointMass([2.0, 3.0])
    times, sf = c.steps()
    np.testing.assert_array_equal(times, [[2.0], [3.0]])
    np.testing.assert_array_equal(sf, [[0.0], [0.0]])


def test_no_density(distribution):
    with pytest.raises(NoDensityError, match="log score"):
        distribution.logpdf(1.0)
    with pytest.raises(NoDensityError):
        distribution.log_likelihood([1.0, 2.0], [1, 0])


# ---- what is refused -----------------------------------------------------------------------------


def test_unsorted_times_are_sorted_with_their_columns():
    order = [2, 0, 1]
    for times in (TIMES[order], np.stack([TIMES[order], TIMES])):
        sf = SF[:, order] if times.ndim == 1 else np.stack([SF[0, order], SF[1]])
        np.testing.assert_array_equal(Step(times, sf=sf).sf(QUERIES), Step(TIMES, sf=SF).sf(QUERIES))


@pytest.mark.parametrize("given", [{}, {"sf": SF, "cdf": 1 - SF}])
def test_exactly_one_of_sf_and_cdf(given):
    with pytest.raises(InvalidInputError, match="exactly one of sf= and cdf="):
        Step(TIMES, **given)


@pytest.mark.parametrize(
    ("times", "sf", "message"),
    [
        (
            TIMES,
            [[0.9, 0.5, 0.6]],
            "must not increase with time; it goes from 0.5 at time 2 to 0.6 at time 4",
        ),
        (TIMES, [[0.9, np.nan, 0.6]], "sf must be free of NaN"),
        (TIMES, [[1.1, 0.5, 0.4]], "sf must be between 0 and 1; got 1.1"),
        (TIMES, [[0.5, 0.4, -0.1]], "sf must be between 0 and 1; got -0.1"),
        ([1.0, 1.0, 2.0], [[0.9, 0.5, 0.4]], "times must be distinct; got 1 more than once"),
        ([1.0, -1.0, 2.0], [[0.9, 0.5, 0.4]], "times must be non-negative and finite; got -1.0"),
        ([1.0, np.inf, 2.0], [[0.9, 0.5, 0.4]], "times must be non-negative and finite; got inf"),
        ([1.0, np.nan, 2.0], [[0.9, 0.5, 0.4]], "times must be non-negative and finite; got nan"),
        (TIMES, [[0.9, 0.5]], "one column for each of the 3 times"),
        (TIMES, SF.T, "looks transposed"),
        ([[1.0, 2.0]] * 3, [[0.5, 0.4]] * 2, "numbers of subjects differ: times has 3, sf has 2"),
        (TIMES, np.zeros((2, 2, 3)), "must have shape"),
        ([], [], "at least one time"),
    ],
)
def test_bad_curves(times, sf, message):
    with pytest.raises(InvalidInputError, match=message):
        Step(np.array(times), sf=np.array(sf))


def test_a_square_matrix_that_is_transposed_is_suspected():
    sf = np.array([[0.9, 0.95, 0.99], [0.7, 0.8, 0.9], [0.5, 0.6, 0.7]])
    with pytest.raises(InvalidInputError, match="transposed"):
        Step(TIMES, sf=sf)


def test_decreasing_cdf_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match="cdf must not decrease"):
        Step(TIMES, cdf=[0.1, 0.4, 0.3])


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e-9), (np.float64, 5e-7), (np.float32, 5e-7)])
def test_rounding_is_mended_and_anything_larger_refused(dtype, size):
    sf = np.array([[1 + size, 0.5, 0.5 + size, -size]], dtype=dtype)
    mended = Step([1.0, 2.0, 3.0, 4.0], sf=sf).sf([[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_allclose(mended, [[1, 0.5, 0.5, 0]], atol=size)
    assert (np.diff(mended) <= 0).all()
    assert mended[0, 0] == 1
    assert mended[0, -1] == 0
    with pytest.raises(InvalidInputError, match=r"must not increase.*repair=True"):
        Step([1.0, 2.0], sf=np.array([0.5, 0.50001], dtype=dtype))


def test_integers_lists_and_half_precision_are_understood():
    assert Step([1, 2], sf=[1, 0]).sf(1.5) == 1.0
    assert Step(np.array([1, 2]), sf=np.array([0.5, 0.25], dtype=np.float16)).sf(2.0) == 0.25


def test_text_is_refused():
    with pytest.raises(InvalidTypeError, match="sf must hold numbers"):
        Step([1.0], sf=np.array(["a"]))


# ---- torch ---------------------------------------------------------------------------------------


def test_torch_gives_the_same_numbers(distribution):
    torch = pytest.importorskip("torch")
    twin = distribution.like(torch.zeros(1, dtype=torch.float64))
    t, p, y = torch.tensor(QUERIES), torch.tensor([[0.0, 0.1, 0.5, 0.9]]), torch.tensor([1.0, 2.5])
    for word in ("sf", "sf_left", "cdf"):
        np.testing.assert_array_equal(getattr(twin, word)(t).numpy(), getattr(distribution, word)(QUERIES))
    np.testing.assert_array_equal(twin.icdf(p).numpy(), distribution.icdf(p.numpy()))
    np.testing.assert_array_equal(
        twin.icdf_beyond(y, p).numpy(), distribution.icdf_beyond(y.numpy(), p.numpy())
    )
    np.testing.assert_allclose(
        twin.integrated_sf(torch.zeros(2), y).numpy(), distribution.integrated_sf(np.zeros(2), y.numpy())
    )


@pytest.mark.parametrize("falls", [True, False])
def test_gradients_reach_levels_times_and_limits(falls):
    torch = pytest.importorskip("torch")
    sf = torch.tensor([[0.8, 0.5, 0.2], [0.9, 0.6, 0.0]], dtype=torch.float64)
    levels = (sf if falls else 1 - sf)[:1].requires_grad_()
    times = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.5, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    a = torch.tensor([0.5, 1.2, 2.5], dtype=torch.float64, requires_grad=True)

    def area(times, levels, a, b):
        distribution = Step(times, **{"sf" if falls else "cdf": levels})
        return distribution.integrated_sf(a, b)

    assert torch.autograd.gradcheck(area, (times, levels, a, b))
    (slope,) = torch.autograd.grad(area(times, levels, a, b).sum(), b)
    torch.testing.assert_close(slope, Step(times.detach(), sf=sf[:1]).sf(b.detach()))


def test_a_distribution_can_be_used_after_backward():
    torch = pytest.importorskip("torch")
    levels = torch.tensor([0.8, 0.5], dtype=torch.float64, requires_grad=True)
    distribution = Step(torch.tensor([1.0, 2.0], dtype=torch.float64), sf=levels)
    for _ in range(2):
        distribution.integrated_sf(torch.zeros(1), torch.ones(1) * 3).sum().backward()
    torch.testing.assert_close(levels.grad, torch.tensor([2.0, 2.0], dtype=torch.float64))


def test_mixed_precision_in_torch():
    torch = pytest.importorskip("torch")
    distribution = Step(torch.tensor([1.0, 2.0]), sf=torch.tensor([0.8, 0.5]))
    assert distribution.sf(torch.tensor([1.0], dtype=torch.float64)) == torch.tensor(0.8)
