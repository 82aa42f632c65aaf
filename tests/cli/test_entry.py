"""``--entry`` names the column of entry times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from tests.cli.commands import run

import censcore as cs

TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0])


def sample(n, seed):
    rng = np.random.default_rng(seed)
    entry = np.where(rng.random(n) < 0.4, 0.0, rng.uniform(0, 0.8, n))
    T, C = entry + rng.exponential(1.0, n), entry + rng.exponential(1.5, n)
    frame = pd.DataFrame({"days": np.minimum(T, C), "died": (T <= C).astype(int), "start": entry})
    survival = np.repeat(cs.Exponential(1.0).sf(TIMES[None, :]), n, axis=0)
    return pd.concat([frame, pd.DataFrame(survival, columns=[f"exact__sf@{t:g}" for t in TIMES])], axis=1)


def outcome(frame):
    return cs.RightCensored.from_frame(frame, time="days", event="died", entry="start")


def test_scores_are_given_survival_to_the_entry(tmp_path):
    test, train = sample(80, 0), sample(100, 1)
    for name, frame in (("test", test), ("train", train)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = (tmp_path / "test.csv", "--train", tmp_path / "train.csv", "--time", "days", "--event", "died")
    files = (*files, "--interpolation", "step", "--tail", "infinity")
    text = run("score", *files, "--entry", "start", "--horizon", "1.5", "--out", tmp_path / "losses.csv")
    assert "Delayed entry in" in text
    C = cs.Censoring(cs.KaplanMeier()).fit(None, outcome(train)).predict_distribution()
    F = cs.Step(TIMES, sf=test.filter(like="sf@").to_numpy())
    expected = cs.crps(outcome(test), F, C, horizon=1.5)
    losses = pd.read_csv(tmp_path / "losses.csv")
    np.testing.assert_allclose(losses["exact__crps"], expected, rtol=1e-9)
    assert "CRPS" in run("compare", *files, "--entry", "start", "--scores", "crps", "--horizon", "1.5")


def test_a_regression_of_the_censoring_time_on_text_respects_the_entry(tmp_path):
    """Text is encoded by a pipeline, at whose end the regression needs the entries."""
    table = sample(90, 2)
    table["site"] = np.where(np.arange(90) % 3 == 0, "north", "south")
    table.to_csv(tmp_path / "a.csv", index=False)
    run(
        "score", tmp_path / "a.csv", "--time", "days", "--event", "died", "--entry", "start",
        "--censoring", "cox", "--covariates", "site", "--horizon", "1.5",
        "--interpolation", "step", "--tail", "infinity", "--out", tmp_path / "losses.csv",
    )  # fmt: skip
    south = (table[["site"]] == "south").astype(float)
    C = cs.Censoring(cs.CoxRegression()).fit(south, outcome(table)).predict_distribution(south)
    F = cs.Step(TIMES, sf=table.filter(like="sf@").to_numpy())
    expected = cs.crps(outcome(table), F, C, horizon=1.5)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "losses.csv")["exact__crps"], expected, rtol=1e-8)
