"""The contract of estimators can fail: each of these is wrong in one respect and caught for it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import censcore as cs
from censcore.testing import check_estimator


class ChangesItsParameters(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        self.alpha = self.alpha + 0.001
        return super().fit(X, y, sample_weight)


class ForecastsUnfitted(cs.KaplanMeier):
    def predict_distribution(self, X=None):
        return cs.Exponential(1.0) if not hasattr(self, "distributions_") else super().predict_distribution(X)


class ReturnsNothing(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)


class CentresInPlace(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        X -= X.mean(axis=0)
        return super().fit(X, y, sample_weight)


class GivesNumbers(cs.WeibullRegression):
    def predict_distribution(self, X=None):
        return super().predict_distribution(X).icdf(0.5)


class TooManyDistributions(cs.WeibullRegression):
    def predict_distribution(self, X=None):
        return super().predict_distribution(np.concatenate([X, X]))


class LooksAtItsNeighbours(cs.WeibullRegression):
    def predict_distribution(self, X=None):
        return super().predict_distribution(np.roll(X, 1, axis=0))


class Restless(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.intercept_ += np.random.default_rng().normal() * 0.01
        return self


class Remembers(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        before = getattr(self, "intercept_", None)
        super().fit(X, y, sample_weight)
        self.intercept_ = self.intercept_ if before is None else (before + self.intercept_) / 2
        return self


class CannotBePickled(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        self.hook_ = lambda: None
        return super().fit(X, y, sample_weight)


class ReadsFramesBackwards(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X.iloc[:, ::-1].to_numpy() if hasattr(X, "iloc") else X, y, sample_weight)

    def predict_distribution(self, X=None):
        return super().predict_distribution(X.to_numpy() if hasattr(X, "iloc") else X)


class IgnoresWeights(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class AcceptsTuples(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, cs.RightCensored(*y) if isinstance(y, tuple) else y, sample_weight)


class TakesGroupsThird(cs.WeibullRegression):
    def fit(self, X, y, groups=None, sample_weight=None):
        return super().fit(X, y, sample_weight)


class ThreeTimesTooLate(cs.WeibullRegression):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.intercept_ += np.log(3)
        return self


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (ChangesItsParameters, "fit changes the parameters"),
        (ForecastsUnfitted, "without having been fitted"),
        (ReturnsNothing, "does not return self"),
        (CentresInPlace, "X is changed"),
        (GivesNumbers, "expected a Distribution"),
        (TooManyDistributions, "got 480 distributions, expected 1 or 240"),
        (LooksAtItsNeighbours, "subjects in reverse order"),
        (Restless, "a second fit"),
        (Remembers, "after one to other data"),
        (CannotBePickled, "can be copied, pickled"),
        (ReadsFramesBackwards, "a frame: P"),
        (IgnoresWeights, "weights of zero"),
        (AcceptsTuples, "It accepts a bare tuple"),
        (TakesGroupsThird, "got X, y, groups, sample_weight, expected X, y, sample_weight"),
        (ThreeTimesTooLate, "half or twice the times"),
    ],
)
def test_what_is_wrong_is_named(wrong, what):
    with pytest.raises(AssertionError, match=what):
        check_estimator(wrong())


def test_a_class_without_the_methods_is_refused():
    with pytest.raises(AssertionError, match="has no fit"):
        check_estimator(BaseEstimator())


def test_estimators_that_take_upper_ends_for_event_times_are_found():
    class Late(cs.WeibullRegression):
        def fit(self, X, y, sample_weight=None):
            if isinstance(y, cs.IntervalCensored):
                y = cs.RightCensored(y.upper, np.ones(len(y)))
            return super().fit(X, y, sample_weight)

    with pytest.raises(AssertionError, match="Of times between visits"):
        check_estimator(Late())
