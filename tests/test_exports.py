"""The public face: every name resolves and is documented, and importing it stays light."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import censcore as cs

HEAVY = ["torch", "sklearn", "numba", "matplotlib", "pandas", "polars", "scipy.stats"]


def exported() -> list[str]:
    return [name for name in cs.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", exported())
def test_exported_name_resolves_and_is_documented(name):
    thing = getattr(cs, name)
    assert (inspect.getdoc(thing) or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for names in cs._EXPORTS.values() for name in names])
def test_public_class_or_function_has_an_example(name):
    thing = getattr(cs, name)
    if not inspect.isabstract(thing):  # what cannot be made cannot be shown
        assert ">>>" in (thing.__doc__ or ""), f"{name} shows no example"


def test_type_checkers_see_the_same_names():
    tree = ast.parse(inspect.getsource(cs))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, alias.asname) for node in imports for alias in node.names}
    assert seen == {(f"censcore.{module}", name) for name, module in cs._HOME.items()}


def test_dir_lists_the_exports_once():
    assert sorted(set(cs.__all__)) == dir(cs)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'brier'"):
        _ = cs.brier


def test_version_is_the_installed_one():
    assert cs.__version__.count(".") == 2


def _loaded_after(code: str) -> set[str]:
    """Modules of HEAVY that a fresh interpreter has loaded after running ``code``."""
    show = f"import sys; {code}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_heavy_package():
    assert _loaded_after("import censcore") == set()


def test_scoring_numpy_arrays_loads_no_optional_package():
    code = (
        "import censcore as cs; y = cs.RightCensored([1.0, 2.0], [1, 0]); "
        "F, C = cs.Weibull(1.5, 2.0), cs.Uniform(0.0, 9.0); cs.crps(y, F, C); cs.log_score(y, F, C)"
    )
    assert _loaded_after(code) <= {"scipy.stats"}


def test_a_name_that_needs_torch_says_so_where_it_is_missing():
    code = """
import sys
class WithoutTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, WithoutTorch())
import censcore as cs
try:
    cs.CensoredEngression
except cs.exceptions.MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "CensoredEngression needs torch: pip install 'censcore[torch]'."
