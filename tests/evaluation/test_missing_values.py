"""Covariates with missing values, of any kind of column, in all that a comparison can show."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import censcore as cs

pd = pytest.importorskip("pandas")


def table(kind: str, n: int, rng: np.random.Generator):
    x = rng.normal(size=(n, 2))
    x[rng.random((n, 2)) < 0.1] = np.nan
    if kind == "array":
        return x
    if kind == "float32":
        return x.astype(np.float32)
    frame = pd.DataFrame(x, columns=["a", "b"])
    if kind == "numbers":
        return frame
    frame["text"] = rng.choice(["u", "v"], n)
    frame.loc[::7, "text"] = None
    frame["category"] = pd.Categorical(rng.choice(["p", "q", "r"], n))
    frame.loc[::5, "category"] = np.nan
    frame["whole"] = pd.array(rng.integers(0, 5, n), dtype="Int64")
    frame.loc[::6, "whole"] = pd.NA
    frame["flag"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    frame.loc[::4, "flag"] = pd.NA
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D")
    frame.loc[::8, "when"] = pd.NaT
    frame["empty"] = np.nan
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    return frame


def imputing(kind: str):
    if kind in ("array", "float32", "numbers"):
        return make_pipeline(SimpleImputer(), cs.CoxRegression())
    return make_pipeline(make_column_transformer((SimpleImputer(), ["a", "b"])), cs.CoxRegression())


@pytest.mark.parametrize("kind", ["array", "float32", "numbers", "all kinds", "polars"])
def test_print_page_json_and_diagnostic(kind):
    rng = np.random.default_rng(3)
    n = 160
    X, T, C = table(kind, 2 * n, rng), rng.exponential(1.0, 2 * n), rng.uniform(0.2, 3.0, 2 * n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    train, test = X[:n], X[n:]
    model = imputing(kind).fit(train, y[:n])
    found = cs.compare(
        {"imputing": model}, y[n:], cs.Censoring(cs.KaplanMeier()), X=test, train=(train, y[:n]),
        scores=["crps", "brier_score"],
    )  # fmt: skip
    assert "imputing" in repr(found)
    if kind == "all kinds":  # pictures take most of the time
        assert "missing values" in found.to_html()
    numbers = json.loads(found.to_json())["censoring"]
    assert 0 < numbers["covariates"]["p_value"] <= 1
    assert any("missing values" in note for note in numbers["covariates"]["notes"])


def test_covariates_that_cannot_be_tested_are_named_and_never_raise():
    rng = np.random.default_rng(0)
    y = cs.RightCensored(rng.exponential(size=60), rng.random(60) < 0.6)
    C = cs.Uniform(0.0, 30.0)
    for X in (np.full((60, 2), np.nan), np.array([[{"a": 1}]] * 60, dtype=object), np.zeros((60, 0))):
        found = cs.censoring_diagnostic(y, C, X)
        assert found.covariates is None
        assert "not tested: " in repr(found)
