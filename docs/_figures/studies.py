"""Pictures of the studies of the paper, redrawn from their committed tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import unwrap
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from censcore.evaluation.report.style import styled
from censcore_studies.forecast_evaluation.convergence import draw_convergence, draw_severity
from censcore_studies.forecast_evaluation.ranks import draw_ranks
from censcore_studies.forecast_evaluation.trap import draw_trap
from censcore_studies.multivariate.excess_figures import draw_dimension, draw_excess
from censcore_studies.multivariate.extensions import EXTENSIONS, draw_extension
from censcore_studies.neutral_benchmark import read_scores
from censcore_studies.neutral_benchmark.data import published_scores
from censcore_studies.neutral_benchmark.figures import draw_conventions, draw_places
from kit import DOCS, PICTURES

RESULTS = DOCS / "results"
BLOCKS = ("mixture_k2", "mixture_k3", "mixture_k5", "mixture_k10", "lognormal_k2")


def draw(function: Callable[..., Any], *arguments: Any) -> Figure:
    """The figure that a function of the studies writes to a file."""
    with styled():
        return unwrap(function)(*arguments)


def ranks(function: Callable[..., Any], table: str) -> Figure:
    return draw(function, pd.read_csv(RESULTS / "forecast_evaluation" / f"{table}.csv"))


def excess(function: Callable[..., Any], *tables: str) -> Figure:
    files = [RESULTS / "multivariate" / f"{table}.csv" for table in tables]
    table = pd.concat(map(pd.read_csv, files), ignore_index=True)
    return draw(function, table[table["method"] != "DGP"])


def extension(name: str) -> Figure:
    table = pd.read_csv(RESULTS / "multivariate" / f"extension_{name}.csv")
    varied = EXTENSIONS[name]
    if not pd.api.types.is_numeric_dtype(table[varied.varies]):
        table[varied.varies] = table[varied.varies].astype(object)
    return draw(draw_extension, table, varied.varies, varied.label)


def places() -> Figure:
    """The published scores are searched for below ``CENSCORE_DATA``."""
    return draw(draw_places, read_scores(RESULTS / "neutral_benchmark"), published_scores())


def conventions() -> Figure:
    return draw(draw_conventions, pd.read_csv(RESULTS / "neutral_benchmark" / "conventions.csv"))


PICTURES |= {
    "gallery/trap": partial(draw, draw_trap),
    "results/forecast_evaluation/oracle_ranks": partial(ranks, draw_ranks, "oracle_ranks"),
    "results/forecast_evaluation/convergence": partial(ranks, draw_convergence, "convergence"),
    "results/forecast_evaluation/severity": partial(ranks, draw_severity, "convergence"),
    "results/neutral_benchmark/places": places,
    "results/neutral_benchmark/conventions": conventions,
    "results/multivariate/excess": partial(excess, draw_excess, *BLOCKS),
    "results/multivariate/dimension": partial(excess, draw_dimension, *BLOCKS),
}
PICTURES |= {
    f"results/multivariate/extension_{name}": partial(extension, name)
    for name in ("training-size", "severity", "censoring-distribution", "componentwise")
}
