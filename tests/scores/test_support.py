"""What a censoring distribution rules out, and how far each scale reaches: P(C > t) > 0."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

import censcore as cs
from censcore.distributions import Grouped
from censcore.exceptions import BeyondFollowUpError, ContradictionError, PositivityError

INF = float("inf")
F = cs.Exponential(1.0)


def mean(losses):
    return float(np.mean(losses))


# ---- the integrated Brier score on the ipcw scale --------------------------------------------------


def late_liar():
    """The truth Exponential(1) up to 3, and all that is left just after."""
    return cs.Exponential(1.0).censor_at(3.001)


def uniform_data(n=20_000):
    rng = np.random.default_rng(0)
    T, c = rng.exponential(size=n), rng.uniform(0, 3, n)
    return cs.RightCensored(np.minimum(T, c), c >= T)


@pytest.mark.parametrize("horizon", [5.0, 3.0, None])
def test_ipcw_integral_stops_where_follow_up_does(horizon):
    """Beyond it events would pay (1 - F)², nobody F², and a forecast of early events beat the truth."""
    y, C = uniform_data(50), cs.Uniform(0.0, 3.0)
    with pytest.raises(PositivityError, match=r"divides by P\(C > t\), which is zero from t = ") as caught:
        cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=horizon)
    last = caught.value.horizon
    assert last == np.nextafter(3.0, 0)
    assert np.isfinite(cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=last)).all()
    assert caught.value.rows == tuple(range(50))


def test_truth_wins_where_the_integral_is_defined():
    y, C = uniform_data(), cs.Uniform(0.0, 3.0)
    for horizon in (2.9, np.nextafter(3.0, 0)):
        truth, liar = (
            mean(cs.integrated_brier_score(y, distribution, C, scale="ipcw", horizon=horizon))
            for distribution in (F, late_liar())
        )
        assert truth <= liar + 1e-12
        assert abs(truth - _without_censoring(horizon)) < 0.01
    # on the localized scale weights end with follow-up: the same forecasts cannot be told apart there
    np.testing.assert_allclose(cs.crps(y, late_liar(), C), cs.crps(y, F, C), rtol=1e-7)
    np.testing.assert_allclose(cs.crps(y, F, C, horizon=5.0), cs.crps(y, F, C), rtol=1e-10)


def _without_censoring(h):
    r"""E of the integral up to h for T exponential: int_0^h F (1 - F)."""
    return (1 - np.exp(-h)) - (1 - np.exp(-2 * h)) / 2


def test_an_atom_at_the_end_is_part_of_the_support():
    """P(C >= 8) > 0 although P(C > 8) = 0: the integral up to 8 is defined, beyond 8 it is not."""
    C = cs.Uniform(0.0, 20.0).censor_at(8.0)
    y = cs.RightCensored([1.0, 8.0, 8.0], [1, 1, 0])
    assert np.isfinite(cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=8.0)).all()
    for horizon in (np.nextafter(8.0, 9), None):
        with pytest.raises(PositivityError) as caught:
            cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=horizon)
        assert caught.value.horizon == 8.0


def test_without_a_horizon_c_must_not_end():
    y = cs.RightCensored([1.0, 2.0], [1, 0])
    for C in (cs.Exponential(0.3), cs.Step([1.0, 2.0], sf=[0.7, 0.4])):
        assert np.isfinite(cs.integrated_brier_score(y, F, C, scale="ipcw")).all()
    with pytest.raises(PositivityError) as caught:  # only the second subject's follow-up ends
        cs.integrated_brier_score(
            y, F, cs.Mixture([cs.Exponential(0.3)], [1.0]).censor_at([INF, 6.0]), scale="ipcw"
        )
    assert caught.value.rows == (1,)
    assert caught.value.horizon == 6.0


def test_one_subject_may_end_before_the_others():
    y = cs.RightCensored([1.0, 2.0, 0.5], [1, 0, 1])
    C = Grouped([cs.Uniform(0.0, 3.0), cs.Uniform(0.0, 9.0)], [0, 1, 1])
    with pytest.raises(PositivityError) as caught:
        cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=4.0)
    assert caught.value.rows == (0,)
    assert caught.value.horizon == np.nextafter(3.0, 0)
    ends = np.array([2.5, 4.0, 8.0])
    assert np.isfinite(cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=ends)).all()


# ---- contradictions --------------------------------------------------------------------------------

POINT = cs.PointMass(2.0)
DISGUISES = {
    "bare": POINT,
    "curve with one jump": cs.Step([2.0], sf=[0.0]),
    "curve that only jumps once": cs.Step([1.0, 2.0, 3.0], sf=[1.0, 0.0, 0.0]),
    "curve by its distribution function": cs.Step([2.0], cdf=[1.0]),
    "ensemble": cs.Ensemble([[2.0, 2.0]]),
    "mixture": cs.Mixture([POINT, POINT], [0.5, 0.5]),
    "mixture with an unused part": cs.Mixture([POINT, cs.Exponential(1.0)], [1.0, 0.0]),
    "groups": Grouped([POINT, cs.Exponential(1.0)], [0, 0, 1]),
    "groups of curves": Grouped([cs.Exponential(1.0), cs.Step([2.0], sf=[0.0])], [1, 1, 0]),
    "mixture of groups": cs.Mixture([Grouped([POINT, cs.Exponential(1.0)], [0, 0, 1]), POINT], [0.5, 0.5]),
    "censored": cs.PointMass(5.0).censor_at([2.0, 2.0, 9.0]),
    "first of two": cs.Independent([POINT, cs.PointMass(7.0)]).first(),
}


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("score", [cs.crps, cs.log_score, cs.energy_score])
def test_a_known_time_excludes_all_others(name, score):
    """Whatever the known C hides in: censoring before it, and follow-up beyond it, are refused."""
    C = DISGUISES[name]
    fine = cs.RightCensored([1.0, 2.0, 5.0 if len(C) > 1 else 0.5], [1, 0, 1])
    if name == "censored":
        fine = cs.RightCensored([1.0, 2.0, 5.0], [1, 0, 0])
    assert np.isfinite(score(fine, F, C)).all()
    early = cs.RightCensored([1.0, 1.5, 0.5], [1, 0, 1])
    with pytest.raises(
        ContradictionError, match=r"excludes the censoring times of 1 subject \(1\) \(got 1.5"
    ):
        score(early, F, C)
    for event in (0, 1):
        with pytest.raises(BeyondFollowUpError, match=r"horizon=2\.0") as caught:
            score(cs.RightCensored([1.0, 3.0, 0.5], [1, event, 1]), F, C)
        assert caught.value.rows == (1,)
        assert caught.value.horizon == 2.0
    late = cs.RightCensored([1.0, 3.0, 0.5], [1, 0, 1])
    assert np.isfinite(score(late, F, C, horizon=2.0)).all()


def test_two_closing_dates():
    """A mixture of known times is read literally; a continuous part allows every time that it reaches."""
    closing = cs.Mixture([cs.PointMass(2.0), cs.PointMass(5.0)], [0.5, 0.5])
    y = cs.RightCensored([2.0, 5.0, 1.0], [0, 0, 1])
    assert np.isfinite(cs.crps(y, F, closing)).all()
    off = cs.RightCensored([2.0, 3.0, 1.0], [0, 0, 1])
    with pytest.raises(ContradictionError, match=r"1 subject \(1\) \(got 3\)"):
        cs.crps(off, F, closing)
    lost = cs.Mixture([closing, cs.Exponential(0.2)], [0.8, 0.2])
    assert np.isfinite(cs.crps(off, F, lost)).all()
    with pytest.raises(ContradictionError, match="got 2, expected never"):
        cs.crps(off, F, cs.Mixture([cs.PointMass(INF), cs.PointMass(INF)], [0.5, 0.5]))


def test_an_estimate_allows_the_times_between_its_jumps(rng):
    """The jumps of a Kaplan-Meier curve, or the members of an ensemble, stand for the times around them."""
    T, c = rng.exponential(2.0, 300), rng.uniform(0, 3, 300)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y[:150]).predict_distribution()
    assert not C.excludes(y.time[150:][y.time[150:] <= C.isf(0.0)[0]]).any()
    assert np.isfinite(cs.crps(y[150:], F, C, horizon=2.5)).all()
    members = cs.Ensemble(c[None, :150])
    assert np.isfinite(cs.crps(y[150:], F, members, horizon=float(members.isf(0.0)[0]))).all()


def test_follow_up_beyond_an_estimate_needs_a_horizon():
    """Whoever is followed beyond the end of C would pay F² there, and nobody (1 - F)²."""
    C = cs.Step([1.0, 4.0], sf=[0.5, 0.0])
    y = cs.RightCensored([1.0, 6.0], [1, 0])
    with pytest.raises(
        BeyondFollowUpError, match=r"1 subject \(1\).*earliest time is 6.*horizon=4.0"
    ) as caught:
        cs.crps(y, F, C)
    assert np.isfinite(cs.crps(y, F, C, horizon=caught.value.horizon)).all()


def test_times_before_the_support():
    C = cs.Uniform(1.0, 3.0)
    y = cs.RightCensored([0.5, 2.0], [0, 1])
    with pytest.raises(ContradictionError, match=r"got 0\.5"):
        cs.crps(y, F, C)
    with pytest.raises(ContradictionError, match=r"got 0\.5"):
        cs.crps(y, F, cs.distributions.ScipyDistribution(stats.uniform(1.0, 2.0)))
    assert np.isfinite(cs.crps(cs.RightCensored([0.5, 2.0], [1, 0]), F, C)).all()


def test_known_censoring_times_are_compared_with_the_distribution():
    """Also those of subjects with an event, whose C is known too."""
    y = cs.RightCensored([1.0, 2.0], [1, 0], censoring_time=[5.0, 2.0])
    assert np.isfinite(cs.crps(y, F, cs.PointMass([5.0, 2.0]))).all()
    with pytest.raises(ContradictionError, match=r"as long as that of 1 subject \(0\)"):
        cs.crps(y, F, cs.PointMass([4.0, 2.0]))
    with pytest.raises(ContradictionError, match=r"got 5, expected 6"):
        cs.crps(y, F, cs.PointMass([6.0, 2.0]))
    assert np.isfinite(cs.crps(y, F, cs.PointMass([6.0, 2.0]), horizon=3.0)).all()


def test_one_or_several_censoring_times():
    """censoring_time and the distribution of C must agree on how many there are."""
    rng = np.random.default_rng(0)
    T, c = rng.exponential(size=(30, 2)), rng.uniform(0, 2, (30, 2))
    ensemble = cs.Ensemble(rng.exponential(size=(30, 50, 2)))
    apart = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    with pytest.raises(ContradictionError, match=r"one time shared.*in 30 subjects.*Independent"):
        cs.energy_score(apart, ensemble, cs.Uniform(0.0, 2.0))
    with pytest.raises(ContradictionError, match="Independent"):
        cs.energy_score(cs.RightCensored(np.minimum(T, c), c >= T), ensemble, cs.Uniform(0.0, 2.0))
    uniform = cs.Uniform(0.0, 2.0)
    assert np.isfinite(cs.energy_score(apart, ensemble, cs.Independent([uniform, uniform]))).all()
    one = c[:, :1]
    shared = cs.RightCensored(np.minimum(T, one), one >= T, censoring_time=one[:, 0])
    assert np.isfinite(cs.energy_score(shared, ensemble, uniform)).all()
    with pytest.raises(ContradictionError, match="shared by its coordinates"):
        cs.energy_score(shared, ensemble, cs.Independent([uniform, uniform]))
    known = cs.PointMass(one[:, 0])
    np.testing.assert_allclose(
        cs.energy_score(shared, ensemble, cs.Independent([known, known])),
        cs.energy_score(shared, ensemble),
        rtol=1e-12,
    )


# ---- the last time of discrete data ----------------------------------------------------------------


def curve(move=0.0):
    """Risks of 5 % a month and of one half in month 12, of which a part may be moved to month 13."""
    t = np.arange(1.0, 60.0)
    sf = np.cumprod(np.where(t == 12, 0.5, 0.95))
    sf[11] += move * (sf[10] - sf[11])
    return cs.Step(t, sf=sf)


def months(last, n=2000):
    """Times in months under the true curve, censored after the events of a month and all by ``last``."""
    rng = np.random.default_rng(0)
    T = curve().sample(n, seed=1)[0]
    c = np.minimum(rng.integers(1, 31, n), last).astype(float)
    return np.minimum(T, c), c >= T, c


SCORES_OF_AREAS = [cs.crps, cs.energy_score, partial(cs.pinball_score, levels=[0.1, 0.6])]


@pytest.mark.parametrize("score", SCORES_OF_AREAS)
def test_a_horizon_at_the_last_month_ignores_it(score):
    """They are proper on [0, horizon): at the horizon itself min(T, C) is the horizon, event or not."""
    time, event, _ = months(last=30)
    y, C = cs.RightCensored(time, event), cs.Step(np.arange(1.0, 31), sf=1 - np.arange(1, 31) / 30)
    wrong, truth = curve(0.9), curve()
    at_twelve = score(y, truth, C, horizon=12.0)
    np.testing.assert_allclose(score(y, wrong, C, horizon=12.0), at_twelve, rtol=1e-12, atol=1e-14)
    gain = score(y, wrong, C, horizon=13.0) - score(y, truth, C, horizon=13.0)
    assert gain.mean() > 0.01 * at_twelve.mean()


def test_the_last_month_of_an_administrative_end():
    """Censored at the end of month 12 means event-free until month 13: recorded so, month 12 counts."""
    time, event, c = months(last=12)
    y = cs.RightCensored(time, event, censoring_time=c)
    wrong, truth = curve(0.9), curve()
    np.testing.assert_allclose(cs.crps(y, wrong, horizon=13.0), cs.crps(y, truth, horizon=13.0), rtol=1e-12)
    until = np.nextafter(c + 1, 0)
    whole = cs.RightCensored(np.where(event, time, until), event, censoring_time=until)
    mean_gain, error = cs.mean_loss(cs.crps(whole, wrong) - cs.crps(whole, truth))
    assert mean_gain > 3 * error
    assert cs.brier_score(whole, truth, times=12.0).mean() < cs.brier_score(whole, wrong, times=12.0).mean()
