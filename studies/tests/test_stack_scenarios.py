"""Scenarios with a known truth: its excess is zero, models of others are fitted, cells are counted."""

from __future__ import annotations

import numpy as np
import pytest

from censcore_studies.kit.cells import run_cells
from censcore_studies.stack_scenarios import MODELS, SCENARIOS, report_scenarios, scenario_cells, score_model
from censcore_studies.stack_scenarios.intervals import interval_cells, interval_of, report_intervals


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_truth_has_no_excess(name):
    scenario = SCENARIOS[name]
    X, y = scenario.sample(50, seed=1)
    assert X.shape == (50, scenario.covariates)
    assert 0.1 < np.mean(y.event) < 0.95
    rng = np.random.default_rng(4)
    assert abs(scenario.excess(lambda X, m: scenario.times(X, m, rng), seed=0)) < 0.3
    late = scenario.excess(lambda X, m: 1.5 * scenario.times(X, m, rng), seed=0)
    assert late > 0.5


@pytest.mark.parametrize(
    ("model", "scenario"),
    [
        ("lifelines Weibull", "75 % censored"),
        ("sksurv forest", "75 % censored"),
        ("pycox LogisticHazard", "squares and products"),
    ],
)
def test_models_of_other_libraries(model, scenario, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pycox keeps its weights in the current folder
    pytest.importorskip(model.split()[0])
    found = score_model({"scenario": scenario, "n": 120, "seed": 0, "model": model})
    assert 0 < found["excess"] < 60


def test_counts_of_best_or_level(tmp_path):
    chosen = [name for name in MODELS if name != "SurvivalBoost"]
    cells = scenario_cells((300,), seeds=2, models=chosen)
    assert [cell.settings["seed"] for cell in cells] == sorted(cell.settings["seed"] for cell in cells)

    def score(settings):
        lead = {"cure": -1.0, "steps": 1.0}.get(settings["scenario"], 0.1)
        noise = settings["seed"] - 0.5  # a standard error of 0.5
        ours = settings["model"] == "default stack"
        return {"excess": 3.0 + lead + noise if ours else 3.0, "cpu": 0.1, "weights": {}}

    run_cells(score, cells, tmp_path, progress=False)
    every, means, counts = report_scenarios(tmp_path)
    assert len(every.rows) == 2 * len(SCENARIOS) * len(chosen)
    assert means.rows.set_index("scenario").loc["cure", "default stack"] == pytest.approx(2.0)
    found = counts.rows.set_index("scenarios")
    assert found.loc["all"].tolist() == [300, 10, 1, 9]
    assert found.loc["never used for a choice"].tolist() == [300, 3, 0, 2]


def test_the_stack_alone_is_compared_with_nobody(tmp_path):
    cells = scenario_cells((300,), seeds=1, models=["default stack"])
    run_cells(lambda _: {"excess": 3.0, "cpu": 0.1, "weights": {}}, cells, tmp_path, progress=False)
    (every,) = report_scenarios(tmp_path)
    assert every.rows["excess"].tolist() == [3.0] * len(SCENARIOS)


def test_what_intervals_cover(tmp_path):
    def intervals(settings):
        p = np.full(
            (4, 3, 1), 0.2 + 0.1 * settings["seed"]
        )  # the mean of the two others is 0.35, 0.3 or 0.25
        values = {"forecast": p, "low": p - 0.12, "high": p + 0.12}
        values |= {
            "alike": np.full_like(p, 0.3),
            "true": np.array([0.3, 0.3, 0.3, 0.9]).reshape(4, 1, 1) + 0 * p,
        }
        return {name: value.tolist() for name, value in values.items()}

    run_cells(intervals, interval_cells((300,), seeds=3), tmp_path, progress=False)
    rows = report_intervals(tmp_path).rows
    assert len(rows) == 6
    first = rows.iloc[0]
    assert first[["n", "data sets"]].tolist() == [300, 3]
    assert first[["mean forecast", "such forecasts", "own risk"]].tolist() == pytest.approx(
        [1 / 3, 1.0, 0.75]
    )
    assert first["width"] == pytest.approx(0.24)


def test_intervals_of_a_fit(monkeypatch):
    import censcore as cs

    def simple(seed):
        return cs.Stacking(
            [("cox", cs.CoxRegression(alpha=1.0)), ("km", cs.KaplanMeier())], random_state=seed
        )

    monkeypatch.setitem(MODELS, "default stack", simple)
    found = interval_of({"scenario": "75 % censored", "n": 200, "seed": 0})
    low, high, alike, true = (np.array(found[name]) for name in ("low", "high", "alike", "true"))
    assert low.shape == true.shape == (100, 3, 1)
    assert (low <= high).all()
    assert np.mean((low <= alike) & (alike <= high)) > 0.5
    assert 0.05 < true.mean() < 0.6
    assert (np.diff(true, axis=1) > 0).all()
