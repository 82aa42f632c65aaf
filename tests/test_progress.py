"""Bars appear by themselves where somebody may look, after two seconds, one at a time."""

import io

import numpy as np
import pytest

import censcore as cs
from censcore import progress
from censcore.progress import ProgressBar

pytest.importorskip("rich")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch):
    """A terminal, on which bars do not wait; pytest sets the streams anew when a test begins."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    return stream


def test_one_bar_at_a_time(monkeypatch):
    terminal = watched(monkeypatch)
    with ProgressBar("folds", 2, show=None) as outer:
        outer.advance()
        assert ProgressBar._seen is outer
        with ProgressBar("epochs", 1, show=None) as inner:
            inner.advance()
            assert ProgressBar._seen is outer
    assert ProgressBar._seen is None
    assert "folds" in terminal.getvalue()
    assert "epochs" not in terminal.getvalue()


def test_short_work_and_pipes_show_nothing(monkeypatch, capsys):
    with ProgressBar("piped", 1, show=None) as bar:
        bar.advance()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr", Terminal())
    with ProgressBar("short", 1, show=None) as bar:
        bar.advance()
        assert ProgressBar._seen is None


def test_training_shows_a_bar_unless_told_not_to(monkeypatch):
    pytest.importorskip("torch")
    terminal = watched(monkeypatch)
    T = np.random.default_rng(0).exponential(1.0, 40)
    X, y = T[:, None], cs.RightCensored(T, np.ones(40))
    short = {"epochs": 2, "n_networks": 1}
    cs.CensoredEngression(**short, progress=False).fit(X, y)
    assert terminal.getvalue() == ""
    cs.CensoredEngression(**short).fit(X, y)
    assert "training" in terminal.getvalue()
