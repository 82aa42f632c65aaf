"""``censcore validate`` and ``censcore pool``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run
from tests.evaluation.validations import T0, drawn, of_two_causes, two_causes

import censcore as cs
from censcore.exceptions import InvalidInputError


@pytest.fixture
def table(tmp_path):
    """Risks by 1 in a file, with three sites."""
    x, y = drawn(300, 30)
    path = tmp_path / "data.csv"
    frame = {
        "t": y.time,
        "e": y.event.astype(int),
        "risk@1": -np.expm1(-np.exp(x)),
        "site": np.arange(300) % 3,
    }
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


OPTIONS = ("--time-column", "t", "--event", "e", "--risk", "risk@1", "--time", "1")


def test_numbers_are_those_of_the_function(table, tmp_path):
    x, y = drawn(300, 30)
    said = run("validate", table, *OPTIONS, "--thresholds", "0.5", "--out", tmp_path / "out.csv")
    expected = cs.validate(cs.Exponential(np.exp(x)), y, time=T0, thresholds=[0.5])
    written = pd.read_csv(tmp_path / "out.csv").set_index("measure")
    for name in ("O/E", "calibration slope", "AUC", "Brier", "net benefit at 0.5"):
        assert written["value"][name] == pytest.approx(expected.line(name)["value"], rel=1e-9)
        assert written["low"][name] == pytest.approx(expected.line(name)["low"], rel=1e-9)
    assert "calibration slope" in said
    assert "written:" in said


def test_a_page_and_tables(table, tmp_path):
    for ending, part in ((".html", "What remains to be judged"), (".tex", r"\toprule"), (".md", "| O/E")):
        out = tmp_path / f"out{ending}"
        run("validate", table, *OPTIONS, "--quiet", "--out", out)
        assert part in out.read_text(encoding="utf-8")
    with pytest.raises(InvalidInputError, match="must end in"):
        run("validate", table, *OPTIONS, "--out", tmp_path / "out.xlsx")


def test_summaries_of_sites_pool_as_one_call_does(table, tmp_path):
    frame, files = pd.read_csv(table), []
    for site, part in frame.groupby("site"):
        part.to_csv(tmp_path / f"{site}.csv", index=False)
        files.append(tmp_path / f"{site}.json")
        run("validate", tmp_path / f"{site}.csv", *OPTIONS, "--summary", files[-1], "--site", site, "--quiet")
    document = json.loads(files[0].read_text(encoding="utf-8"))
    assert document["subjects"] == 100
    assert not any(isinstance(value, list) and len(value) >= 100 for value in document.values())
    run("pool", *files, "--out", tmp_path / "pooled.csv")
    pooled = pd.read_csv(tmp_path / "pooled.csv").query("site == 'pooled'").set_index("measure")
    F = cs.as_forecast(1 - frame["risk@1"].to_numpy(), times=T0)
    y = cs.RightCensored(frame.t, frame.e)
    once = cs.validate({"risk": F}, y, time=T0, sites=frame.site.to_numpy()).sites.frame()
    once = once[once.site == "pooled"].set_index("measure")
    for name in ("O/E", "AUC", "calibration slope"):
        for number in ("value", "low", "high", "tau", "prediction_low"):
            assert pooled[number][name] == pytest.approx(once[number][name], rel=1e-9, abs=1e-12)


def test_causes_are_read_from_their_columns(tmp_path):
    x, y = two_causes(300, 31)
    F = of_two_causes(x)
    frame = {"t": y.time, "cause": y.causes}
    frame |= {f"cif_{name}@1": np.ravel(F.cif(T0)[:, j]) for j, name in enumerate(y.names)}
    pd.DataFrame(frame).to_csv(tmp_path / "data.csv", index=False)
    said = run("validate", tmp_path / "data.csv", "--time-column", "t", "--cause", "cause",
               "--causes", "relapse,death", "--time", "1")  # fmt: skip
    assert "relapse" in said
    assert "death" in said


def test_options_that_do_not_fit_are_named(table):
    with pytest.raises(InvalidInputError, match="got the time 1, expected --time 2"):
        run("validate", table, *OPTIONS[:-1], "2")
    with pytest.raises(InvalidInputError, match="no such column"):
        run("validate", table, "--time-column", "t", "--event", "e", "--risk", "other", "--time", "1")
