"""The types of public functions say what they take: few parameters may be anything."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

import censcore as cs
from censcore._arrays import ArrayLike, Numbers

MODULES = [cs, *(import_module(f"censcore.{name}") for name in cs._SUBMODULES)]
FEW = 0.05
#: Formulas of the contract of distributions, on arrays that were brought into one library: no type has the
#: operations of both. In all other functions an Array is as good as Any.
CHECKED = {"censor_at", "at_risk"}
FORMULA = re.compile(r"\w+_at|join|draw|store|store_columns|mapped|of_cause")


def public_functions() -> Iterator[tuple[str, object]]:
    """Functions, constructors and public methods that the library exports, each once."""
    seen = set()
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            own = vars(thing).items() if inspect.isclass(thing) else [("", thing)]
            for method, function in own:
                function = getattr(function, "__func__", function)
                hidden = method.startswith("_") and method != "__init__"
                if hidden or not inspect.isfunction(function) or function in seen:
                    continue
                seen.add(function)
                if function.__name__ == "<lambda>":  # forwards a formula
                    continue
                yield f"{module.__name__}.{name}.{method}".rstrip("."), function


def parameters(package: str = "") -> Iterator[tuple[str, bool]]:
    """Parameters of public functions, and whether a type checker lets anything pass."""
    for name, function in public_functions():
        if not function.__module__.startswith(f"censcore.{package}"):
            continue
        for part in inspect.signature(function).parameters.values():
            if part.name not in ("self", "cls"):
                kinds = {kind.strip() for kind in str(part.annotation).split("|")}
                untyped = part.annotation is inspect.Parameter.empty or "Any" in kinds
                formula = FORMULA.fullmatch(function.__name__) and function.__name__ not in CHECKED
                yield f"{name}({part.name})", untyped or ("Array" in kinds and not formula)


@pytest.mark.parametrize(
    "package", ["outcomes", "distributions", "scores", "published", "estimators", "learning"]
)
def test_few_parameters_may_be_anything(package):
    found = dict(parameters(package))
    anything = [name for name, may_be in found.items() if may_be]
    assert len(found) > 10
    assert len(anything) <= FEW * len(found), anything


def test_what_is_counted():
    found = dict(parameters())
    assert len(found) > 900
    assert found["censcore.Distribution.to(args)"]
    assert not found["censcore.RightCensored.__init__(time)"]
    assert not found["censcore.crps(horizon)"]


def test_arrays_of_both_libraries_are_numbers():
    import torch

    def described(values: Numbers) -> tuple[int, ...]:
        return (*values.shape, len(values))

    assert described(np.ones(3)) == described(torch.ones(3)) == (3, 3)
    assert "float" in str(ArrayLike)
