"""What was compared: the models with their parameters, the covariates, the call, versions and the date."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from censcore.distributions import Distribution
from censcore.plain_text import one_line

LONGEST = 200  # letters of a model or an argument
MOST_COLUMNS = 30
ALWAYS = ("censcore", "numpy", "scipy", "scikit-learn")
PACKAGES = {"sksurv": "scikit-survival", "sklearn": "scikit-learn"}  # where the module has another name


def what_was_compared(function: str, asked: Any, models: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The facts of a call, for the page: what was ``asked``, but for defaults, and ``more`` arguments."""
    passed = {
        f.name: getattr(asked, f.name) for f in fields(asked) if getattr(asked, f.name) is not f.default
    }
    sample = passed.pop("sample")
    arguments = {"X": sample.X, "y": sample.y, "sample_weight": sample.weight, "groups": sample.groups}
    arguments |= more | {name: value for name, value in passed.items() if name != "forecasts"}
    call = ", ".join(f"{name}={described(value)}" for name, value in arguments.items() if value is not None)
    return {
        "covariates": _columns(sample.X),
        "models": {str(name): described(model) for name, model in models.items()},
        "call": f"{function}(..., {call})",
        "date": date.today().isoformat(),
        "versions": _versions(models.values()),
    }


def described(value: Any, depth: int = 3) -> str:
    """A value as one short line: data by their shape, models and settings as Python writes them.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.evaluation.report.provenance import described
    >>> described(np.zeros((3, 2))), described(cs.KaplanMeier()), described({"a": cs.Exponential(1.0)})
    ('ndarray (3, 2)', 'KaplanMeier()', "{'a': Exponential}")
    """
    if hasattr(value, "get_params"):
        return _short(repr(value))
    inner = partial(described, depth=depth - 1)
    if isinstance(value, Mapping) and depth:
        return _short("{" + ", ".join(f"{name!r}: {inner(item)}" for name, item in value.items()) + "}")
    if isinstance(value, tuple | list) and depth and any(hasattr(item, "__len__") for item in value):
        return _short(f"({', '.join(map(inner, value))})")
    if isinstance(value, Distribution):
        return type(value).__name__
    shape = getattr(value, "shape", ())  # of what is no array, anything
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} {shape}"
    if hasattr(value, "__len__") and not isinstance(value, str | list | tuple):
        return type(value).__name__
    return _short(getattr(value, "__qualname__", None) or repr(value))


def _short(text: str) -> str:
    line = re.sub(r" at 0x[0-9a-fA-F]+", "", one_line(text))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _columns(X: Any) -> str:
    if X is None:
        return "none were given"
    names = getattr(X, "columns", None)
    if names is None:
        shape = getattr(X, "shape", ())
        shape = shape if isinstance(shape, tuple) else ()
        return f"{shape[1] if len(shape) > 1 else 1} columns without names"
    names = [one_line(str(name)) for name in names]
    more = [f"{len(names) - MOST_COLUMNS} more"] if len(names) > MOST_COLUMNS else []
    return f"{len(names)}: {', '.join([*names[:MOST_COLUMNS], *more])}"


def _versions(models: Any) -> str:
    """Of Python, of what computes the scores, and of the libraries of the models."""
    roots = dict.fromkeys(type(model).__module__.partition(".")[0] for model in models)
    numbers = {"Python": platform.python_version()}
    for name in dict.fromkeys([*ALWAYS, *(PACKAGES.get(root, root) for root in roots)]):
        numbers[name] = _version(name)
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number)


@cache
def _version(name: str) -> str:
    """Kept, since reading it takes longer than a small comparison."""
    try:
        return version(name)
    except PackageNotFoundError:  # a model of the caller, or of Python
        return ""
