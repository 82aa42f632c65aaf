"""A comparison as an object: without pandas, pickled, compared with ==, written in one piece."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case_scores import CASE_SCORES
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingDependencyError
from censcore.scores.registry import SCORES

ESTIMATORS = {
    "kaplan-meier": cs.Censoring(cs.KaplanMeier()),
    "cox": cs.Censoring(cs.CoxRegression()),
    "cox out of fold": cs.Censoring(cs.CoxRegression(), cv=3),
    "weibull": cs.Censoring(cs.WeibullRegression(), refits=3),
}


def compared(split, censoring=None, **options):
    options = {"scores": ["crps", "brier_score:ipcw"], "train": split.train} | options
    censoring = ESTIMATORS["kaplan-meier"] if censoring is None else censoring
    return cs.compare(split.forecasts, split.y, censoring, X=split.x, **options)


class WithoutPandas:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def no_pandas(monkeypatch):
    """As if pandas were not installed: not imported by anything, and not to be found."""
    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(sys, "meta_path", [WithoutPandas(), *sys.meta_path])


def test_a_comparison_prints_and_writes_json_without_pandas(split, no_pandas, tmp_path):
    comparison = compared(split)
    assert "CRPS" in repr(comparison)
    comparison.to_json(tmp_path / "numbers.json")
    assert len(json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))["differences"]) > 0


def test_what_was_computed_is_not_computed_again_to_be_shown(split, monkeypatch):
    comparison = compared(split, by=split.x[:, 1] > 0)
    counts: dict[str, int] = {}

    def counted(where: str) -> None:
        module, name = where.rsplit(".", 1)
        module = importlib.import_module(f"censcore.evaluation.{module}")
        original = getattr(module, name)

        def call(*args, **options):
            counts[name] = counts.get(name, 0) + 1
            return original(*args, **options)

        monkeypatch.setattr(module, name, call)

    for name in ("effective_events", "discriminate"):
        counted(f"comparison.{name}")
    for where in ("verdict.d_calibration", "table_lines.adjust", "table_lines.skill_interval"):
        counted(f"report.{where}")
    shown = repr(comparison)
    once = counts.copy()
    measures = len(comparison.scores) + len(comparison.pair_measures.measures)
    assert once["effective_events"] == measures * len(comparison.subsets)
    assert once["discriminate"] == 1
    assert once["d_calibration"] == len(comparison.models)
    assert repr(comparison) == shown
    comparison.frame()
    comparison.differences()
    json.loads(comparison.to_json())
    assert counts == once


@pytest.mark.parametrize("table", ["frame", "differences"])
def test_frames_name_the_package_that_they_need(split, no_pandas, table):
    with pytest.raises(MissingDependencyError, match="Data frames need pandas: pip install"):
        getattr(compared(split), table)()


def test_a_page_needs_no_pandas(split, no_pandas):
    page = compared(split, by=split.x[:, 1] > 0).to_html()
    assert "All paired differences" in page
    assert "True, " in page


def test_the_sensitivity_to_dependent_censoring_prints_without_pandas(no_pandas):
    y = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    found = cs.dependent_censoring_sensitivity(
        {"a": cs.Exponential(0.3), "b": cs.Exponential(1.0)}, y, times=[2.5], replicates=0
    )
    assert "the order" in repr(found)
    with pytest.raises(MissingDependencyError, match="pandas"):
        found.frame()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("train", [True, False])
def test_a_comparison_survives_pickling(split, name, train):
    options = {} if train else {"train": None}
    comparison = compared(split, ESTIMATORS[name], **options)
    again = pickle.loads(pickle.dumps(comparison))
    assert repr(again) == repr(comparison)
    np.testing.assert_array_equal(again.differences()["p_adjusted"], comparison.differences()["p_adjusted"])


def test_a_comparison_is_equal_to_itself_alone(split):
    comparison = compared(split)
    assert comparison == comparison
    assert (comparison == copy.copy(comparison)) is False
    assert (comparison == "text") is False
    for part in (
        comparison.resolved_censoring,
        comparison.losses,
        comparison.evaluations["cox"],
        comparison.subsets[0],
    ):
        assert (part == copy.copy(part)) is False
    estimate = comparison.estimate("cox", "crps")
    assert (estimate == copy.copy(estimate)) is False


def test_a_write_that_fails_leaves_the_old_file(split, tmp_path, monkeypatch):
    """Also where the disk is full: the old page is whole, and nothing is left beside it."""
    path = tmp_path / "numbers.json"
    path.write_text("old", encoding="utf-8")

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        compared(split).to_json(path)
    assert [p.name for p in tmp_path.iterdir()] == ["numbers.json"]
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("horizon", ["atuo", "", -1.0, 0, np.inf, None])
def test_a_horizon_that_is_neither_auto_nor_a_time_is_an_error(split, horizon):
    with pytest.raises(InvalidInputError, match="horizon must be 'auto' or a positive, finite time; got"):
        cs.WithCensoring(cs.KaplanMeier(), horizon=horizon).fit(*split.train)
    with pytest.raises(InvalidInputError, match="horizon must be 'auto' or a positive, finite time; got"):
        compared(split, horizon=horizon)


def test_a_comparison_has_every_score_of_one_event_time():
    assert list(CASE_SCORES) == [name for name, info in SCORES.items() if info.univariate]
    assert all(score.info is SCORES[name] for name, score in CASE_SCORES.items())


DRAWN: list[np.ndarray] = []


class Remembering(cs.KaplanMeier):
    """A Kaplan-Meier estimator that is not recognised as one, and keeps the times it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        DRAWN.append(np.round(y.time))  # the flip puts events a little earlier
        return super().fit(X, y, sample_weight)


def test_bootstrap_samples_do_not_follow_the_stream_that_drew_the_data():
    n, seed = 60, 5
    DRAWN.clear()
    drawn_by_user = np.random.default_rng(seed).integers(n, size=n)
    time = np.arange(1.0, n + 1)
    y = cs.RightCensored(time, np.arange(n) % 2)
    cs.compare(
        {"F": cs.Exponential(0.02)},
        y,
        cs.Censoring(Remembering(), refits=2),
        train=(None, y),
        seed=seed,
        scores="crps",
        reference=None,
        discrimination=False,
    )
    first_sample = next(times for times in DRAWN if len(np.unique(times)) < n)
    assert not np.array_equal(np.sort(first_sample), np.sort(time[drawn_by_user]))


@pytest.mark.parametrize("outcome", [[], {"a": 1.0}, 3.0], ids=repr)
def test_an_outcome_that_is_no_name_is_an_error(outcome):
    y = cs.RightCensored([0.5, 1.0, 1.5, 2.0], [1, 0, 1, 1])
    one = cs.compare({"a": cs.Weibull(1.0, 1.0)}, y, cs.Uniform(0.0, 3.0), scores="crps", reference=None)
    for ask in (
        one.of,
        lambda name: one.calibration("a", outcome=name),
        lambda name: one.net_benefit(outcome=name),
    ):
        with pytest.raises(InvalidTypeError, match=r"outcome: got .*, expected none: there is one"):
            ask(outcome)


def test_an_option_that_a_plot_does_not_have():
    y = cs.RightCensored([1.0, 2.0, 3.0], [1, 1, 1])
    found = cs.compare({"one": cs.Exponential(1.0)}, y, scores="crps", reference=None)
    with pytest.raises(InvalidInputError, match="An option of the plot 'brier' must be one of"):
        found.plot("brier", scal="ipcw")
