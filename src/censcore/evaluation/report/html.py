"""A comparison as one self-contained page, and as a table for notebooks: nothing to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.lines import Line
from censcore.evaluation.report.page import cell, style_sheet, table, whole_page
from censcore.evaluation.report.plots import CHARTS, ON_REQUEST, at_time, looks_of
from censcore.evaluation.report.svg import chart_html, swatch
from censcore.evaluation.report.table_lines import AMONG_BEST, CLEARLY_BEST, difference_lines
from censcore.evaluation.report.text import (
    Cell,
    Grid,
    column_label,
    grids_of,
    legend_of,
    p_text,
    subgroup_grids,
    subgroup_summary,
)
from censcore.exceptions import CenscoreError
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["notebook", "page"]

CAPTIONS = {
    "brier": "How far each forecast of “the event happens by t” is off, over time. Lower is better.",
    "differences": "Differences from the reference on the same subjects. Where an interval holds zero, "
    "chance can explain the difference.",
    "calibration": "Of the subjects with a forecast risk of p, a share p should have the event (dashed). "
    "Curve: smoothed; points: bins of equal size.",
    "d-calibration": "Bars of equal height mean that forecast probabilities hold on average over all times.",
    "decision": "If all with a risk above the threshold are treated: the share of subjects treated who have "
    "the event, less the share treated without it, weighted by the odds of the threshold. Higher is better.",
    "murphy": "A forecast that is lowest at every threshold is best by every proper score of this time.",
    "pinball": "How far each predicted quantile is off, over its level. Lower is better.",
    "censoring": "How long subjects are followed, and how many subjects each event represents.",
}
SHOWN = {"*": "★", "~": "☆"}
MARKED = (
    "★ clearly the best: better than each of the others by more than chance explains. ☆ tied with the best, "
    "while others are clearly worse."
)


def page(comparison: Comparison, title: str) -> str:
    """The whole page."""
    sections = {
        "scores": ("Scores", _scores(comparison)),
        "differences": ("Differences", _difference_table(comparison)),
        "subgroups": ("Subgroups", _subgroups(comparison)),
        "folds": ("Folds", _folds(comparison)),
        "calibration": ("Calibration", _calibration(comparison)),
        "pictures": (
            "Pictures",
            _pictures(comparison, [k for k in CHARTS if k not in (*CALIBRATION, *ON_REQUEST)]),
        ),
        "censoring": (
            "Can the censoring distribution be trusted?",
            _pairs("How the censoring distribution weights the data.", comparison.censoring.lines()),
        ),
        "settings": (
            "Settings",
            _pairs("Everything that was decided, by the caller or by default.", _settings(comparison)),
        ),
        "notes": ("Notes", _notes(comparison)),
    }
    kept = {name: part for name, part in sections.items() if part[1]}
    contents = "".join(
        f"<li><a href='#{name}'>{html_text(head)}</a></li>" for name, (head, _) in kept.items()
    )
    body = [
        _verdicts(comparison),
        _summary(comparison),
        f"<nav aria-label='Contents'><ul class='contents'>{contents}</ul></nav>",
        _warnings(comparison),
        *(f"<h2 id='{name}'>{html_text(head)}</h2>{text}" for name, (head, text) in kept.items()),
    ]
    return whole_page(title, body, skip_to="scores")


def notebook(comparison: Comparison) -> str:
    """The verdict and the tables, for a notebook; its style is its own and touches nothing else."""
    grids = grids_of(comparison) + subgroup_summary(comparison)
    parts = [_verdicts(comparison), _summary(comparison)]
    parts += [_grid_table(comparison, grid, sortable=False) for grid in grids]
    parts += [_legend(comparison, sortable=False), _warnings(comparison)]
    if comparison.notes:
        parts.append(
            f"<details><summary>{len(comparison.notes)} notes</summary>{_notes(comparison)}</details>"
        )
    ground = (
        ":scope { color: var(--ink); background: var(--ground); padding: 0.5rem; "
        "font: 0.9rem/1.4 system-ui, sans-serif; } td { white-space: normal; } "
        "th, td { padding: 0.3rem 0.5rem; }"
    )
    style = style_sheet().replace(":root", ":scope")
    return f"<div class='censcore'><style>@scope {{ {style} {ground} }}</style>{''.join(parts)}</div>"


def _verdicts(comparison: Comparison) -> str:
    return "".join(f"<p class='verdict'>{html_text(str(verdict))}</p>" for verdict in comparison.verdicts)


def _summary(comparison: Comparison) -> str:
    s, unit = comparison.settings, one_line(comparison.time_unit)
    return (
        f"<p>{len(comparison.models)} forecasts, {s['subjects']} subjects with {s['events']} events, scored "
        f"up to time {s['horizon']:.6g}{html_text(f' {unit}' if unit else '')}.</p>"
    )


def _warnings(comparison: Comparison) -> str:
    found = comparison.censoring.warnings
    return "".join(
        f"<p class='warning' role='note'><strong>Warning.</strong> {html_text(w)}</p>" for w in found
    )


# ---- tables ----------------------------------------------------------------------------------------


def _scores(comparison: Comparison) -> str:
    grids = grids_of(comparison)
    tables = "".join(_grid_table(comparison, grid) for grid in grids)
    return tables + _legend(comparison)


def _legend(comparison: Comparison, sortable: bool = True) -> str:
    grids = grids_of(comparison) + subgroup_grids(comparison)
    cells = [cell for grid in grids for row in grid.rows.values() for cell in row]
    marked = [MARKED] if any(cell.mark for cell in cells) else []
    words = [*marked, *legend_of([Grid("", [], {"": [Cell(c.text) for c in cells]})])]
    sorting = "; click on the head of a column to sort" if sortable else ""
    words.append(f"Hover over a number for its interval, rank and skill{sorting}.")
    return f"<p class='soft'>{html_text(' '.join(word.rstrip('.') + '.' for word in words))}</p>"


def _grid_table(comparison: Comparison, grid: Grid, sortable: bool = True) -> str:
    looks = looks_of(comparison)
    rows = [
        [swatch(looks[model]) + html_text(one_line(model)), *(_scored(comparison, each) for each in row)]
        for model, row in grid.rows.items()
    ]
    head = ["forecast", *map(html_text, grid.columns)]
    title = grid.title[:1].upper() + grid.title[1:]
    return table(head, rows, name=title, caption=html_text(title), sortable=sortable)


def _scored(comparison: Comparison, shown: Cell) -> str:
    number, plus, error = html_text(shown.text).partition(" ± ")
    text = f"{number} <span class='error'>± {error}</span>" if plus else number
    if shown.mark in (CLEARLY_BEST, AMONG_BEST):
        text = f"{SHOWN[shown.mark]}&nbsp;{text}"
    kind = " class='best'" if shown.mark else ""
    text = f"<span{kind}>{text}</span>"
    if not shown.line:
        return cell(text, _leading_number(shown.text))
    return cell(text, shown.line["mean"], _hover(comparison, shown.line))


def _leading_number(text: str) -> float:
    try:
        return float(text.split()[0].replace("−", "-"))
    except (ValueError, IndexError):
        return np.nan


def _hover(comparison: Comparison, line: Line) -> str:
    """Everything that is known of a number."""
    told = [f"{one_line(line['model'])}: {line['mean']:.6g}"]
    if np.isfinite(line["low"]):
        told.append(f"{100 * comparison.confidence:g} % interval {line['low']:.5g} to {line['high']:.5g}")
    if np.isfinite(line["rank"]):
        told.append(f"rank {line['rank']:.0f}")
    if np.isfinite(line["skill"]):
        told.append(f"skill {100 * line['skill']:.3g} % ({_percents(line)})")
    told.append(f"{line['events']:.4g} effective events")
    return "; ".join(told + ([line["note"]] if line["note"] else []))


def _percents(line: Line) -> str:
    ends = (100 * line["skill_low"], 100 * line["skill_high"])
    return "interval unknown" if np.isnan(ends).any() else f"{ends[0]:.3g} to {ends[1]:.3g} %"


def _difference_table(comparison: Comparison) -> str:
    pairs = [row for row in difference_lines(comparison) if row["by"] == ""]
    if not pairs:
        return "<p>There is nothing to compare: fewer than two forecasts share a score.</p>"
    rows = [
        [
            html_text(_about(row) + column_label(comparison, row)),
            f"<td class='text'>{html_text(_versus(row))}</td>",
            cell(_number(row["difference"]), row["difference"], f"better: {row['better']}"),
            cell(f"{_number(row['low'])} to {_number(row['high'])}", row["low"]),
            cell(html_text(p_text(row["p_value"])), row["p_value"]),
            cell(html_text(p_text(row["p_adjusted"])), row["p_adjusted"]),
        ]
        for row in pairs
    ]
    level = f"{100 * comparison.confidence:g} % interval"
    head = ["score", "forecasts", "difference", level, "p", "adjusted p"]
    words = (
        "Negative favours the first forecast; for concordance and AUC, positive does. Intervals and adjusted "
        "p-values hold for all pairs of a score together."
    )
    shown = table(
        head, rows, name="Differences", caption="Paired differences of means", text_columns=2, sortable=True
    )
    return (
        "<details><summary>All paired differences, with intervals and p-values "
        f"({len(rows)} lines)</summary><p>{words}</p>{shown}</details>"
    )


def _versus(row: Line) -> str:
    return f"{one_line(row['model'])} − {one_line(row['versus'])}"


def _about(row: Line) -> str:
    return f"{one_line(row['outcome'])}: " if row["outcome"] else ""


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:+.4g}".replace("-", "−")


def _subgroups(comparison: Comparison) -> str:
    summaries = "".join(_grid_table(comparison, grid) for grid in subgroup_summary(comparison))
    grids = subgroup_grids(comparison)
    if not grids:
        return ""
    tables = "".join(_grid_table(comparison, grid) for grid in grids)
    folded = f"<summary>All scores by subgroup ({len(grids)} tables)</summary>{tables}"
    return f"{summaries}<details>{folded}</details>"


def _folds(comparison: Comparison) -> str:
    """Means by fold of a cross-validation: of the deciding score in a table, of all scores folded."""
    lines = comparison.design.fold_lines(comparison)
    if not lines:
        return ""
    shown, looks = "", looks_of(comparison)
    for verdict in comparison.verdicts:
        some = [line for line in lines if line["score"] == verdict.score]
        some = [line for line in some if np.isnan(line["at"]) or line["at"] == some[0]["at"]]
        columns = list(dict.fromkeys((line["repeat"], line["fold"]) for line in some))
        several = columns[-1][0] > 1
        head = [f"fold {fold}" + (f", repeat {repeat}" if several else "") for repeat, fold in columns]
        rows = []
        for model in comparison.models:
            means = [line["mean"] for line in some if line["model"] == model]
            rows.append(
                [swatch(looks[model]) + html_text(one_line(model)), *(cell(_share(m), m) for m in means)]
            )
        caption = html_text(f"Mean {verdict.score} by fold; their spread is no standard error of the mean.")
        shown += table(["forecast", *head], rows, name="Folds", caption=caption, sortable=True)
    names = list(lines[0])
    rows = [
        [html_text(_setting(line[names[0]])), *(_plain_cell(line[name]) for name in names[1:])]
        for line in lines
    ]
    every = table(
        [html_text(name) for name in names], rows, name="All folds", caption="Means by fold.", sortable=True
    )
    return f"{shown}<details><summary>All scores by fold ({len(rows)} lines)</summary>{every}</details>"


def _plain_cell(value: Any) -> str:
    number = float(value) if isinstance(value, int | float | np.number) else None
    return cell(html_text(_setting(value)), number)


def _pairs(caption: str, lines: list[tuple[str, str]]) -> str:
    rows = [[html_text(name), html_text(value)] for name, value in lines]
    return table(["what", "value"], rows, name=caption, caption=caption, text_columns=2)


def _settings(comparison: Comparison) -> list[tuple[str, str]]:
    return [(name, _setting(value)) for name, value in comparison.settings.items() if value is not None]


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_setting(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_setting(item)}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    return "<ul>" + "".join(f"<li>{html_text(n)}</li>" for n in comparison.notes) + "</ul>"


# ---- pictures --------------------------------------------------------------------------------------

CALIBRATION = ("calibration", "d-calibration")


def _calibration(comparison: Comparison) -> str:
    """Numbers and curves of calibration at the middle one of the evaluation times."""
    parts = [_calibration_table(comparison, options) for options in comparison.pictured("calibration")]
    if comparison.design.calibration_note:
        parts.insert(
            0, f"<p>p-values of calibration are {html_text(comparison.design.calibration_note)}.</p>"
        )
    return "".join(parts) + _pictures(comparison, list(CALIBRATION))


def _calibration_table(comparison: Comparison, options: dict[str, Any]) -> str:
    about = "".join(f"{one_line(str(outcome))}: " for outcome in options.values())
    try:
        curves = [comparison.calibration(model, **options) for model in comparison.models]
    except CenscoreError as error:
        return f"<p>{html_text(about)}not computed, because {html_text(str(error))}</p>"
    looks = looks_of(comparison)
    rows = []
    for curve in curves:
        interval = f" ({curve.observed_low:.4f} to {curve.observed_high:.4f})"
        observed = f"{curve.observed:.4f}" + ("" if np.isnan(curve.observed_low) else interval)
        p = p_text(curve.p_value) if curve.smoothed else "one risk for all"
        distances = (curve.ici, curve.ici_by_chance, curve.e50, curve.e90)
        rows.append(
            [
                swatch(looks[curve.model]) + html_text(one_line(curve.model)),
                cell(f"{curve.predicted:.4f}", curve.predicted),
                cell(observed, curve.observed),
                *(cell(_share(value), value) for value in distances),
                cell(html_text(p), curve.p_value, curve.note),
            ]
        )
    level = f"observed risk ({100 * comparison.confidence:g} % interval)"
    head = ["forecast", "mean forecast risk", level, "ICI", "ICI by chance", "E50", "E90", "p"]
    caption = (
        f"{about}Calibration of the risk of an event by {at_time(comparison, curves[0].time)}. ICI, E50 and "
        "E90: mean, median and 90 % quantile of the distance between forecast and observed risk; noise alone "
        "gives the ICI by chance."
    )
    return table(head, rows, name="Calibration", caption=html_text(caption), sortable=True)


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def _pictures(comparison: Comparison, kinds: list[str]) -> str:
    parts = [_figure(comparison, kind, options) for kind in kinds for options in comparison.pictured(kind)]
    return f"<div class='pictures'>{''.join(parts)}</div>"


def _figure(comparison: Comparison, kind: str, options: dict[str, Any]) -> str:
    try:
        chart = comparison.chart(kind, **options)
    except CenscoreError as error:
        if kind == "differences":  # of one forecast, there are none
            return ""
        return f"<figure><p>{html_text(kind)}: not computed, because {html_text(str(error))}</p></figure>"
    shown = chart_html(chart, f"{chart.title}. {CAPTIONS[kind]} {_in_words(comparison, kind)}")
    wide = " class='wide'" if chart.small and len(chart.panels) > 2 else ""
    caption = f"<figcaption>{CAPTIONS[kind]}</figcaption>"
    return f"<figure{wide}><h3>{html_text(chart.title)}</h3>{shown}{caption}</figure>"


def _in_words(comparison: Comparison, kind: str) -> str:
    """What the picture shows, for those who do not see it."""
    if kind == "censoring":
        weights = comparison.censoring.weights
        return f"Largest weight {weights['largest']:.3g}." if weights else ""
    return f"Forecasts shown: {', '.join(comparison.models)}. The numbers are in the tables of this page."
