"""Beyond the tables: larger training sets, heavier censoring, estimated censoring, one C per event time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from censcore.exceptions import InvalidInputError
from censcore_studies.kit.cells import Cell
from censcore_studies.kit.figures import INK, new_figure, picture
from censcore_studies.kit.tables import StudyTable, number, percent, plus_minus
from censcore_studies.multivariate.finished import SETTINGS, gathered, usual, with_defaults
from censcore_studies.multivariate.looks import COLOURS, draw_line
from censcore_studies.multivariate.methods import METHODS
from censcore_studies.multivariate.study import DEFAULTS, multivariate_cells
from censcore_studies.multivariate.tables import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXTENSIONS", "Extension", "extension_cells", "report_extension"]

_LEADING = ("Censored engression", "Naive observed engression", "MLP Clayton-Weibull")

_CLAYTON = ("Independent Weibull", "Clayton-Weibull, margins first", "Clayton-Weibull")

_TRAINED_UNDER = {
    "true": "true distribution",
    "cox": "Cox, given x",
    "kaplan-meier": "Kaplan-Meier, pooled",
}


@dataclass(frozen=True)
class Extension:
    """One setting of the mixture scenario that is varied.

    Attributes
    ----------
    varies, values : str, tuple
        The setting and the values it takes.
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
    "training-size": Extension(
        "n_train", (1000, 4000, 16_000, 64_000), "training subjects", "uniform", _LEADING
    ),
    "severity": Extension(
        "severity", (0.5, 1.0, 2.0, 4.0), "severity of censoring (divisor of C)", "uniform", _LEADING
    ),
    "censoring-distribution": Extension(
        "censoring_distribution",
        ("true", "cox", "kaplan-meier"),
        "censoring distribution used in training",
        "conditional",
        _LEADING[:1],
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
    >>> cells = extension_cells("censoring-distribution", repetitions=1)
    >>> [cell.settings.get("censoring_distribution", "true") for cell in cells]
    ['true', 'cox', 'kaplan-meier']
    """
    if name not in EXTENSIONS:
        raise InvalidInputError(f"The extension must be one of {list(EXTENSIONS)}; got {name!r}.")
    extension = EXTENSIONS[name]
    base = multivariate_cells(
        [extension.k], ["mixture"], [extension.censoring], extension.methods, repetitions
    )
    varied = [{extension.varies: value} for value in extension.values] or [{}]
    return [_vary(cell, settings | more) for settings in varied for cell in base]


def _vary(cell: Cell, settings: dict[str, Any]) -> Cell:
    """Settings at their defaults are left out: such a cell belongs to the tables of the paper."""
    varied = {name: value for name, value in settings.items() if value != DEFAULTS.get(name)}
    suffix = "".join(f"-{name}-{value}" for name, value in varied.items() if name != "device")
    return replace(cell, name=cell.name + suffix, settings=cell.settings | varied)


def report_extension(out: Path, name: str) -> StudyTable:
    """Excess over the truth against the setting that is varied; draws ``extension_<name>.png``."""
    extension = EXTENSIONS[name]
    table = summarise_extension(gathered(out), extension)
    draw_extension(out / f"extension_{name}.png", table, extension.varies, extension.label)
    caption = (
        f"Excess of the censored energy score over that of the true distribution, by {extension.label}; "
        f"mixture scenario, k = {extension.k}, {extension.censoring} censoring."
    )
    return StudyTable(f"extension_{name}", table, extension_view(table, extension), caption)


def summarise_extension(cells: pd.DataFrame, extension: Extension) -> pd.DataFrame:
    """Excess over the truth by method and by the value of what is varied."""
    inside = (cells["scenario"] == "mixture") & (cells["k"] == extension.k)
    cells = cells[inside & (cells["censoring"] == extension.censoring)]
    cells = cells[cells["method"].isin(extension.methods or METHODS)]
    if extension.varies == "method":
        return summarise(with_defaults(cells))
    cells = cells[usual(cells, [name for name in SETTINGS if name != extension.varies])]
    by_value = {value: cells[cells[extension.varies] == value] for value in extension.values}
    parts = [summarise(part).assign(**{extension.varies: v}) for v, part in by_value.items() if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def extension_view(table: pd.DataFrame, extension: Extension) -> pd.DataFrame:
    """One line per method and value: score, excess, repetitions."""
    head = "method" if extension.varies == "method" else extension.label
    view = pd.DataFrame(
        {
            "method": table["method"],
            head: table[extension.varies].astype(str),
            "censored ES": [
                plus_minus(*pair) for pair in zip(table["censored"], table["censored se"], strict=True)
            ],
            "excess": [
                percent(*pair)
                for pair in zip(table["censored excess %"], table["censored excess se"], strict=True)
            ],
            "latent excess": [
                percent(*pair)
                for pair in zip(table["latent excess %"], table["latent excess se"], strict=True)
            ],
            "log score": [number(value) for value in table["log_score"]],
            "theta": [number(value, ".1f") for value in table["theta"]],
            "seconds a fit": [f"{seconds:.0f}" for seconds in table["seconds a fit"]],
            "reps": table["repetitions"].astype(str),
        }
    )
    empty = [name for name in ("log score", "theta") if (view[name] == "").all()]
    return view.loc[:, ~view.columns.duplicated()].drop(columns=empty)


@picture
def draw_extension(summary: pd.DataFrame, setting: str, label: str) -> Figure:
    """Excess over the truth against one setting, a line per method; bars where it is a name, not a number."""
    summary = summary[summary["method"] != "DGP"]
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    if not is_numeric_dtype(summary[setting]):
        y = np.arange(len(summary))
        colours = [COLOURS[m] for m in summary["method"]]
        error = summary["censored excess se"].fillna(0.0)
        axes.barh(y, summary["censored excess %"], xerr=error, color=colours, ecolor=INK)
        names = summary["method"] if setting == "method" else summary[setting].map(_TRAINED_UNDER)
        axes.set_yticks(y, names)
        axes.invert_yaxis()
        axes.set_xlabel("excess over the true distribution, %")
        return figure
    for method, line in summary.groupby("method", sort=False):
        draw_line(axes, line.sort_values(setting), setting, str(method))
    ticks = sorted(summary[setting].unique())
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylabel("excess over the true distribution, %")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure
