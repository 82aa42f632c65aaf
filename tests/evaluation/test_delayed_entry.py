"""Comparisons with delayed entry."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.exceptions import FoldError, ImpossibleForecastError


def seen(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4 * n, 1))
    T = 3 * np.exp(0.3 * x[:, 0]) * rng.weibull(1.5, 4 * n)
    A = np.where(rng.random(4 * n) < 0.2, 0.0, rng.uniform(0.0, 3.0, 4 * n))
    C = 5 * rng.weibull(2.0, 4 * n)
    rows = np.nonzero((T > A) & (C > A))[0][:n]
    return x[rows], cs.RightCensored(np.minimum(T, C)[rows], (T <= C)[rows], entry=A[rows])


TRAIN, (X, Y) = seen(200, 1), seen(200, 2)
FORECASTS = {"true": cs.Weibull(1.5, 3 * np.exp(0.3 * X[:, 0])), "flat": cs.Weibull(1.2, 3.2)}
CUSTOM = {
    "crps": lambda y, F, C, horizon: cs.crps(y, F, C, horizon=horizon),
    "brier_score": lambda y, F, C, horizon: cs.brier_score(y, F, C, 2.0, horizon=horizon),
    "brier_score:ipcw": lambda y, F, C, horizon: cs.brier_score(y, F, C, 2.0, horizon=horizon, scale="ipcw"),
    "integrated_brier_score:ipcw": lambda y, F, C, horizon: cs.integrated_brier_score(
        y, F, C, horizon=horizon, scale="ipcw", normalize=True
    ),
    "pinball_score": lambda y, F, C, horizon: cs.pinball_score(y, F, C, 0.3, horizon=horizon),
}


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()], ids=str)
def test_standard_errors_agree_with_numerical_derivatives(estimator):
    """Custom scores have a numerical derivative by the hazard of C, scores of the registry a formula."""
    options = {"X": X, "train": TRAIN, "horizon": 3.5, "reference": None}
    model = {"true": FORECASTS["true"]}
    known = cs.compare(model, Y, estimator, times=[2.0], levels=[0.3], scores=list(CUSTOM), **options)
    custom = cs.compare(model, Y, estimator, scores=CUSTOM, **options)
    for name in CUSTOM:
        one, two = (found.estimate("true", name) for found in (known, custom))
        np.testing.assert_allclose(one.value, two.value, rtol=1e-9)
        np.testing.assert_allclose(one.standard_error, two.standard_error, rtol=5e-3)


def test_pipelines_are_the_estimator_on_scaled_covariates():
    """In means and in standard errors, for the censoring distribution and for models fitted fold by fold."""
    train_X, train_y = TRAIN
    scale = StandardScaler().fit(train_X)
    options = {"horizon": 3.0, "scores": ["crps", "brier_score:ipcw"], "reference": None}
    piped = make_pipeline(StandardScaler(), cs.CoxRegression())
    found = cs.compare(FORECASTS, Y, cs.Censoring(piped), X=X, train=TRAIN, **options)
    bare = cs.compare(
        FORECASTS, Y, cs.CoxRegression(), X=scale.transform(X), train=(scale.transform(train_X), train_y),
        **options,
    )  # fmt: skip
    columns = ["mean", "standard_error"]
    np.testing.assert_allclose(found.frame()[columns], bare.frame()[columns], rtol=1e-9)
    folds = cs.cross_validate(
        {"piped": piped, "bare": cs.CoxRegression()}, X, Y, cv=3, **options, censoring=cs.Censoring(piped)
    )
    means = folds.frame().pivot(index=["score", "at"], columns="model", values="mean")
    np.testing.assert_allclose(means["piped"], means["bare"], rtol=1e-8)


def test_other_libraries_in_a_pipeline_do_not_lose_the_entry_in_silence():
    sksurv = pytest.importorskip("sksurv.linear_model")
    model = make_pipeline(StandardScaler(), sksurv.CoxPHSurvivalAnalysis())
    with pytest.raises(FoldError, match="does not take delayed entry"):
        cs.cross_validate({"cox": model}, X, Y, cv=3)


def test_losses_are_those_of_the_scores_and_notes_say_what_was_done():
    found = cs.compare(FORECASTS, Y, cs.KaplanMeier(), X=X, train=TRAIN, horizon=2.5)
    C = cs.Censoring(cs.KaplanMeier()).fit(*TRAIN).predict_distribution()
    expected = cs.crps(Y, FORECASTS["flat"], C, horizon=2.5)
    np.testing.assert_allclose(found.losses.values["flat", "crps"][:, 0], expected, rtol=1e-10)
    late = int((Y.entry >= 2.5).sum())
    note = next(note for note in found.notes if "Delayed entry" in note)
    assert f"{int((Y.entry > 0).sum())} of 200 subjects" in note
    assert f"losses of the {late} who enter at or after the horizon are zero" in note
    assert {"concordance:harrell", "concordance:uno", "auc"} <= set(found.frame()["score"])
    assert "not tested: subjects enter late" in str(found.censoring)
    for plot in ("brier", "murphy", "calibration", "censoring"):
        found.plot(plot)


def test_entries_of_zero_change_nothing():
    plain = cs.RightCensored(Y.time, Y.event)
    zero = cs.RightCensored(Y.time, Y.event, entry=0.0)
    tables = [cs.compare(FORECASTS, y, cs.KaplanMeier(), X=X, reference=None).frame() for y in (plain, zero)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-12)


def test_an_impossible_forecast_is_named():
    short = {"short": cs.Uniform(0.0, 1.0), **FORECASTS}
    with pytest.raises(ImpossibleForecastError, match=r"Forecast 'short': .*P\(T > a\) = 0"):
        cs.compare(short, Y, cs.KaplanMeier(), X=X, train=TRAIN)


def test_scorers_score_given_survival():
    model = cs.WithCensoring(cs.CoxRegression()).fit(*TRAIN)
    case = model.case(X, Y)
    expected = cs.crps(Y, case.F, case.C, horizon=case.horizon).mean()
    assert model.score(X, Y) == pytest.approx(-expected)
