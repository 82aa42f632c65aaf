"""Forecasts of other libraries become distributions with the same numbers; wrong orientation is caught."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats

import censcore as cs
from censcore.distributions import Mixture, Step
from censcore.estimators import as_forecast
from censcore.exceptions import InvalidInputError, InvalidTypeError

TIMES = np.array([1.0, 2.0, 4.0, 7.0])
SF = np.array([[0.9, 0.8, 0.4, 0.1], [0.95, 0.5, 0.45, 0.0], [1.0, 0.7, 0.3, 0.2]])


@pytest.fixture(scope="module")
def whas500():
    datasets = pytest.importorskip("sksurv.datasets")
    X, y = datasets.load_whas500()
    return X.astype(float), y


def sksurv_models():
    ensemble = pytest.importorskip("sksurv.ensemble")
    linear_model = pytest.importorskip("sksurv.linear_model")
    return [
        ensemble.RandomSurvivalForest(n_estimators=5, min_samples_leaf=20, random_state=0),
        ensemble.GradientBoostingSurvivalAnalysis(n_estimators=5, random_state=0),
        linear_model.CoxPHSurvivalAnalysis(alpha=1.0),
        linear_model.CoxnetSurvivalAnalysis(fit_baseline_model=True),
    ]


@pytest.mark.parametrize("which", range(4))
def test_scikit_survival_models_functions_and_matrices(whas500, which):
    X, y = whas500
    model = sksurv_models()[which].fit(X[:300], y[:300])
    rows = X[300:320]
    functions = model.predict_survival_function(rows)
    matrix = model.predict_survival_function(rows, return_array=True)
    t = np.array([5.0, 100.0, 363.0, 900.0])
    expected = np.array([f(t) for f in functions])
    for distribution in (
        as_forecast(model, rows),
        as_forecast(functions),
        as_forecast(list(functions)),
        as_forecast(matrix, times=model.unique_times_, n=20, y=y[:300]),
        as_forecast(matrix, times=model.unique_times_, n=20, interpolation="step"),
    ):
        assert distribution.shape == (20,)
        np.testing.assert_allclose(distribution.sf(t[None, :]), expected, rtol=1e-12)


def test_step_functions_on_different_times():
    functions = pytest.importorskip("sksurv.functions")
    f = functions.StepFunction(np.array([1.0, 3.0]), np.array([0.8, 0.4]))
    g = functions.StepFunction(np.array([2.0, 3.0, 5.0]), np.array([1.4, 1.2, 0.0]), a=0.5)
    distribution = as_forecast([f, g])
    np.testing.assert_allclose(
        distribution.sf([[0.5, 1.0, 2.0, 4.0, 9.0]]), [[1, 0.8, 0.8, 0.4, 0.4], [1, 1, 0.7, 0.6, 0]]
    )


@pytest.mark.parametrize("name", ["CoxPHFitter", "WeibullAFTFitter"])
def test_lifelines_models_and_frames(name):
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_rossi

    data = load_rossi()
    model = getattr(lifelines, name)().fit(data, "week", "arrest")
    rows = data.iloc[:6]
    t = np.array([3.0, 17.0, 52.0])
    expected = model.predict_survival_function(rows, times=t).T
    for distribution in (as_forecast(model, rows), as_forecast(model.predict_survival_function(rows), n=6)):
        np.testing.assert_allclose(distribution.sf(t[None, :]), expected, rtol=1e-10)


def test_lifelines_univariate_fitters():
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_rossi

    data = load_rossi()
    fitted = lifelines.KaplanMeierFitter().fit(data.week, data.arrest)
    ours = cs.KaplanMeier().fit(None, cs.RightCensored(data.week, data.arrest)).predict_distribution()
    t = np.arange(60.0)[None, :]
    np.testing.assert_allclose(as_forecast(fitted).sf(t), ours.sf(t), rtol=1e-12)
    weibull = lifelines.WeibullFitter().fit(data.week, data.arrest)  # repeats a time for each row
    distribution = as_forecast(weibull, interpolation="linear")
    np.testing.assert_allclose(distribution.sf(20.0), weibull.survival_function_at_times(20.0), rtol=1e-6)


def test_pycox_models_and_frames():
    pytest.importorskip("pycox")
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pycox.models import LogisticHazard

        torch.manual_seed(0)
        model = LogisticHazard(torch.nn.Linear(2, 4), duration_index=TIMES)
        X = np.random.default_rng(0).normal(size=(5, 2)).astype("float32")
        frame = model.predict_surv_df(X)
        distribution, again = as_forecast(frame, n=5), as_forecast(model, X)
    np.testing.assert_allclose(distribution.sf(TIMES[None, :]), frame.to_numpy().T, rtol=1e-6)
    np.testing.assert_allclose(again.sf(TIMES[None, :]), frame.to_numpy().T, rtol=1e-6)


def test_matrices_in_any_order_of_times_and_in_torch():
    order = [2, 0, 3, 1]
    distribution = as_forecast(SF[:, order], times=TIMES[order])
    np.testing.assert_array_equal(distribution.sf(TIMES[None, :]), SF)
    torch = pytest.importorskip("torch")
    tensor = as_forecast(torch.as_tensor(SF), times=torch.as_tensor(TIMES))
    assert isinstance(tensor.sf(1.0), torch.Tensor)
    np.testing.assert_array_equal(tensor.sf(torch.as_tensor(TIMES)[None, :]), SF)


def test_frames_of_subjects_by_times_and_of_times_by_subjects():
    pd = pytest.importorskip("pandas")
    wide = pd.DataFrame(SF, columns=TIMES)
    np.testing.assert_array_equal(as_forecast(wide, times=TIMES).sf(TIMES[None, :]), SF)
    shuffled = wide.T.iloc[[3, 1, 0, 2]]
    np.testing.assert_array_equal(as_forecast(shuffled).sf(TIMES[None, :]), SF)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(SF, schema=[str(t) for t in TIMES], orient="row")
    np.testing.assert_array_equal(as_forecast(frame, times=TIMES).sf(TIMES[None, :]), SF)


def test_mistakes_of_orientation_and_kind_are_caught():
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidInputError, match="transposed"):
        as_forecast(SF.T, times=TIMES)
    with pytest.raises(InvalidInputError, match="transposed"):
        as_forecast(np.vstack([SF, SF[:1]]).T, times=TIMES)  # square
    with pytest.raises(InvalidInputError, match=r"rows seem to be subjects.*frame\.T"):
        as_forecast(pd.DataFrame(SF, columns=TIMES))
    with pytest.raises(InvalidInputError, match="got 3 subjects, expected 4"):
        as_forecast(SF, times=TIMES, n=4)
    with pytest.raises(InvalidInputError, match="got 3 subjects, expected 2"):
        as_forecast(pd.DataFrame(SF.T, index=TIMES), X=np.zeros((2, 1)))
    with pytest.raises(InvalidInputError, match="distribution functions: pass 1 - F"):
        as_forecast(1 - SF, times=TIMES)
    with pytest.raises(InvalidInputError, match="cumulative hazards"):
        as_forecast(np.cumsum(SF, axis=1), times=TIMES)
    with pytest.raises(InvalidInputError, match="must not increase"):
        as_forecast(SF[:, ::-1], times=TIMES[[0, 1, 3, 2]])
    with pytest.raises(InvalidInputError, match="named 7; expected 1"):
        as_forecast(pd.DataFrame(SF[:, ::-1], columns=TIMES[::-1]), times=TIMES)
    with pytest.raises(InvalidTypeError, match="index of a frame"):
        as_forecast(pd.DataFrame(SF.T, index=["a", "b", "c", "d"]))
    with pytest.raises(InvalidTypeError, match="Ensemble"):
        as_forecast(SF)
    with pytest.raises(InvalidInputError, match="distinct"):
        as_forecast(pd.DataFrame(SF.T, index=[1.0, 1.0, 2.0, 3.0]))
    with pytest.raises(InvalidInputError, match="'auto', 'step', 'linear'"):
        as_forecast(SF, times=TIMES, interpolation="spline")


def test_quantile_tables():
    levels, values = np.array([0.9, 0.1, 0.5]), np.array([[5.0, 1.0, 2.0], [4.0, 2.0, 3.0]])
    distribution = as_forecast(values, levels=levels, n=2)
    np.testing.assert_allclose(distribution.icdf([[0.1, 0.5, 0.9]]), [[1, 2, 5], [2, 3, 4]])
    pd = pytest.importorskip("pandas")
    np.testing.assert_allclose(as_forecast(pd.DataFrame(values), levels=levels).icdf(0.5), [2, 3])


def test_scipy_and_own_distributions():
    frozen = scipy.stats.weibull_min(1.5, scale=[1.0, 2.0])
    np.testing.assert_allclose(as_forecast(frozen, n=2).sf(1.3), frozen.sf(1.3))
    distribution = Step(TIMES, sf=SF)
    assert as_forecast(distribution) is distribution
    model = cs.WeibullRegression().fit(None, cs.RightCensored([1.0, 2.0, 3.0], [1, 1, 0]))
    assert as_forecast(model).shape == (1,)


def torch_families(torch):
    D, a, b = torch.distributions, torch.tensor([0.8, 2.0]), torch.tensor([1.0, 3.0])
    own = [
        D.Weibull(b, a),
        D.Exponential(a),
        D.LogNormal(a, b),
        D.Gamma(a, b),
        D.Chi2(a),
        D.Uniform(a, a + 5 * b),
    ]
    return [*own, D.HalfNormal(a), D.InverseGamma(a, b), D.HalfCauchy(b)]


@pytest.mark.parametrize("which", range(9))
def test_torch_distributions(which):
    torch = pytest.importorskip("torch")
    theirs = torch_families(torch)[which]
    distribution = as_forecast(theirs, n=2)
    t = torch.tensor([[0.9, 1.5, 2.5]])
    column = type(theirs)(**{name: getattr(theirs, name)[:, None] for name in theirs.arg_constraints})
    inside = column.support.check(t + torch.zeros(2, 1))
    at = torch.where(inside, t, torch.full_like(t, 2.1))
    np.testing.assert_allclose(distribution.cdf(at), column.cdf(at), rtol=2e-5)
    np.testing.assert_allclose(distribution.logpdf(at), column.log_prob(at), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(distribution[[1]].cdf(at[1:]), distribution.cdf(at)[1:], rtol=1e-6)
    median = distribution.icdf(0.5)
    np.testing.assert_allclose(distribution.cdf(median), 0.5, rtol=1e-4)


def test_torch_mixtures_joints_and_gradients():
    torch = pytest.importorskip("torch")
    D = torch.distributions
    loc = torch.zeros(3, 2, requires_grad=True)
    weights = torch.tensor([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    mixture = D.MixtureSameFamily(D.Categorical(probs=weights), D.LogNormal(loc, torch.ones(3, 2)))
    distribution = as_forecast(mixture, n=3)
    assert isinstance(distribution, Mixture)
    np.testing.assert_allclose(
        distribution.cdf(1.7).detach(), mixture.cdf(torch.tensor(1.7)).detach(), rtol=1e-5
    )
    loss = cs.crps(cs.RightCensored(torch.ones(3), torch.ones(3)), distribution).sum()
    (gradient,) = torch.autograd.grad(loss, loc)
    assert torch.isfinite(gradient).all()
    assert bool((gradient[:2] != 0).all())
    joint = as_forecast(D.Independent(D.Exponential(torch.tensor([[1.0, 2.0], [3.0, 4.0]])), 1))
    assert joint.shape == (2, 2)
    np.testing.assert_allclose(joint.sf([[1.0, 1.0]]), np.exp([-3.0, -7.0]), rtol=1e-5)


def test_torch_distributions_that_cannot_be_event_times():
    torch = pytest.importorskip("torch")
    D = torch.distributions
    with pytest.raises(InvalidInputError, match="support Real"):
        as_forecast(D.Normal(torch.zeros(2), torch.ones(2)))
    with pytest.raises(InvalidInputError, match="support"):
        as_forecast(D.Poisson(torch.ones(2)))
    with pytest.raises(InvalidTypeError, match="no cdf"):
        as_forecast(D.FisherSnedecor(torch.ones(2), torch.ones(2)))
    with pytest.raises(InvalidInputError, match=r"batch shape \(2, 3\)"):
        as_forecast(D.Exponential(torch.ones(2, 3)))
    with pytest.raises(InvalidTypeError, match="torch only"):
        as_forecast(D.HalfNormal(torch.ones(2))).like(np.ones(1))
    exponential = D.TransformedDistribution(D.Exponential(torch.ones(2)), [D.AffineTransform(0.0, 2.0)])
    with pytest.raises(InvalidTypeError, match="parameters"):
        as_forecast(exponential)
