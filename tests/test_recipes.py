"""What CONTRIBUTING.md says about a new score and a new distribution is all that they need, as printed."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

import censcore as cs
from censcore.cli.app import app
from censcore.scores import SCORES

PAGE = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
RNG = np.random.default_rng(3)
N = 150
X = RNG.normal(size=(N, 1))
T, C = RNG.weibull(1.4, N) * np.exp(0.3 * X[:, 0]), RNG.uniform(0.0, 3.0, N)
Y = cs.RightCensored(np.minimum(T, C), T <= C)
TIMES = [0.4, 0.9]


def followed(section: str, monkeypatch, names: dict | None = None) -> ModuleType:
    """The names that the code of a section of the page defines; it is run as printed, outputs included."""
    text = re.search(rf"^## {section}\n(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    module = ModuleType("recipe")
    vars(module).update(names or {})
    monkeypatch.setitem(sys.modules, "recipe", module)  # so that what is defined there can be pickled
    for source in re.findall(r"^```python\n(.*?)^```", text.group(1), re.M | re.S):
        test = doctest.DocTestParser().get_doctest(source, vars(module), section, str(PAGE), 0)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        vars(module).update(test.globs)
    return module


@pytest.fixture
def name(monkeypatch):
    """The name of the score of the recipe."""
    before = set(SCORES)
    followed("Adding a score", monkeypatch)
    (added,) = set(SCORES) - before
    return added


def complete(frame: pd.DataFrame, name: str, rows: int) -> None:
    """Means and standard errors of all rows of a score."""
    own = frame[frame["score"].str.partition("[")[0] == name]
    assert len(own) == rows
    assert np.isfinite(own[["mean", "standard_error"]].to_numpy()).all()


def test_the_score_is_compared(name):
    forecasts = {"model": cs.Weibull(1.4, np.exp(0.3 * X[:, 0])), "other": cs.Exponential(1.0)}
    comparison = cs.compare(
        forecasts, Y, cs.Censoring(cs.KaplanMeier()), scores=[name], times=TIMES, reference=None
    )
    complete(comparison.frame(), name, 4)
    complete(
        cs.compare(forecasts, Y, cs.Uniform(0, 3), scores="all", times=TIMES, reference=None).frame(), name, 4
    )
    assert SCORES[name].title in str(comparison)


@pytest.mark.parametrize("scores", ["all", None])
def test_the_score_of_competing_risks_is_compared(name, scores):
    y = cs.CompetingRisks(Y.time, np.where(Y.event, 1 + (RNG.uniform(size=N) < 0.4), 0))
    F = cs.CauseSpecificHazards([cs.Weibull(1.4, 1.5 * np.exp(0.3 * X[:, 0])), cs.Weibull(1.4, 2.0)])
    made = cs.compare(
        {"model": F}, y, cs.Censoring(cs.KaplanMeier()), scores=scores or [name], times=TIMES, reference=None
    )
    complete(made.frame(), name, 2 * 4)  # all causes, each of two, and any


def test_the_score_is_a_scorer(name):
    model = cs.WithCensoring(cs.CoxRegression())
    assert (cross_val_score(model, X, Y, cv=3, scoring=cs.scorer(name, times=TIMES)) < 0).all()
    assert (cross_val_score(model, X, Y, cv=3, scoring=cs.scorer(name)) < 0).all()


def table(folder: Path) -> str:
    """A file of outcomes and forecasts."""
    columns = {f"cox__sf@{t}": np.exp(-t * np.exp(-0.3 * X[:, 0])) for t in (0.5, 1.0, 2.0)}
    path = folder / "predictions.csv"
    pd.DataFrame({"time": Y.time, "event": Y.event.astype(int), **columns}).to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("batch", [False, True])
def test_the_score_is_on_the_command_line(name, tmp_path, batch):
    words = [table(tmp_path), "--time", "time", "--event", "event", "--scores", name, "--times", "0.5,1.0"]
    words += ["--censoring", "kaplan-meier", "--horizon", "1.5"] if batch else []
    made = CliRunner().invoke(app, ["compare", *words, *(["--batch", "50"] if batch else [])])
    assert made.exit_code == 0, made.output
    assert SCORES[name].title in made.output
    made = CliRunner().invoke(app, ["score", *words])
    assert made.exit_code == 0, made.output
    assert f"cox__{name}@0.5" in made.output


def test_the_command_line_finds_the_score_of_another_package(tmp_path, monkeypatch):
    source = "from censcore.scores import score\n@score(axis='time')\ndef visiting(inputs, times):\n"
    (tmp_path / "visitor_scores.py").write_text(
        f"{source}    return inputs.F.sf(times) ** 2\n", encoding="utf-8"
    )
    info = tmp_path / "visitor-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: visitor\nVersion: 1.0\n", encoding="utf-8")
    entries = "[censcore.scores]\nvisiting = visitor_scores\nbroken = visitor_without\n"
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["score", table(tmp_path), "--time", "time", "--event", "event", "--times", "0.5", "--scores"]
    made = CliRunner().invoke(app, [*words, "visiting"])
    assert made.exit_code == 0, made.output
    assert "cox__visiting@0.5" in made.output
    made = CliRunner().invoke(app, [*words, "broken"])
    assert made.exit_code != 0
    assert "'broken' (visitor_without of visitor) cannot be loaded" in str(made.exception)


def test_the_distribution_is_compared(monkeypatch):
    made = followed("Adding a distribution", monkeypatch)
    F = made.LinearHazard(a=0.2 * np.exp(0.1 * X[:, 0]), b=0.5)
    comparison = cs.compare(
        {"linear hazard": F}, Y, cs.Censoring(cs.KaplanMeier()), scores="all", times=TIMES, reference=None
    )
    assert np.isfinite(comparison.frame()["mean"]).all()


@pytest.mark.parametrize("section", ["Adding a kind of outcome", "Adding a measure"])
def test_the_kind_and_the_measure_are_as_printed(section, monkeypatch):
    from censcore.evaluation.kinds.kind import KINDS

    monkeypatch.setattr("censcore.evaluation.kinds.kind.KINDS", list(KINDS))
    followed(section, monkeypatch, {"cs": cs})


def test_the_producer_of_parts_is_as_printed(monkeypatch):
    """Its subjects are those of the section before."""
    made = followed("Adding a measure", monkeypatch)
    found = followed("Adding a producer of parts", monkeypatch, vars(made))
    assert found.mean.influence.shape == (10, 1)  # a unit is a hospital
