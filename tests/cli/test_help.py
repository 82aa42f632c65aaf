"""``censcore --help`` answers without what it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("typer")


def test_help_imports_no_models():
    """Typing --help waits for the parser alone: no NumPy, no pandas, no scikit-learn."""
    code = (
        "import sys; from censcore.cli import app; "
        "print([name for name in ('numpy', 'pandas', 'sklearn', 'scipy', 'torch') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_names_of_censoring_estimators_are_those_that_exist():
    from censcore.cli.options import CENSORING_ESTIMATORS as named
    from censcore.estimators.censoring.censoring_choice import CENSORING_ESTIMATORS as existing

    assert named == tuple(existing)
