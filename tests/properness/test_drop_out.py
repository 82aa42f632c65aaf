"""Subjects with visits of their own who drop out: the truth has the smallest mean score, by every route."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.properness.drop_out import END, TRUTH, drop_outs, seen

import censcore as cs
from censcore.distributions.derived.dropout import LastVisit
from censcore.exceptions import InvalidInputError
from censcore.scores.rules.interval import detection_forecast

WRONG = {"early": (1.5, 2.7), "late": (1.5, 3.3), "narrow": (1.9, 3.0)}


@pytest.fixture(scope="module")
def large():
    return drop_outs(20_000)


def estimated(y, X=None, model=None):
    fitted = cs.Censoring(cs.KaplanMeier() if model is None else model).fit(X, y)
    return fitted.predict_distribution(X)


TIMES = [1.5, 3.0, 5.0]
SCORES = {
    "crps": lambda y, F, C: cs.crps(y, F, C, horizon=END),
    "crps, no horizon": lambda y, F, C: cs.crps(y, F, C),
    "crps, short": lambda y, F, C: cs.crps(y, F, C, horizon=3.7),
    "brier_score": lambda y, F, C: cs.brier_score(y, F, C, times=TIMES).sum(axis=1),
    "brier_score, ipcw": lambda y, F, C: cs.brier_score(y, F, C, TIMES, scale="ipcw").sum(axis=1),
    "integrated_brier_score, ipcw": lambda y, F, C: cs.integrated_brier_score(
        y, F, C, horizon=END, scale="ipcw"
    ),
    "binomial_log_score": lambda y, F, C: cs.binomial_log_score(y, F, C, times=TIMES).sum(axis=1),
    "energy_score": lambda y, F, C: cs.energy_score(y, F, C, horizon=END),
}


def check_truth_wins(y, C, score, errors=3.0):
    truth = score(y, cs.Weibull(*TRUTH), C)
    for wrong in WRONG.values():
        gain = score(y, cs.Weibull(*wrong), C) - truth
        assert gain.mean() > errors * gain.std() / np.sqrt(len(y)), wrong


def best_scale(loss):
    return minimize_scalar(lambda scale: float(loss(cs.Weibull(1.5, scale)).mean()), (2.8, 3.2), tol=1e-4).x


@pytest.mark.parametrize("name", SCORES)
def test_the_truth_wins_under_estimated_drop_out(large, name):
    check_truth_wins(large, estimated(large), SCORES[name])


def pooled_in_time(y):
    """The distribution of the time of the last visit, as if all subjects had the same visits."""
    times = cs.RightCensored(y.detection().time, y.detection().event)
    return cs.Censoring(cs.KaplanMeier()).fit(None, times).predict_distribution()


def test_one_curve_over_different_visits_is_an_error(large):
    y, C = large, pooled_in_time(large)
    for score in (cs.crps, cs.integrated_brier_score, cs.energy_score):
        with pytest.raises(InvalidInputError, match=r"between the visits of 20000 subjects .*not proper"):
            score(y, cs.Weibull(*TRUTH), C, horizon=END)
    with pytest.raises(InvalidInputError, match="Estimate drop-out by the number of the visit"):
        cs.compare({"truth": cs.Weibull(*TRUTH)}, y, C, scores="crps")


def test_the_best_scale_is_the_true_one_and_one_curve_would_prefer_an_early_forecast(large):
    """What the error prevents, and the numbers of the documentation."""
    y, C, pooled = large, estimated(large), pooled_in_time(large)
    times = cs.RightCensored(y.detection().time, y.detection().event)
    ours = best_scale(lambda F: cs.crps(y, F, C, horizon=END))
    improper = best_scale(lambda F: cs.crps(times, detection_forecast(y, F), pooled, horizon=END))
    assert ours == pytest.approx(3.0, abs=0.06)
    assert improper < 2.9
    page = (Path(__file__).parents[2] / "docs" / "interval_censoring.md").read_text(encoding="utf-8")
    numbers = f"has its minimum at the scale {improper:.2f}, under drop-out by number at {ours:.2f}"
    assert numbers in " ".join(page.split()), numbers


def test_visits_of_very_different_frequency():
    y = drop_outs(20_000, seed=1, leave=0.1, often=0.3)
    check_truth_wins(y, estimated(y), SCORES["crps"])
    check_truth_wins(y, estimated(y), SCORES["brier_score, ipcw"], errors=2.0)


def test_drop_out_that_depends_on_covariates():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (20_000, 1)).astype(float)
    T = 3 * np.exp(0.5 * x[:, 0]) * rng.weibull(1.5, len(x))
    visits = np.cumsum(rng.uniform(1.2, 1.8, (len(x), 6)), axis=1)
    y = seen(T, visits, rng.geometric(np.where(x[:, 0] > 0, 0.45, 0.1)))
    forecasts = [cs.Weibull(1.5, a * np.exp(0.5 * x[:, 0])) for a in (3.0, 2.75, 3.3)]
    for model in (cs.KaplanMeier(stratify=0), cs.CoxRegression()):
        C = estimated(y, x, model)
        truth, *others = (cs.brier_score(y, F, C, times=4.0, scale="ipcw") for F in forecasts)
        full = [cs.brier_score(seen(T, visits, np.full(len(x), 6)), F, times=4.0) for F in forecasts]
        for losses, complete in zip([truth, *others], full, strict=True):
            error = (losses - complete).std() / np.sqrt(len(x))
            assert losses.mean() == pytest.approx(complete.mean(), abs=4 * error)
        assert all((other - truth).mean() > 2 * (other - truth).std() / np.sqrt(len(x)) for other in others)


def test_delayed_entry():
    """Visits are counted from the entry on, and some subjects leave before the first of them."""
    rng = np.random.default_rng(11)
    T, entry = TRUTH[1] * rng.weibull(TRUTH[0], 40_000), rng.uniform(0, 3, 40_000)
    rows = np.nonzero(entry < T)[0]
    T, entry = T[rows], entry[rows]
    visits = entry[:, None] + np.cumsum(rng.uniform(0.6, 1.4, (len(T), 7)), axis=1)
    y = seen(T, visits, rng.geometric(0.2, len(T)) - 1, entry)
    C = estimated(y)
    assert C.numbers.sf([[0.0, 1.0]])[0] == pytest.approx([0.8, 0.64], abs=0.01)
    for name in ("crps", "crps, no horizon", "brier_score, ipcw"):
        check_truth_wins(y, C, SCORES[name])


# ---- all that can happen, with its probability ---------------------------------------------------


CURVE = cs.Step([0.5, 1.5, 2.5, 3.5], cdf=[0.2, 0.5, 0.7, 0.9])
SCHEDULES = np.array([[1.0, 2.0, 3.0, np.inf], [0.6, 1.7, 2.6, 3.6], [2.2, 3.0, np.inf, np.inf]])
STAYS = np.array([0.9, 0.7, 0.6, 0.8])  # P(M > k | M >= k), k = 0, ..., 3


def everything(stays):
    """All event times, schedules and numbers of the last visit, as an outcome and their probabilities."""
    times = [0.5, 1.5, 2.5, 3.5, 9.0]
    attends = np.append(1.0, np.cumprod(stays))
    number = -np.diff(np.append(attends, 0.0))
    cells = list(product(range(5), range(3), range(5)))
    T, visits = np.array([times[i] for i, _, _ in cells]), SCHEDULES[[j for _, j, _ in cells]]
    p_time = np.diff([0.0, 0.2, 0.5, 0.7, 0.9, 1.0])
    p = np.array([p_time[i] * (0.5, 0.3, 0.2)[j] * number[m] for i, j, m in cells])
    possible = np.repeat(np.nonzero(p > 0)[0], 10)  # ten times each, so that no hazards are pooled
    return seen(T, visits, np.array([m for _, _, m in cells]))[possible], p[possible] / 10


@pytest.mark.parametrize("time", [0.7, 1.0, 1.8, 2.9, 3.6])
def test_the_ipcw_scale_has_the_mean_of_complete_data_exactly(time):
    complete, p_complete = everything(np.ones(4))
    y, p = everything(STAYS)
    C = LastVisit(cs.Step([0.0, 1.0, 2.0, 3.0], sf=np.cumprod(STAYS)[None, :]))
    for F in (CURVE, cs.Exponential(0.4)):
        expected = p_complete @ cs.brier_score(complete, F, times=time)
        assert p @ cs.brier_score(y, F, C, times=time, scale="ipcw") == pytest.approx(expected, rel=1e-12)


def test_the_estimate_from_all_cells_is_the_truth():
    y, p = everything(STAYS)
    fitted = cs.Censoring(cs.KaplanMeier()).fit(None, y, p)
    np.testing.assert_allclose(
        fitted.predict_distribution().numbers.sf([[0.0, 1.0, 2.0, 3.0]])[0], np.cumprod(STAYS)
    )


@pytest.mark.parametrize("score", [cs.crps, cs.energy_score])
def test_no_forecast_beats_the_truth_on_the_localized_scale(score):
    y, p = everything(STAYS)
    C = LastVisit(cs.Step([0.0, 1.0, 2.0, 3.0], sf=np.cumprod(STAYS)[None, :]))
    truth = p @ score(y, CURVE, C, horizon=4.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = cs.Step([0.5, 1.5, 2.5, 3.5], cdf=np.sort(rng.random(4)))
        assert p @ score(y, other, C, horizon=4.0) > truth
