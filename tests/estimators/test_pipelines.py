"""Pipelines and searches of scikit-learn work wherever an estimator does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import censcore as cs
from censcore.estimators.censoring.censoring_choice import censoring_estimator
from censcore.estimators.libraries.pipelines import fit_weighted, last_estimator, last_step, weight_argument
from censcore.exceptions import InvalidInputError, InvalidTypeError, NotFittedError

T = np.array([[0.2, 0.6, 1.1]])


@pytest.fixture(scope="module")
def data():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "dose"])
    frame["site"] = rng.choice(["north", "south", "west"], 200)
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "site"] = np.nan
    t, c = rng.exponential(np.exp(-0.7 * frame["dose"])), rng.uniform(0.1, 3.0, 200)
    weight = rng.integers(1, 4, 200).astype(float)
    return frame, cs.RightCensored(np.minimum(t, c), t <= c), weight


def preparation():
    text = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(drop="first"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer((numbers, ["age", "dose"]), (text, ["site"]), sparse_threshold=0)


def piped(model):
    return Pipeline([("prepare", preparation()), ("model", model)])


def by_hand(frame, y, weight=None):
    """The same without a pipeline."""
    prepared = preparation().fit(frame)
    Z = prepared.transform(frame)
    return cs.CoxRegression().fit(Z, y, weight).predict_distribution(Z).sf(T)


def test_forecasts_equal_those_of_the_steps_one_by_one(data):
    frame, y, weight = data
    expected = by_hand(frame, y)
    fitted = piped(cs.CoxRegression()).fit(frame, y)
    for model in (fitted, make_pipeline(fitted), cs.Adapted(piped(cs.CoxRegression())).fit(frame, y)):
        np.testing.assert_allclose(cs.as_forecast(model, frame).sf(T), expected, rtol=1e-12)
    for model in (piped(cs.CoxRegression()), make_pipeline(piped(cs.CoxRegression()))):
        weighted = fit_weighted(clone(model), frame, y, weight)
        adapted = cs.Adapted(model).fit(frame, y, weight).predict_distribution(frame)
        for found in (cs.as_forecast(weighted, frame), adapted):
            np.testing.assert_allclose(found.sf(T), by_hand(frame, y, weight), rtol=1e-12)
    assert not np.allclose(by_hand(frame, y, weight), expected)


def test_weights_reach_the_last_step_by_its_name():
    model = piped(cs.CoxRegression())
    assert weight_argument(model) == "model__sample_weight"
    assert weight_argument(Pipeline([("outer", model)])) == "outer__model__sample_weight"
    assert weight_argument(GridSearchCV(model, {})) == "model__sample_weight"
    assert weight_argument(Pipeline([("scale", StandardScaler()), ("none", NoWeights())])) is None
    y = cs.RightCensored([1.0, 2.0], [1, 0])
    with pytest.raises(InvalidInputError, match=r"NoWeights.fit takes no sample_weight"):
        fit_weighted(Pipeline([("none", NoWeights())]), np.ones((2, 1)), y, np.ones(2))


class NoWeights(cs.KaplanMeier):
    def fit(self, X, y):
        return super().fit(X, y)


def test_the_last_estimator_decides_about_atoms(data):
    frame, y, _ = data
    assert isinstance(last_estimator(GridSearchCV(piped(cs.CoxRegression()), {})), cs.CoxRegression)
    assert cs.Adapted(piped(cs.KaplanMeier())).represents_atoms
    assert not cs.Adapted(piped(cs.WeibullRegression())).represents_atoms
    visits = cs.RightCensored(np.ceil(y.time * 2) / 2, y.event)
    assert cs.Censoring(piped(cs.KaplanMeier())).fit(frame, visits).predict_distribution(frame)
    with pytest.raises(InvalidInputError, match="Censoring times have atoms"):
        cs.Censoring(piped(cs.WeibullRegression())).fit(frame, visits)


def test_the_censoring_distribution_of_a_pipeline(data):
    frame, y, weight = data
    expected = by_hand(frame[y.informs_censoring], y.flip(), weight[y.informs_censoring])
    for censoring in (
        cs.Censoring(piped(cs.CoxRegression())),
        censoring_estimator(piped(cs.CoxRegression())),
    ):
        found = censoring.fit(frame, y, weight).predict_distribution(frame)
        np.testing.assert_allclose(found.sf(T), expected, rtol=1e-9)
    out_of_fold = cs.Censoring(piped(cs.CoxRegression()), cv=3).fit_predict_distribution(frame, y)
    assert len(out_of_fold) == 200


def test_cross_validation_and_searches(data):
    frame, y, weight = data
    model = cs.WithCensoring(piped(cs.CoxRegression()), censoring=piped(cs.CoxRegression()))
    crps = cs.scorer("crps")
    inside = cross_val_score(model, frame, y, cv=3, scoring=crps, error_score="raise")
    around = cs.WithCensoring(cs.CoxRegression())
    outside = cross_val_score(piped(around), frame, y, cv=3, scoring=crps, error_score="raise")
    assert inside.shape == outside.shape == (3,)
    assert np.isfinite([inside, outside]).all()
    search = GridSearchCV(model, {"model__model__alpha": [0.1, 10.0]}, scoring=crps, cv=3).fit(frame, y)
    best = search.best_estimator_.predict_distribution(frame).sf(T)
    np.testing.assert_array_equal(cs.as_forecast(search, frame).sf(T), best)
    assert crps(search, frame, y) == crps(search.best_estimator_, frame, y)
    assert cs.scorers(["crps"])["horizon"](piped(around).fit(frame, y), frame, y) > 0
    assert model.fit(frame, y, weight).horizon_ > 0


def test_a_comparison_takes_pipelines_everywhere(data):
    frame, y, weight = data
    train, test = slice(0, 100), slice(100, 200)
    model = piped(cs.CoxRegression()).fit(frame[train], y[train])
    found = cs.compare(
        {"cox": model},
        y[test],
        cs.Censoring(piped(cs.CoxRegression(alpha=1.0)), refits=5),
        X=frame[test],
        train=cs.Sample(frame[train], y[train], weight=weight[train]),
        sample_weight=weight[test],
        reference=piped(cs.WeibullRegression(alpha=1.0)),
        scores="crps",
        discrimination=False,
    )
    assert found.models == ["cox", "reference"]
    assert found.settings["censoring distribution"].startswith("Pipeline of CoxRegression")
    assert np.isfinite(found.frame()["standard_error"]).all()


def test_pipelines_of_other_libraries(data):
    sksurv = pytest.importorskip("sksurv.linear_model")
    lifelines = pytest.importorskip("lifelines")
    frame, y, weight = data
    ours = cs.CoxRegression(ties="efron").fit(preparation().fit_transform(frame), y, weight)
    expected = ours.predict_distribution(preparation().fit_transform(frame)).sf(T)
    theirs = cs.Adapted(piped(lifelines.CoxPHFitter())).fit(frame, y, weight)
    np.testing.assert_allclose(theirs.predict_distribution(frame).sf(T), expected, rtol=1e-4)
    wrapped = fit_weighted(piped(cs.Adapted(lifelines.CoxPHFitter())), frame, y, weight)
    np.testing.assert_allclose(cs.as_forecast(wrapped, frame).sf(T), expected, rtol=1e-4)
    structured = np.array(list(zip(y.event, y.time, strict=True)), dtype=[("e", bool), ("t", float)])
    fitted = piped(sksurv.CoxPHSurvivalAnalysis(ties="efron")).fit(frame, structured)
    again = cs.Adapted(piped(sksurv.CoxPHSurvivalAnalysis(ties="efron"))).fit(frame, y)
    assert_equal = np.testing.assert_allclose
    assert_equal(cs.as_forecast(fitted, frame).sf(T), again.predict_distribution(frame).sf(T), rtol=1e-12)
    bare = cs.Censoring(piped(sksurv.CoxPHSurvivalAnalysis())).fit(frame, y).predict_distribution(frame)
    assert len(bare) == 200


def test_weights_under_metadata_routing(data):
    import sklearn

    frame, y, weight = data
    X = frame[["dose"]]
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(SimpleImputer(), cs.CoxRegression().set_fit_request(sample_weight=True))
        assert weight_argument(model) == "sample_weight"
        found = cs.as_forecast(fit_weighted(model, X, y, weight), X)
    expected = cs.CoxRegression().fit(X, y, weight).predict_distribution(X)
    np.testing.assert_allclose(found.sf(T), expected.sf(T), rtol=1e-12)


def test_pipelines_that_cannot_forecast_say_why(data):
    frame, y, _ = data
    with pytest.raises(NotFittedError, match="This Pipeline is not fitted"):
        cs.as_forecast(piped(cs.CoxRegression()), frame)
    with pytest.raises(NotFittedError, match=r"Forecast 'cox'.*is not fitted"):
        cs.compare({"cox": piped(cs.CoxRegression())}, y, cs.Uniform(0.0, 9.0), X=frame)
    fitted = piped(cs.CoxRegression()).fit(frame, y)
    with pytest.raises(InvalidInputError, match="needs the covariates X"):
        cs.as_forecast(fitted)
    assert last_step(cs.KaplanMeier(), None)[1] is None


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: cs.compare({"km": cs.KaplanMeier}, y, cs.Uniform(0.0, 9.0)),
        lambda x, y: cs.compare({"w": cs.Weibull(1.5, 1.0)}, y, cs.KaplanMeier),
        lambda x, y: cs.compare({"w": cs.Weibull(1.5, 1.0)}, y, cs.Censoring),
        lambda x, y: cs.compare(
            {"w": cs.Weibull(1.5, 1.0)}, y, cs.Uniform(0.0, 9.0), train=(None, y), reference=cs.KaplanMeier
        ),
        lambda x, y: cs.Censoring(cs.KaplanMeier).fit(x, y),
        lambda x, y: cs.Adapted(cs.CoxRegression).fit(x, y),
        lambda x, y: cs.WithCensoring(cs.CoxRegression).fit(x, y),
        lambda x, y: cs.WithCensoring(cs.CoxRegression(), cs.Censoring).fit(x, y),
        lambda x, y: cs.crps(y, cs.Weibull, cs.Uniform(0.0, 9.0)),
        lambda x, y: cs.crps(y, cs.Weibull(1.5, 1.0), cs.Uniform),
    ],
)
def test_a_class_instead_of_an_instance(build):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 1)), cs.RightCensored(rng.exponential(size=30), rng.random(30) < 0.7)
    with pytest.raises(
        InvalidTypeError, match=r"got the class (\w+), expected an instance. Write \1\(\.\.\.\)"
    ):
        build(x, y)
