"""Net benefit and classification at given thresholds are functions of sums over batches."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.streaming.tables import make_competing, make_table

import censcore as cs
from censcore.evaluation.decisions.forecast_columns import forecasts_of
from censcore.evaluation.measures.murphy import elementary
from censcore.exceptions import InvalidInputError

KM = cs.Censoring(cs.KaplanMeier())
BY_SITE = cs.Censoring(cs.KaplanMeier(stratify="site"))
THRESHOLDS = [0.1, 0.3, 0.6]


def compared(table, C, y, labels, **options):
    """The comparison in memory and that in batches of 180 rows."""
    data = cs.OutcomeTable(table, rows=180, **y)
    known = {name: table[column].to_numpy() for name, column in y.items() if isinstance(column, str)}
    kind = cs.CompetingRisks if "cause" in y else cs.RightCensored
    outcome = kind(*known.values()) if len(known) < 3 else kind(**known)
    risks = outcome if "cause" in y else None
    forecasts = forecasts_of(table, list(y.values()), risks)
    options = {"scores": "crps", "discrimination": False} | options
    of_columns = {name: table[column].rename(column) for name, column in labels.items()}
    memory = cs.compare(forecasts, outcome, C, X=table[["site"]], **options, **of_columns)
    return memory, cs.compare("columns", data, C, **options, **labels)


def assert_tables_agree(memory, streamed, at, **of):
    for name in ("net_benefit", "classification"):
        ours, theirs = (getattr(each, name)(at, THRESHOLDS, **of) for each in (memory, streamed))
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-10, atol=1e-12)
        assert np.isfinite(theirs.select_dtypes("float").to_numpy()).mean() > 0.4
    pair = (each.of(of["outcome"]) if of else each for each in (memory, streamed))
    ours, theirs = (each.curve(elementary(at, THRESHOLDS)) for each in pair)
    for model, mean in ours.items():
        np.testing.assert_allclose(theirs[model].value, mean.value, rtol=1e-10)
        np.testing.assert_allclose(theirs[model].interval(), mean.interval(), rtol=1e-10)


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (KM, {}),
        (BY_SITE, {"sample_weight": "w"}),
        (KM, {"groups": "clinic", "sample_weight": "w"}),
        (cs.Exponential(1 / 300), {"groups": "clinic"}),
        (cs.Exponential(1 / 300), {}),
    ],
    ids=["pooled", "strata, weights", "clusters, weights", "known C, clusters", "known C"],
)
def test_tables_are_those_in_memory(table, C, options):
    pair = compared(table, C, {"time": "t", "event": "d"}, options, horizon=250.0)
    assert_tables_agree(*pair, 120.0)


@pytest.mark.parametrize("groups", [{}, {"groups": "clinic"}], ids=["subjects", "clusters"])
def test_known_censoring_times_and_delayed_entry(table, groups):
    table = table.assign(c=np.where(table["d"] == 1, table["t"] + 30.0, table["t"]))
    y = {"time": "t", "event": "d", "censoring_time": "c"}
    assert_tables_agree(*compared(table, None, y, groups), 100.0)
    y = {"time": "t", "event": "d", "entry": "since"}
    assert_tables_agree(*compared(table, KM, y, groups), 100.0)


def test_training_subjects_apart(table):
    other = make_table(300, seed=1)
    train = other[["site"]], cs.RightCensored(other["t"].to_numpy() + 0.5, other["d"].to_numpy())
    pair = compared(table, KM, {"time": "t", "event": "d"}, {}, train=train)
    assert_tables_agree(*pair, 100.0)


def test_one_of_several_causes():
    pair = compared(make_competing(), KM, {"time": "t", "cause": "cause"}, {}, horizon=200.0)
    assert_tables_agree(*pair, 100.0, outcome="cause 2")


def test_what_is_not_to_be_had_says_so(table):
    _, streamed = compared(table, KM, {"time": "t", "event": "d"}, {})
    with pytest.raises(InvalidInputError, match=r"thresholds=None, .* needs the subjects in memory"):
        streamed.net_benefit(100.0)
    assert len(streamed.chart("murphy", time=100.0).panels[0].marks) >= 3
    assert "Murphy" not in streamed.to_html()  # the table would be read again
    with pytest.raises(InvalidInputError, match="without its table"):
        pickle.loads(pickle.dumps(streamed)).net_benefit(100.0, THRESHOLDS)
    with pytest.raises(InvalidInputError, match="time must lie between 0 and the horizon"):
        streamed.net_benefit(1e6, THRESHOLDS)
