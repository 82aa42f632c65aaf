"""Subjects that are exact copies of others are told, and those that are equal by chance are not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.estimators.subjects import SubjectKeys, copied_subjects

PLAIN = {"scores": "crps", "discrimination": False}
KM = cs.Censoring(cs.KaplanMeier())
DATA = Path(os.environ["CENSCORE_DATA"])


def drawn(n: int = 150, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.exponential(np.exp(x[:, 0])), rng.uniform(0, 4, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def told(comparison: cs.Comparison) -> list[str]:
    return [note for note in comparison.notes if "exact copies" in note]


@pytest.mark.parametrize("rows", [np.repeat(np.arange(150), 2), np.r_[np.arange(150), np.arange(60)]])
def test_copies_are_told_in_cross_validation(rows):
    """The note says how small the errors are, and what it advises makes them right."""
    x, y = drawn()
    models = {"cox": cs.CoxRegression()}
    found = cs.cross_validate(models, x[rows], y[rows], **PLAIN)
    (note,) = told(found)
    n, count = len(rows), np.bincount(rows)
    factor = np.sqrt(n / (count @ count))
    assert f"{n - 150} of {n} subjects" in note
    assert f"standard errors are {factor:.2g} of what they should be" in note
    grouped = cs.cross_validate(models, x[rows], y[rows], groups=rows, **PLAIN)
    weighted = cs.cross_validate(models, x, y, sample_weight=count, **PLAIN)
    assert not told(grouped)
    assert not told(weighted)
    small, right, other = (f.frame()["standard_error"].to_numpy() for f in (found, grouped, weighted))
    np.testing.assert_allclose(small / right, factor, rtol=0.12)
    np.testing.assert_allclose(other, right, rtol=0.12)


def test_copies_are_told_in_comparisons():
    """By the covariates or, without them, by the forecasts."""
    x, y = drawn()
    F = cs.WeibullRegression().fit(x, y)
    for rows, expected in ((np.repeat(np.arange(150), 2), 1), (np.r_[:150, :60], 1), (np.r_[:150, :5], 0)):
        forecasts = {"weibull": F.predict_distribution(x[rows])}
        assert len(told(cs.compare(forecasts, y[rows], KM, **PLAIN))) == expected
        assert len(told(cs.compare(forecasts, y[rows], KM, X=x[rows], **PLAIN))) == expected
        assert not told(cs.compare(forecasts, y[rows], KM, groups=rows, **PLAIN))
    twice = np.repeat(np.arange(150), 2)
    one = {"km": cs.KaplanMeier().fit(None, y).predict_distribution()}  # the same for all: every time is even
    assert told(cs.compare(one, y[twice], KM, **PLAIN))
    weight = np.random.default_rng(0).uniform(0.5, 2, len(twice))  # other subjects of a survey
    assert not told(cs.compare(one, y[twice], KM, sample_weight=weight, **PLAIN))


@pytest.mark.parametrize("k", [2, 3])
def test_copies_of_a_coarse_table_are_told_and_the_table_is_not(k):
    """Two binary covariates, and times in whole months: half of the subjects have an equal by chance."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 2)).astype(float)
    time = np.ceil(rng.exponential(12 * np.exp(x[:, 0])))
    y = cs.RightCensored(np.minimum(time, 36), time <= 36)
    rows = np.repeat(np.arange(300), k)
    assert copied_subjects(SubjectKeys.of(x, y), y.event) is None
    count = copied_subjects(SubjectKeys.of(x[rows], y[rows]), y.event[rows])
    assert count is not None
    assert count.sum() == 300 * k


def test_follow_up_that_covariates_determine_makes_no_copies():
    """All who entered in one year and have no event are followed until the same day."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(2000, 2010, 1000), rng.integers(0, 2, 1000)]).astype(float)
    T, C = rng.exponential(20.0, 1000), 2015 - x[:, 0]
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    assert copied_subjects(SubjectKeys.of(x, y), y.event) is None


def test_copies_of_several_times_and_of_causes():
    x, y = drawn()
    rows, X = np.repeat(np.arange(150), 2), np.repeat(x, 2, axis=0)
    both = cs.RightCensored(np.column_stack([y.time, 2 * y.time]), np.column_stack([y.event, y.event]))
    joint = cs.cross_validate({"j": cs.JointFromMargins(cs.CoxRegression())}, X, both[rows], cv=2, **PLAIN)
    cause = np.where(y.event, 1 + (x[:, 1] > 0), 0)
    risks = cs.CompetingRisks(y.time, cause)[rows]
    causes = cs.cross_validate({"aj": cs.AalenJohansen()}, X, risks, cv=2, **PLAIN)
    for found in (joint, causes):
        assert len(told(found)) == 1


# ---- real tables ---------------------------------------------------------------------------------------

IDS = {"rownames", "id", "case.id", "pid", "Unnamed: 0"}
SHARED = {
    **{
        f"neutral-benchmark/{name}.csv.gz": ("time", "status")
        for name in (
            "e1684", "flchain", "gbsg", "lung", "metabric", "nwtco", "support", "tumor", "uis",
            "veteran", "whas",
        )
    },
    "survival/colon.csv": ("time", "status"),
    "survival/mgus2.csv": ("futime", "death"),
    "survival/nafld1.csv": ("futime", "status"),
    "survival/retinopathy.csv": ("futime", "status"),
}  # fmt: skip
OF_LIFELINES = {
    "rossi": ("week", "arrest"), "lung": ("time", "status"), "gbsg2": ("time", "cens"),
    "larynx": ("time", "death"), "lymphoma": ("Time", "Censor"), "waltons_dataset": ("T", "E"),
    "kidney_transplant": ("time", "death"), "regression_dataset": ("T", "E"),
    "canadian_senators": ("diff_days", "observed"), "dd": ("duration", "observed"),
}  # fmt: skip
OF_SCIKIT_SURVIVAL = (
    "aids",
    "bmt",
    "breast_cancer",
    "cgvhd",
    "flchain",
    "gbsg2",
    "veterans_lung_cancer",
    "whas500",
)


def check_table(table: pd.DataFrame, time: str, event: str) -> None:
    """No copies in a table, nor with half of its columns; copies where every row is there twice."""
    table = table.dropna(subset=[time])
    y = cs.RightCensored(table[time].to_numpy(float), table[event].to_numpy() > 0)
    X = table.drop(columns=[time, event, *(IDS & set(table))])
    for columns in (X, X.iloc[:, ::2], X.iloc[:, :1]):
        assert copied_subjects(SubjectKeys.of(columns, y), y.event) is None
    rows = np.repeat(np.arange(len(y)), 2)
    count = copied_subjects(SubjectKeys.of(X.iloc[rows], y[rows]), y.event[rows])
    assert count is not None
    assert (count % 2 == 0).all()


@pytest.mark.parametrize("name", SHARED)
def test_no_false_alarm_in_tables_beside_the_checkout(name):
    if not (DATA / name).exists():
        pytest.skip("the table is not here")
    table, (time, event) = pd.read_csv(DATA / name), SHARED[name]
    check_table(table, time, event)


@pytest.mark.parametrize("name", OF_LIFELINES)
def test_no_false_alarm_in_tables_of_lifelines(name):
    datasets = pytest.importorskip("lifelines.datasets")
    check_table(
        getattr(datasets, f"load_{name}".replace("waltons_dataset", "waltons"))(), *OF_LIFELINES[name]
    )


@pytest.mark.parametrize("name", OF_SCIKIT_SURVIVAL)
def test_no_false_alarm_in_tables_of_scikit_survival(name):
    datasets = pytest.importorskip("sksurv.datasets")
    X, y = getattr(datasets, f"load_{name}")()
    event, time = y.dtype.names
    check_table(
        X.reset_index(drop=True).assign(time_of_=y[time], event_of_=y[event] > 0), "time_of_", "event_of_"
    )
