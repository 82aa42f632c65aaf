"""The demo: what it prints is what the library finds, and the better models win where they should."""

from __future__ import annotations

import re
import sys

import pytest
from typer.testing import CliRunner

from censcore.cli import main
from censcore.cli.app import app
from censcore.cli.demo import demo_comparison, load_trial


@pytest.fixture(scope="module")
def comparison():
    return demo_comparison()


def test_prints_the_comparison_and_writes_the_plot_and_the_page(tmp_path, comparison):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert repr(comparison) in result.output
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")
    assert str(comparison.verdict)[:30] in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_every_woman_is_scored_once(comparison):
    assert comparison.settings["subjects"] == len(load_trial()[1])
    assert len(comparison.losses.values["Cox", "crps"]) == len(load_trial()[1])


def test_only_distributions_with_a_density_have_a_log_score(comparison):
    assert [model for model, score in comparison.losses.values if score == "log_score"] == ["Weibull"]


@pytest.mark.parametrize("score", ["crps", "integrated_brier_score:ipcw"])
@pytest.mark.parametrize("model", ["Weibull", "Cox"])
def test_covariates_help(comparison, score, model):
    pairs = comparison.differences(discrimination=False).query("score == @score and versus == @model")
    assert pairs.query("model == 'Kaplan-Meier'")["low"].item() > 0


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lifelines", None)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code != 0
    assert re.search(r"lifelines.*censcore\[demo\]", str(result.exception) + result.output)


def test_the_command_line_names_its_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "censcore.cli.app")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"typer.*censcore\[cli\]"):
        main()


def test_help_lists_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert "demo" in result.output
