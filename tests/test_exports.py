"""The public face: every name resolves and is documented, and importing it stays light."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module

import pytest
from numpydoc.docscrape import NumpyDocString

import censcore as cs
from censcore.estimators import SurvivalEstimator

HEAVY = ["torch", "sklearn", "numba", "matplotlib", "pandas", "polars", "scipy.stats"]


def exported() -> list[str]:
    return [name for name in cs.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", exported())
def test_exported_name_resolves_and_is_documented(name):
    thing = getattr(cs, name)
    assert (inspect.getdoc(thing) or "").strip(), f"{name} has no docstring"


def public_things() -> dict[str, object]:
    """Every class and function that the library or one of its public packages exports, once."""
    modules = [cs, *(import_module(f"censcore.{name}") for name in cs._SUBMODULES)]
    found = {}
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            error = inspect.isclass(thing) and issubclass(thing, Exception)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and not error:
                found.setdefault(thing, f"{module.__name__}.{name}")
    return {name: thing for thing, name in found.items()}


PUBLIC = public_things()
#: Results, which callers receive from a function and never make.
RESULTS = (
    "censcore.Comparison",
    "censcore.evaluation.CalibrationCurve",
    "censcore.evaluation.DependentCensoringSensitivity",
    "censcore.evaluation.Verdict",
)
#: Estimators that wrap another one, whose literature counts.
WRAPPERS = ("censcore.Adapted", "censcore.Censoring")


def docstring(thing: object) -> NumpyDocString:
    return NumpyDocString(inspect.getdoc(thing) or "")


def arguments(thing: object) -> set[str]:
    """Names of the parameters that a caller passes."""
    if inspect.isabstract(thing) or (inspect.isclass(thing) and thing.__init__ is object.__init__):
        return set()
    return {name for name in inspect.signature(thing).parameters if name != "self"}


def described(doc: NumpyDocString) -> set[str]:
    """Names in the sections that describe parameters; one entry may have several, ``low, high : float``."""
    entries = [*doc["Parameters"], *doc["Other Parameters"], *doc["Attributes"]]
    return {name.strip().lstrip("*") for entry in entries for name in entry.name.split(",")}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in RESULTS])
def test_docstring_describes_every_argument(name):
    assert arguments(PUBLIC[name]) - described(docstring(PUBLIC[name])) == set()


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isfunction(thing)])
def test_docstring_says_what_is_returned(name):
    thing = PUBLIC[name]
    if inspect.signature(thing).return_annotation not in (None, "None"):
        assert docstring(thing)["Returns"], f"{name} has no section Returns"


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if not inspect.isabstract(thing)])
def test_docstring_shows_an_example(name):
    assert any(">>>" in line for line in docstring(PUBLIC[name])["Examples"]), f"{name} shows no example"


def rests_on_literature(name: str, thing: object) -> bool:
    """Whether this is a score, a published rule or an estimator."""
    if inspect.isclass(thing):
        return issubclass(thing, SurvivalEstimator) and not inspect.isabstract(thing)
    if name.startswith("censcore.testing."):
        return False
    return name.startswith("censcore.published.") or name.endswith(("_score", ".crps"))


@pytest.mark.parametrize("section", ["References", "See Also"])
@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if rests_on_literature(name, thing)])
def test_docstring_refers_to_literature_and_neighbours(name, section):
    if section == "See Also" or name not in WRAPPERS:
        assert docstring(PUBLIC[name])[section], f"{name} has no section {section}"


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


WITHOUT_TORCH = """
import sys
class WithoutTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, WithoutTorch())
"""


def _without_torch(code: str) -> list[str]:
    """What a fresh interpreter prints that has no torch."""
    found = [sys.executable, "-c", WITHOUT_TORCH + code]
    done = subprocess.run(found, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_names_that_need_torch_say_so_and_are_not_there_without_it():
    code = """
import inspect
import censcore as cs
try:
    cs.CensoredEngression
except cs.exceptions.MissingDependencyError as error:
    print(error)
try:
    from censcore import CensoredEngression
except ImportError as error:
    print(error, isinstance(error, cs.exceptions.MissingDependencyError))
print(*(name for name in cs._HOME if not hasattr(cs, name)))
print(*sorted(set(cs._HOME) - set(cs.__all__)))
print(*sorted(set(cs._HOME) - {name for name, _ in inspect.getmembers(cs)}))
print(set(cs.__all__) == set(dir(cs)))
from censcore import *
print(crps is cs.crps, evaluation is cs.evaluation)
for name in cs._SUBMODULES:
    exec(f"from censcore.{name} import *")
"""
    *told, absent, not_listed, no_members, fact, facts = _without_torch(code)
    words = "CensoredEngression needs torch: pip install 'censcore[torch]'."
    assert told == [words, f"{words} True"]
    names = {name for module in cs._IN_TORCH for name in cs._EXPORTS[module]}
    assert names == {
        "BestForecast",
        "CensoredEngression",
        "CopulaWeibull",
        "JointGridModel",
        "MixtureDensityNetwork",
    }
    assert set(absent.split()) == set(not_listed.split()) == set(no_members.split()) == names
    assert [fact, facts] == ["True", "True True"]


def test_every_name_is_there_with_torch():
    assert set(cs._HOME) <= set(cs.__all__)
    assert all(hasattr(cs, name) for name in cs._HOME)
    assert set(cs._HOME) <= {name for name, _ in inspect.getmembers(cs)}
