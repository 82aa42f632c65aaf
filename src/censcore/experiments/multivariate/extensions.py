"""Beyond the tables: larger training sets, heavier censoring, estimated laws of C, one C per event time."""

from __future__ import annotations

from typing import Any

from censcore.exceptions import InvalidInputError
from censcore.experiments._cells import Cell
from censcore.experiments.multivariate.study import DEFAULTS, multivariate_cells

__all__ = ["EXTENSIONS", "extension_cells"]

_LEADING = ("Censored engression", "Naive observed engression", "MLP Clayton-Weibull")

#: Name, what the cells have in common, and the settings that vary.
EXTENSIONS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "training-size": (
        {"censorings": ("uniform",), "methods": _LEADING},
        [{"n_train": n} for n in (1000, 4000, 16_000, 64_000)],
    ),
    "severity": (
        {"censorings": ("uniform",), "methods": _LEADING},
        [{"severity": s} for s in (0.5, 1.0, 2.0, 4.0)],
    ),
    "law": (
        {"censorings": ("conditional",), "methods": ("Censored engression",)},
        [{"law": law} for law in ("true", "cox", "kaplan-meier")],
    ),
    "componentwise": ({"censorings": ("componentwise",), "methods": None}, [{}]),
}


def extension_cells(name: str, repetitions: int = 2, k: int = 3, **more: Any) -> list[Cell]:
    """The cells of one extension, in the mixture world.

    Examples
    --------
    >>> from censcore.experiments.multivariate import extension_cells
    >>> [cell.settings.get("law", "true") for cell in extension_cells("law", repetitions=1)]
    ['true', 'cox', 'kaplan-meier']
    """
    if name not in EXTENSIONS:
        raise InvalidInputError(f"The extension must be one of {list(EXTENSIONS)}; {name!r} came.")
    common, varied = EXTENSIONS[name]
    cells: list[Cell] = []
    for settings in varied:
        base = multivariate_cells([k], ["mixture"], repetitions=repetitions, **common)
        cells += [_vary(cell, settings | more) for cell in base]
    return cells


def _vary(cell: Cell, settings: dict[str, Any]) -> Cell:
    """Settings at their defaults are left out: such a cell is one of the tables'."""
    varied = {name: value for name, value in settings.items() if value != DEFAULTS.get(name)}
    suffix = "".join(f"-{name}-{value}" for name, value in varied.items() if name != "device")
    return Cell(cell.name + suffix, cell.settings | varied)
