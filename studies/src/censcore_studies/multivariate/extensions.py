"""Beyond the tables: larger training sets, heavier censoring, estimated laws of C, one C per event time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from censcore.exceptions import InvalidInputError
from censcore_studies.kit.cells import Cell
from censcore_studies.multivariate.study import DEFAULTS, multivariate_cells

__all__ = ["EXTENSIONS", "Extension", "extension_cells"]

_LEADING = ("Censored engression", "Naive observed engression", "MLP Clayton-Weibull")

_CLAYTON = ("Independent Weibull", "Clayton-Weibull, margins first", "Clayton-Weibull")


@dataclass(frozen=True)
class Extension:
    """One setting of the mixture world that is varied.

    Attributes
    ----------
    varies, values : str, tuple
        The setting and what it takes.
    label : str
        The setting in words.
    censoring : str
        Kind of censoring.
    methods : tuple of str, optional
        Those that are compared; all by default.
    k : int
        Number of event times.
    """

    varies: str
    values: tuple[Any, ...]
    label: str
    censoring: str
    methods: tuple[str, ...] | None = None
    k: int = 3


EXTENSIONS = {
    "training-size": Extension("n_train", (1000, 4000, 16_000, 64_000), "training rows", "uniform", _LEADING),
    "severity": Extension(
        "severity", (0.5, 1.0, 2.0, 4.0), "what censoring times are divided by", "uniform", _LEADING
    ),
    "law": Extension(
        "law", ("true", "cox", "kaplan-meier"), "law of C used in training", "conditional", _LEADING[:1]
    ),
    "componentwise": Extension("method", (), "method", "componentwise"),
    "clayton": Extension("method", (), "how the copula is fitted", "uniform", _CLAYTON, k=5),
    "clayton-k10": Extension("method", (), "how the copula is fitted", "uniform", _CLAYTON, k=10),
}


def extension_cells(name: str, repetitions: int = 2, **more: Any) -> list[Cell]:
    """The cells of one extension.

    Examples
    --------
    >>> from censcore_studies.multivariate import extension_cells
    >>> [cell.settings.get("law", "true") for cell in extension_cells("law", repetitions=1)]
    ['true', 'cox', 'kaplan-meier']
    """
    if name not in EXTENSIONS:
        raise InvalidInputError(f"The extension must be one of {list(EXTENSIONS)}; {name!r} came.")
    extension = EXTENSIONS[name]
    base = multivariate_cells(
        [extension.k], ["mixture"], [extension.censoring], extension.methods, repetitions
    )
    varied = [{extension.varies: value} for value in extension.values] or [{}]
    return [_vary(cell, settings | more) for settings in varied for cell in base]


def _vary(cell: Cell, settings: dict[str, Any]) -> Cell:
    """Settings at their defaults are left out: such a cell is one of the tables'."""
    varied = {name: value for name, value in settings.items() if value != DEFAULTS.get(name)}
    suffix = "".join(f"-{name}-{value}" for name, value in varied.items() if name != "device")
    return replace(cell, name=cell.name + suffix, settings=cell.settings | varied)
