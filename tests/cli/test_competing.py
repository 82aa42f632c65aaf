"""``--cause`` names the column of causes; forecasts are columns cif_CAUSE@TIME."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run

import censcore as cs
from censcore.exceptions import CenscoreError

NAMES = ["relapse", "death"]
TRUTH = cs.CauseSpecificHazards([cs.Weibull(1.3, 3.0), cs.Exponential(0.25)], names=NAMES)
TIMES = [0.5, 1.0, 2.0, 3.0, 4.0]


def sample(n, seed, labels=NAMES):
    time, cause = (part[0] for part in TRUTH.sample(n, seed=seed))
    c = np.random.default_rng(seed).uniform(0, 5, n)
    frame = pd.DataFrame({"days": np.minimum(time, c), "cause": np.where(time <= c, cause, 0)})
    cif = np.repeat(TRUTH.cif(TIMES), n, axis=0)
    columns = {
        f"cox__cif_{label}@{t:g}": cif[:, j, k] for j, label in enumerate(labels) for k, t in enumerate(TIMES)
    }
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)


def written(path, frame):
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("labels", [NAMES, ["1", "2"]])
def test_compare(tmp_path, labels):
    test, train = sample(80, 0, labels), sample(90, 1)
    files = [written(tmp_path / "test.csv", test), "--train", written(tmp_path / "train.csv", train)]
    options = ["--time", "days", "--cause", "cause", "--causes", "relapse,death", "--horizon", "3.5"]
    text = run("compare", *files, *options, "--json", tmp_path / "out.json", "--html", tmp_path / "out.html")
    assert "death: " in text
    assert "aalen-johansen" in text
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["means"]
    (mean,) = [
        line["mean"]
        for line in found
        if (line["score"], line["outcome"], line["model"]) == ("crps", "death", "cox")
    ]
    F = cs.CumulativeIncidence(TIMES, TRUTH.cif(TIMES), interpolation="linear")
    y, y_train = (cs.CompetingRisks.from_frame(frame, "days", "cause") for frame in (test, train))
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y_train).predict_distribution()
    assert mean == pytest.approx(cs.crps(y.cause(2), F.cause(2), C, horizon=3.5).mean())
    assert "death: Calibration" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_causes_by_name_and_losses_of_subjects(tmp_path):
    test = sample(50, 0)
    test["cause"] = np.array(["censored", *NAMES])[test["cause"]]
    options = ["--time", "days", "--cause", "cause", "--causes", "relapse,death", "--horizon", "3"]
    path = written(tmp_path / "test.csv", test)
    run("score", path, *options, "--scores", "crps,brier_score", "--times", "2", "--out", tmp_path / "l.csv")
    losses = pd.read_csv(tmp_path / "l.csv")
    assert len(losses) == 50
    assert {"cox__crps[death]", "cox__brier_score[all causes]@2"} <= set(losses.columns)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, ["--cause", "cause", "--event", "cause"], "got both of --event and --cause"),
        ({}, [], "--event event: there is no such column"),
        ({}, ["--cause", "cause"], "got the cause 'relapse', expected columns cox__cif_CAUSE@TIME"),
        ({"cox__cif_death@2": None}, ["--cause", "cause", "--causes", "relapse,death"], "cox__cif_death@2"),
        ({"km__sf@2": 0.5}, ["--cause", "cause", "--causes", "relapse,death"], "got the column km__sf@2"),
        ({"cause": "cured"}, ["--cause", "cause", "--causes", "relapse,death"], "--cause cause: got cured"),
        ({"cause": 1}, ["--event", "cause"], "--cause COLUMN in place of --event"),
    ],
)  # fmt: skip
def test_bad_input(tmp_path, change, options, message):
    frame = sample(20, 0)
    for name, value in change.items():
        frame = frame.drop(columns=name) if value is None else frame.assign(**{name: value})
    path = written(tmp_path / "test.csv", frame)
    with pytest.raises(CenscoreError) as error:
        run("compare", path, "--time", "days", *options)
    assert message in str(error.value)
