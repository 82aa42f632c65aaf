"""The demo: what it prints is what the scores give, and the better models win where they should."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from censcore.cli import main
from censcore.cli.app import app
from censcore.cli.demo_scores import HORIZON, SCORES, brier_curve, cross_fit, load_trial, score_table


@pytest.fixture(scope="module")
def trial():
    return load_trial()


@pytest.fixture(scope="module")
def losses(trial):
    X, y = trial
    return cross_fit(X, y, {name: score for name, (score, _) in SCORES.items()})


def test_prints_every_score_and_writes_the_plot(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in SCORES)
    assert "nan" not in result.output
    assert (tmp_path / "brier.png").read_bytes().startswith(b"\x89PNG")


def test_every_woman_is_scored_once(trial, losses):
    _, y = trial
    for models in losses.values():
        assert all(len(loss) == len(y) and np.isfinite(loss).all() for loss in models.values())


def test_the_table_shows_means_and_standard_errors(losses):
    crps = losses["CRPS"]["Cox"][:, 0]
    shown = f"{crps.mean():.4f} ± {crps.std(ddof=1) / np.sqrt(len(crps)):.4f}"
    cells = [cell for column in score_table(losses).columns for cell in column.cells]
    assert any(shown in str(cell) for cell in cells)


def test_only_distributions_with_a_density_have_a_log_score(losses):
    assert set(losses["log"]) == {"Weibull"}


@pytest.mark.parametrize("score", ["CRPS", "energy", "integrated Brier, ipcw"])
@pytest.mark.parametrize("model", ["Weibull", "Cox"])
def test_covariates_help(losses, score, model):
    gain = losses[score]["Kaplan-Meier"][:, 0] - losses[score][model][:, 0]
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_the_curve_passes_through_the_table(trial, losses):
    """The Brier score of the plot, interpolated at the times of the table, is the one printed there."""
    X, y = trial
    curve = cross_fit(X, y, {"curve": brier_curve})["curve"]["Cox"].mean(axis=0)
    at_times = losses["Brier, ipcw"]["Cox"].mean(axis=0)
    grid = np.linspace(0.05, HORIZON, 100, endpoint=False)
    np.testing.assert_allclose(np.interp([1.0, 2.0, 4.0], grid, curve), at_times, atol=0.005)


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
