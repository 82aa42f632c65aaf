"""Scenarios with a known truth: its excess is zero, models of others are fitted, cells are counted."""

from __future__ import annotations

import numpy as np
import pytest

from censcore_studies.kit.cells import run_cells
from censcore_studies.stack_scenarios import MODELS, SCENARIOS, report_scenarios, scenario_cells, score_model


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
