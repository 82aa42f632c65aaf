"""Models of lifelines: the numbers of its own survival functions and likelihoods, with a density where it "
"has one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimators.libraries.data import GRID, TEST, TRAIN

import censcore as cs
from censcore.distributions import Grouped, ProportionalHazards
from censcore.estimators import as_forecast
from censcore.exceptions import InvalidInputError

lifelines = pytest.importorskip("lifelines")
pd = pytest.importorskip("pandas")


def frame_of(data, rows=slice(None)):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(time=y.time, event=y.event.astype(int))
    return frame.iloc[rows]


class Gompertz(lifelines.fitters.ParametricUnivariateFitter):
    """A fitter of a user, by its cumulative hazard."""

    _fitted_parameter_names = ("a_", "b_")

    def _cumulative_hazard(self, params, times):
        import autograd.numpy as anp

        a, b = params
        return a * anp.expm1(b * times) / b


UNIVARIATE = {
    "custom": (lambda: Gompertz(), None),
    "WeibullFitter": (lambda: lifelines.WeibullFitter(), cs.Weibull),
    "ExponentialFitter": (lambda: lifelines.ExponentialFitter(), cs.Exponential),
    "LogNormalFitter": (lambda: lifelines.LogNormalFitter(), cs.LogNormal),
    "LogLogisticFitter": (lambda: lifelines.LogLogisticFitter(), cs.LogLogistic),
    "PiecewiseExponentialFitter": (lambda: lifelines.PiecewiseExponentialFitter([1.0, 3.0]), None),
    "GeneralizedGammaFitter": (lambda: lifelines.GeneralizedGammaFitter(), None),
    "SplineFitter": (lambda: lifelines.SplineFitter([0.3, 1.0, 3.0]), None),
    "MixtureCureFitter": (lambda: lifelines.MixtureCureFitter(lifelines.WeibullFitter()), cs.Mixture),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNIVARIATE)
def test_univariate_fitters_have_their_own_survival_and_likelihood(data, name):
    _, y = data
    make, kind = UNIVARIATE[name]
    model = make().fit(y.time, y.event)
    F = as_forecast(model)
    assert kind is None or isinstance(F, kind)
    np.testing.assert_allclose(F.sf(GRID)[0], model.survival_function_at_times(GRID[0]), rtol=1e-8)
    np.testing.assert_allclose(F.cdf(F.icdf(0.3)), 0.3, rtol=1e-8)
    if name != "MixtureCureFitter":  # an atom at infinity: no density
        assert F.has_density
        assert float(F.log_likelihood(y.time, y.event).sum()) == pytest.approx(
            model.log_likelihood_, rel=1e-6
        )


def piecewise():
    return lifelines.PiecewiseExponentialRegressionFitter(breakpoints=[1.0, 3.0], penalizer=0.01)


def generalized_gamma():
    return lifelines.GeneralizedGammaRegressionFitter(penalizer=0.01)


REGRESSIONS = {
    "weibull": (lambda: lifelines.WeibullAFTFitter(), cs.Weibull),
    "weibull, shape by covariates": (lambda: lifelines.WeibullAFTFitter(model_ancillary=True), cs.Weibull),
    "lognormal": (lambda: lifelines.LogNormalAFTFitter(), cs.LogNormal),
    "loglogistic": (lambda: lifelines.LogLogisticAFTFitter(), cs.LogLogistic),
    "piecewise exponential": (piecewise, cs.PiecewiseExponential),
    "generalized gamma": (generalized_gamma, None),
    "spline": (
        lambda: lifelines.CoxPHFitter(baseline_estimation_method="spline", n_baseline_knots=3),
        None,
    ),
    "accelerated spline": (lambda: lifelines.CRCSplineFitter(n_baseline_knots=3), None),
    "piecewise Cox": (
        lambda: lifelines.CoxPHFitter(baseline_estimation_method="piecewise", breakpoints=[1.0, 3.0]),
        cs.PiecewiseExponential,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REGRESSIONS)
def test_parametric_regressions_are_parametric_distributions(data, name):
    make, kind = REGRESSIONS[name]
    train, test = frame_of(data, TRAIN), frame_of(data, TEST)
    parts = {"beta_": "a + b + c - 1", **{f"gamma{i}_": "1" for i in range(3)}}
    given = {"regressors": parts} if name == "accelerated spline" else {}
    model = make().fit(train, "time", "event", **given)
    F = as_forecast(model, test)
    assert F.has_density
    assert kind is None or isinstance(F, kind)
    expected = model.predict_survival_function(test, times=GRID[0]).to_numpy().T
    np.testing.assert_allclose(F.sf(GRID), expected, rtol=1e-7, atol=1e-30)  # lifelines floors at 1e-35
    np.testing.assert_allclose(F.take([5, 7]).sf(GRID), expected[[5, 7]], rtol=1e-7, atol=1e-30)
    likelihood = F.log_likelihood(test.time.to_numpy(), test.event.to_numpy()).mean()
    if name == "generalized gamma":  # lifelines' own is wrong where its hazard overflows: differentiate
        h = 1e-5
        slope = (F.cdf(1.5 + h) - F.cdf(1.5 - h)) / (2 * h)
        np.testing.assert_allclose(np.exp(F.logpdf(1.5)), slope, rtol=1e-5, atol=1e-9)
    else:
        assert float(likelihood) == pytest.approx(getattr(model, "_model", model).score(test), rel=1e-6)
    y = cs.RightCensored(test.time, test.event)
    assert np.isfinite(cs.log_score(y, F, cs.Uniform(0.0, 8.0))).all()


def test_cox_models_keep_baseline_and_risk(data):
    train, test = frame_of(data, TRAIN), frame_of(data, TEST)
    model = lifelines.CoxPHFitter().fit(train, "time", "event")
    F = as_forecast(model, test)
    assert isinstance(F, ProportionalHazards)
    at = np.sort(train.time.to_numpy())[::7]
    expected = model.predict_survival_function(test, times=at).to_numpy().T
    np.testing.assert_allclose(F.sf(at[None, :]), expected, rtol=1e-10)
    columns = test.drop(columns=["time", "event"])
    np.testing.assert_allclose(as_forecast(model, columns.to_numpy()).sf(GRID), F.sf(GRID), rtol=1e-12)
    curves = as_forecast(model, test, interpolation="linear")
    np.testing.assert_allclose(curves.sf(at[None, :]), expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strata", ["s", ["s"], ["s", "u"]])
def test_strata_stay_with_their_subjects(data, strata):
    rng = np.random.default_rng(0)
    frame = frame_of(data).assign(s=rng.integers(0, 2, 300), u=rng.integers(0, 2, 300))
    frame["time"] *= 1 + frame.s
    train, test = frame.iloc[TRAIN], frame.iloc[TEST]
    model = lifelines.CoxPHFitter(strata=strata).fit(train, "time", "event")
    F = as_forecast(model, test)
    assert isinstance(F, Grouped)
    at = np.array([[0.7, 2.0, 4.0]])
    for row in (0, 1, 5, 50):
        one = as_forecast(model, test.iloc[[row]])
        np.testing.assert_allclose(F.sf(at)[row], one.sf(at)[0], rtol=1e-12)
    label = test.iloc[0][strata] if isinstance(strata, str) else tuple(test.iloc[0][strata].astype(int))
    baseline = model.baseline_cumulative_hazard_
    column = baseline[label] if label in baseline else baseline[label[0]]
    hazard = column[column.index <= 2.0].iloc[-1] * model.predict_partial_hazard(test.iloc[[0]]).iloc[0]
    assert float(F.sf(2.0)[0]) == pytest.approx(float(np.exp(-hazard)), rel=1e-10)
    with pytest.raises(InvalidInputError, match="was not among the strata"):
        as_forecast(model, test.assign(s=7))


@pytest.mark.filterwarnings("ignore")
def test_parametric_strata_are_in_the_order_of_the_subjects(data):
    frame = frame_of(data).assign(s=np.random.default_rng(0).integers(0, 2, 300))
    frame["time"] *= 1 + frame.s
    method = {"baseline_estimation_method": "spline", "n_baseline_knots": 3}
    model = lifelines.CoxPHFitter(strata="s", **method).fit(frame.iloc[TRAIN], "time", "event")
    test = frame.iloc[TEST]
    F = as_forecast(model, test)
    t = float(np.median(frame.time.iloc[TRAIN]))
    one = [float(as_forecast(model, test.iloc[[row]]).sf(t)[0]) for row in (0, 3, 9)]
    np.testing.assert_allclose(F.sf(t)[[0, 3, 9]], one, rtol=1e-10)


def test_additive_hazards_are_made_monotone_with_a_warning(data):
    train, test = frame_of(data, TRAIN), frame_of(data, TEST)
    model = lifelines.AalenAdditiveFitter(coef_penalizer=5.0).fit(train, "time", "event")
    curves = model.predict_survival_function(test)
    with pytest.warns(UserWarning, match=r"AalenAdditiveFitter: curves of \d+ subjects .* made monotone"):
        F = as_forecast(model, test)
    sf = F.sf(np.asarray(curves.index)[None, :])
    assert (np.diff(sf, axis=1) <= 1e-12).all()
    lower = np.minimum.accumulate(np.clip(curves.to_numpy().T, 0, 1), axis=1)
    assert (sf >= lower - 1e-12).all()
    kept = (np.diff(curves.to_numpy(), axis=0) <= 0).all(axis=0) & (curves.to_numpy() <= 1).all(axis=0)
    assert 0 < kept.sum() < 100
    np.testing.assert_allclose(sf[kept], curves.to_numpy().T[kept], rtol=1e-12)


def test_regressions_need_covariates(data):
    model = lifelines.WeibullAFTFitter().fit(frame_of(data), "time", "event")
    with pytest.raises(InvalidInputError, match="needs the covariates X"):
        as_forecast(model)


@pytest.mark.filterwarnings("ignore")
def test_columns_of_arrays_stay_in_order(data):
    """lifelines sorts covariates by name: x10 comes before x2."""
    X, y = data
    wide = np.random.default_rng(0).normal(size=(300, 12))
    wide[:, [2, 10]] = X[:, :2]
    ours = cs.WeibullRegression().fit(wide, y).predict_distribution(wide)
    model = cs.Adapted(lifelines.WeibullAFTFitter()).fit(wide, y)
    np.testing.assert_allclose(model.predict_distribution(wide).sf(1.0), ours.sf(1.0), atol=1e-3)
    fitted = lifelines.WeibullAFTFitter().fit(frame_of(data), "time", "event")
    with pytest.raises(InvalidInputError, match="misses columns of X"):
        as_forecast(fitted, X)
