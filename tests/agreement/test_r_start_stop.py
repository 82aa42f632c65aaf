"""Covariates along time beside R's survival: coxph, survfit along paths, tmerge, a stacked model.

``start_stop.R`` makes the tables and numbers; those of recorded_start_stop/ are of the versions it names.
Where there is R they are made again.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import censcore as cs

PATH = ["age", "surgery", "transplant"]


@pytest.fixture(scope="module", params=["recorded", "live"])
def folder(request, tmp_path_factory) -> Path:
    script = Path(__file__).with_name("start_stop.R")
    if request.param == "recorded":
        return script.with_name("recorded_start_stop")
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript on the path")
    place = tmp_path_factory.mktemp("r")
    done = subprocess.run(["Rscript", str(script)], cwd=place, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("R has no package survival")
    assert done.returncode == 0, done.stderr[-2000:]
    return place


@pytest.fixture
def heart(folder) -> pd.DataFrame:
    table = pd.read_csv(folder / "heart.csv")
    return table.sample(frac=1.0, random_state=0).reset_index(drop=True)  # rows may be in any order


def numbers(folder: Path, ties: str) -> pd.DataFrame:
    table = pd.read_csv(folder / "coefficients.csv")
    return table[table["ties"] == ties]


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_coefficients_and_errors_of_intervals(folder, heart, ties):
    y = cs.StartStop.from_frame(heart)
    model = cs.CoxRegression(ties=ties).fit(heart[PATH], y)
    expected = numbers(folder, ties)
    assert model.coef_ == pytest.approx(expected["coef"].to_numpy(), rel=1e-8)
    assert model.standard_errors_ == pytest.approx(expected["se"].to_numpy(), rel=1e-8)
    # clustered by id, without being told
    robust = np.sqrt(np.diag(model.robust_covariance()))
    assert robust == pytest.approx(expected["robust"].to_numpy(), rel=1e-8)
    assert np.array_equal(model.robust_covariance(groups=heart["id"]), model.robust_covariance())
    strata = cs.CoxRegression(ties=ties, strata="surgery").fit(heart[PATH], y)
    expected = numbers(folder, f"{ties} strata")
    assert strata.coef_ == pytest.approx(expected["coef"].to_numpy(), rel=1e-8)
    assert strata.standard_errors_ == pytest.approx(expected["se"].to_numpy(), rel=1e-8)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_curves_along_paths(folder, heart, ties):
    """Those of survfit(coxph(ties), newdata, id): exp(-Lambda) with the hazard of the same author."""
    model = cs.CoxRegression(ties=ties).fit(heart[PATH], cs.StartStop.from_frame(heart))
    rows = pd.read_csv(folder / "path.csv").sample(frac=1.0, random_state=1)
    path = cs.StartStop.from_frame(rows, event=None, gap="not at risk")
    F = model.predict_distribution(rows[PATH], path=path)
    curves = pd.read_csv(folder / "curves.csv")
    curves = curves[curves["ties"] == ties]
    assert path.subjects.tolist() == sorted(curves["id"].unique())
    for i, name in enumerate(path.subjects):
        mine = curves[curves["id"] == name]
        assert len(mine) > 20
        time = mine["time"].to_numpy()  # on the path, without what comes before it and without its gap
        time = time + 10 if name == "late" else np.where((name == "left") & (time > 20), time + 20, time)
        sf = F[i].sf(time[None])[0]
        assert np.abs(sf - mine["surv"].to_numpy()).max() < 1e-9
    late = list(path.subjects).index("late")
    assert F[late].sf(10.0) == 1.0  # given survival to where the path begins
    left = list(path.subjects).index("left")
    assert F[left].sf(20.0) == F[left].sf(40.0) < 1.0  # nobody is at risk in the gap


def test_the_end_of_follow_up_with_covariates_along_time(folder, heart):
    """C of each patient once, by a regression on its intervals, with events first at ties."""
    y = cs.StartStop.from_frame(heart)
    names = ["age", "transplant"]
    C = cs.Censoring(cs.CoxRegression(ties="breslow")).fit(heart[names], y)
    expected, (model,) = numbers(folder, "censoring"), C.estimators_
    assert model.coef_ == pytest.approx(expected["coef"].to_numpy(), rel=1e-6)
    assert model.standard_errors_ == pytest.approx(expected["se"].to_numpy(), rel=1e-6)


def test_merged_measurements(folder):
    baseline = pd.read_csv(folder / "baseline.csv")
    baseline["event"] = baseline["status"] == 2
    dated = pd.read_csv(folder / "dated.csv").sample(frac=1.0, random_state=0)
    baseline = baseline.sample(frac=1.0, random_state=1)
    late = dated["day"] > dated["id"].map(baseline.set_index("id")["time"])
    with pytest.warns(cs.exceptions.RepairWarning, match=f"{late.sum()} of {len(dated)} are after the end"):
        rows, y = cs.StartStop.merge(baseline.drop(columns="status"), dated, at="day")
    table = rows.assign(id=y.id, tstart=y.start, tstop=y.stop, death=y.event).sort_values(["id", "tstart"])
    expected = pd.read_csv(folder / "merged.csv")
    for name in expected.columns:
        assert table[name].to_numpy(float) == pytest.approx(expected[name].to_numpy(float), nan_ok=True)


def test_a_stacked_model_over_landmarks(folder, heart):
    y = cs.StartStop.from_frame(heart)
    names = ["age", "transplant"]
    model = cs.LandmarkCox([0, 30, 60, 90], 200, alpha=0.0).fit(heart[names], y)
    order = ["age", "transplant", "age u", "transplant u", "age u^2", "transplant u^2", "u", "u^2"]
    assert model.columns_ == order
    expected = pd.read_csv(folder / "landmark.csv")
    assert model.coef_ == pytest.approx(expected["coef"].to_numpy(), rel=1e-7)
    assert model.standard_errors_ == pytest.approx(expected["robust"].to_numpy(), rel=1e-6)
    forecasts = pd.read_csv(folder / "landmark_forecasts.csv")
    F = model.predict_distribution(forecasts[names], given=forecasts["s"])
    assert np.abs(F.sf(forecasts["t"].to_numpy()[:, None])[:, 0] - forecasts["sf"]).max() < 1e-9
