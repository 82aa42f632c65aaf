"""Scikit-learn's own estimator checks, on outcomes made of the numbers that they pass as y."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import censcore as cs

# The checks fit to plain numbers, which no estimator here accepts: they become uncensored event times.


def _outcome(y):
    numbers = np.asarray(y)
    if y is None or numbers.dtype.kind not in "biufcO":
        return y
    time = 1 + np.abs(numbers.astype(complex if numbers.dtype.kind == "c" else float))
    return cs.RightCensored(time.reshape(len(time), -1)[:, 0], np.ones(len(time)))


class _Numbers:
    def fit(self, X, y=None, **options):
        return super().fit(X, _outcome(y), **options)


class KaplanMeier(_Numbers, cs.KaplanMeier):
    pass


class WeibullRegression(_Numbers, cs.WeibullRegression):
    pass


class LogNormalRegression(_Numbers, cs.LogNormalRegression):
    pass


class PiecewiseExponentialRegression(_Numbers, cs.PiecewiseExponentialRegression):
    pass


class Turnbull(_Numbers, cs.Turnbull):
    pass


class CoxRegression(_Numbers, cs.CoxRegression):
    pass


class CensoredEngression(_Numbers, cs.CensoredEngression):
    def score(self, X, y=None):
        return super().score(X, _outcome(y))


class CopulaWeibull(_Numbers, cs.CopulaWeibull):
    pass


NO_COLUMNS = {
    "check_estimators_empty_data_messages": "no columns are no covariates, which is legal: fit(None, y)"
}
NOT_LOOKED_AT = "without strata X is not looked at, whatever it holds"
WITHOUT_X = NO_COLUMNS | dict.fromkeys(
    [
        "check_complex_data",
        "check_dtype_object",
        "check_estimators_nan_inf",
        "check_estimator_sparse_tag",
        "check_fit1d",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
    ],
    NOT_LOOKED_AT,
)
ONE_SUBJECT = NO_COLUMNS | {
    "check_fit2d_1sample": "one row is refused for what it lacks: events before the largest time"
}
FAILS = {
    "KaplanMeier": WITHOUT_X,
    "Turnbull": WITHOUT_X,
    "WeibullRegression": ONE_SUBJECT,
    "LogNormalRegression": ONE_SUBJECT,
    "PiecewiseExponentialRegression": NO_COLUMNS,
    "CoxRegression": NO_COLUMNS,
    "CensoredEngression": NO_COLUMNS,
    "CopulaWeibull": NO_COLUMNS,
}

ESTIMATORS = [
    KaplanMeier(),
    WeibullRegression(alpha=1.0),
    CoxRegression(alpha=1.0),
    CensoredEngression(
        epochs=1, n_samples=20, device="cpu", network=cs.learning.Network(width=8, depth=2, noise_dim=4)
    ),
]
#: They read X as those above do.
OTHERS = [
    LogNormalRegression(alpha=1.0),
    PiecewiseExponentialRegression(breaks=1, alpha=1.0),
    Turnbull(),
    CopulaWeibull(epochs=1),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("brief_members")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda e: FAILS[type(e).__name__])
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(OTHERS, expected_failed_checks=lambda e: FAILS[type(e).__name__])
def test_check_of_others(estimator, check):
    check(estimator)
