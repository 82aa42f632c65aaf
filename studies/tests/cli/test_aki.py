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
    (tmp_path / "s.json").write_text('{"nothing": {}}', encoding="utf-8")
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


def without_cost(page: str) -> str:
    """A page without the section on what the run cost."""
    before, _, after = page.partition("<h2>Time and memory</h2>")
    return before + after.partition("<h2>")[2]


@pytest.mark.usefixtures("brief_members")
def test_the_whole_study_and_its_steps_write_the_same_page(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from censcore_studies.aki import PRESETS, Preset

    size = {"epochs": 1, "batch_size": 64}
    small = {"width": 8, "depth": 1, "noise_dim": 2, "samples": 2, "validate_every": 1}
    tiny = Preset("quick", 150, 60, 100, 10, small | size, size, hidden=(4,), bins=4, members=16)
    monkeypatch.setitem(PRESETS, "quick", tiny)
    data, at_once, stepwise = tmp_path / "db", tmp_path / "at-once", tmp_path / "stepwise"
    some = ["--method", "naive", "--method", "censored"]

    def run(*words: object) -> str:
        result = runner.invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    run("aki", "synthetic", data, "--stays", 50)
    assert "report.html" in run("reproduce", "aki", "--data", data, "--out", at_once, *some)
    run("aki", "build", data, "--out", stepwise)
    run("aki", "train", "--out", stepwise, *some)
    run("aki", "evaluate", "--out", stepwise)
    run("aki", "report", "--out", stepwise)
    for name in ("report.html", "tables/energy.md", "tables/utility.csv", "tables/excess.md"):
        first, second = (without_cost((folder / name).read_text("utf-8")) for folder in (at_once, stepwise))
        assert first == second, name
    again = run("reproduce", "aki", "--data", data, "--out", at_once, *some)
    assert "started" not in again
