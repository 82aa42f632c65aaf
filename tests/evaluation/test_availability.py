"""The table of what is available says what the matrix of all combinations found."""

from pathlib import Path

import pandas as pd
import pytest

from censcore.evaluation.measures.availability import (
    AVERAGES,
    JOINS,
    ONE_PART,
    PICTURES,
    PRODUCERS,
    REFUSED,
    TABLE,
    check_available,
    rule,
)
from censcore.evaluation.report.plots import CHARTS
from censcore.exceptions import InvalidInputError

CELLS = pd.read_csv(
    Path(__file__).parents[2] / "docs" / "results" / "matrix" / "cells.csv", keep_default_na=False
)
DESIGNS = {"repeated folds": "folds", "subgroups": "fixed forecasts", "clusters": "fixed forecasts"}
MEASURES = {
    "concordance:uno": "concordance",
    "auc": "AUC",
    "observed risk": "observed risk",
    "net benefit": "risk at thresholds",
    "Murphy diagram": "risk at thresholds",
    "D-calibration": "D-calibration",
}


def test_every_measure_has_a_rule_for_every_producer():
    assert all(len(rules) == len(PRODUCERS) for rules in TABLE.values())
    for measure in TABLE:
        for producer in PRODUCERS:
            how, why = rule(measure, producer)
            assert how in (JOINS, AVERAGES, ONE_PART, REFUSED)
            assert bool(why) == (how == REFUSED)


@pytest.mark.parametrize("design", sorted(set(CELLS.design)))
def test_what_is_refused_is_refused_in_every_cell_and_the_rest_works_in_some(design):
    of_design = CELLS[CELLS.design == design]
    for (kind, measure), cells in of_design.groupby(["kind", "measure"]):
        found = rule(MEASURES.get(measure, "mean loss"), DESIGNS.get(design, design), kind.partition(",")[0])
        states = set(cells.state)
        if found.how == REFUSED:
            assert states == {"refused"}, (kind, measure, found)
        elif not (kind == "intervals" and measure == "energy_score"):
            assert "works" in states, (kind, measure, found)


def test_pictures_are_of_measures_of_the_table():
    assert PICTURES.keys() == CHARTS.keys()
    assert set(PICTURES.values()) <= TABLE.keys()


def test_what_is_refused_says_why():
    check_available("the AUC", "AUC", "folds")
    with pytest.raises(InvalidInputError, match="the AUC needs the subjects in memory"):
        check_available("the AUC", "AUC", "batches")
    with pytest.raises(InvalidInputError, match="A mean over landmarks needs a censoring distribution whose"):
        check_available("A mean over landmarks", "mean over landmarks", "landmarks", refits=True)
