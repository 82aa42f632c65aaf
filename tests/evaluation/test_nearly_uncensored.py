"""Data with hardly any censoring: an estimate of C from subjects who are all seen is no certainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import Grouped
from censcore.exceptions import ContradictionError

OPTIONS: dict[str, Any] = {"cv": 5, "reference": None}


def drawn(n: int, censored: np.ndarray, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    time, event = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), np.ones(n, dtype=bool)
    time[censored], event[censored] = 0.5 * time[censored], False
    return x, cs.RightCensored(time, event)


def finite(found: Any, discrimination: bool = True) -> None:
    frame = found.frame()
    frame = frame[frame["note"].eq("") | frame["note"].isna()] if "note" in frame else frame
    assert np.isfinite(frame["mean"].to_numpy(dtype=float)).all()
    assert np.isfinite(frame["standard_error"].to_numpy(dtype=float)).all()


# ---- what an estimate rules out --------------------------------------------------------------------


def curves_of_nobody_censored() -> dict[str, cs.Distribution]:
    x, y = drawn(40, np.zeros(0, dtype=int))
    strata = np.column_stack([x, x[:, 0] > 0])
    return {
        "kaplan-meier": cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(),
        "its curve": cs.KaplanMeier().fit(None, y.flip()).predict_distribution(),
        "strata": cs.Censoring(cs.KaplanMeier(stratify=2)).fit(strata, y).predict_distribution(strata[:1]),
        "cox": cs.Censoring(cs.CoxRegression()).fit(x, y).predict_distribution(x[:1]),
        "weibull": cs.Censoring(cs.WeibullRegression()).fit(x, y).predict_distribution(x[:1]),
        "lognormal": cs.Censoring(cs.LogNormalRegression()).fit(x, y).predict_distribution(x[:1]),
    }


@pytest.mark.parametrize("name", curves_of_nobody_censored())
def test_an_estimate_from_uncensored_subjects_excludes_no_censoring_time(name):
    C: Any = curves_of_nobody_censored()[name]
    F, y = cs.Weibull(1.5, 1.0), cs.RightCensored([0.4, 0.7], [0, 1])
    np.testing.assert_array_equal(np.ravel(C.sf([0.4, 5.0])), 1.0)
    for changed in (C, C.censor_at(1.0), C.censor_at([1.0]), C.given_survival(0.1), Grouped([C], [0, 0])):
        assert not np.any(changed.excludes(0.4))
        with_C, known = cs.crps(y, F, changed, horizon=0.9), cs.crps(y, F, cs.PointMass([0.4, 0.9]))
        np.testing.assert_allclose(with_C, known, rtol=1e-12)
    brier = cs.brier_score(y, F, C, [0.5], scale="ipcw")[:, 0]
    np.testing.assert_allclose(brier, [0.0, (1 - F.sf(0.5)[0]) ** 2], rtol=1e-12)


def test_an_estimate_with_one_closing_date_allows_drop_out():
    """All training subjects are censored at the closing date or not at all; a test subject drops out."""
    time, event = np.array([0.5, 1.0, 2.0, 2.0, 2.0]), np.array([1, 1, 0, 0, 0])
    x = np.arange(5.0)[:, None]
    y = cs.RightCensored([0.7, 2.0], [0, 0])
    F = cs.Weibull(1.5, 1.0)
    for estimator in (cs.KaplanMeier(), cs.CoxRegression(alpha=1.0), cs.WeibullRegression()):
        C = cs.Censoring(estimator).fit(x, cs.RightCensored(time, event)).predict_distribution(x[:2])
        np.testing.assert_allclose(cs.crps(y, F, C), cs.crps(y, F, cs.PointMass([0.7, 2.0])), rtol=1e-8)


def test_a_known_distribution_still_excludes():
    y = cs.RightCensored([0.4, 0.7], [0, 1])
    for C in (cs.PointMass(np.inf), cs.PointMass(2.0), cs.Step([2.0], sf=[0.0])):
        with pytest.raises(ContradictionError):
            cs.crps(y, cs.Weibull(1.5, 1.0), C)


# ---- cross-validation ------------------------------------------------------------------------------


@pytest.mark.parametrize(("subject", "repeats"), [(0, 1), (17, 2), (60, 1), (119, 2)])
def test_one_censored_subject(subject, repeats):
    """The fold of the one who is censored has a curve from 96 subjects who are all seen."""
    x, y = drawn(120, np.array([subject]))
    models = {"weibull": cs.WeibullRegression(), "km": cs.KaplanMeier()}
    found = cs.cross_validate(models, x, y, scores="all", **OPTIONS | {"cv": cs.Folds(5, repeats=repeats)})
    finite(found)
    assert 1.0 < found.horizon < y.time.max()
    assert found.censoring.censored == 1
    assert not found.censoring.warnings
    found.to_html()


def test_means_are_those_of_known_censoring_up_to_the_one_estimate():
    """With one of 120 censored, C matters little: the mean is close to that under C = infinity or c."""
    x, y = drawn(120, np.array([17]))
    found = cs.cross_validate(
        {"w": cs.WeibullRegression()}, x, y, scores="crps", discrimination=False, **OPTIONS
    )
    c = np.where(y.event, found.horizon, y.time)
    known = cs.RightCensored(y.time, y.event, np.maximum(c, y.time))
    exact = cs.cross_validate(
        {"w": cs.WeibullRegression()}, x, known, scores="crps", discrimination=False, horizon=found.horizon,
        **OPTIONS,
    )  # fmt: skip
    pair = [one.frame()[["mean", "standard_error"]].to_numpy(dtype=float)[0] for one in (found, exact)]
    np.testing.assert_allclose(pair[0], pair[1], rtol=0.02)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize(
    "estimator", [cs.KaplanMeier(), cs.CoxRegression(alpha=1.0), cs.WeibullRegression(alpha=1.0)]
)
def test_any_estimator_of_the_censoring_distribution(count, estimator):
    x, y = drawn(80, np.array([5, 33])[:count])
    options = {**OPTIONS, "discrimination": False, "scores": ["crps", "brier_score:ipcw"]}
    C = cs.Censoring(estimator, refits=5)
    finite(cs.cross_validate({"w": cs.WeibullRegression()}, x, y, censoring=C, **options))
    model = cs.WeibullRegression().fit(x[:60], y[:60])
    fixed = {**options, "X": x[60:], "train": (x[:60], y[:60])}
    del fixed["cv"]
    _, y_late = drawn(80, np.array([70]))
    finite(cs.compare({"w": model}, y_late[60:], C, **fixed))


@pytest.mark.parametrize("censored", [0, 1, 4])
def test_competing_risks(censored):
    rng = np.random.default_rng(3)
    x, y = drawn(100, rng.choice(100, censored, replace=False), seed=3)
    risks = cs.CompetingRisks(y.time, np.where(y.event, 1 + (rng.random(100) < 0.4), 0))
    found = cs.cross_validate({"aj": cs.AalenJohansen()}, x, risks, scores="all", **OPTIONS)
    finite(found)
    found.to_html()


@pytest.mark.parametrize(("censored", "shared"), [(0, True), (1, True), (1, False), (3, False)])
def test_several_times(censored, shared):
    rng = np.random.default_rng(4)
    n = 90
    x, T = rng.normal(size=(n, 2)), rng.weibull(1.5, (n, 2))
    rows = rng.choice(n, censored, replace=False)
    C = np.full((n, 2), np.inf)
    C[rows] = 0.6 * T[rows].min(axis=1, keepdims=True) * (np.ones(2) if shared else np.array([1.0, 0.9]))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    F = {"independent": cs.Independent([cs.Weibull(1.5, 1.0), cs.Weibull(1.4, 1.1)])}
    scores = ["energy_score", "crps", "brier_score", "brier_score:ipcw"]
    finite(cs.cross_validate(F, x, y, scores=scores, **OPTIONS))


def test_scorers_in_a_fold_without_censoring():
    from sklearn.model_selection import cross_val_score

    x, y = drawn(120, np.array([17]))
    model = cs.WithCensoring(cs.WeibullRegression())
    for score in ("crps", "integrated_brier_score:ipcw"):
        assert np.isfinite(cross_val_score(model, x, y, cv=5, scoring=cs.scorer(score))).all()


def test_pictures_and_calibration():
    x, y = drawn(120, np.array([17]))
    found = cs.cross_validate({"w": cs.WeibullRegression()}, x, y, scores="crps", **OPTIONS)
    assert np.isfinite(found.calibration("w").observed).any()
    assert np.isfinite(found.net_benefit()["net_benefit"].to_numpy(dtype=float)).all()
    for kind in ("brier", "calibration", "d-calibration", "decision", "murphy", "censoring"):
        found.chart(kind)
