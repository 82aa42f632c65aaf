"""Figures are written in the format of their name, and the same figure gives the same bytes."""

import pytest

from censcore_studies.kit.figures import new_figure, picture


@picture
def draw_line(height):
    figure = new_figure(2.0, 1.0)
    figure.subplots().plot([0.0, height])
    return figure


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_is_the_format(tmp_path, ending, start):
    assert draw_line(tmp_path / f"line.{ending}", 1.0).read_bytes().startswith(start)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_nothing_depends_on_the_run(tmp_path, ending, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    first = draw_line(tmp_path / f"first.{ending}", 1.0).read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert draw_line(tmp_path / f"second.{ending}", 1.0).read_bytes() == first
