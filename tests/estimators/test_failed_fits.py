"""An estimator whose fit failed, or was never called, is not fitted: it says so, whatever is asked of it."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import censcore as cs
from censcore.estimators import SurvivalEstimator
from censcore.exceptions import CenscoreError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = cs.RightCensored(RNG.exponential(size=60), RNG.random(60) < 0.7)
CAUSES = cs.CompetingRisks(Y.time, np.where(Y.event, RNG.integers(1, 3, 60), 0))
COX = cs.CoxRegression
NEEDS = {
    "Adapted": lambda: cs.Adapted(COX()),
    "CauseSpecific": lambda: cs.CauseSpecific(COX()),
    "Censoring": lambda: cs.Censoring(COX()),
    "JointFromMargins": lambda: cs.JointFromMargins(COX()),
    "LandmarkCox": lambda: cs.LandmarkCox([0.0, 0.2], 1.0, degree=1),
    "Stacking": lambda: cs.Stacking([("cox", COX()), ("km", cs.KaplanMeier())], random_state=0),
}
CLASSES = [
    name
    for name in cs.__all__
    if inspect.isclass(kind := getattr(cs, name))
    and issubclass(kind, SurvivalEstimator)
    and not name.startswith("Published")  # whose fit learns nothing
]
BAD = {
    "weights": (X, Y, -np.ones(60)),
    "rows": (X[:5], Y),
    "infinite": (np.where(X > 1, np.inf, X), Y),
    "huge": (X * 1e200, Y),
    "no event": (X, cs.RightCensored(Y.time, np.zeros(60))),
    "no cause": (X, cs.CompetingRisks(Y.time, np.zeros(60, dtype=int), n_causes=2)),
    "separated": (np.column_stack([Y.event + Y.time, Y.time]), Y),
    "all at once": (X, cs.RightCensored(np.ones(60), np.ones(60))),
    "no outcome": (X, Y.time),
    "causes": (X[:5], CAUSES),
}
ASKED = [
    "predict_distribution", "predict", "estimates", "coefficient_influence", "influence", "robust_covariance",
    "confidence_interval", "summary", "standard_errors",
]  # fmt: skip


def made(name: str):
    model = NEEDS.get(name, getattr(cs, name))()
    return model.set_params(epochs=1) if "epochs" in model.get_params() else model


def check_not_fitted(model) -> None:
    methods = [getattr(model, method) for method in ASKED if hasattr(type(model), method)]
    assert methods
    for method in methods:
        needed = [p for p in inspect.signature(method).parameters.values() if p.default is p.empty]
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            method(*[[1.0]] * len(needed))


@pytest.mark.parametrize("name", CLASSES)
def test_one_that_was_never_fitted(name):
    check_not_fitted(made(name))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", [name for name in CLASSES if "epochs" not in made(name).get_params()])
def test_a_failed_first_fit_leaves_nothing(name, bad):
    if name == "BestForecast" and bad not in ("weights", "rows"):
        pytest.skip("trains networks before it fails")
    model = made(name)
    before = dict(vars(model))
    try:
        model.fit(*BAD[bad])
    except CenscoreError:
        assert vars(model) == before
        check_not_fitted(model)


@pytest.mark.parametrize("name", ["CensoredEngression", "MixtureDensityNetwork", "CopulaWeibull"])
def test_a_network_whose_fit_failed(name):
    model = made(name)
    with pytest.raises(CenscoreError):
        model.fit(X, Y, sample_weight=-np.ones(60))
    check_not_fitted(model)


def test_a_failed_second_fit_leaves_the_first():
    model = COX().fit(X, Y)
    coef, F = model.coef_.copy(), model.predict_distribution(X).sf(1.0)
    with pytest.raises(CenscoreError):
        model.fit(*BAD["separated"])
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.predict_distribution(X).sf(1.0), F)


def test_what_is_learned_is_missing_by_name_in_classes_of_others_too():
    class Mine(SurvivalEstimator):
        def fit(self, X, y, sample_weight=None):
            self.seen_ = len(y)
            self.rate_ = 1 / np.mean(y.time[y.event])
            if sample_weight is not None:
                raise ValueError("no weights")
            return self

        def predict_distribution(self, X=None):
            return cs.Exponential([self.rate_])

    model = Mine()
    with pytest.raises(ValueError, match="no weights"):
        model.fit(X, Y, np.ones(60))
    with pytest.raises(NotFittedError, match="This Mine is not fitted yet"):
        model.predict_distribution()
    assert not hasattr(model, "rate_")
    assert getattr(model, "_private", None) is None
    with pytest.raises(AttributeError, match="no attribute 'ratee'"):
        _ = model.ratee
    copied = pickle.loads(pickle.dumps(COX().fit(X, Y)))
    with pytest.raises(AttributeError, match="no attribute 'coeff_'"):
        _ = copied.coeff_
    assert str(inspect.signature(COX.fit)) == str(inspect.signature(inspect.unwrap(COX.fit)))
