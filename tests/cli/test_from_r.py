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


def run_in_r(text: str, folder: Path, needed: dict[str, str], **variables: str) -> str:
    """What R prints; the test is skipped where there is no R, or a package is missing or older."""
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript on the path")
    check = (
        'if (!requireNamespace("{0}", quietly = TRUE) || packageVersion("{0}") < "{1}") quit(status = 77)\n'
    )
    checks = "".join(check.format(*package) for package in needed.items())
    (folder / "script.R").write_text(checks + text, encoding="utf-8")
    known = os.environ | variables
    done = subprocess.run(["Rscript", "script.R"], cwd=folder, env=known, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"R does not have {' and '.join(f'{name} {least}' for name, least in needed.items())}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_script_by_a_file(tmp_path):
    """R writes predictions, the command line compares them, and R reads the result."""
    command = tmp_path / "censcore"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m censcore "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    places = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    printed = run_in_r(script(1), tmp_path, {"survival": "3.0", "jsonlite": "1.0"}, PATH=places)
    assert "kaplan-meier" in printed
    table = pd.read_csv(tmp_path / "predictions.csv")
    y = cs.RightCensored(table["time"], table["event"])
    F = cs.Step([50.0, 100.0, 200.0], cdf=table[[f"cox__cdf@{t}" for t in (50, 100, 200)]].to_numpy())
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    means = pd.DataFrame(json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["means"])
    found = means.query("model == 'cox' and at == 100 and score == 'brier_score:ipcw'")["mean"].iloc[0]
    assert found == pytest.approx(cs.brier_score(y, F, C, 100.0, scale="ipcw").mean(), rel=1e-9)


def test_the_script_by_reticulate(tmp_path):
    """The second script, and what R hands over: doubles for whole numbers, ``Surv``, factors, ``NA``."""
    more = """
    write.csv(found$frame(), "found.csv"); write.csv(out, "predictions.csv", row.names = FALSE)
    km <- list(km = cs$KaplanMeier())
    surv <- Surv(test$time, test$event)
    whole <- cs$cross_validate(km, test["age"], surv, cv = 3, seed = 1, scores = "crps")
    fold <- 1:nrow(test) %% 3
    folds <- lapply(0:2, function(k) list(which(fold != k) - 1, which(fold == k) - 1))
    given <- cs$cross_validate(km, test["age"], y, cv = folds, scores = "crps")
    draws <- cs$Weibull(1.5, 2)$sample(2, seed = 1)
    first <- cs$CompetingRisks(1:4, c(0, 1, 2, 1))$cause(1)
    theirs <- coef(coxph(Surv(time, event) ~ karno + celltype, test))
    ours <- cs$CoxRegression(ties = "efron")$fit(test[, c("karno", "celltype")], y)$coef_
    stopifnot(max(abs(theirs - ours)) < 1e-8, is.null(found$to_html("page.html")), dim(draws) == c(1, 2))
    test$age[3] <- NA
    stopifnot(length(cs$CoxRegression()$fit(as.matrix(test["age"]), y)$coef_) == 2)
    message <- tryCatch(cs$RightCensored(c(1L, NA), c(1L, 0L)), error = conditionMessage)
    stopifnot(grepl("R's NA", message))
    """
    text = script(1).split("write.csv")[0] + script(2) + more
    packages = {"survival": "3.0", "reticulate": "1.38"}  # NumPy 2 from 1.38 on
    places = os.pathsep.join(path for path in sys.path if path)
    run_in_r(text, tmp_path, packages, RETICULATE_PYTHON=sys.executable, PYTHONPATH=places, MPLBACKEND="agg")
    table = pd.read_csv(tmp_path / "predictions.csv")
    y = cs.RightCensored(table["time"], table["event"])
    F = cs.Step([50.0, 100.0, 200.0], cdf=table[[f"cox__cdf@{t}" for t in (50, 100, 200)]].to_numpy())
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    found = pd.read_csv(tmp_path / "found.csv").query("model == 'cox' and score == 'brier_score:ipcw'")[
        "mean"
    ]
    expected = cs.brier_score(y, F, C, [50.0, 100.0, 200.0], scale="ipcw").mean(axis=0)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-9)
    assert (tmp_path / "roc.png").stat().st_size > 1000


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
    halves = [(np.arange(20.0, 40.0), np.arange(20.0)), (np.arange(20.0), np.arange(20.0, 40.0))]
    given = [cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=cv, **options) for cv in (halves, [
        (train.astype(int), test.astype(int)) for train, test in halves])]  # fmt: skip
    assert given[0].frame()["mean"].tolist() == given[1].frame()["mean"].tolist()
    with pytest.raises(InvalidInputError, match="fold 1 must be a pair of subject numbers"):
        cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=[(np.array([0.5]), np.array([1.0]))], **options)
    assert (
        cs.Weibull(1.5, 2.0).sample(2, seed=1.0).tolist() == cs.Weibull(1.5, 2.0).sample(2, seed=1).tolist()
    )
    assert cs.Bootstrap(20, random_state=3.0) == cs.Bootstrap(20, random_state=3)
    assert cs.CompetingRisks([1.0, 2.0], [1, 2]).cause(2.0).event.tolist() == [False, True]
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
        lambda: cs.RightCensored([3, -2147483648, 2], [1, 0, 1]),
        lambda: cs.RightCensored([1.0, 2.0, 3.0], [1, -2147483648, 0]),
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
