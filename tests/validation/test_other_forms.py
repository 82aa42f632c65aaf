"""The same numbers written in another way have the same answer: precisions, frames, tensors, masks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.learning.small_trainings import engression

import censcore as cs
from censcore import evaluation
from censcore.exceptions import InvalidInputError, InvalidTypeError

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT, X = RNG.weibull(1.3, N) + 0.01, np.arange(N) % 3 > 0, np.round(RNG.normal(size=(N, 2)))
GROUPS = np.arange(N) // 2
Y = cs.RightCensored(TIME, EVENT)
TWO = cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT]))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.astype(np.longdouble),
        lambda x: x.astype(object),
        lambda x: x.astype(">f8"),
        lambda x: x.tolist(),
        lambda x: np.repeat(x, 2)[::2],
    ],
)
def test_the_same_numbers_written_in_another_way_have_the_same_answer(write):
    x = np.array([0.5, 1.0, 2.0])
    time, scale = write(x), write(x)
    y, forecast = cs.RightCensored(time, [1, 1, 1]), cs.Weibull(1.5, scale)
    assert y.time.dtype == np.float64
    expected = cs.crps(cs.RightCensored(x, [1, 1, 1]), cs.Weibull(1.5, x))
    np.testing.assert_array_equal(cs.crps(y, forecast), expected)


def test_read_only_arrays_and_gradients_are_left_as_they_are():
    x = np.array([0.5, 1.0, 2.0])
    x.flags.writeable = False
    assert np.isfinite(cs.crps(cs.RightCensored(x, [1, 1, 1]), cs.Weibull(1.5, x))).all()
    scale = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = cs.RightCensored(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([True, True]))
    cs.crps(y, cs.Weibull(1.5, scale)).sum().backward()
    assert torch.isfinite(scale.grad).all()


def test_a_distribution_among_numbers_ends_at_once():
    """NumPy would take parts of parts of forty distributions, 64 times over."""
    for value in (cs.Exponential(np.ones(40)), cs.RightCensored(np.ones(40), np.ones(40))):
        with pytest.raises(InvalidTypeError, match=f"got {type(value).__name__}, expected numbers"):
            np.asarray(value)
        with pytest.raises(InvalidTypeError, match=f"got {type(value).__name__}, expected numbers"):
            np.asarray([value])


def test_numbers_of_any_precision_are_settings():
    half = np.longdouble(0.5)
    found = cs.CoxRegression(alpha=half).fit(X, Y).coef_
    np.testing.assert_array_equal(found, cs.CoxRegression(alpha=0.5).fit(X, Y).coef_)
    intervals = cs.IntervalCensored.from_right_censored(Y)
    assert cs.Turnbull(max_iter=50.0).fit(None, intervals).n_iter_ <= 50


def test_a_mask_without_entries_is_none():
    y = cs.RightCensored(np.ma.masked_array(TIME), np.ma.masked_array(EVENT, mask=np.zeros(N, bool)))
    np.testing.assert_array_equal(y.event, EVENT)
    np.testing.assert_array_equal(
        cs.CoxRegression().fit(np.ma.masked_array(X), y).coef_, cs.CoxRegression().fit(X, Y).coef_
    )
    assert cs.mean_loss(TIME, groups=np.ma.masked_array(GROUPS)) == cs.mean_loss(TIME, groups=GROUPS)


@pytest.mark.parametrize("rows", [[0], [2, 1], [True, False, True]], ids=str)
def test_tensors_choose_subjects_of_arrays_too(rows):
    """NumPy takes a tensor of one place for a number."""
    y, F = (
        cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1]),
        cs.Independent([cs.Weibull([1.0, 2.0, 3.0], 1.0)] * 2),
    )
    np.testing.assert_array_equal(y.take(torch.tensor(rows)).time, y.take(rows).time)
    for one in (F, F.marginal(0), F.censor_at([1.0, 2.0, 3.0])):
        assert one.take(torch.tensor(rows)).shape == one.take(rows).shape
    edges = F.marginal(0).panel_edges()  # what is remembered of all subjects goes with those who are chosen
    np.testing.assert_array_equal(F.marginal(0).take(torch.tensor(rows)).panel_edges(), edges[rows])


@pytest.mark.parametrize("make", [cs.CopulaWeibull, cs.JointGridModel])
def test_covariates_of_networks_may_have_a_gradient(make):
    settings = {"hidden": (4,), "epochs": 1, "random_state": 0}
    plain = make(**settings).fit(X, TWO).predict_distribution(X).first().sf(1.0)
    tensor = torch.tensor(X, requires_grad=True)
    assert np.array_equal(
        make(**settings).fit(tensor, TWO).predict_distribution(tensor).first().sf(1.0), plain
    )


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


def test_a_wrong_number_of_columns_is_an_error_without_a_warning_of_their_names(recwarn):
    model = cs.WeibullRegression().fit(X, Y)
    with pytest.raises(InvalidInputError, match="X has 1 features, but WeibullRegression is expecting 2"):
        model.predict_distribution(pd.DataFrame({"a": TIME}))
    assert not recwarn.list


def test_subjects_at_a_landmark_come_from_any_frame():
    columns = ["id", "start", "stop", "event", "x"]
    table = pd.DataFrame([[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [3, 1, 4, 0, 4]], columns=columns)
    (rows, y), (same, again) = cs.at_landmark(table, 3.0), cs.at_landmark(pl.from_pandas(table), 3.0)
    assert same["x"].to_list() == rows["x"].to_list() == [9, 4]
    np.testing.assert_array_equal(y.time, again.time)
