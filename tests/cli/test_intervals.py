"""``--lower``, ``--upper`` and ``--visits`` name the columns of interval-censored data; ``--time-unit``."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run
from typer.testing import CliRunner

import censcore as cs
from censcore.cli.app import app
from censcore.exceptions import InvalidInputError, MissingVisitsError

TIMES = np.arange(0.5, 9.0, 0.5)
VISITS = [f"visit_{j}" for j in range(6)]


def sample(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x))
    T, visits = F.sample(1, seed)[:, 0], np.cumsum(rng.uniform(0.3, 2.0, (n, 6)), axis=1)
    before = visits < T[:, None]
    frame = pd.DataFrame({"clear": np.max(np.where(before, visits, 0.0), axis=1)})
    frame["found"] = np.min(np.where(before, np.inf, visits), axis=1)
    frame.loc[np.isinf(frame["found"]), "found"] = np.nan
    frame[VISITS] = visits
    frame["ward"] = rng.integers(0, 20, n)
    frame[[f"exact__sf@{t:g}" for t in TIMES]] = F.sf(TIMES[None, :])
    frame[[f"flat__sf@{t:g}" for t in TIMES]] = np.repeat(cs.Weibull(1.5, 3.0).sf(TIMES[None, :]), n, axis=0)
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intervals")
    for seed, name in enumerate(("test", "train")):
        sample(120, seed).to_csv(folder / f"{name}.csv", index=False)
    return folder


def outcome(frame):
    return cs.IntervalCensored.from_frame(frame, "clear", "found", VISITS)


def forecasts(frame):
    return {
        model: cs.as_forecast(frame.filter(like=f"{model}__sf").to_numpy(), times=TIMES)
        for model in ("exact", "flat")
    }


@pytest.mark.parametrize("visits", ["visit_*", ",".join(VISITS)])
def test_a_comparison_of_intervals_is_that_of_python(files, visits):
    text = run(
        "compare", files / "test.csv", "--lower", "clear", "--upper", "found", "--visits", visits,
        "--train", files / "train.csv", "--horizon", "7", "--scores", "log_score,crps,brier_score",
        "--times", "2,4", "--groups", "ward", "--time-unit", "months", "--json", files / "out.json",
        "--html", files / "out.html",
    )  # fmt: skip
    test, train = (pd.read_csv(files / f"{name}.csv") for name in ("test", "train"))
    found = cs.compare(
        forecasts(test), outcome(test), train=(None, outcome(train)), horizon=7.0, times=[2.0, 4.0],
        scores=["log_score", "crps", "brier_score"], groups=test["ward"],
    )  # fmt: skip
    written = pd.DataFrame(json.loads((files / "out.json").read_text(encoding="utf-8"))["means"])
    ours = found.frame()
    assert written["model"].tolist() == ours["model"].tolist()
    for column in ("mean", "standard_error"):
        np.testing.assert_allclose(written[column].astype(float), ours[column], rtol=1e-9)
    assert "turnbull" in text
    assert "detection time" in text
    assert "7 months" in text
    assert "months" in (files / "out.html").read_text(encoding="utf-8")


def test_losses_of_intervals(files):
    run(
        "score", files / "test.csv", "--lower", "clear", "--upper", "found", "--visits", "visit_*",
        "--horizon", "7", "--scores", "log_score,crps", "--out", files / "losses.csv",
    )  # fmt: skip
    test = pd.read_csv(files / "test.csv")
    losses, F = pd.read_csv(files / "losses.csv"), forecasts(test)["exact"]
    np.testing.assert_allclose(losses["exact__crps"], cs.crps(outcome(test), F, horizon=7.0), rtol=1e-9)
    np.testing.assert_allclose(
        losses["exact__log_score"], cs.log_score(outcome(test), F, horizon=7.0), rtol=1e-9
    )


def test_subjects_who_drop_out(files):
    test = pd.read_csv(files / "test.csv")
    gone = (np.arange(120) % 3 == 0) & (test["clear"] > 0)
    test.loc[gone, "found"] = np.nan
    test.to_csv(files / "gone.csv", index=False)
    intervals = ("--lower", "clear", "--upper", "found", "--visits", "visit_*")
    options = (*intervals, "--horizon", "5", "--scores", "crps")
    text = run("compare", files / "gone.csv", *options)
    assert "drop-out by the number of the visit" in text
    named = ("--censoring", "kaplan-meier", "--json", files / "gone.json")
    assert run("compare", files / "gone.csv", *options, *named).startswith(text.split("\nwritten")[0])
    y = outcome(test)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    expected = cs.crps(y, forecasts(test)["exact"], C, horizon=5.0).mean()
    table = json.loads((files / "gone.json").read_text(encoding="utf-8"))["means"]
    assert table[0]["mean"] == pytest.approx(expected)


def test_without_visits_the_log_score_is_compared(files):
    intervals = ("--lower", "clear", "--upper", "found")
    text = run("compare", files / "test.csv", *intervals)
    assert "log score" in text
    assert "CRPS" not in text
    with pytest.raises(MissingVisitsError, match="visits=None"):
        run("compare", files / "test.csv", *intervals, "--scores", "crps")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--lower", "clear"), "got no --upper"),
        (("--upper", "found"), "got no --lower"),
        (("--lower", "clear", "--upper", "found", "--event", "ward"), "got --event together with --lower"),
        (
            ("--lower", "clear", "--upper", "found", "--visits", "day_*"),
            "--visits day_*: there is no such column",
        ),
        (("--lower", "clear", "--upper", "fnd"), "--upper fnd: there is no such column"),
        (("--time", "clear", "--event", "ward", "--visits", "visit_*"), "--visits belongs to intervals"),
        (("--lower", "clear", "--upper", "found", "--batch", "50"), "intervals are compared in memory"),
    ],
)
def test_options_that_do_not_fit_together(files, options, says):
    with pytest.raises(InvalidInputError, match=re.escape(says)):
        run("compare", files / "test.csv", *options)


def test_the_time_unit_of_a_table_in_batches(tmp_path):
    rng = np.random.default_rng(0)
    T, C = rng.exponential(1.0, 90), rng.uniform(0.0, 3.0, 90)
    frame = pd.DataFrame({"t": np.minimum(T, C), "d": (T <= C).astype(int)})
    for t in (0.5, 1.0, 2.0):
        frame[f"m__sf@{t:g}"] = np.exp(-t)
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ("--time", "t", "--event", "d", "--horizon", "1.5", "--scores", "crps", "--time-unit", "years")
    for batch in ((), ("--batch", "40")):
        text = run("compare", tmp_path / "a.csv", *options, *batch)
        assert "1.5 years" in text


def test_an_outcome_that_is_not_named_is_called_time(files):
    result = CliRunner().invoke(app, ["compare", str(files / "test.csv"), "--event", "ward"])
    assert result.exit_code == 1
    assert "--time time: there is no such column" in str(result.exception)


def test_exact_times_leave_the_reference_without_a_log_score(files):
    for name in ("test", "train"):
        frame = pd.read_csv(files / f"{name}.csv")
        some = (np.arange(120) % 2 == 0) & frame["found"].notna()
        frame.loc[some, "clear"] = frame.loc[some, "found"]
        frame.to_csv(files / f"exact_{name}.csv", index=False)
    intervals = ("--lower", "clear", "--upper", "found", "--interpolation", "linear", "--tail", "exponential")
    text = run("compare", files / "exact_test.csv", *intervals, "--train", files / "exact_train.csv")
    assert "Not available for turnbull" in text
    assert re.search(r"exact +\d\.\d+ ± ", text)
