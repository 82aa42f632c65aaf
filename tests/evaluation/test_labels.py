"""Subjects are matched by position; labels of pandas that contradict it are an error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

N = 60
OPTIONS = {"scores": "crps", "horizon": 2.0, "discrimination": False, "reference": None}
ORDER = np.arange(N)[::-1]


def data():
    """Covariates, outcome and survival curves (times x subjects), all with one index."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=N), [f"patient {i}" for i in range(N)]
    T, c = rng.weibull(1.5, N) * np.exp(0.8 * x), rng.uniform(0.5, 4.0, N)
    y = pd.DataFrame({"time": np.minimum(T, c), "event": c >= T}, index=labels)
    t = np.arange(0.25, 4.0, 0.25)
    curves = pd.DataFrame(cs.Weibull(1.5, np.exp(0.8 * x)).sf(t[None, :]).T, index=t, columns=labels)
    return pd.DataFrame({"x": x}, index=labels), y, curves


def mean(curves, y, **more):
    found = cs.compare({"curves": curves}, y, cs.Censoring(cs.KaplanMeier()), **OPTIONS, **more)
    return found.frame()["mean"].iloc[0]


def test_labels_in_another_order_are_an_error():
    X, y, curves = data()
    weight, site = pd.Series(np.ones(N), X.index), pd.Series(np.arange(N) % 2, X.index, name="site")
    assert mean(curves, y, X=X, sample_weight=weight, groups=site.index.to_series(), by=site) > 0
    for wrong in (
        {"curves": curves.iloc[:, ORDER]}, {"y": y.iloc[ORDER]}, {"X": X.iloc[ORDER]},
        {"by": site.iloc[ORDER]}, {"sample_weight": weight.iloc[ORDER]},
        {"groups": site.index.to_series().iloc[ORDER]},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="in another order, expected the same order"):
            mean(**{"curves": curves, "y": y, "X": X} | wrong)
    with pytest.raises(InvalidInputError, match="X: got the labels"):
        cs.cross_validate({"km": cs.KaplanMeier()}, X.iloc[ORDER], y, cv=3, **OPTIONS)
    with pytest.raises(InvalidInputError, match=r"event\.loc\[time\.index\]"):
        cs.RightCensored(y.time, y.event.iloc[ORDER])
    with pytest.raises(InvalidInputError, match=r"cause\.loc\[time\.index\]"):
        cs.CompetingRisks(y.time, y.event.astype(int).iloc[ORDER])


def test_other_labels_and_none_are_matched_by_position():
    X, y, curves = data()
    expected = mean(curves, y, X=X)
    assert mean(curves, y.reset_index(drop=True), X=X) == expected
    assert mean(curves.set_axis([f"forecast {i}" for i in range(N)], axis=1), y, X=X.to_numpy()) == expected
    shuffled = y.set_axis(ORDER)  # numbers that are no default index, beside one that is
    assert mean(curves.set_axis(range(N), axis=1), shuffled, X=X.reset_index(drop=True)) == expected
