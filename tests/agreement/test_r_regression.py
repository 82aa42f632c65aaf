"""Regressions, curves and their errors: the numbers of R's survival, number by number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs

CASES = {
    "pbc": ["age", "bili", "albumin", "edema", "trt"],
    "lung": ["age", "sex", "ph.ecog"],
    "lungmonths": ["age", "sex", "ph.ecog"],
    "lunguntied": ["age", "sex", "ph.ecog"],
    "veteran": ["karno", "age", "diagtime", "trt"],
    "melanoma": ["age", "thick", "sex"],
}


@pytest.fixture(scope="module")
def lines(r_data) -> pd.DataFrame:
    return pd.read_csv(r_data / "results.csv", keep_default_na=False, na_values=[""])


@pytest.mark.parametrize("model", ["small", "full", "weibull"])
@pytest.mark.parametrize("case", CASES)
def test_predicted_risks(r_data, lines, case, model):
    """Of coxph, with Efron's baseline for Efron's coefficients, and of survreg."""
    train, test = (pd.read_csv(r_data / f"data_{case}{part}.csv") for part in ("_train", ""))
    columns = CASES[case][:1] if model == "small" else CASES[case]
    estimator = cs.WeibullRegression() if model == "weibull" else cs.CoxRegression(ties="efron")
    estimator.fit(train[columns], cs.RightCensored(train["time"], train["status"] > 0))
    found = lines[(lines["case"] == case) & (lines["quantity"] == "risk")]
    found = found[found["model"].str.startswith(f"{model},")]
    row = found["model"].str.extract(r"row(\d+)")[0].astype(int) - 1
    F = estimator.predict_distribution(test[columns].iloc[row])
    assert len(found) == 30
    np.testing.assert_allclose(F.cdf(found["time"].to_numpy()), found["value"], atol=1e-8)
