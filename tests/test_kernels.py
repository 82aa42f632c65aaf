"""A compiler is loaded for much work only, and then kept."""

import subprocess
import sys

import numpy as np
import pytest

from censcore import _kernels

MODULE = "censcore.scores._brier_numba"


@pytest.fixture
def unloaded(monkeypatch):
    monkeypatch.setattr(_kernels, "_asked", {})
    monkeypatch.delitem(sys.modules, MODULE, raising=False)


def ask(numbers):
    return _kernels.on_cpu(MODULE, "weighted_squares", np.ones(1), numbers)


def test_little_work_never_loads(unloaded):
    assert all(ask(_kernels.WORTH_COMPILING - 1) is None for _ in range(300))


def test_work_adds_up_until_loading_pays(unloaded):
    pytest.importorskip("numba")
    enough = _kernels.WORTH_COMPILING * _kernels.CALLS_UNTIL_LOADED
    assert ask(enough / 2) is None
    assert ask(enough / 2) is not None
    assert ask(_kernels.WORTH_COMPILING) is not None  # it is loaded


def test_a_small_script_loads_no_compiler():
    code = """
import sys, numpy as np, censcore as cs
grid = np.linspace(0.1, 3.0, 100)
F = cs.Step(grid, sf=np.repeat(np.exp(-grid)[None], 5_000, axis=0))
y = cs.RightCensored(np.linspace(0.1, 2.0, 5_000), np.arange(5_000) % 2)
cs.crps(y, F, cs.Step(grid, sf=np.exp(-grid / 2)), horizon=2.5)
print("numba" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
