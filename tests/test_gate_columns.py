"""Names of the columns of a frame: each has one name, which need not be a text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore import evaluation
from censcore.exceptions import CenscoreError, FoldError, InvalidInputError, InvalidTypeError
from tests.learning.small_trainings import engression

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT, X = RNG.weibull(1.3, N) + 0.01, np.arange(N) % 3 > 0, np.round(RNG.normal(size=(N, 2)))
Y, CAUSES = cs.RightCensored(TIME, EVENT), cs.CompetingRisks(TIME, np.where(EVENT, 1 + np.arange(N) % 2, 0))
TWO = cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT]))
C = cs.Uniform(0.0, 9.0)
MODELS = {"a": cs.Weibull(1.3, np.linspace(1.0, 2.0, N)), "b": cs.Exponential(1.0)}
QUICK = {"scores": "crps", "reference": None, "horizon": 2.0}


def regressions():
    """Every regression, and what hands covariates on to one."""
    small = {"epochs": 1, "width": 4, "samples": 2, "n_samples": 4, "n_networks": 1}
    return [
        cs.CoxRegression(),
        cs.WeibullRegression(),
        cs.LogNormalRegression(),
        cs.LogLogisticRegression(),
        cs.PiecewiseExponentialRegression(breaks=2),
        cs.Censoring(cs.CoxRegression()),
        cs.Censoring(cs.WeibullRegression(), cv=3),
        cs.Adapted(cs.CoxRegression()),
        evaluation.WithCensoring(cs.WeibullRegression()),
        engression(**small, random_state=0),
        cs.CopulaWeibull(hidden=(4,), epochs=1, random_state=0),
    ]


def estimators_that_read_x():
    return [*regressions(), cs.KaplanMeier(stratify=0)]


def named(estimator):
    return str(estimator).split("(")[0]


def frame(columns):
    table = pd.DataFrame(X)
    table.columns = columns
    return table


TWICE = frame(["a", "a"])
LEVELS = frame(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
REFUSED = {
    "twice": (TWICE, "got the name 'a' of 2 columns, expected one column of each name"),
    "levels": (LEVELS, "got columns with names of 2 levels"),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("estimator", estimators_that_read_x(), ids=named)
def test_columns_that_have_no_single_name_are_an_error(estimator, kind):
    table, words = REFUSED[kind]
    y = TWO if isinstance(estimator, cs.CopulaWeibull) else Y
    with pytest.raises(CenscoreError, match=f"X: {words}"):
        estimator.fit(table, y)
    fitted = estimator.fit(X, y)
    with pytest.raises(CenscoreError, match=f"X: {words}"):
        fitted.predict_distribution(table)


@pytest.mark.parametrize("kind", REFUSED)
def test_columns_that_have_no_single_name_are_an_error_elsewhere(kind):
    table, words = REFUSED[kind]
    for call in (
        lambda: cs.CauseSpecific(cs.CoxRegression()).fit(table, CAUSES),
        lambda: cs.compare(MODELS, Y, cs.Censoring(cs.CoxRegression()), X=table, **QUICK),
        lambda: cs.Sample(table, Y),
        lambda: cs.censoring_diagnostic(Y, C, X=table),
        lambda: cs.cross_validate({"a": cs.WeibullRegression()}, table, Y, cv=2, **QUICK),
    ):
        with pytest.raises(CenscoreError, match=f"X: {words}"):
            call()


def test_subjects_are_not_recognised_by_columns_of_one_name():
    with pytest.raises(CenscoreError, match="X: got the name 'a' of 2 columns"):
        cs.Censoring(cs.KaplanMeier(), cv=3).fit(TWICE, Y)


@pytest.mark.parametrize("estimator", regressions(), ids=named)
def test_names_of_which_some_are_text_are_an_error(estimator):
    with pytest.raises(InvalidTypeError, match="only supported if all input features have string names"):
        estimator.fit(frame(["a", 1]), TWO if isinstance(estimator, cs.CopulaWeibull) else Y)


@pytest.mark.parametrize(
    "columns",
    [[3, 7], list(pd.to_datetime(["2024-01-01", "2024-01-02"])), [True, False]],
    ids=["3, 7", "dates", "booleans"],
)
@pytest.mark.parametrize("estimator", estimators_that_read_x(), ids=named)
def test_columns_without_text_are_columns_without_names(estimator, columns):
    y = TWO if isinstance(estimator, cs.CopulaWeibull) else Y
    table, array = frame(columns), X
    found = estimator.fit(table, y).predict_distribution(table)
    expected = estimator.fit(array, y).predict_distribution(array)
    t = np.array([[0.5, 0.5]]) if y is TWO else 0.5
    np.testing.assert_array_equal(found.sf(t), expected.sf(t))


def test_a_column_is_found_by_its_number_or_its_name():
    y = cs.KaplanMeier(stratify=1).fit(X, Y).predict_distribution(X)
    for table, column in ((frame([3, 7]), 1), (frame(["a", "b"]), 1), (frame(["a", "b"]), "b")):
        found = cs.KaplanMeier(stratify=column).fit(table, Y).predict_distribution(table)
        np.testing.assert_array_equal(found.sf(1.0), y.sf(1.0))


def test_an_outcome_is_not_read_from_columns_of_one_name():
    table = pd.DataFrame(np.column_stack([TIME, TIME, EVENT]), columns=["time", "time", "event"])
    for call in (
        lambda: cs.RightCensored.from_frame(table),
        lambda: cs.KaplanMeier().fit(None, table),
        lambda: cs.CompetingRisks.from_frame(table, cause="event"),
        lambda: cs.RightCensored.from_start_stop(table),
        lambda: cs.at_landmark(table, 1.0),
    ):
        with pytest.raises(InvalidInputError, match="got the name 'time' of 2 columns"):
            call()


def test_a_fold_says_what_is_wrong_with_the_covariates():
    table = pd.DataFrame({"a": X[:, 0], "b": pd.date_range("2024-01-01", periods=N)})
    with pytest.raises(FoldError, match="X must hold numbers"):
        cs.cross_validate({"a": cs.WeibullRegression()}, table, Y, cv=2, **QUICK)
