"""The commands of the ICU study, on a small synthetic database."""

import pytest
from typer.testing import CliRunner

from censcore.cli.app import app
from censcore.exceptions import CenscoreError

pytest.importorskip("duckdb")

runner = CliRunner()


def test_synthetic_then_build_is_resumable(tmp_path):
    data, out = tmp_path / "db", tmp_path / "study"
    assert runner.invoke(app, ["aki", "synthetic", str(data), "--stays", "40"]).exit_code == 0
    first = runner.invoke(app, ["aki", "build", str(data), "--out", str(out)], catch_exceptions=False)
    again = runner.invoke(app, ["aki", "build", str(data), "--out", str(out)], catch_exceptions=False)
    assert first.exit_code == again.exit_code == 0
    assert (out / "split" / "stage.json").exists()
    assert len(again.output) < len(first.output)


def test_a_missing_folder_and_bad_settings_are_named(tmp_path):
    missing = runner.invoke(app, ["aki", "build", str(tmp_path / "none"), "--out", str(tmp_path / "o")])
    assert isinstance(missing.exception, CenscoreError)
    (tmp_path / "s.json").write_text('{"nothing": {}}')
    bad = [
        "aki",
        "build",
        str(tmp_path),
        "--out",
        str(tmp_path / "o"),
        "--settings",
        str(tmp_path / "s.json"),
    ]
    assert "nothing" in str(runner.invoke(app, bad).exception)
