"""Tables of a comparison in HTML: scores with their marks, paired differences, calibration and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.lines import Line
from censcore.evaluation.report.embedded_figures import swatch
from censcore.evaluation.report.page import cell, table
from censcore.evaluation.report.risk_charts import at_time, looks_of
from censcore.evaluation.report.table_lines import AMONG_BEST, CLEARLY_BEST, ranked
from censcore.evaluation.report.text import (
    Cell,
    Grid,
    about,
    capital,
    column_label,
    legend_of,
    p_text,
    time_of,
)
from censcore.exceptions import CenscoreError
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

SHOWN = {CLEARLY_BEST: "★", AMONG_BEST: "☆"}
MARKED = (
    "★ clearly the best: better than each of the others by more than chance explains. ☆ tied with the best, "
    "while others are clearly worse."
)


def legend(grids: list[Grid], sortable: bool = True) -> str:
    """What marks and words in tables mean, and what else there is to see."""
    words = legend_of(grids, MARKED)
    sorting = "; click on the head of a column to sort" if sortable else ""
    words.append(f"Hover over a number for its interval, rank and skill{sorting}.")
    return f"<p class='soft'>{html_text(' '.join(word.rstrip('.') + '.' for word in words))}</p>"


def grid_table(comparison: Comparison, grid: Grid, sortable: bool = True) -> str:
    """A table of scores, the best forecast first."""
    order = [model for model in ranked(comparison, grid.outcome) if model in grid.rows]
    named = _name if sortable else (lambda _, model: html_text(one_line(model)))  # notebooks show no figures
    rows = [[named(comparison, m), *(_scored(comparison, each) for each in grid.rows[m])] for m in order]
    times = ["" if np.isnan(t := time_of(comparison, row)) else f"{t:.6g}" for row in grid.rows[order[0]]]
    title = capital(grid.title)
    return table(
        ["forecast", *map(html_text, grid.columns)], rows, name=title, caption=html_text(title),
        sortable=sortable, of_rows=order, of_columns=["", *times],
    )  # fmt: skip


def _name(comparison: Comparison, model: str) -> str:
    return swatch(looks_of(comparison)[model]) + html_text(one_line(model))


def _scored(comparison: Comparison, shown: Cell) -> str:
    text = html_text(shown.text).replace("± ", "±&nbsp;").replace(" %", "&nbsp;%")
    if shown.mark:
        text = f"<span class='best'>{SHOWN[shown.mark]}&nbsp;{text}</span>"
    return cell(text, _hover(comparison, shown.line) if shown.line else "")


def _hover(comparison: Comparison, line: Line) -> str:
    """Everything that is known of a number."""
    facts = [f"{line['mean']:.6g}"]
    if np.isfinite(line["low"]):
        facts.append(f"{100 * comparison.confidence:g} % interval {line['low']:.5g} to {line['high']:.5g}")
    if np.isfinite(line["rank"]):
        facts.append(f"rank {line['rank']:.0f}")
    if np.isfinite(line["skill"]):
        facts.append(f"skill {100 * line['skill']:.3g} % ({_percents(line)})")
    facts.append(f"{line['events']:.4g} effective events")
    return "; ".join(facts + ([line["note"]] if line["note"] else []))


def _percents(line: Line) -> str:
    ends = (100 * line["skill_low"], 100 * line["skill_high"])
    return "interval unknown" if np.isnan(ends).any() else f"{ends[0]:.3g} to {ends[1]:.3g} %"


def differences_table(comparison: Comparison, pairs: list[Line]) -> str:
    """Paired differences with intervals and p-values, a line for each."""
    rows = [
        [
            html_text(column_label(comparison, row)),
            html_text(" − ".join(one_line(row[k]) for k in ("model", "versus"))),
            _number(row["difference"]),
            f"{_number(row['low'])} to {_number(row['high'])}",
            *(html_text(p_text(row[k])) for k in ("p_value", "p_adjusted")),
        ]
        for row in pairs
    ]
    level = f"{100 * comparison.confidence:g} % interval"
    head = ["score", "forecasts", "difference", level, "p", "adjusted p"]
    caption = "Paired differences of means"
    return table(head, rows, name="Differences", caption=caption, text_columns=2, sortable=True)


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:+.4g}".replace("-", "−")


def folds_table(lines: list[Line]) -> str:
    """Means by fold, with all that is known of the folds."""
    names = list(lines[0])
    rows = [[html_text(setting_text(line[name])) for name in names] for line in lines]
    head = [html_text(name) for name in names]
    return table(head, rows, name="Folds", caption="Means by fold.", sortable=True)


def setting_text(value: Any) -> str:
    """A value in words."""
    if isinstance(value, list):
        return ", ".join(setting_text(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {setting_text(item)}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def calibration_table(comparison: Comparison, outcome: str, time: float | None) -> str:
    """Forecast and observed risk of every forecast, and how far they are apart."""
    one = comparison.of(outcome) if outcome else comparison
    order = ranked(comparison, outcome)
    try:
        curves = [one.calibration(model, time) for model in order]
    except CenscoreError as error:
        return f"<p>{html_text(about(outcome))}not computed, because {html_text(str(error))}</p>"
    rows = []
    for curve in curves:
        interval = f" ({curve.observed_low:.4f} to {curve.observed_high:.4f})"
        observed = f"{curve.observed:.4f}" + ("" if np.isnan(curve.observed_low) else interval)
        p = p_text(curve.p_value) if curve.smoothed else "one risk for all"
        distances = (curve.ici, curve.ici_by_chance, curve.e50, curve.e90)
        rows.append(
            [
                _name(comparison, curve.model),
                f"{curve.predicted:.4f}",
                observed,
                *("" if np.isnan(value) else f"{value:.4f}" for value in distances),
                cell(html_text(p), curve.note),
            ]
        )
    level = f"observed risk ({100 * comparison.confidence:g} % interval)"
    head = ["forecast", "mean forecast risk", level, "ICI", "ICI by chance", "E50", "E90", "p"]
    caption = (
        f"{about(outcome)}Calibration of the risk of an event by {at_time(comparison, curves[0].time)}. ICI, "
        "E50 and E90: mean, median and 90 % quantile of the distance between forecast and observed risk. A "
        "calibrated forecast has the ICI by chance."
    )
    return table(head, rows, name="Calibration", caption=html_text(caption), sortable=True, of_rows=order)
