"""The hooks of distributions are one protocol: documented in one place, with defaults that tell the truth."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.contracts.rules import check_distribution

import censcore as cs
from censcore import distributions
from censcore.distributions import ByHazard, Parametric, Step, Univariate
from censcore.exceptions import InvalidTypeError, NoDensityError

SOURCE = Path(cs.__file__).resolve().parent
DOCUMENTED = set(re.findall(r"``(?:\w+\.)?(_\w+)", distributions.__doc__))


def lomax():
    """The example of the docstring of Parametric, as printed there."""
    from doctest import DocTestParser

    module = sys.modules[__name__]
    for example in DocTestParser().get_examples(Parametric.__doc__):
        exec(compile(example.source, "Parametric", "exec"), vars(module))
    return module.Lomax


def test_the_example_of_the_docstring_keeps_the_contract():
    F = lomax()(shape=2.0, scale=[1.0, 3.0])
    assert not F.has_density
    with pytest.raises(NoDensityError):
        F.logpdf(1.0)
    check_distribution(F)


def test_a_density_is_there_where_it_is_written():
    class Written(lomax()):
        def _logpdf(self, t):
            return np.log(self._shape / self._scale) - (self._shape + 1) * np.log1p(t / self._scale)

    class Denied(Written):
        has_density = False

    class StillSteps(Step):
        def _logpdf(self, t):
            return 0 * t

    assert Written.has_density
    assert type("Child", (Written,), {}).has_density
    assert not Denied.has_density
    assert not StillSteps.has_density  # a class that says it has none is asked first
    assert not Univariate.has_density
    assert issubclass(cs.Weibull, ByHazard)
    assert cs.Weibull.has_density
    check_distribution(cs.Mixture([cs.Weibull(1.5, [1.0, 2.0]), cs.Exponential(1.0)], [0.5, 0.5]))


def test_a_distribution_without_storage_is_an_error_in_words():
    class Nothing(Univariate):
        def _sf(self, t):
            return 1 / (1 + t)

    for ask in (
        lambda F: F.sf(1.0),
        lambda F: F.sample(2),
        lambda F: cs.crps(cs.RightCensored([1.0], [1]), F),
    ):
        with pytest.raises(InvalidTypeError, match=r"Nothing holds no arrays.*self\._store"):
            ask(Nothing())


def test_infinite_times_are_not_asked_of_a_formula_in_public_methods():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    F = lomax()(shape=2.0, scale=scale)
    times = torch.tensor([[0.5, np.inf]], dtype=torch.float64)
    for word, last in (("sf", 0.0), ("cdf", 1.0), ("sf_left", 0.0), ("logsf", -np.inf)):
        values = getattr(F, word)(times)
        assert (values[:, 1] == last).all()
        (gradient,) = torch.autograd.grad(values[:, 0].sum(), scale)
        assert torch.isfinite(gradient).all()
    np.testing.assert_array_equal(F.detach().sf([[-1.0, 0.0, np.inf]]).numpy(), [[1.0, 1.0, 0.0]] * 2)


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def written_in(folder: Path) -> set[str]:
    """Names with an underscore that the classes of a package define or set."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
                names.add(node.attr)
            elif isinstance(node, ast.ClassDef):
                names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                names |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
    return {name for name in names if re.match(r"_[a-z]", name)}


def test_what_other_packages_call_is_documented():
    hooks, called = written_in(SOURCE / "distributions"), {}
    for path in SOURCE.rglob("*.py"):
        if "distributions" in path.relative_to(SOURCE).parts:
            continue
        others = hooks - written_in(path.parent)
        for node in nodes_of(path):
            foreign = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") not in ("self", "cls")
            if foreign and node.attr in others:
                called.setdefault(node.attr, path.relative_to(SOURCE))
    assert len(called) > 25
    assert {name: str(path) for name, path in called.items() if name not in DOCUMENTED} == {}


def test_what_is_documented_exists():
    assert DOCUMENTED - written_in(SOURCE / "distributions") <= {"_name", "_xp"}
