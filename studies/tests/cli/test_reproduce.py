"""``censcore reproduce`` at toy sizes: tables in four formats, pictures, records, resuming."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from censcore.cli.app import app
from censcore_studies.kit.tables import Stages, StudyTable, as_latex, as_markdown, how_it_was_made

FORMATS = ("csv", "json", "md", "tex")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def assert_written(out, name: str) -> dict:
    for ending in FORMATS:
        assert (out / f"{name}.{ending}").stat().st_size > 0
    record = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    assert {"command", "settings", "seeds", "versions", "seconds", "rows"} <= set(record)
    assert record["versions"]["numpy"]
    assert len(record["rows"]) == len(pd.read_csv(out / f"{name}.csv"))
    return record


def test_oracle_ranks(tmp_path):
    text = run("oracle-ranks", "--replications", 2, "--n", 60, "--out", tmp_path, "--seed", 5)
    assert "cells reproduce the printed rank" in text
    assert "Brier, Yanagisawa plug-in" in text
    assert "time: cells" in text
    record = assert_written(tmp_path, "oracle_ranks")
    assert record["seeds"] == {"first": 5, "last": 6}
    assert (tmp_path / "oracle_ranks.png").exists()
    finished = {path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    run("oracle-ranks", "--replications", 2, "--n", 60, "--out", tmp_path, "--seed", 5)
    assert {path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == finished


def test_raw_scores_with_one_draw_and_a_large_one(tmp_path):
    text = run("raw-scores", "--replications", 1, "--n", 50, "--large", 80, "--out", tmp_path)
    assert "large n ± se" in text
    assert_written(tmp_path, "raw_scores")


def test_sensitivity(tmp_path):
    text = run("sensitivity", "--replications", 2, "--n", 100, "--out", tmp_path)
    assert "Cox | x, cross-fitted" in text
    assert_written(tmp_path, "sensitivity")
    assert (tmp_path / "sensitivity.png").exists()


def test_convergence_takes_several_values_in_a_row(tmp_path):
    run("convergence", "--replications", 1, "--sizes", 30, 40, "--severities=1.0", "--out", tmp_path)
    record = assert_written(tmp_path, "convergence")
    assert record["settings"]["sizes"] == [30, 40]
    assert (tmp_path / "convergence.png").exists()
    again = run("convergence", "--replications", 1, "--sizes", "30,40", "--severities", 1, "--out", tmp_path)
    assert "n = 40" in again


def test_multivariate_and_its_tables_again(tmp_path, monkeypatch):
    from censcore_studies.multivariate.study import DEFAULTS

    for name, value in {"n_train": 120, "n_valid": 40, "n_test": 50, "members": 32}.items():
        monkeypatch.setitem(DEFAULTS, name, value)
    options = ["--k", 2, 3, "--scenario", "mixture", "--censoring", "uniform", "--repetitions", 1]
    text = run("multivariate", *options, "--methods", "DGP", "Independent Weibull", "--out", tmp_path)
    assert "data and scoring" in text
    for name in ("mixture_k2", "mixture_k3"):
        assert_written(tmp_path, name)
    assert len(pd.read_csv(tmp_path / "cells.csv")) == 4
    for path in (tmp_path / "cells").iterdir():
        path.unlink()
    again = run("multivariate", "--no-run", "--out", tmp_path)
    assert "Independent Weibull" in again


def test_help_lists_the_studies():
    text = CliRunner().invoke(app, ["reproduce", "--help"]).output
    for name in ("oracle-ranks", "raw-scores", "sensitivity", "convergence", "multivariate", "aki"):
        assert name in text


def test_tables_escape_what_latex_would_read():
    view = pd.DataFrame({"rule": ["a_b"], "share": ["50 % ± 1"]})
    assert r"a\_b & 50 \% $\pm$ 1 \\" in as_latex(view, "100 %")
    assert as_markdown(view).splitlines()[1].startswith("|:---")
    assert as_markdown(pd.DataFrame({"model": ["Cox | x"]})).splitlines()[2] == r"| Cox \| x |"


def test_records_and_tables_hold_no_values_that_json_lacks(tmp_path):
    rows = pd.DataFrame({"x": [1.0, float("inf"), float("nan")]})
    StudyTable("t", rows, rows.astype(str), "Caption.").write(tmp_path, how_it_was_made([0], {}, Stages()))
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert [row["x"] for row in json.loads(text)["rows"]] == [1.0, None, None]
    assert "Infinity" not in text


def test_stages_add_up():
    stages = Stages()
    for _ in range(2):
        with stages("a"):
            pass
    with pytest.raises(ValueError, match="broken"), stages("b"):
        raise ValueError("broken")
    assert list(stages.seconds) == ["a", "b"]
