"""The scripts of docs/from_r.md in R, and what R hands over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run
from tests.cli.predictions import sample

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import as_outcome

ROOT = Path(__file__).parents[2]


def script(number: int) -> str:
    """One of the scripts in R of the page."""
    return (ROOT / "docs" / "from_r.md").read_text(encoding="utf-8").split("```r\n")[number].split("```")[0]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="there is no Rscript on the path")
def test_the_script_by_a_file(tmp_path):
    """R writes predictions, the command line compares them, and R reads the result."""
    needed = 'for (p in c("survival", "jsonlite")) if (!requireNamespace(p)) quit(status = 77)\n'
    (tmp_path / "script.R").write_text(needed + script(1), encoding="utf-8")
    command = tmp_path / "censcore"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m censcore "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    places = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    known = os.environ | {"PATH": places}
    done = subprocess.run(["Rscript", "script.R"], cwd=tmp_path, env=known, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("R has no package survival or jsonlite")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kaplan-meier" in done.stdout
    table = pd.read_csv(tmp_path / "predictions.csv")
    y = cs.RightCensored(table["time"], table["event"])
    F = cs.Step([50.0, 100.0, 200.0], cdf=table[[f"cox__cdf@{t}" for t in (50, 100, 200)]].to_numpy())
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    means = pd.DataFrame(json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["means"])
    found = means.query("model == 'cox' and at == 100 and score == 'brier_score:ipcw'")["mean"].iloc[0]
    assert found == pytest.approx(cs.brier_score(y, F, C, 100.0, scale="ipcw").mean(), rel=1e-9)


def test_columns_called_time_and_event_need_no_options(tmp_path):
    table = sample(80, 0).rename(columns={"days": "time", "died": "event"})
    table.to_csv(tmp_path / "p.csv", index=False)
    options = ["--scores", "crps", "--json", tmp_path / "out.json", "--quiet"]
    run("compare", tmp_path / "p.csv", *options)
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    run("compare", tmp_path / "p.csv", "--time", "time", "--event", "event", *options)
    assert found["means"] == json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["means"]


def test_outcomes_of_surv():
    time, status, start = np.array([5.0, 8.0, 2.0]), np.array([1, 0, 1]), np.array([0.0, 1.0, 0.5])
    names = {"time": time, "status": status}
    two = [
        np.column_stack([time, status]), pd.DataFrame(names),
        np.array([*zip(time, status, strict=True)], dtype=[("time", float), ("status", int)]),
    ]  # fmt: skip
    for y in two:
        assert as_outcome(y).time.tolist() == time.tolist()
        assert as_outcome(y).event.tolist() == [True, False, True]
    intervals = [
        np.column_stack([start, time, status]),
        pd.DataFrame({"start": start, "stop": time, "status": status}),
        pd.DataFrame({"start": start, "stop": time, "event": status}),
    ]
    for y in intervals:
        assert as_outcome(y).entry.tolist() == start.tolist()
        assert as_outcome(y).time.tolist() == time.tolist()
    F, options = cs.Exponential(0.2), {"scores": "crps", "reference": None, "discrimination": False}
    means = [
        cs.compare({"a": F}, y, cs.Uniform(0.0, 20.0), **options, horizon=9.0).frame()["mean"][0] for y in two
    ]
    assert means == pytest.approx([cs.crps(two[0], F, cs.Uniform(0.0, 20.0), horizon=9.0).mean()] * 3)
    for wrong in (np.column_stack([status, time]), np.column_stack([status, status]), np.ones((3, 4))):
        with pytest.raises(InvalidTypeError, match="y must be a RightCensored outcome"):
            as_outcome(wrong)


def test_counts_and_single_numbers():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 1)), cs.RightCensored(rng.exponential(1.0, 40), np.ones(40))
    options = {"scores": "crps", "discrimination": False, "reference": None}
    whole, real = (cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=cv, **options) for cv in (4, 4.0))
    assert real.frame()["mean"].tolist() == whole.frame()["mean"].tolist()
    twice = cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=cs.Folds(4.0, repeats=2.0), **options)
    assert twice.settings["cross-validation"] == "4 folds, 2 repeats"
    with pytest.raises(InvalidTypeError, match=r"got 4\.5"):
        cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=4.5, **options)
    one = cs.Step(1000.0, cdf=[0.2, 0.4])
    assert one.cdf(1000.0).tolist() == cs.Step([1000.0], cdf=[[0.2], [0.4]]).cdf(1000.0).tolist()
    assert len(cs.Step(1000.0, sf=0.7)) == 1
    assert cs.Bootstrap(20.0).get_n_splits() == 20


def test_missing_values_of_r_are_named():
    na = np.array([3, -2147483648, 2], dtype=np.int32)
    y = cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1])
    for call in (
        lambda: cs.RightCensored(na, [1, 0, 1]),
        lambda: cs.RightCensored([1.0, 2.0, 3.0], np.array([1, -2147483648, 0], dtype=np.int32)),
        lambda: cs.CoxRegression().fit(na[:, None], y),
        lambda: cs.CoxRegression().fit(pd.DataFrame({"x": na}), y),
    ):
        with pytest.raises(InvalidInputError, match="R's NA"):
            call()
    with pytest.raises(
        InvalidInputError, match=r"event must be .* got a missing value .* in 1 subject \(2\)"
    ):
        cs.RightCensored([1.0, 2.0, 3.0], np.array([True, False, None], dtype=object))
