"""A validation as one self-contained page: what was found first, then pictures, subjects and a checklist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators import KaplanMeier
from censcore.evaluation.measures.risk_groups import risk_groups
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.evaluation.report.charts import Chart, Intervals, Line, Panel, look_of
from censcore.evaluation.report.embedded_figures import chart_html, without_repeats
from censcore.evaluation.report.html_tables import setting_text
from censcore.evaluation.report.page import pairs_table, table, whole_page
from censcore.evaluation.report.risk_charts import (
    at_time,
    calibration_chart,
    decision_chart,
    risks_chart,
    time_label,
)
from censcore.evaluation.report.shown_table import ShownTable
from censcore.evaluation.report.text import with_unit
from censcore.evaluation.report.validation_text import SHORT, interval, number, sentences, table_of
from censcore.exceptions import CenscoreError
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from censcore.evaluation.validation import Validation

MOST_COLUMNS = 40  # of the table of characteristics
TICKS = 5  # times at which numbers at risk are given


def calibration(validation: Validation, outcome: str) -> Chart:
    """Observed against forecast risk."""
    return _sized(calibration_chart(validation.shown(outcome), validation.time))


def risks(validation: Validation, outcome: str) -> Chart:
    """Forecast risks of those with and without the event."""
    return _sized(risks_chart(validation.shown(outcome), validation.time))


def _sized(chart: Chart) -> Chart:
    """One panel in full size."""
    return replace(chart, small=len(chart.panels) > 1)


def decision(validation: Validation, outcome: str) -> Chart:
    """Net benefit over thresholds."""
    return decision_chart(validation.shown(outcome), validation.time)


def groups(validation: Validation, outcome: str) -> Chart:
    """Observed risk over time by groups of the forecast risk, whose mean is marked at the time."""
    one, panels, legend = validation.of(outcome), [], {}
    for model in validation.models:
        marks: list[Any] = []
        for i, group in enumerate(risk_groups(RiskOfModel(one, model, validation.time))):
            x = np.append(group.times, validation.time)
            marks.append(
                Line(group.name, x, np.append(group.incidence, group.incidence[-1]), look_of(i), steps=True)
            )
            at, mean = np.array([validation.time]), np.array([group.predicted])
            marks.append(Intervals("mean forecast risk", at, mean, mean, mean, look_of(i)))
            legend[group.name] = look_of(i)
        title = one_line(model) if len(validation.models) > 1 else ""
        panels.append(Panel(marks, time_label(one), "share with the event", title, ylim=(0.0, 1.0)))
    title = "Observed risk in four groups of the forecast risk; marks: mean forecast risk"
    return Chart(title, panels, legend if len(panels) == 1 else {}, small=len(panels) > 1)


CHARTS: dict[str, Callable[[Validation, str], Chart]] = {
    "calibration": calibration, "risks": risks, "decision": decision, "groups": groups,
}  # fmt: skip
CAPTIONS = {
    "calibration": "Of the subjects with a forecast risk of p, a share p should have the event (dashed). "
    "Curve: smoothed; points: groups of equal size.",
    "risks": "The further apart, the better the model tells subjects with the event from those without it.",
    "decision": "If all with a risk above the threshold are treated: the share of subjects treated who have "
    "the event, less the share treated without it, weighted by the odds of the threshold. Higher is better.",
    "groups": "Each group holds a quarter of the subjects. If the model is right, curves end at their marks.",
}


def page(validation: Validation, title: str) -> str:
    """The whole page."""
    found = {
        "found": ("How the model performs here", _found(validation)),
        "measures": ("All measures", table_of(validation, whole=True).html() + _differences(validation)),
        "calibration": ("Are the risks right?", _pictures(validation, "calibration", "risks")),
        "decision": ("Is it worth acting on?", _pictures(validation, "decision")),
        "groups": ("Risk groups", _pictures(validation, "groups") + _numbers_at_risk(validation)),
        "subjects": ("Who was validated", _subjects(validation) + _characteristics(validation)),
        "subgroups": ("Subgroups", _subgroups(validation)),
        "sites": ("Sites", _sites(validation)),
        "methods": ("How it was done", _methods(validation)),
    }
    found = {name: part for name, part in found.items() if part[1]}
    found["checklist"] = ("Checklist", _checklist(validation, set(found)))
    links = "".join(f"<li><a href='#{name}'>{html_text(head)}</a></li>" for name, (head, _) in found.items())
    nav = f"<nav aria-label='Contents'><ul class='contents'>{links}</ul></nav>"
    parts = [f"<h2 id='{name}'>{html_text(head)}</h2>{text}" for name, (head, text) in found.items()]
    parts.insert(1, nav)
    return without_repeats(whole_page(title, parts, skip_to="measures"))


# ---- what was found ----------------------------------------------------------------------------------


def _found(validation: Validation) -> str:
    said = []
    for outcome in validation.outcomes:
        for model in validation.models:
            name = f"<strong>{html_text(one_line(model))}.</strong> " if len(validation.models) > 1 else ""
            said.append(f"<p>{name}{html_text(' '.join(sentences(validation, outcome, model)))}</p>")
    judged = [
        "whether these subjects are those whom the model is meant for, and how they differ from those it was "
        "made from;",
        "whether the intervals are narrow enough: what they leave open is not known here;",
        "at which risk one would act, and whether the net benefit there is worth what the forecast costs;",
        "whether censoring may depend on more than the censoring distribution takes into account.",
    ]
    items = "".join(f"<li>{html_text(item)}</li>" for item in judged)
    return f"<div class='verdict'>{''.join(said)}</div><h3>What remains to be judged</h3><ul>{items}</ul>"


def _differences(validation: Validation) -> str:
    if not validation.difference_lines:
        return ""
    level = f"{100 * validation.comparison.confidence:g} % interval"
    rows = [
        [x["measure"], f"{one_line(x['model'])} − {one_line(x['versus'])}", x["outcome"],
         number(x["difference"]), interval(x)] for x in validation.difference_lines
    ]  # fmt: skip
    head = ["measure", "models", "outcome", "difference", level]
    return ShownTable("Paired differences between models, over the same subjects.", head, rows).html()


def _pictures(validation: Validation, *kinds: str) -> str:
    figures = []
    for outcome in validation.outcomes:
        for kind in kinds:
            try:
                chart = CHARTS[kind](validation, outcome)
            except CenscoreError as error:
                figures.append(f"<figure><p>{kind}: not drawn, because {html_text(str(error))}</p></figure>")
                continue
            title = f"{one_line(outcome)}: {chart.title}" if outcome else chart.title
            figures.append(
                f"<figure><h3>{html_text(title)}</h3>{chart_html(chart)}"
                f"<figcaption>{CAPTIONS[kind]}</figcaption></figure>"
            )
    return f"<div class='pictures'>{''.join(figures)}</div>"


def _numbers_at_risk(validation: Validation) -> str:
    tables = []
    at = np.linspace(0, validation.time, TICKS + 1)
    for outcome in validation.outcomes:
        for model in validation.models:
            try:
                found = risk_groups(RiskOfModel(validation.of(outcome), model, validation.time))
            except CenscoreError:
                continue
            name = ", ".join(x for x in (outcome, model if len(validation.models) > 1 else "") if x)
            rows = [[group.name, *(str(group.at_risk(t)) for t in at)] for group in found]
            head = ["group", *(f"{t:.4g}" for t in at)]
            caption = f"Numbers at risk{f', {one_line(name)}' if name else ''}."
            tables.append(ShownTable(caption, head, rows).html())
    return "".join(tables)


# ---- who was validated -------------------------------------------------------------------------------


def _subjects(validation: Validation) -> str:
    comparison, s = validation.comparison, validation.comparison.settings
    y, unit = comparison.outcome, comparison.time_unit
    weight = comparison.subsets[0].weight
    facts = [("subjects", str(s["subjects"])), ("events up to the end of follow-up", str(s["events"]))]
    facts += [(f"events: {cause}", str(count)) for cause, count in s.get("events by cause", {}).items()]
    facts.append((f"events by {at_time(comparison, validation.time)}", str(validation.events)))
    if to_numpy(y.event).all():
        median = "everybody had the event"
    else:
        followed = KaplanMeier().fit(None, y.flip(), weight).predict_distribution()
        half = float(to_numpy(followed.icdf(0.5))[0])
        median = with_unit(half, unit) if np.isfinite(half) else "not reached"
    facts.append(("median follow-up (reverse Kaplan-Meier)", median))
    facts.append(("longest follow-up", with_unit(validation.last_time, unit)))
    return pairs_table("Who was validated.", facts)


def _characteristics(validation: Validation) -> str:
    """Covariates of the validated subjects, beside those of the development data where they are known."""
    X, known = validation.comparison.decided.asked.sample.X, validation.development
    here = _described(X, validation.comparison.subsets[0].weight)
    there = dict(known) if isinstance(known, Mapping) and not hasattr(known, "columns") else _described(known)
    names = list(dict.fromkeys([*here, *there]))
    if not names:
        return ""
    head = ["characteristic", "validated", *(["development"] if there else [])]
    rows = [
        [str(name), here.get(name, ""), *([str(there.get(name, ""))] if there else [])]
        for name in names[:MOST_COLUMNS]
    ]
    more = [f"{len(names) - MOST_COLUMNS} more are not shown."] if len(names) > MOST_COLUMNS else []
    caption = "Characteristics: mean (standard deviation), or the share of each level."
    return ShownTable(caption, head, rows, more).html()


def _described(X: Any, weight: np.ndarray | None = None) -> dict[str, str]:
    """Every column in words, by its name."""
    if X is None:
        return {}
    import pandas as pd

    frame = (
        X
        if isinstance(X, pd.DataFrame)
        else pd.DataFrame(to_numpy(X) if not hasattr(X, "to_pandas") else X.to_pandas())
    )
    w, found = np.ones(len(frame)) if weight is None else weight, dict[str, str]()
    for name in frame.columns:
        values, label = frame[name], str(name) if isinstance(name, str) else f"column {name}"
        gone = values.isna().to_numpy()
        missing = f"; {gone.mean():.1%} missing".replace("%", " %") if gone.any() else ""
        if values.dtype.kind in "iuf" and values.nunique() > 2:
            x, share = values.to_numpy(float)[~gone], w[~gone]
            mean = np.average(x, weights=share) if share.sum() > 0 else np.nan
            sd = np.sqrt(np.average((x - mean) ** 2, weights=share)) if share.sum() > 0 else np.nan
            found[label] = f"{mean:.4g} ({sd:.3g}){missing}"
        else:
            shares = pd.Series(w[~gone]).groupby(values[~gone].astype(str).to_numpy()).sum()
            total = max(float(shares.sum()), 1e-300)
            listed = [f"{level}: {100 * share / total:.1f} %" for level, share in shares.items()][:10]
            found[label] = ", ".join(listed) + missing
    return found


# ---- subgroups, sites, methods -----------------------------------------------------------------------


def _subgroups(validation: Validation) -> str:
    """The measures that matter most, by subgroup."""
    tables = []
    for outcome in validation.outcomes:
        for model in validation.models:
            rows = []
            for s, subset in enumerate(validation.comparison.subsets):
                name = f"{subset.by} = {subset.label}" if subset.by else "all"
                cells = [_cell(validation.line(measure, outcome, model, s)) for measure in SHORT]
                rows.append([name, str(subset.count), *cells])
            name = ", ".join(x for x in (outcome, model if len(validation.models) > 1 else "") if x)
            caption = f"By subgroup{f', {one_line(name)}' if name else ''}; C is that of all subjects."
            tables.append(ShownTable(caption, ["subgroup", "subjects", *SHORT], rows).html())
    return "".join(tables) if len(validation.comparison.subsets) > 1 else ""


def _cell(line: dict[str, Any]) -> str:
    ends = interval(line)
    return (number(line["value"]) + (f" ({ends})" if ends else "")) or "cannot tell"


def _sites(validation: Validation) -> str:
    if validation.sites is None:
        return ""
    figures = "".join(
        f"<figure><h3>{html_text(one_line(chart.title))}</h3>{chart_html(chart)}</figure>"
        for chart in validation.sites.charts()
    )
    return f"{validation.sites.table.html()}<div class='pictures'>{figures}</div>"


def _methods(validation: Validation) -> str:
    comparison, s = validation.comparison, validation.comparison.settings
    facts = [
        ("risk of the event by", at_time(comparison, validation.time)),
        ("models", ", ".join(validation.models)),
        ("intercept and slope", f"{validation.method} estimating equations, complementary log-log scale"),
    ]
    shown = ("censoring distribution", "standard errors", "groups", "confidence", "seed", "censcore")
    facts += [(name, setting_text(s[name])) for name in shown if s.get(name) is not None]
    about = dict(comparison.compared)
    facts += [
        (str(name), setting_text(about[name])) for name in ("covariates", "call", "date") if name in about
    ]
    notes = "".join(f"<li>{html_text(note)}</li>" for note in validation.notes)
    return pairs_table("How it was done.", facts) + (f"<h3>Notes</h3><ul>{notes}</ul>" if notes else "")


AUTHOR = "the author must supply it"
#: Items of TRIPOD+AI that concern performance: what each asks for, and the sections that answer it.
ITEMS = (
    ("9", "predictors, and how they were measured", ()),
    ("10", "how the sample size was arrived at", ()),
    ("11", "how missing data were handled", ()),
    ("12d", "how heterogeneity between clusters was handled", ("sites",)),
    ("12e", "all measures and plots of performance", ("measures", "calibration", "decision")),
    ("12g", "how predictions were calculated", ()),
    ("14", "fairness: performance in sociodemographic groups", ("subgroups",)),
    ("20a", "participants, with and without the outcome, and their follow-up", ("subjects",)),
    ("20b", "characteristics of participants", ("characteristics",)),
    ("20c", "a comparison with the development data", ("development",)),
    ("21", "participants and events in each analysis", ("subjects",)),
    ("22", "the full model, so that it can be used", ()),
    ("23a", "performance with intervals, also in key subgroups", ("measures",)),
    ("23b", "heterogeneity of performance between clusters", ("sites",)),
    ("24", "results of updating, if the model was updated", ()),
    ("25-27", "interpretation, limitations and use", ()),
)


def _checklist(validation: Validation, sections: set[str]) -> str:
    if validation.comparison.decided.asked.sample.X is not None:
        sections = sections | {"characteristics"}
    if validation.development is not None:
        sections = sections | {"development"}
    rows = []
    for item, what, where in ITEMS:
        here = [name for name in where if name in sections]
        anchors = {"characteristics": "subjects", "development": "subjects"}
        links = ", ".join(f"<a href='#{anchors.get(name, name)}'>{name}</a>" for name in here)
        rows.append([item, html_text(what), f"<td class='text'>{links or AUTHOR}</td>"])
    caption = "Items of TRIPOD+AI (2024) that concern performance, and where this page answers them."
    return table(["item", "asks for", "where"], rows, name="Checklist", caption=caption, text_columns=3)
