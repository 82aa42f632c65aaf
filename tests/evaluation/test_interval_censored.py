"""Comparisons of forecasts of interval-censored data."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import MissingVisitsError, UnsupportedOutcomeError

INF = np.inf


def data(n=400, seed=0, visits=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    T = np.exp(1 + 0.6 * x[:, 0]) * rng.weibull(1.5, n)
    visits = np.sort(rng.uniform(0.3, 8.0, (n, 6)), axis=1) if visits is None else visits
    before = np.broadcast_to(visits, (n, np.shape(visits)[-1])) < T[:, None]
    lower = np.max(np.where(before, visits, 0.0), axis=1)
    return x, cs.IntervalCensored(lower, np.min(np.where(before, INF, visits), axis=1), visits)


@pytest.fixture(scope="module")
def comparison():
    x, y = data()
    train, test = slice(0, 200), slice(200, 400)
    model = cs.WeibullRegression().fit(x[train], y[train])
    pooled = cs.WeibullRegression().fit(None, y[train])
    models = {"weibull": model, "pooled": pooled.predict_distribution()}
    found = cs.compare(models, y[test], X=x[test], train=(x[train], y[train]), horizon=8.0, times=[1.0, 3.0])
    return x[test], y[test], models, found


def row_of(found, score):
    return found.frame().query(f"score == {score!r} and model == 'weibull'").iloc[0]


def test_means_are_those_of_the_scores(comparison):
    x, y, models, found = comparison
    F = models["weibull"].predict_distribution(x)
    expected = {
        "log_score": cs.log_score(y, F),
        "crps": cs.crps(y, F, horizon=8.0),
    }
    for score, losses in expected.items():
        row = row_of(found, score)
        assert float(row["mean"]) == pytest.approx(losses.mean(), rel=1e-9)
        assert float(row["standard_error"]) == pytest.approx(losses.std(ddof=1) / np.sqrt(200), rel=1e-2)
    briers = found.frame().query("score == 'brier_score' and model == 'weibull'")
    np.testing.assert_allclose(briers["mean"], cs.brier_score(y, F, times=[1.0, 3.0]).mean(axis=0), rtol=1e-9)


def test_the_reference_is_turnbulls_estimate_and_covariates_help(comparison):
    found = comparison[3]
    assert found.reference == "turnbull"
    assert float(row_of(found, "crps")["skill"]) > 0.1
    assert "detection time" in found.notes[0]
    assert found.differences().shape[0] > 0
    assert "<html" in found.to_html().lower()


def test_subgroups_groups_and_weights():
    x, y = data(120)
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    found = cs.compare(
        {"truth": F},
        y,
        by={"side": x[:, 0] > 0},
        groups=np.arange(120) // 2,
        sample_weight=np.ones(120),
        scores=["crps", "log_score"],
        horizon=8.0,
    )
    inside = x[:, 0] > 0
    row = found.frame().query("score == 'log_score' and group == 'True'")
    assert float(row["mean"].iloc[0]) == pytest.approx(cs.log_score(y, F)[inside].mean())


def test_without_visits_there_is_the_log_score_alone():
    x, y = data(100)
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    plain = cs.IntervalCensored(y.lower, y.upper)
    found = cs.compare({"truth": F, "flat": cs.Weibull(1.2, 3.0)}, plain)
    assert set(found.frame()["score"]) == {"log_score"}
    assert float(found.frame()["mean"].iloc[0]) == pytest.approx(cs.log_score(plain, F).mean())
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.compare({"truth": F}, plain, scores="crps")
    exact = cs.IntervalCensored([1.0, 2.0, 3.0], [1.0, 2.5, INF])
    mean = cs.compare({"flat": cs.Weibull(1.2, 3.0)}, exact).frame()["mean"].iloc[0]
    assert float(mean) == pytest.approx(cs.log_score(exact, cs.Weibull(1.2, 3.0)).mean())


def test_dropout_needs_a_censoring_distribution():
    visits = np.arange(1.0, 9.0)
    x, full = data(300, visits=visits)
    last = np.random.default_rng(3).integers(1, 9, 300).astype(float)
    gone = full.upper > last
    y = cs.IntervalCensored(
        np.where(gone, np.minimum(full.lower, last), full.lower), np.where(gone, INF, full.upper), visits
    )
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    with pytest.raises(MissingVisitsError, match="dropped out"):
        cs.compare({"truth": F}, y, scores="crps")
    censoring = cs.Censoring(cs.KaplanMeier())
    found = cs.compare({"truth": F}, y, censoring, scores=["crps", "log_score"], horizon=6.0)
    C = censoring.fit(None, y.detection()).predict_distribution()
    means = found.frame().set_index("score")["mean"]
    assert float(means["crps"]) == pytest.approx(cs.crps(y, F, C, horizon=6.0).mean(), rel=1e-9)
    assert float(means["log_score"]) == pytest.approx(cs.log_score(y, F, horizon=6.0).mean(), rel=1e-9)


def test_scorers_and_diagnostics_say_that_they_do_not_take_intervals():
    _, y = data(50)
    with pytest.raises(UnsupportedOutcomeError, match="got IntervalCensored"):
        cs.Censoring(cs.KaplanMeier()).fit(None, y)
