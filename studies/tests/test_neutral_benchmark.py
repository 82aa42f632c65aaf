"""The neutral benchmark: its convention, its factors, intervals over folds, and its published numbers."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import censcore as cs
from censcore.cli.app import app
from censcore.exceptions import InvalidInputError
from censcore.published import CONVENTIONS, ipcw_brier
from censcore_studies.neutral_benchmark import load_task, published_scores, score_fold
from censcore_studies.neutral_benchmark.agreement import agreement, closest_draw, unseen_levels
from censcore_studies.neutral_benchmark.convention import (
    censoring_curve,
    integrated_survival_brier_score,
    score_grid,
)
from censcore_studies.neutral_benchmark.conventions import (
    order_changes,
    order_counts,
    pairs_of_learners,
    report_conventions,
)
from censcore_studies.neutral_benchmark.data import DRAWN, FOLDS, TASKS, data_folder
from censcore_studies.neutral_benchmark.factors import merged_levels, treatment_coding
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import LEARNERS
from censcore_studies.neutral_benchmark.proper import proper_differences, report_proper
from censcore_studies.neutral_benchmark.ranks import mean_ranks, places, same_folds
from censcore_studies.neutral_benchmark.report import report_benchmark
from censcore_studies.neutral_benchmark.study import _add_scores, benchmark_cells, check_names, read_scores

ROOT = os.environ.get("CENSCORE_DATA")
needs_data = pytest.mark.skipif(
    not ROOT or not (Path(ROOT) / "neutral-benchmark").is_dir(),
    reason="CENSCORE_DATA names no folder with neutral-benchmark/, whose files are not shipped",
)
RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "neutral_benchmark"


# ---- without the data ------------------------------------------------------------------------------


@pytest.fixture
def tied():
    """Whole days: events and censorings share times."""
    rng = np.random.default_rng(0)
    n = 120
    x = rng.normal(size=n)
    T, C = np.ceil(8 * rng.weibull(1.3, n) * np.exp(0.4 * x)), np.ceil(rng.uniform(0, 18, n))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    return pd.DataFrame({"x": x}), y[:80], y[80:]


@pytest.mark.parametrize(
    ("variant", "events_first", "convention"),
    [
        ("as published", False, "mlr3proba"),
        ("events first", True, "mlr3proba"),
        ("left limits", False, replace(CONVENTIONS["mlr3proba"], left_limit=True)),
        ("both", True, "graf"),
    ],
)
def test_score_agrees_with_the_conventions_of_the_library(tied, variant, events_first, convention):
    X, train, test = tied
    F = cs.CoxRegression().fit(X[:80], train).predict_distribution(X[80:])
    t = score_grid(test)
    C = censoring_curve(train, events_first)
    brier = ipcw_brier(test, F, C, t, convention=convention).mean(axis=0)
    expected = np.trapezoid(brier, t) / (t[-1] - t[0])
    found = integrated_survival_brier_score(test, F, train, variant)
    assert found == pytest.approx(expected, abs=1e-14)
    if variant != "as published":
        assert abs(found - integrated_survival_brier_score(test, F, train)) > 1e-6


def test_grid_ends_where_more_than_four_fifths_left():
    y = cs.RightCensored([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.0], [1, 0] * 5 + [1])
    # before 10 nine of eleven have left, 81.8 %; before 9 eight, 72.7 %
    np.testing.assert_array_equal(score_grid(y), np.arange(1.0, 11.0))
    np.testing.assert_array_equal(score_grid(y.take(np.arange(3))), [1.0, 2.0, 3.0])


def test_times_with_more_than_fifteen_digits_are_read_as_the_benchmark_reads_them():
    long = [float(np.float32(k / 7)) for k in range(1, 50)]
    larger = next(value for value in long if float(f"{value:.15g}") > value)
    smaller = next(value for value in long if float(f"{value:.15g}") < value)
    for jump, S in ((larger, 1.0), (smaller, 0.5)):  # written larger than it is, S has not jumped yet
        y = cs.RightCensored([jump, jump + 1, jump + 2], [1, 1, 1])
        brier = [(S**2 + 2 * (1 - S) ** 2) / 3, 0.25, 0.25]
        found = integrated_survival_brier_score(y, cs.Step([jump], sf=[0.5]), y)
        assert found == pytest.approx(np.trapezoid(brier) / 2, abs=1e-12)


def test_rare_levels_join_the_least_frequent_that_stays():
    column = pd.Series([1] * 40 + [2] * 30 + [3] * 20 + [4] * 4 + [5] * 3 + [6] * 2 + [7])
    assert merged_levels(column) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 5, 7: 5}
    assert merged_levels(column[:90]) == {1: 1, 2: 2, 3: 3}


def test_coding_of_factors():
    train = pd.DataFrame({"f": list("aabbbc"), "x": [1, 2, 3, 4, 5, 6], "one": 1})
    test = pd.DataFrame({"f": list("acz"), "x": [0, 0, 0], "one": [1, 2, 3]})
    A, B = treatment_coding(train, test, ["f"])
    assert list(A) == ["x", "f=b", "f=c"]  # a column that is constant in training is dropped
    np.testing.assert_array_equal(A["f=b"], [0, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(B[["f=b", "f=c"]], [[0, 0], [0, 1], [1, 0]])  # z counts as b


def test_corrected_interval_by_the_formula():
    d = np.array([0.1, -0.2, 0.4, 0.3, 0.1, 0.5])
    mean, low, high = corrected_interval(d)
    width = 2.570582 * np.sqrt((1 / 6 + 1 / 2) * d.var(ddof=1))
    assert (mean, low, high) == pytest.approx((d.mean(), d.mean() - width, d.mean() + width), rel=1e-6)
    assert np.isnan(corrected_interval(d[:1])[1])


def test_corrected_interval_covers_where_the_naive_one_does_not():
    """Differences of two learners in repeated three-fold cross-validation, over many samples."""
    rng = np.random.default_rng(1)
    n, repetitions, covered, naive = 60, 4, [], []
    for _ in range(300):
        y = rng.normal(size=n)
        d = []
        for _ in range(repetitions):
            for test in np.array_split(rng.permutation(n), FOLDS):
                train = np.setdiff1d(np.arange(n), test)
                d.append(np.mean((y[test] - y[train].mean()) ** 2 - (y[test] - 0.3) ** 2))
        truth = 1 / (2 * n / 3) - 0.3**2  # expected difference of squared errors for 2n/3 subjects
        _, low, high = corrected_interval(np.array(d))
        half = 2.2 * np.std(d, ddof=1) / np.sqrt(len(d))
        covered.append(low <= truth <= high)
        naive.append(abs(np.mean(d) - truth) <= half)
    assert np.mean(covered) > 0.9 > 0.8 > np.mean(naive)


def _scores(rows):
    columns = ["task", "learner", "iteration", "as published", "both", "proper"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(**{"events first": table["both"], "left limits": table["both"]})


def test_places_and_mean_ranks():
    published = pd.DataFrame(
        [("veteran", name, i, isbs + 0.01 * i, 0) for name, isbs in
         {"KM": 0.2, "CPH": 0.15, "ORSF": 0.1}.items() for i in (1, 2, 3)],
        columns=["task", "learner", "iteration", "isbs", "errors"],
    )  # fmt: skip
    scores = _scores([("veteran", "Gradient boosting", i, 0.12 + 0.01 * i, 0.1, 0.1) for i in (1, 3)])
    table = places(scores, published)
    assert set(table["rank"]) == {2}
    assert set(table["of"]) == {4}
    differences = table.set_index("versus")["difference"]
    assert differences.to_dict() == pytest.approx({"KM": -0.08, "CPH": -0.03, "ORSF": 0.02})
    ranks = mean_ranks(table, published).set_index("learner")
    assert ranks.loc["oblique random forest (aorsf)", "mean rank"] == 1
    assert not ranks.loc["Gradient boosting", "published"]


def test_changes_of_order():
    rows = []
    for i in (1, 2, 3):
        rows.append(("veteran", "Kaplan-Meier", i, 0.20, 0.20, 0.2))
        rows.append(("veteran", "Cox", i, 0.19, 0.21 if i < 3 else 0.19, 0.1))
    rows.append(("veteran", "Kaplan-Meier", 4, 0.2, 0.2, 0.2))
    scores = _scores(rows)
    ((*names, a, b),) = pairs_of_learners(scores)
    assert names == ["veteran", "Kaplan-Meier", "Cox"]
    assert list(a.index) == list(b.index) == [1, 2, 3]
    changed = order_changes(scores)
    assert set(changed["rule"]) == {"events first", "left limits", "both"}
    assert changed["difference"].to_numpy() == pytest.approx(-0.01 / 3)
    counts = order_counts(scores).set_index("rule")
    assert counts.loc["both", "changed in folds"] == 2
    assert counts.loc["proper", ["changed", "changed in folds"]].tolist() == [0, 0]
    proper = proper_differences(scores)
    assert proper["difference"].tolist() == pytest.approx([-0.1])
    assert report_proper(proper).view["minus Kaplan-Meier"].tolist() == ["-0.1000 [-0.1000, -0.1000]"]


def test_scores_are_added_and_stale_ones_dropped(tmp_path):
    def rows(learner, made_by, iterations, value):
        return pd.DataFrame(
            [{"task": "veteran", "learner": learner, "iteration": i, "isbs": value, "made_by": made_by}
             for i in iterations]
        )  # fmt: skip

    _add_scores(tmp_path, rows("Cox", "a", (1, 2), 0.1))
    _add_scores(tmp_path, rows("BestForecast", "old", (1, 2, 3), 0.2))
    _add_scores(tmp_path, rows("Cox", "a", (2, 3), 0.11))
    found = _add_scores(tmp_path, rows("BestForecast", "new", (1,), 0.3))
    order = list(dict.fromkeys(found["learner"]))
    assert order == [name for name in LEARNERS if name in order] != sorted(order)
    by_learner = found.groupby("learner")["isbs"].apply(list).to_dict()
    assert by_learner == {"Cox": [0.1, 0.11, 0.11], "BestForecast": [0.3]}
    with pytest.raises(InvalidInputError, match="run the study"):
        read_scores(tmp_path / "nowhere")


def test_names_are_checked(monkeypatch, tmp_path):
    assert check_names("tasks", ["nwtco", "veteran"], TASKS) == ["veteran", "nwtco"]
    with pytest.raises(InvalidInputError, match="learners: got Coxx"):
        check_names("learners", ["Coxx"], LEARNERS)
    with pytest.raises(InvalidInputError, match="expected one of veteran"):
        load_task("iris")
    monkeypatch.setenv("CENSCORE_DATA", str(tmp_path))
    with pytest.raises(InvalidInputError, match="--folder"):
        data_folder()


# ---- with the data ---------------------------------------------------------------------------------


@needs_data
def test_folds_partition_the_subjects():
    for name in TASKS:
        task = load_task(name)
        assert len(task.tests) == FOLDS * task.repetitions
        for r in range(task.repetitions):
            together = np.sort(np.concatenate(task.tests[FOLDS * r : FOLDS * (r + 1)]))
            np.testing.assert_array_equal(together, np.arange(len(task.y)))
    with pytest.raises(InvalidInputError, match="expected 1 to 15"):
        task.fold(16)


@needs_data
@pytest.mark.parametrize("task", ["veteran", "lung", "whas", "tumor", "metabric"])
def test_published_scores_are_reproduced(task):
    """Ties, merged levels and times with more than 15 digits among them."""
    published = published_scores().set_index(["task", "learner", "iteration"])["isbs"]
    for learner, name, tolerance in (("Kaplan-Meier", "KM", 1e-12), ("Cox", "CPH", 1e-8)):
        found = score_fold({"task": task, "learner": learner, "iteration": 2})["isbs"]["as published"]
        assert found == pytest.approx(published[task, name, 2], abs=tolerance)


@needs_data
def test_the_fold_with_levels_drawn_at_random_is_explained_by_one_draw():
    drawn = [i for i in range(1, 31) if unseen_levels("lung", i)]
    assert drawn == [22]
    there = published_scores().set_index(["task", "learner", "iteration"])["isbs"]["lung", "CPH", 22]
    isbs, levels = closest_draw("lung", 22, there)
    assert isbs == pytest.approx(there, abs=1e-11)
    test = load_task("lung").split(22)[1]
    assert ("inst", {test[place]: level for place, level in levels.items()}) == DRAWN["lung", 22]
    found = score_fold({"task": "lung", "learner": "Cox", "iteration": 22})["isbs"]["as published"]
    assert found == pytest.approx(there, abs=1e-11)


@needs_data
def test_cells_of_other_defaults_are_other_cells(monkeypatch):
    from censcore.learning.best_forecast import BestForecast

    (before,) = benchmark_cells(["veteran"], ["BestForecast"], 1)[:1]
    defaults = dict(BestForecast().get_params(), epochs=7)
    monkeypatch.setattr(BestForecast, "get_params", lambda self, deep=True: defaults)
    (after,) = benchmark_cells(["veteran"], ["BestForecast"], 1)[:1]
    assert before.name == after.name
    assert before.key != after.key


@needs_data
def test_command(tmp_path):
    pytest.importorskip("sksurv", reason="gradient boosting needs scikit-survival")

    def run(*words):
        result = CliRunner().invoke(app, ["reproduce", "neutral-benchmark", "--out", str(tmp_path), *words])
        assert result.exit_code == 0, result.output
        return result.output

    chosen = ["--tasks", "veteran", "--repetitions", "1"]
    text = run(*chosen, "--learners", "Kaplan-Meier", "Cox", "Gradient boosting")
    assert "Nadeau" in text
    names = [
        "agreement",
        "conventions",
        "orders",
        "order_counts",
        "mean_ranks",
        "ranks",
        "differences",
        "rescored",
        "proper",
    ]
    for name in names:
        assert (tmp_path / f"{name}.md").stat().st_size > 0
    for name in ("conventions", "places"):  # as in docs/results
        assert (tmp_path / f"{name}.svg").read_bytes().startswith(b"<?xml")
    rescored = pd.read_csv(tmp_path / "rescored.csv")
    assert set(rescored["score"]) == {"crps", "integrated_brier_score:ipcw"}
    assert (rescored["low"] < rescored["difference"]).all()
    assert (rescored["high"] < 0).all()
    finished = {path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    run(*chosen, "--learners", "Cox")  # added to what is there, and not computed again
    assert {path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == finished
    assert len(read_scores(tmp_path)) == 9
    run("--no-run")


# ---- what is committed -----------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("learner", ["Cox", "BestForecast"])
def test_tables_of_one_learner_alone(learner, tmp_path):
    scores = pd.read_csv(RESULTS / "cells.csv").query("task == 'veteran' and iteration <= 3")
    reports = {r.name: r.view for r in report_benchmark(tmp_path, scores[scores["learner"] == learner])}
    own = "agreement" if learner == "Cox" else "differences"  # those reproduced are among the published
    assert reports[own]["task"].tolist() == ["veteran"]
    assert ("agreement" in reports) != ("differences" in reports)


def assert_committed(table: pd.DataFrame, name: str) -> None:
    again = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    pd.testing.assert_frame_equal(again, pd.read_csv(RESULTS / f"{name}.csv"), rtol=1e-4, check_dtype=False)


def test_committed_orders_are_those_of_the_committed_scores():
    scores = read_scores(RESULTS)
    assert_committed(order_counts(scores), "order_counts")
    assert_committed(order_changes(scores), "orders")
    assert_committed(proper_differences(scores), "proper")


@needs_data
def test_committed_tables_are_those_of_the_committed_scores():
    scores, published = read_scores(RESULTS), published_scores()
    table = places(scores, published)
    assert_committed(table, "differences")
    assert_committed(mean_ranks(table, published), "mean_ranks")
    assert_committed(same_folds(scores, published), "same_folds")
    assert_committed(agreement(scores, published), "agreement")
    assert_committed(report_conventions(scores).rows, "conventions")


def test_what_the_page_says_is_in_the_tables():
    page = (RESULTS.parent / "neutral_benchmark.md").read_text("utf-8")
    deviation = pd.read_csv(RESULTS / "agreement.csv").groupby("learner")["largest deviation"].max()
    assert deviation["Kaplan-Meier"] <= 1e-12
    assert "Cox regression to\n  2e-9" in page
    assert 1e-9 < deviation["Cox"] < 2e-9
    cells = pd.read_csv(RESULTS / "cells.csv")
    assert "243 folds" in page
    assert (cells[cells["learner"].isin(["Cox", "Kaplan-Meier"])].groupby("learner").size() == 243).all()
    conventions = pd.read_csv(RESULTS / "conventions.csv")
    base = conventions["Kaplan-Meier, as published"]
    rules = ["events first", "left limits", "both"]
    change = max(abs(conventions[f"Kaplan-Meier, {rule}"] / base - 1).max() for rule in rules)
    assert "at most 0.07 %" in page
    assert 0.0006 < change < 0.0007
    counts = pd.read_csv(RESULTS / "order_counts.csv").set_index("rule")
    assert "leaves the order" in page
    assert (counts.loc[rules, ["changed", "changed in folds"]] == 0).all(axis=None)
    rank = pd.read_csv(RESULTS / "mean_ranks.csv").set_index("learner")["mean rank"]
    assert "behind the published learners of their kind" in page
    kinds = {"Random survival forest": "forest (", "Gradient boosting": "boosted", "SurvivalBoost": "boosted"}
    for learner, kind in kinds.items():
        assert rank[learner] > rank[[name for name in rank.index if kind in name]].max()
    # the sentences on the default stack are checked in tests/test_docs_numbers.py
    assert "on the three folds of the\n  first repetition of each data set" in page
    folds = cells[cells["learner"] == "BestForecast"].groupby("task")["iteration"].agg(tuple)
    assert folds.to_dict() == dict.fromkeys(TASKS, (1, 2, 3))
    assert "the mean rank 2.1 among the 17" in page
    assert rank["oblique random forest (aorsf)"].round(1) == 2.1
