from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

import censcore as cs
from censcore.evaluation.decisions.horizon import follow_up_end
from censcore.exceptions import InvalidTypeError, NotFittedError


def sample(n: int = 150) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    T, C = rng.exponential(np.exp(x[:, 0])), rng.uniform(0, 3, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def structured(y: cs.RightCensored) -> np.ndarray:
    out = np.empty(len(y), dtype=[("event", bool), ("time", float)])
    out["event"], out["time"] = y.event, y.time
    return out


def test_scores_are_those_of_each_fold():
    x, y = sample()
    folds = list(KFold(3).split(x))
    found = cross_val_score(cs.WithCensoring(cs.CoxRegression()), x, y, cv=folds, scoring=cs.scorer("crps"))
    for (train, test), score in zip(folds, found, strict=True):
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
        h = follow_up_end(C, y[train].time)
        F = cs.CoxRegression().fit(x[train], y[train]).predict_distribution(x[test])
        assert score == pytest.approx(-cs.crps(y[test], F, C, horizon=h).mean(), rel=1e-12)


def test_structured_outcomes_give_the_same_scores():
    x, y = sample()
    model = cs.WithCensoring(cs.CoxRegression())
    one, two = (cross_val_score(model, x, target, cv=3, scoring=cs.scorer()) for target in (y, structured(y)))
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_several_scores_at_once_and_the_horizon():
    x, y = sample()
    names = ["crps", "brier_score", "brier_score:ipcw", "pinball_score", "log_score"]
    found = cross_validate(
        cs.WithCensoring(cs.WeibullRegression()), x, y, cv=3, scoring=cs.scorers(names), return_estimator=True
    )
    for name in names:
        assert np.isfinite(found[f"test_{name}"]).all()
    assert found["test_horizon"].tolist() == [model.horizon_ for model in found["estimator"]]


def test_grid_search_with_scikit_survival():
    linear = pytest.importorskip("sksurv.linear_model")
    x, y = sample()
    model = cs.WithCensoring(linear.CoxPHSurvivalAnalysis())
    search = GridSearchCV(model, {"model__alpha": [0.1, 1000.0]}, scoring=cs.scorer("crps"), cv=3)
    search.fit(x, structured(y))
    assert search.best_params_ == {"model__alpha": 0.1}
    assert search.best_score_ < 0


def test_conditional_distributions_of_c_per_fold():
    x, y = sample()
    frame = pd.DataFrame(x, columns=list("abc"))
    distribution = cs.Censoring(cs.CoxRegression())
    found = cross_validate(
        cs.WithCensoring(cs.CoxRegression(), distribution), frame, y, cv=3, scoring=cs.scorers(["crps"])
    )
    pooled = cross_val_score(cs.WithCensoring(cs.CoxRegression()), frame, y, cv=3, scoring=cs.scorer("crps"))
    assert np.isfinite(found["test_crps"]).all()
    assert (found["test_crps"] != pooled).all()


def test_heavily_tied_folds_work_by_default():
    """Test events beyond the support of the training distribution are cut at the horizon, which is told."""
    rng = np.random.default_rng(3)
    time = rng.integers(1, 7, 60).astype(float)
    y = cs.RightCensored(time, rng.random(60) < 0.8)
    names = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw"]
    found = cross_validate(
        cs.WithCensoring(cs.KaplanMeier()),
        np.zeros((60, 1)),
        y,
        cv=KFold(10),
        scoring=cs.scorers(names),
        error_score="raise",
    )
    assert np.isfinite(found["test_brier_score:ipcw"]).all()
    assert (found["test_horizon"] <= 6).all()


def test_own_horizon_and_times():
    x, y = sample()
    model = cs.WithCensoring(cs.CoxRegression(), horizon=1.5)
    found = cross_validate(model, x, y, cv=3, scoring=cs.scorers(["brier_score"], times=[0.5, 1.0]))
    assert (found["test_horizon"] == 1.5).all()


def test_score_method_and_clone():
    x, y = sample()
    model = cs.WithCensoring(cs.CoxRegression(alpha=0.3))
    assert clone(model).model.alpha == 0.3
    assert model.fit(x, y).score(x, y) == cs.scorer("crps")(model, x, y)
    assert not hasattr(model.model, "coef_")


def test_refusals():
    x, y = sample()
    with pytest.raises(InvalidTypeError, match="WithCensoring"):
        cs.scorer("crps")(cs.CoxRegression().fit(x, y), x, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        cs.WithCensoring(cs.CoxRegression()).predict_distribution(x)
    with pytest.raises(InvalidTypeError, match="scorers"):
        cs.scorer({"crps": None, "log_score": None})
    assert repr(cs.scorer("crps")) == "scorer('crps')"


def real_data() -> dict[str, tuple[np.ndarray, cs.RightCensored]]:
    lifelines, sksurv = pytest.importorskip("lifelines.datasets"), pytest.importorskip("sksurv.datasets")
    waltons = lifelines.load_waltons()
    control = (waltons[["group"]] == "control").to_numpy(float)
    found = {"waltons": (control, cs.RightCensored(waltons["T"].to_numpy(float), waltons["E"].to_numpy()))}
    for name in ("veterans_lung_cancer", "whas500"):
        X, y = getattr(sksurv, f"load_{name}")()
        numbers = X.select_dtypes("number").to_numpy(float)
        found[name] = (numbers, cs.RightCensored.from_structured(y))
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", ["waltons", "veterans_lung_cancer", "whas500"])
def test_small_tied_real_data_work_by_default(name):
    x, y = real_data()[name]
    names = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw", "pinball_score"]
    folds = KFold(10, shuffle=True, random_state=0)
    model = cs.WithCensoring(cs.CoxRegression(alpha=1.0))
    found = cross_validate(model, x, y, cv=folds, scoring=cs.scorers(names), error_score="raise")
    for score in names:
        assert np.isfinite(found[f"test_{score}"]).all()
    assert (found["test_horizon"] <= y.time.max()).all()
    assert (found["test_horizon"] > np.median(y.time)).all()


def test_the_horizon_counts_subjects_at_risk_as_a_comparison_does():
    rng = np.random.default_rng(0)
    T, c, late = rng.exponential(3.0, 40), rng.uniform(3, 6, 40), np.linspace(2.5, 5.0, 40)
    T[:3], c[:3], entry = 7.0, 6.0, np.append(np.zeros(40), late)
    time = np.append(np.minimum(T, c), late + 0.05)  # forty who are seen one after the other
    y = cs.RightCensored(time, np.append(c >= T, np.ones(40)), entry=entry)
    model = cs.WithCensoring(cs.KaplanMeier(), cs.Censoring(cs.KaplanMeier())).fit(None, y)
    C = model.predict_censoring()
    comparison = cs.compare({"F": cs.Exponential(0.3)}, y, C, scores="crps", discrimination=False)
    assert model.horizon_ == comparison.horizon
