"""Boosting libraries: densities against their own likelihoods, risk scores with Breslow's baseline."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimators.libraries.data import GRID, TEST, TRAIN

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.estimators import as_forecast
from censcore.exceptions import InvalidInputError, InvalidTypeError

KINDS = {"normal": cs.LogNormal, "logistic": cs.LogLogistic, "extreme": cs.Weibull}


def signed(y):
    """Censored times with a minus sign, as Cox's loss of both libraries wants them."""
    return np.where(y.event, y.time, -y.time)


# ---- XGBoost ----------------------------------------------------------------------------------------


def aft_matrix(xgboost, X, y):
    matrix = xgboost.DMatrix(X)
    matrix.set_float_info("label_lower_bound", y.time)
    matrix.set_float_info("label_upper_bound", np.where(y.event, y.time, np.inf))
    return matrix


def aft_booster(xgboost, X, y, distribution, scale):
    matrix, history = aft_matrix(xgboost, X, y), {}
    booster = xgboost.train(
        {
            "objective": "survival:aft",
            "eval_metric": "aft-nloglik",
            "aft_loss_distribution": distribution,
            "aft_loss_distribution_scale": scale,
            "max_depth": 2,
            "nthread": 1,
        },
        matrix,
        num_boost_round=10,
        evals=[(matrix, "train")],
        evals_result=history,
        verbose_eval=False,
    )
    return booster, history["train"]["aft-nloglik"][-1]


@pytest.mark.parametrize("distribution", KINDS)
@pytest.mark.parametrize("scale", [0.7, 1.3])  # densities below 1e-12 count as that in XGBoost
def test_xgboost_aft_has_the_likelihood_that_xgboost_reports(data, distribution, scale):
    xgboost = pytest.importorskip("xgboost")
    X, y = data
    booster, loss = aft_booster(xgboost, X, y, distribution, scale)
    F = as_forecast(booster, X)
    assert isinstance(F, KINDS[distribution])
    assert -float(F.log_likelihood(y.time, y.event).mean()) == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(as_forecast(booster, xgboost.DMatrix(X), n=300).sf(GRID), F.sf(GRID))


def test_xgboost_estimators_are_read_like_boosters(data, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = data
    booster, _ = aft_booster(xgboost, X, y, "logistic", 0.5)
    booster.save_model(tmp_path / "model.json")
    estimator = xgboost.XGBRegressor()
    estimator.load_model(tmp_path / "model.json")
    np.testing.assert_allclose(as_forecast(estimator, X).sf(GRID), as_forecast(booster, X).sf(GRID))
    cox = xgboost.XGBRegressor(objective="survival:cox", n_estimators=5, max_depth=2, n_jobs=1)
    cox.fit(X[TRAIN], signed(y[TRAIN]))
    F = as_forecast(cox, X[TEST], train=(X[TRAIN], y[TRAIN]))
    ratios = cs.from_risk(cox.predict(X[TRAIN]), y[TRAIN], cox.predict(X[TEST]), scale="hazard")
    np.testing.assert_allclose(F.sf(GRID), ratios.sf(GRID), rtol=1e-5)
    from_booster = as_forecast(cox.get_booster(), X[TEST], train=(X[TRAIN], y[TRAIN]))
    np.testing.assert_allclose(F.sf(GRID), from_booster.sf(GRID), rtol=1e-5)
    with pytest.raises(InvalidInputError, match=r"train=\(X_train, y_train\).*from_risk"):
        as_forecast(cox, X[TEST])
    squared = xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(X, y.time)
    with pytest.raises(InvalidTypeError, match="reg:squarederror"):
        as_forecast(squared, X)


# ---- CatBoost ---------------------------------------------------------------------------------------


def catboost_model(loss, **settings):
    catboost = pytest.importorskip("catboost")
    fixed = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
    return catboost.CatBoostRegressor(loss_function=loss, **fixed, **settings)


@pytest.mark.parametrize("distribution", KINDS)
def test_catboost_aft_predicts_the_maximum_of_the_likelihood(data, distribution):
    """With one binary covariate the trees can fit each half freely: location by maximum likelihood."""
    _, y = data
    half = (np.arange(300) % 2).astype(float)[:, None]
    loss = f"SurvivalAft:dist={distribution.title()};scale=0.7"
    bounds = np.stack([y.time, np.where(y.event, y.time, -1)], axis=1)
    settings = {"iterations": 200, "learning_rate": 0.3, "depth": 1, "l2_leaf_reg": 0}
    model = catboost_model(loss, **settings).fit(half, bounds)
    F = as_forecast(model, half)
    assert isinstance(F, KINDS[distribution])
    best = float(F.log_likelihood(y.time, y.event).sum())
    for shift in (0.95, 1.05):
        names = {"normal": ("mu", "sigma")}.get(distribution, ("shape", "scale"))
        first, second = (F.parameters[name] for name in names)
        moved = (first + np.log(shift), second) if distribution == "normal" else (first, second * shift)
        assert float(KINDS[distribution](*moved).log_likelihood(y.time, y.event).sum()) < best


def test_catboost_cox_gets_its_baseline_from_training_subjects(data):
    X, y = data
    model = catboost_model("Cox", iterations=20, depth=2).fit(X[TRAIN], signed(y[TRAIN]))
    F = as_forecast(model, X[TEST], train=(X[TRAIN], y[TRAIN]))
    expected = cs.from_risk(model.predict(X[TRAIN]), y[TRAIN], model.predict(X[TEST]))
    np.testing.assert_allclose(F.sf(GRID), expected.sf(GRID))
    with pytest.raises(InvalidTypeError, match="RMSE"):
        as_forecast(catboost_model("RMSE", iterations=2).fit(X, y.time), X)


# ---- LightGBM, and any other score ------------------------------------------------------------------


def cox_gradient(y):
    """First and second derivatives of minus Cox's partial likelihood, for distinct times."""
    order = np.argsort(y.time)
    event = y.event[order].astype(float)

    def objective(_, eta):
        risk = np.exp(eta[order])
        at_risk = np.cumsum(risk[::-1])[::-1]
        spent, squared = np.cumsum(event / at_risk), np.cumsum(event / at_risk**2)
        gradient, hessian = np.empty(len(eta)), np.empty(len(eta))
        gradient[order] = risk * spent - event
        hessian[order] = np.maximum(risk * spent - risk**2 * squared, 1e-6)
        return gradient, hessian

    return objective


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_lightgbm_scores_with_a_baseline_beat_no_covariates(data):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data
    settings = {"n_estimators": 20, "num_leaves": 4, "learning_rate": 0.1, "n_jobs": 1, "verbose": -1}
    model = lightgbm.LGBMRegressor(objective=cox_gradient(y[TRAIN]), **settings).fit(X[TRAIN], y[TRAIN].time)
    F = cs.from_risk(model.predict(X[TRAIN]), y[TRAIN], model.predict(X[TEST]))
    assert isinstance(F, ProportionalHazards)
    C = cs.Censoring(cs.KaplanMeier())
    comparison = cs.compare(
        {"lightgbm": F}, y[TEST], C, train=(X[TRAIN], y[TRAIN]), scores="crps", discrimination=False
    )
    assert comparison.frame().set_index("model")["skill"]["lightgbm"] > 0.05
    with pytest.raises(InvalidTypeError, match=r"LGBMRegressor has no survival function.*from_risk"):
        as_forecast(model, X[TEST])


# ---- hazardous --------------------------------------------------------------------------------------


def test_survival_boost_is_read_at_its_time_grid(data):
    hazardous = pytest.importorskip("hazardous")
    pd = pytest.importorskip("pandas")
    X, y = data
    model = hazardous.SurvivalBoost(n_iter=10, show_progressbar=False, random_state=0)
    model.fit(X[TRAIN], pd.DataFrame({"event": y[TRAIN].event.astype(int), "duration": y[TRAIN].time}))
    with pytest.warns(UserWarning, match=r"SurvivalBoost: curves of \d+ subjects .* made monotone"):
        F = as_forecast(model, X[TEST])
    times = np.unique(model.time_grid_)
    theirs = model.predict_survival_function(X[TEST], times)
    ours = F.sf(times[None, :])
    assert (np.diff(ours, axis=1) <= 0).all()
    rise = (np.maximum.accumulate(theirs[:, ::-1], axis=1)[:, ::-1] - theirs).max()
    assert np.abs(ours - theirs).max() <= rise
    rising = (np.diff(theirs, axis=1) > 0).any(axis=1)
    np.testing.assert_allclose(ours[~rising], theirs[~rising], atol=1e-12)
    assert np.abs(ours - theirs).max() > 1e-4  # there was something to repair


# ---- fitting ----------------------------------------------------------------------------------------


def unfitted(name):
    if name.startswith("xgboost"):
        xgboost = pytest.importorskip("xgboost")
        settings = {"n_estimators": 10, "max_depth": 2, "n_jobs": 1}
        if name == "xgboost cox":
            return xgboost.XGBRegressor(objective="survival:cox", **settings)
        settings |= {"aft_loss_distribution": "extreme", "aft_loss_distribution_scale": 0.6}
        return xgboost.XGBRegressor(objective="survival:aft", **settings)
    if name == "hazardous":
        hazardous = pytest.importorskip("hazardous")
        settings = {"n_iter": 20, "learning_rate": 0.2, "min_samples_leaf": 20, "max_leaf_nodes": 8}
        return hazardous.SurvivalBoost(show_progressbar=False, random_state=0, **settings)
    loss = "Cox" if name == "catboost cox" else "SurvivalAft:dist=Extreme;scale=0.6"
    return catboost_model(loss, iterations=40, depth=2, learning_rate=0.1)


@pytest.mark.filterwarnings("ignore:SurvivalBoost")
@pytest.mark.parametrize("name", ["xgboost cox", "xgboost aft", "catboost cox", "catboost aft", "hazardous"])
def test_unfitted_models_are_fitted_and_beat_no_covariates(data, name):
    X, y = data
    theirs = unfitted(name)
    model = cs.Adapted(theirs).fit(X[TRAIN], y[TRAIN])
    F, C = model.predict_distribution(X[TEST]), cs.Uniform(0.2, 8.0)
    marginal = cs.KaplanMeier().fit(None, y[TRAIN]).predict_distribution()
    crps = [cs.crps(y[TEST], part, C, horizon=5.0).mean() for part in (F, marginal)]
    assert crps[0] < 0.97 * crps[1]
    if name != "hazardous":
        cs.Adapted(theirs).fit(X[TRAIN], y[TRAIN], sample_weight=np.ones(200))


def test_other_losses_cannot_be_fitted(data):
    xgboost = pytest.importorskip("xgboost")
    X, y = data
    with pytest.raises(InvalidTypeError, match="expected 'survival:cox' or 'survival:aft'"):
        cs.Adapted(xgboost.XGBRegressor(objective="reg:squarederror")).fit(X, y)
    with pytest.raises(InvalidTypeError, match="'Cox' or 'SurvivalAft'"):
        cs.Adapted(catboost_model("RMSE")).fit(X, y)


@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_xgboost_aft_learns_times_in_any_unit(data, unit):
    X, y = data
    scaled = cs.RightCensored(unit * y.time, y.event)
    F = cs.Adapted(unfitted("xgboost aft")).fit(X[TRAIN], scaled[TRAIN]).predict_distribution(X[TEST])
    once = cs.Adapted(unfitted("xgboost aft")).fit(X[TRAIN], y[TRAIN]).predict_distribution(X[TEST])
    np.testing.assert_allclose(F.sf(unit * GRID), once.sf(GRID), atol=1e-3)
