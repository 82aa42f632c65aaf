"""Tables of SurvSet on published splits: the convention by its formula, and the tables of finished cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore_studies.kit.cells import run_cells
from censcore_studies.survset import (
    load_table,
    predicted_time,
    published_brier_score,
    report_survset,
    survset_cells,
)
from censcore_studies.survset import study as module


@pytest.fixture
def sample():
    rng = np.random.default_rng(3)
    x = rng.normal(size=90)
    T, C = rng.weibull(1.3, 90) * np.exp(0.5 * x), rng.uniform(0, 2, 90)
    return x[:, None], cs.RightCensored(np.minimum(T, C).round(2) + 0.01, T <= C)


def test_brier_score_by_its_formula(sample):
    X, y = sample
    train, test = y[:50], y[50:]
    F = cs.WeibullRegression().fit(X[:50], train).predict_distribution(X[50:])
    times = np.unique(train.time)
    left = np.array([(train.time >= t).sum() for t in times])
    censored = np.array([((train.time == t) & ~train.event).sum() for t in times])
    G = np.cumprod(1 - censored / left)

    def weight(t):
        if t > times[-1]:
            value = G[-1] + (G[-1] - G[0]) / (times[-1] - times[0]) * (t - times[-1])
        else:
            value = G[max(np.searchsorted(times, t, side="right") - 1, 0)]
        return 1 / value if value > 0 else 0.0

    grid = np.append(0.0, times)
    end = max(times[-1], test.time.max())
    brier = []
    for t in np.linspace(0, end, 10):
        total = 0.0
        for i in range(len(test)):
            curve = np.asarray(F.take([i]).sf(grid))
            S = np.interp(t, grid, curve) if t <= times[-1] else max(1 + (curve[-1] - 1) * t / times[-1], 0)
            if test.time[i] <= t and test.event[i]:
                total += S**2 * weight(test.time[i])
            elif test.time[i] > t:
                total += (1 - S) ** 2 * weight(t)
        brier.append(total / len(test))
    expected = np.trapezoid(brier, np.linspace(0, end, 10)) / end
    assert published_brier_score(test, F, train) == pytest.approx(expected, rel=1e-12)


def test_predicted_time_goes_on_along_a_line():
    y = cs.RightCensored([1.0, 2.0, 4.0], [1, 1, 0])
    F = cs.Step([1.0, 2.0, 4.0], sf=[[0.6, 0.4, 0.4], [0.9, 0.8, 0.8]])
    assert predicted_time(F, y).tolist() == pytest.approx([2.0, 10.0])


def test_tables_of_finished_cells(tmp_path, monkeypatch):
    published = "\n".join(
        f"SurvivalPFN,{table},{metric},{mean},0.01,1.0"
        for table in ("cgd", "ova")
        for metric, mean in (("IBS", 0.15), ("CI", 0.6), ("MAE", 3.0))
    )
    (tmp_path / "benchmark_results.csv").write_text(
        f"model,dataset,metric,mean,std,runtime_seconds\n{published}\n", encoding="utf-8"
    )
    monkeypatch.setattr(module, "load_table", lambda name: (pd.DataFrame(), cs.RightCensored([1.0], [1])))

    def score(settings):
        better = 0.1 if settings["learner"] == "BestForecast" and settings["table"] == "cgd" else 0.0
        hard = 0.02 * settings["split"]
        return {"IBS": 0.2 + hard - better, "CI": 0.5 - hard + better, "proper": 0.1, "weights": {}}

    cells = survset_cells(["cgd", "ova"], splits=2)
    assert [cell.settings["split"] for cell in cells[-4:]] == [0, 0, 1, 1]
    run_cells(score, cells[:-1], tmp_path, progress=False)
    scores, tables, summary = report_survset(tmp_path, tmp_path)
    assert len(scores.rows) == 2 * (10 + 10) + 3
    found = tables.rows.set_index("table")
    assert found["splits"].to_dict() == {"cgd": 2, "ova": 1}
    # the first splits are easier than all ten: the simple learners tell by how much
    assert found["IBS, Kaplan-Meier"].tolist() == pytest.approx([0.29, 0.29])
    assert found["IBS, BestForecast"].tolist() == pytest.approx([0.19, 0.29])
    assert found["CI, BestForecast"].tolist() == pytest.approx([0.51, 0.41])
    ahead = summary.rows.set_index(["metric", "versus"])["ahead"]
    assert ahead["IBS", "published"] == 0
    assert ahead["IBS", "Kaplan-Meier"] == 1
    assert ahead["CI", "ridge Cox"] == 1
    assert ahead["proper", "Kaplan-Meier"] == 0


def test_an_unknown_table():
    with pytest.raises(InvalidInputError, match="expected one of"):
        load_table("FRTCS")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SurvSet
def test_a_split_and_its_scores():
    pytest.importorskip("SurvSet")
    X, y, X_new, y_new = module.split_table("veteran", 3)
    assert (len(y), len(y_new)) == (95, 42)
    assert not set(X.index) & set(X_new.index)
    found = module.score_split({"table": "veteran", "split": 3, "learner": "ridge Cox"})
    assert 0 < found["IBS"] < 0.25
    assert found["CI"] > 0.6
