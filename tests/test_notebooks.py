"""Downloads of the gallery, run as notebooks: figures show themselves as images, and nothing fails."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient, which is not installed")
nbformat = pytest.importorskip("nbformat", reason="notebooks are run by nbclient and nbformat")
pytest.importorskip("ipykernel", reason="notebooks are run by ipykernel, which is not installed")
pytest.importorskip("sphinx", reason="notebooks are made by an extension of the documentation")
ROOT = Path(__file__).resolve().parent.parent
COMPARED = """
import censcore as cs, numpy as np
T = np.random.default_rng(0).exponential(1.0, 100)
y = cs.RightCensored(T, np.ones(100))
F = {'early': cs.Exponential(1.0), 'late': cs.Exponential(0.5)}
comparison = cs.compare(F, y)
"""
SHOWN = ("comparison", "comparison.verdict", "y", "F['early']", "comparison.censoring")


def test_plots_and_results_show_themselves():
    cells = [nbformat.v4.new_code_cell(source) for source in (COMPARED, "comparison.plot()", *SHOWN)]
    book = nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=300).execute()
    _, (figure,), *shown = (cell.outputs for cell in book.cells)
    assert len(figure.data["image/png"]) > 10_000
    for source, (output,) in zip(SHOWN, shown, strict=True):
        assert "<" in output.data["text/html"], source


@pytest.mark.parametrize("name", ["conditional_censoring", "how_strong_a_penalty"])
def test_a_page_of_the_gallery_runs_as_a_notebook(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    made = import_module("notebooks").notebook(ROOT / "docs" / "gallery" / f"{name}.md")
    book = nbformat.from_dict(made)
    expected = [
        [output["text"] for output in cell["outputs"] if "text" in output]
        for cell in made["cells"]
        if cell["cell_type"] == "code"
    ]
    nbclient.NotebookClient(book, timeout=300).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert "image/png" in cells[-1].outputs[-1].data
    for cell, texts in zip(cells, expected, strict=True):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        assert not errors
        assert bool(cell.outputs) == bool(texts) or cell is cells[-1], cell.source
