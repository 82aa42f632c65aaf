"""A compiler is loaded for much work only, and then kept."""

import subprocess
import sys

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.exceptions import InvalidInputError

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


def test_the_route_can_be_fixed(unloaded, monkeypatch):
    pytest.importorskip("numba")
    enough = _kernels.WORTH_COMPILING * _kernels.CALLS_UNTIL_LOADED
    monkeypatch.setenv("CENSCORE_KERNELS", "never")
    assert ask(enough) is None
    monkeypatch.setenv("CENSCORE_KERNELS", "always")
    assert ask(_kernels.WORTH_COMPILING) is not None
    assert ask(_kernels.WORTH_COMPILING - 1) is None  # little work has one route in any case
    monkeypatch.setenv("CENSCORE_KERNELS", "never")
    assert ask(enough) is None  # though it is loaded now
    monkeypatch.setenv("CENSCORE_KERNELS", "sometimes")
    with pytest.raises(InvalidInputError, match="sometimes"):
        ask(enough)


def test_routes_differ_by_rounding_only(monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    grid, n = np.linspace(0.05, 3.0, 60), 300
    F = cs.Step(grid, sf=np.exp(-grid[None] * rng.uniform(0.2, 3.0, (n, 1))))
    y = cs.RightCensored(rng.weibull(1.5, n), rng.random(n) < 0.6)
    C = cs.Step(np.sort(rng.random(200) * 3), sf=np.linspace(0.99, 0.01, 200))
    ensemble = cs.Ensemble(rng.weibull(1.5, (n, 40)))

    def losses():
        for forecast in (F, ensemble):
            yield cs.crps(y, forecast, C, horizon=2.5)
            yield cs.integrated_brier_score(y, forecast, C, scale="ipcw", horizon=2.5)
            yield cs.brier_score(y, forecast, C, [0.4, 1.0], horizon=2.5)

    monkeypatch.setenv("CENSCORE_KERNELS", "never")
    formulas = list(losses())
    monkeypatch.setenv("CENSCORE_KERNELS", "always")
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    for kernel, formula in zip(losses(), formulas, strict=True):
        np.testing.assert_allclose(kernel, formula, rtol=1e-11, atol=1e-14)


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
