"""Censoring distributions given covariates: rare groups, pipelines, the cost of refits, short horizons."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.evaluation.inference import mean_losses as losses
from censcore.exceptions import InvalidInputError

COX = cs.CoxRegression


def rare_groups(seed: int, n: int = 300) -> tuple[np.ndarray, cs.RightCensored]:
    """Two numbers, and indicators of groups of 2 to 12 subjects whose censoring differs much."""
    rng = np.random.default_rng(seed)
    z, groups = rng.normal(size=(n, 2)), np.zeros((n, 5))
    for j, size in enumerate((2, 3, 4, 6, 12)):
        groups[rng.choice(n, size, replace=False), j] = 1
    T = rng.weibull(1.2, n) * np.exp(0.5 * z[:, 0])
    C = np.minimum(rng.exponential(np.exp(0.3 * z[:, 1] + groups @ np.linspace(-2, 2, 5))), 3.0)
    return np.column_stack([z, groups]), cs.RightCensored(np.minimum(T, C), T <= C)


def compared(censoring, seed: int = 0, refits: int = 60, **options) -> cs.evaluation.Comparison:
    x, y = rare_groups(seed)
    forecasts = {"sharp": cs.Weibull(1.2, np.exp(0.5 * x[:, 0])), "blunt": cs.Weibull(1.2, 1.0)}
    C = cs.Censoring(censoring, refits=refits)
    return cs.compare(forecasts, y, C, X=x, discrimination=False, reference=None, **options)


@pytest.mark.parametrize("estimator", [COX(alpha=1.0), make_pipeline(StandardScaler(), COX(alpha=1.0))])
def test_errors_stay_finite_with_rare_groups(estimator):
    for seed in range(4):
        frame = compared(estimator, seed).frame()
        assert (frame["standard_error"] < frame["mean"]).all()


def test_without_a_penalty_a_group_that_determines_its_censoring_is_named():
    with pytest.raises(InvalidInputError, match=r"likelihood grows without bound in .*add a penalty"):
        compared(COX(), 2)


def test_the_last_step_of_a_pipeline_brings_its_influence_function():
    piped = compared(make_pipeline(SimpleImputer(), COX(alpha=1.0)), 2)
    plain = compared(COX(alpha=1.0), 2)
    assert piped.method == plain.method
    for column in ("mean", "standard_error", "low", "high"):
        np.testing.assert_allclose(piped.frame()[column], plain.frame()[column], rtol=1e-6)
    curve = compared(make_pipeline(SimpleImputer(), cs.KaplanMeier()), 2)
    np.testing.assert_allclose(
        curve.frame()["standard_error"], compared(cs.KaplanMeier(), 2).frame()["standard_error"], rtol=1e-9
    )


def test_steps_that_look_at_the_outcome_are_fitted_again():
    def first_columns(X, y):
        return np.arange(X.shape[1], 0, -1.0)

    chosen = make_pipeline(SelectKBest(first_columns, k=2), COX())
    nested = make_pipeline(make_column_transformer((SelectKBest(first_columns, k=1), [0, 1])), COX())
    search = GridSearchCV(COX(), {"alpha": [1.0]}, cv=2, scoring=lambda *arguments: 0.0)
    for estimator in (chosen, nested, search):
        found = compared(estimator, refits=3, scores=["crps"])
        assert found.method.startswith("bootstrap")


def test_few_subjects_do_not_end_the_comparison():
    rng = np.random.default_rng(0)
    x = np.zeros((300, 1))
    x[:3] = 1.0
    T, C = rng.exponential(1.0, 300), rng.uniform(0.0, 4.0, 300) * np.where(x[:, 0] > 0, 0.4, 1.0)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {"one": cs.Exponential(1.0)}
    found = cs.compare(forecasts, y, cs.Censoring(COX(alpha=0.1)), X=x, scores="crps", discrimination=False)
    pooled = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), scores="crps", discrimination=False)
    (note,) = [note for note in found.notes if note.startswith("horizon")]
    assert "98% of the subjects (the smallest is" in note
    assert found.horizon > 0.8 * pooled.horizon


def test_the_cost_of_refits_is_announced(caplog, monkeypatch):
    clock = iter(range(0, 10_000, 7))
    monkeypatch.setattr(losses, "perf_counter", lambda: next(clock))
    with caplog.at_level(logging.WARNING, logger="censcore"):
        compared(cs.WeibullRegression(alpha=1.0), refits=5, scores=["log_score"], horizon=1.0)
    assert "fitted to 5 bootstrap samples, about 28 seconds" in caplog.text
    caplog.clear()
    monkeypatch.setattr(losses, "perf_counter", lambda: 0.0)
    with caplog.at_level(logging.WARNING, logger="censcore"):
        compared(cs.WeibullRegression(alpha=1.0), refits=5, scores=["log_score"], horizon=1.0)
    assert not caplog.text
