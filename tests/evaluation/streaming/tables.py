"""A table of outcomes and forecasts, and when two comparisons of it are the same."""

from __future__ import annotations

import numpy as np
import pandas as pd

import censcore as cs

TIMES = np.array([20.0, 50, 100, 150, 200, 300])
NAMES = ["relapse", "death"]


class Draws:
    """The joint ensemble in the columns of draws."""

    columns = tuple(f"draw {i}" for i in range(16))

    def __init__(self, slope):
        self.slope = slope
        self.columns = (*Draws.columns, "x")

    def __call__(self, rows):
        draws = rows[list(Draws.columns)].to_numpy().reshape(len(rows), 8, 2)
        return cs.Ensemble(draws * (rows["x"].to_numpy() ** self.slope)[:, None, None])


JOINT = {"good": Draws(1.0), "poor": Draws(0.0)}


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
    """Compare two comparisons: numbers as far as their conditioning allows, everything else exactly."""
    scale = float(memory.frame()["mean"].abs().replace(np.inf, np.nan).max())
    for name in ("frame", "differences"):
        ours, theirs = getattr(memory, name)(), getattr(streamed, name)()
        assert list(ours.columns) == list(theirs.columns)
        assert len(ours) == len(theirs) > 0
        error = rounding_errors(ours, scale)
        for column in ours:
            if ours[column].dtype.kind != "f":
                assert ours[column].tolist() == theirs[column].tolist(), column
                continue
            a, b = ours[column].to_numpy(), theirs[column].to_numpy()
            with np.errstate(invalid="ignore"):  # inf - inf
                apart = np.abs(a - b)
            off = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (apart <= error[column]))
            assert not off.any(), f"{column}: {a[off]} in memory, {b[off]} in batches, off by {apart[off]}"
    ours, theirs = said_in_batches(memory.verdict), streamed.verdict.sentences
    assert ours == theirs


def rounding_errors(frame: pd.DataFrame, scale: float, relative: float = 1e-12) -> pd.DataFrame:
    """Bound the rounding error of each number, given the relative error of a mean loss of size ``scale``.

    A difference of means loses digits to cancellation: its error is that of the means. With z the difference
    over its standard error s, the error of z is (1 + abs(z)) scale / s times that of a mean, and a p value
    moves by at most p (1 + abs(z)) times the error of z, since 1 + z bounds the hazard of a normal variable.
    A skill is one minus a ratio of means.
    """
    numbers = frame.select_dtypes("float")
    error = relative * (1 + numbers.abs())
    if "difference" not in frame:
        skills = [name for name in numbers if "skill" in name]
        cancelled = (scale / frame["mean"].abs().clip(lower=1e-300)).clip(lower=1.0)
        error[skills] = error[skills].mul(10 * cancelled, axis=0)
        return error
    z = (frame["difference"] / frame["standard_error"]).abs().fillna(0.0)
    of_z = relative * (1 + z) * (scale / frame["standard_error"]).fillna(0.0)
    for name in ("difference", "standard_error", "low", "high"):
        error[name] = relative * (scale + numbers[name].abs())
    for name in ("p_value", "p_adjusted"):
        error[name] = relative * numbers[name] + numbers[name] * (1 + z) * of_z
    return error


def said_in_batches(verdict):
    """A verdict without what it says of calibration, which needs all subjects in memory."""
    told = ("ICI", "D-calibration")
    return [sentence for sentence in verdict.sentences if not any(word in sentence for word in told)]
