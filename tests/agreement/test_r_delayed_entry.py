"""Concordance with delayed entry and AUC at landmarks: the numbers of R's survival and riskRegression."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.evaluation import concordance_estimate


@pytest.fixture(scope="module")
def results(r_data) -> pd.DataFrame:
    return pd.read_csv(r_data / "results.csv")


@pytest.mark.parametrize("case", ["entry", "entrytied"])
def test_concordance_of_start_and_stop(r_data, results, case):
    data = pd.read_csv(r_data / f"data_{case}.csv")
    y = cs.RightCensored(data["time"], data["status"] > 0, entry=data["entry"])
    found = concordance_estimate(y, -data["hgb"])
    line = results.query("case == @case and quantity == 'concordance'").iloc[0]
    assert found.value[0] == pytest.approx(line["value"], rel=1e-12)
    assert found.standard_error[0] == pytest.approx(line["se"], rel=2e-3)


def test_brier_scores_of_who_has_entered(r_data, results):
    """By hand in R: risks given T > entry, weights P(C > entry) / P(C > t); over all, or over those at t."""
    data, hazard = (pd.read_csv(r_data / f"data_entry{part}.csv") for part in ("", "_basehaz"))
    y = cs.RightCensored(data["time"], data["status"] > 0, entry=data["entry"])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    F = cs.distributions.ProportionalHazards(*hazard.to_numpy().T, data["r"].to_numpy())
    found = results[results["source"] == "hand,entry"]
    assert len(found) == 8
    for line in found.itertuples():
        loss = cs.brier_score(y, F, C, [line.time], scale="ipcw")[:, 0]
        entered = (data["entry"] < line.time).to_numpy() | (line.option != "entered")
        assert loss[entered].mean() == pytest.approx(line.value, abs=1e-12)


@pytest.mark.parametrize("s", [365, 730])
def test_auc_at_a_landmark(r_data, results, s):
    """Times since the landmark there, times with a common entry here."""
    data = pd.read_csv(r_data / f"data_landmark_{s}.csv")
    y, t = cs.RightCensored(data["time"] + s, data["status"] > 0, entry=float(s)), 500.0 + s
    forecasts = {name: cs.Step([t], cdf=data[name].to_numpy()[:, None]) for name in ("full", "small")}
    found = cs.compare(
        forecasts, y, cs.Censoring(cs.KaplanMeier()), scores="brier_score", times=[t], horizon=t + 300,
        reference=None,
    ).frame()  # fmt: skip
    lines = results[(results["quantity"] == "AUC") & (results["option"] == f"s{s}")].set_index("model")
    auc = found[found["score"] == "auc"].set_index("model")
    for name in forecasts:
        assert auc.loc[name, "mean"] == pytest.approx(lines.loc[name, "value"], rel=1e-12)
        assert auc.loc[name, "standard_error"] == pytest.approx(lines.loc[name, "se"], rel=0.02)
    delta = results[(results["quantity"] == "delta.AUC") & (results["option"] == f"s{s}")]["value"].item()
    assert auc.loc["small", "mean"] - auc.loc["full", "mean"] == pytest.approx(delta, rel=1e-10)
    assert np.isfinite(auc["standard_error"]).all()
