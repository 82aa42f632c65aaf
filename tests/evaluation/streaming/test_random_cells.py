"""Cells of all combinations, drawn at random: a table in parts gives what it gives in memory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.evaluation.streaming.tables import (
    JOINT,
    NAMES,
    assert_same,
    make_competing,
    make_pairs,
    make_table,
)

import censcore as cs
from censcore.evaluation.decisions.forecast_columns import forecasts_of

N = 200
MAKE = {"one time": make_table, "causes": make_competing, "several times": make_pairs}
CENSORING = {
    "pooled": cs.Censoring(cs.KaplanMeier()),
    "strata": cs.Censoring(cs.KaplanMeier(stratify="site")),
    "known": cs.Exponential(1 / 300),
    "cox": cs.Censoring(cs.CoxRegression()),
}
SCORES = {
    "one time": ["integrated_brier_score:ipcw", "crps", "brier_score:ipcw", "log_score", "pinball_score"],
    "causes": ["crps", "brier_score", "pinball_score", "log_score[death]"],
    "several times": ["energy_score", "crps", "brier_score", "brier_score:ipcw"],
}
EVERY = list(
    product(
        MAKE, CENSORING, (False, True), (None, "w"), (None, "clinic"), (None, "site"), (False, True), (37, 90)
    )
)
CELLS = [EVERY[i] for i in np.random.default_rng(7).choice(len(EVERY), 18, replace=False)]


def columns_of(kind, entry):
    """How the outcome is named in its table."""
    known = {"entry": "since"} if entry and kind != "several times" else {}
    return (
        known
        | {
            "one time": {"time": "t", "event": "d"},
            "causes": {"time": "t", "cause": "cause", "names": NAMES},
            "several times": {"time": NAMES, "event": ["r", "d"]},
        }[kind]
    )


def outcome_in(table, kind, entry):
    return cs.OutcomeTable(table, **columns_of(kind, entry))(table)


def as_numbers(table):
    """Covariates of a Cox regression of C, and the strata."""
    return table[["w"]].assign(other=(table["site"] == "a") * 1.0)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: ", ".join(str(part) for part in cell if part))
def test_a_table_in_parts_gives_what_it_gives_in_memory(cell):
    kind, C, trained, weights, groups, by, entry, rows = cell
    table, other = MAKE[kind](N), MAKE[kind](150, seed=1)
    table = table.assign(other=(table["site"] == "a") * 1.0)
    for name in {"one time": ["t"], "causes": ["t"], "several times": NAMES}[kind]:
        other[name] += 0.5  # nobody is in both samples
    options = {"scores": SCORES[kind], "discrimination": False, "horizon": 150.0, "reference": None}
    X, X_train = (as_numbers(frame) if C == "cox" else frame[["site"]] for frame in (table, other))
    if trained or C == "cox":
        options["train"] = X_train, outcome_in(other, kind, entry)
    labels = {"sample_weight": weights, "groups": groups, "by": by}
    labels = {name: column for name, column in labels.items() if column is not None}
    y = outcome_in(table, kind, entry)
    if kind == "several times":
        forecasts, given = JOINT, {name: model(table) for name, model in JOINT.items()}
    else:
        forecasts = ["good", "poor"]
        every = forecasts_of(table, risks=y if kind == "causes" else None)
        given = {name: every[name] for name in forecasts}
    of_subjects = {name: table[column].rename(column) for name, column in labels.items()}
    memory = cs.compare(given, y, CENSORING[C], X=X, **options, **of_subjects)
    data = cs.OutcomeTable(table, rows=rows, **columns_of(kind, entry))
    assert_same(memory, cs.compare(forecasts, data, CENSORING[C], **options, **labels))


def test_all_dimensions_are_drawn():
    for values in zip(*CELLS, strict=True):
        assert len(set(values)) > 1
