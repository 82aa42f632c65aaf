"""D-calibration by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, MissingCensoringError
from censcore.published import d_calibration


def test_contributions_by_hand():
    """Four bins; S = 0.6 with an event, S = 0.6 censored, S = 0.2 censored."""
    times = -np.log([0.6, 0.6, 0.2])
    found = d_calibration(cs.RightCensored(times, [1, 0, 0]), cs.Exponential(1.0), bins=4)
    expected = [
        [0, 0, 1, 0],
        [0.25 / 0.6, 0.25 / 0.6, 0.1 / 0.6, 0],
        [1, 0, 0, 0],
    ]
    np.testing.assert_allclose(found.contributions, expected, atol=1e-12)
    np.testing.assert_allclose(found.shares, np.mean(expected, axis=0))
    np.testing.assert_allclose(found.observed, [0, 0, 1, 0])
    by_hand = [np.log(0.25 / 0.2), np.log(0.5 / 0.25), 2 * np.log(0.75 / 0.6) + np.log(0.75 / 0.5)]
    np.testing.assert_allclose(found.expected, [*by_hand, 3 * np.log(1 / 0.75)])


def test_three_subjects_cannot_tell_and_say_so():
    found = d_calibration(cs.RightCensored([0.5, 1.0, 2.0], [1, 0, 0]), cs.Exponential(1.0))
    assert np.isnan(found.p_value)
    assert found.verdict == "cannot tell"
    assert "needs 5 expected events" in found.note


def draw(n: int, censored: float, discrete: bool, rng: np.random.Generator) -> cs.RightCensored:
    """Exponential T, and C with the given share of censored subjects; rounded up where discrete."""
    T = rng.exponential(1.0, n)
    C = rng.exponential((1 - censored) / censored, n) if censored else np.full(n, np.inf)
    if discrete:
        T, C = np.ceil(2.5 * T), np.ceil(2.5 * C)
    return cs.RightCensored(np.minimum(T, C), T <= C)


def exponential(rate: float, discrete: bool) -> cs.Distribution:
    months = np.arange(1.0, 61.0)
    return cs.Step(months, sf=np.exp(-rate * months / 2.5)[None, :]) if discrete else cs.Exponential(rate)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("censored", [0.0, 0.33, 0.75])
def test_the_level_holds_under_censoring_and_atoms_and_there_is_power(censored, discrete, rng):
    """At 5 %: 160 data sets give 8 rejections of the truth with standard deviation 2.8."""
    truth, quicker = (exponential(rate, discrete) for rate in (1.0, 1.25))
    data = [draw(500, censored, discrete, rng) for _ in range(160)]
    wrong = [np.mean([d_calibration(y, F).p_value < 0.05 for y in data]) for F in (truth, quicker)]
    assert 1 <= 160 * wrong[0] <= 17
    assert wrong[1] > {0.0: 0.9, 0.33: 0.75, 0.75: 0.3}[censored]


def test_the_level_holds_with_clusters(rng):
    """Twenty clusters with a common component; without ``groups`` the truth is rejected far too often."""
    from scipy.special import ndtr

    groups, apart, together = np.repeat(np.arange(20), 20), 0, 0
    for _ in range(120):
        z = np.sqrt(0.4) * rng.normal(size=20)[groups] + np.sqrt(0.6) * rng.normal(size=400)
        T, C = -np.log(ndtr(z)), rng.exponential(1.0, 400)
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        together += d_calibration(y, cs.Exponential(1.0), groups=groups).p_value < 0.05
        apart += d_calibration(y, cs.Exponential(1.0)).p_value < 0.05
    assert 1 <= together <= 14
    assert apart > 24


def test_a_weight_of_three_is_three_subjects_of_one_group(rng):
    y = draw(120, 0.33, False, rng)
    weight = rng.integers(0, 4, 120)
    rows = np.repeat(np.arange(120), weight)
    one = d_calibration(y, cs.Exponential(1.2), sample_weight=weight)
    two = d_calibration(y.take(rows), cs.Exponential(1.2), groups=rows)
    for name in ("shares", "expected", "observed", "statistic", "degrees", "p_value"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name))
    apart = d_calibration(y.take(rows), cs.Exponential(1.2))
    assert one.p_value > apart.p_value


def test_an_atom_is_averaged_over_a_uniform_position(rng):
    """Against 20,000 draws of U within [S(y), S(y-)]."""
    y = cs.RightCensored([2.0], [1])
    F = cs.Step([1.0, 2.0, 3.0], sf=[[0.83, 0.37, 0.11]])
    found = d_calibration(y, F)
    U = rng.uniform(0.37, 0.83, 20_000)
    points = d_calibration(cs.RightCensored(-np.log(U), np.ones(20_000)), cs.Exponential(1.0))
    for name in ("shares", "observed", "expected"):
        scale = 1 if name == "shares" else 20_000
        np.testing.assert_allclose(getattr(found, name), getattr(points, name) / scale, atol=0.01)


@pytest.mark.parametrize("time", [1.0, 0.0])
def test_events_that_the_forecast_calls_impossible_are_rejected(time):
    y = cs.RightCensored(np.full(50, time), np.ones(50))
    F = cs.Uniform(2.0, 3.0)
    assert d_calibration(y, F).p_value < 1e-6
    assert d_calibration(y, F).verdict == "p < 0.0001"


def test_nobody_with_an_event_is_rejected_where_many_were_expected():
    y = cs.RightCensored(np.linspace(0.5, 2.0, 80), np.zeros(80))
    assert d_calibration(y, cs.Exponential(1.0)).p_value < 1e-6


def test_contributions_sum_to_one_also_at_the_ends():
    y = cs.RightCensored([0.0, 0.0, 5.0, 5.0], [1, 0, 1, 0])
    found = d_calibration(y, cs.Uniform(0.0, 5.0))
    np.testing.assert_allclose(found.contributions.sum(axis=1), 1.0)
    assert found.contributions[0, -1] == 1.0  # S = 1 belongs to the last bin
    assert found.contributions[2, 0] == 1.0


def test_the_truth_passes_and_a_shifted_distribution_fails(rng):
    n = 4000
    scale = np.exp(0.5 * rng.standard_normal(n))
    T, c = scale * rng.weibull(1.5, n), rng.exponential(2.0, n)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    assert d_calibration(y, cs.Weibull(1.5, scale)).p_value > 1e-3
    assert d_calibration(y, cs.Weibull(1.5, 1.3 * scale)).p_value < 1e-6


def test_it_cannot_see_what_the_covariates_say(rng):
    """A distribution blind to the covariates passes, though every proper score puts it behind the truth."""
    n = 2000
    scale = np.exp(0.5 * rng.standard_normal(n))
    T = scale * rng.exponential(1.0, n)
    y = cs.RightCensored(T, np.ones(n))
    levels = np.arange(1, 51) / 50
    blind = cs.PiecewiseLinear(np.quantile(T, levels), cdf=levels[None, :])
    assert d_calibration(y, blind).p_value > 0.5
    assert cs.crps(y, blind).mean() > 1.02 * cs.crps(y, cs.Exponential(1 / scale)).mean()


@pytest.mark.parametrize(
    "options", [{"bins": 1}, {"groups": [1]}, {"sample_weight": [1.0, -1.0]}, {"sample_weight": [0.0, 0.0]}]
)
def test_bad_options_are_named(options):
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        d_calibration(cs.RightCensored([1.0, 2.0], [1, 1]), cs.Exponential(1.0), **options)


def test_two_groups_cannot_tell(rng):
    y = draw(200, 0.33, False, rng)
    found = d_calibration(y, cs.Exponential(1.0), groups=np.arange(200) % 2)
    assert "got 2 independent groups" in found.note


@pytest.mark.parametrize(("closed", "bin_of"), [("left", [0, 1, 2, 3, 3]), ("right", [0, 0, 1, 2, 3])])
def test_an_event_on_the_edge_of_two_bins_is_counted_where_the_bins_are_closed(closed, bin_of):
    """Survival 0, 1/4, 1/2, 3/4 and 1 at the event times, on the edges of four bins."""
    F = cs.PiecewiseLinear([1.0, 2.0, 3.0, 4.0], sf=[0.75, 0.5, 0.25, 0.0])
    y = cs.RightCensored([4.0, 3.0, 2.0, 1.0, 0.0], np.ones(5))
    found = d_calibration(y, F, bins=4, closed=closed)
    np.testing.assert_array_equal(found.contributions.argmax(axis=1), bin_of)
    np.testing.assert_array_equal(found.observed, np.bincount(bin_of[1:], minlength=4))
    inside = cs.RightCensored([0.5, 1.7, 3.1], [1, 0, 1])
    both = [d_calibration(inside, F, bins=4, closed=side).contributions for side in ("left", "right")]
    np.testing.assert_array_equal(*both)


def test_bins_are_closed_on_one_of_two_sides():
    with pytest.raises(InvalidInputError, match="closed must be 'left' or 'right'; got 'both'"):
        d_calibration(cs.RightCensored([1.0], [1]), cs.Exponential(1.0), closed="both")


# ---- one of several causes -----------------------------------------------------------------------------

GRID = np.linspace(0.0, 40.0, 801)[1:]


def causes(n: int, rng: np.random.Generator, end: float = 4.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time and cause under the hazards 0.6 and 0.4, and C up to ``end``."""
    return rng.exponential(1.0, n), np.where(rng.random(n) < 0.6, 1, 2), rng.uniform(0, end, n)


def incidence(hazard: float) -> cs.Distribution:
    """Of the first cause with this hazard, beside the second with 0.4."""
    share = hazard / (hazard + 0.4)
    return cs.PiecewiseLinear(GRID, cdf=share * -np.expm1(-(hazard + 0.4) * GRID))


def seen(T, cause, C) -> cs.RightCensored:
    return cs.CompetingRisks(np.minimum(T, C), np.where(C >= T, cause, 0)).cause(1)


def test_another_event_is_followed_up_to_a_known_c(rng):
    """Where C is known, T_j is censored at C after an event of another cause: the ordinary case."""
    T, cause, C = causes(300, rng)
    found = d_calibration(seen(T, cause, C), incidence(0.6), cs.PointMass(C))
    T_1 = np.where(cause == 1, T, np.inf)
    plain = d_calibration(cs.RightCensored(np.minimum(T_1, C), C >= T_1), incidence(0.6))
    for name in ("shares", "contributions", "observed", "expected", "p_value"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-9)


def test_an_unknown_c_is_averaged_over(rng):
    """Against the mean over draws of C given C >= y."""
    F, y = incidence(0.6), cs.CompetingRisks([1.0, 2.5], [2, 2]).cause(1)
    found = d_calibration(y, F, cs.Uniform(0.0, 4.0))
    draws = np.array([d_calibration(y, F, cs.PointMass(rng.uniform([1.0, 2.5], 4.0))).expected
                      for _ in range(800)])  # fmt: skip
    assert (np.abs(found.expected - draws.mean(axis=0)) < 4 * draws.std(axis=0) / np.sqrt(800) + 1e-4).all()
    np.testing.assert_allclose(found.contributions.sum(axis=1), 1.0)


@pytest.mark.parametrize("end", [1.5, pytest.param(4.0, marks=pytest.mark.slow)])
def test_the_level_of_one_cause_holds_and_there_is_power(end, rng):
    """Also with an estimated censoring distribution, which the test takes as known."""
    data, h = [causes(400, rng, end) for _ in range(80)], 0.85 * end
    rejected, shares = [], []
    for T, cause, C in data:
        y = cs.CompetingRisks(np.minimum(T, C), np.where(C >= T, cause, 0))
        G = cs.Censoring(cs.KaplanMeier()).fit(None, y.any_cause()).predict_distribution()
        tests = [
            d_calibration(y.cause(1), incidence(0.6), cs.Uniform(0.0, end)),
            d_calibration(y.cause(1).censor_at(h), incidence(0.6), G.censor_at(h)),
            d_calibration(y.cause(1), incidence(0.85), cs.Uniform(0.0, end)),
        ]
        rejected.append([found.p_value < 0.05 for found in tests])
        shares.append(tests[0].shares)
    wrong = np.mean(rejected, axis=0)
    assert (wrong[:2] <= 11 / 80).all()
    assert (wrong[:2] >= 1 / 80).all()
    assert wrong[2] > 0.5
    error = np.std(shares, axis=0) / np.sqrt(80)
    assert (np.abs(np.mean(shares, axis=0) - 0.1) < 4 * error).all()


def test_without_censoring_a_cause_that_never_comes_is_an_atom_at_infinity(rng):
    """Shares and expected events are those of S(T) spread over the atom, below 1 - F(infinity)."""
    T, cause, _ = causes(2000, rng)
    F = cs.CumulativeIncidence(GRID, np.array([0.6, 0.4])[:, None] * -np.expm1(-GRID)[None, :])
    found = d_calibration(cs.CompetingRisks(T, cause).cause(1), F.cause(1))
    assert found.p_value > 0.01
    np.testing.assert_allclose(found.shares, 0.1, atol=0.03)
    assert (found.expected[:4] == 0).all()


def test_one_cause_needs_a_censoring_distribution():
    y = cs.CompetingRisks([1.0, 2.0, 3.0], [1, 2, 0]).cause(1)
    with pytest.raises(MissingCensoringError, match="no censoring distribution was given"):
        d_calibration(y, incidence(0.6))
