"""A table of outcomes and forecasts, and when two comparisons of it are the same."""

from __future__ import annotations

import numpy as np
import pandas as pd

import censcore as cs

TIMES = np.array([20.0, 50, 100, 150, 200, 300])


def make_table(n: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.weibull(1.5, n) * np.exp(0.4 * x) * 100, rng.weibull(1.2, n) * 200
    frame = pd.DataFrame({"t": np.ceil(np.minimum(T, C)), "d": (T <= C).astype(int)})
    frame["site"] = np.where(rng.random(n) < 0.4, "a", "b")
    frame["w"] = rng.uniform(0, 2, n).round(2) * (rng.random(n) < 0.95)
    frame["clinic"] = rng.integers(0, 40, n)
    good, poor = cs.Weibull(1.5, 100 * np.exp(0.4 * x)), cs.Weibull(1.4, 110 * np.exp(0.2 * x))
    columns = {}
    for t in TIMES:
        columns[f"good__sf@{t:g}"] = good.sf(np.full((n, 1), t))[:, 0]
        columns[f"poor__sf@{t:g}"] = poor.sf(np.full((n, 1), t))[:, 0]
    for i in range(10):
        columns[f"draws__sample@{i}"] = good.icdf(rng.random((n, 1)))[:, 0]
    frame["since"] = np.floor(np.minimum(rng.uniform(0, 30, n), frame["t"] - 1) * (rng.random(n) < 0.4))
    frame["scale"] = 100 * np.exp(0.4 * x)
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)


def make_competing(n: int = 260, seed: int = 0) -> pd.DataFrame:
    """Days to relapse (1) or death (2), with cumulative incidences in columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rates = np.column_stack([0.006 * np.exp(0.6 * x), np.full(n, 0.004)])
    T, C = rng.exponential(1 / rates.sum(1)), rng.weibull(1.2, n) * 200
    cause = np.where(rng.random(n) < rates[:, 0] / rates.sum(1), 1, 2)
    frame = pd.DataFrame({"t": np.ceil(np.minimum(T, C)), "cause": np.where(T <= C, cause, 0)})
    frame["site"] = np.where(rng.random(n) < 0.4, "a", "b")
    frame["w"] = rng.uniform(0, 2, n).round(2) * (rng.random(n) < 0.95)
    frame["clinic"] = rng.integers(0, 40, n)
    frame["since"] = np.floor(np.minimum(rng.uniform(0, 30, n), frame["t"] - 1) * (rng.random(n) < 0.4))
    columns = {}
    for model, slope in (("good", 1.0), ("poor", 0.3)):
        hazard = rates**slope * rates.mean(0) ** (1 - slope)
        total = hazard.sum(1)
        for t in TIMES:
            for j in (1, 2):
                share = hazard[:, j - 1] / total
                columns[f"{model}__cif_{j}@{t:g}"] = share * (1 - np.exp(-total * t))
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)


def make_pairs(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Two event times that share one censoring time, with draws of both in columns."""
    rng = np.random.default_rng(seed)
    x = np.exp(0.5 * rng.normal(size=n))
    frailty = rng.gamma(2.0, 0.5, n)
    T = rng.exponential(100 * x[:, None] / frailty[:, None] * np.array([1.0, 1.6]))
    c = rng.weibull(1.3, n) * 250
    frame = pd.DataFrame({"relapse": np.minimum(T[:, 0], c), "death": np.minimum(T[:, 1], c)}).round(3)
    frame["r"], frame["d"] = (c[:, None] >= T).astype(int).T
    frame["site"] = np.where(rng.random(n) < 0.4, "a", "b")
    frame["w"] = rng.uniform(0, 2, n).round(2) * (rng.random(n) < 0.95)
    frame["clinic"] = rng.integers(0, 40, n)
    draws = rng.exponential(1.0, (n, 16)) / rng.gamma(2.0, 0.5, (n, 8)).repeat(2, axis=1)
    for i in range(16):
        frame[f"draw {i}"] = draws[:, i] * 100 * (1.6 if i % 2 else 1.0)
    frame["x"] = x
    return frame


def assert_same(memory: cs.Comparison, streamed: cs.Comparison) -> None:
    """The same tables: numbers to 1e-12 of the size of the means, everything else as it is."""
    for name in ("frame", "differences"):
        ours, theirs = getattr(memory, name)(), getattr(streamed, name)()
        assert list(ours.columns) == list(theirs.columns)
        assert len(ours) == len(theirs) > 0
        scale = 0.0 if name == "frame" else float(memory.frame()["mean"].abs().replace(np.inf, np.nan).max())
        for column in ours:
            if ours[column].dtype.kind != "f":
                assert ours[column].tolist() == theirs[column].tolist(), column
                continue
            small = 1e-12 * scale if column in ("difference", "low", "high") else 1e-12
            np.testing.assert_allclose(
                theirs[column], ours[column], rtol=2e-11 if "skill" in column else 1e-12, atol=small,
                err_msg=column,
            )  # fmt: skip
    ours, theirs = said_in_batches(memory.verdict), streamed.verdict.sentences
    assert ours == theirs


def said_in_batches(verdict):
    """A verdict without what it says of calibration, which needs all subjects in memory."""
    told = ("ICI", "D-calibration")
    return [sentence for sentence in verdict.sentences if not any(word in sentence for word in told)]
