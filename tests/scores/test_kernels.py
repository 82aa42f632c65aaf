"""A compiler is loaded for much work only, and then kept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.exceptions import InvalidInputError

MODULE = "censcore.scores.kernels.brier_numba"


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


NOWHERE_TO_KEEP = """
import sys
import numpy as np
import censcore as cs
from importlib import import_module
time, t = np.random.default_rng(0).exponential(size=5_000), np.linspace(0.02, 2.0, 100)
y = cs.RightCensored(time, np.ones(5_000))
loss = cs.brier_score(y, cs.Step(t, sf=np.exp(-t)), cs.PointMass(np.inf), t)
modules = {modules!r}
names = [found for name in modules for found in vars(import_module(name)).values()]
kernels = [found for found in names if hasattr(found, "py_func")]
print(abs(loss - (np.exp(-t) - (time[:, None] > t)) ** 2).max())
print(len(sys.modules["censcore.scores.kernels.brier_numba"].weighted_squares.signatures))
print(len(kernels), all(type(kernel._cache).__name__ == "NullCache" for kernel in kernels), cs.__file__)
"""


def test_kernels_need_no_folder_that_can_be_written(tmp_path):
    """As in a container: the packages may only be read, and the user has no home."""
    pytest.importorskip("numba")
    source = Path(cs.__file__).parent
    shutil.copytree(source, tmp_path / "censcore", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in tmp_path.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").touch()  # a file in its place: no folder can be made, not even by root
    (tmp_path / "home").touch()
    modules = [
        ".".join(["censcore", *path.relative_to(source).with_suffix("").parts])
        for path in sorted(source.rglob("*_numba.py"))
    ]
    removed = ("XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    environment |= {
        "HOME": str(tmp_path / "home"), "USERPROFILE": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path),
        "CENSCORE_KERNELS": "always",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", NOWHERE_TO_KEEP.format(modules=modules)],
        capture_output=True, text=True, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    error, compiled, kernels, uncached, imported = done.stdout.split()
    assert float(error) < 1e-12
    assert (int(compiled), uncached) == (1, "True")
    assert int(kernels) > 10
    assert Path(imported).parent == tmp_path / "censcore"
