"""A comparison as one self-contained page, and as a table for notebooks: nothing to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from censcore.evaluation.report.embedded_figures import chart_html, swatch, without_repeats
from censcore.evaluation.report.html_tables import (
    calibration_table,
    differences_table,
    folds_table,
    grid_table,
    legend,
    setting_text,
)
from censcore.evaluation.report.page import pairs_table, style_sheet, whole_page
from censcore.evaluation.report.plots import verdict_chart
from censcore.evaluation.report.risk_charts import at_time, looks_of
from censcore.evaluation.report.table_lines import difference_lines, ranked, verdict_on
from censcore.evaluation.report.text import (
    capital,
    grids_of,
    shown_grids,
    subgroup_summary,
    with_unit,
)
from censcore.evaluation.report.verdict import LARGE, Verdict, distance_text
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

CAPTIONS = {
    "brier": "How far each forecast of “the event happens by t” is off, over time. Lower is better.",
    "differences": "Differences from the reference on the same subjects. Where an interval holds zero, "
    "chance can explain the difference.",
    "calibration": "Of the subjects with a forecast risk of p, a share p should have the event (dashed). "
    "Curve: smoothed; points: bins of equal size.",
    "d-calibration": "Bars of equal height mean that forecast probabilities hold on average over all times.",
    "decision": "If all with a risk above the threshold are treated: the share of subjects treated who have "
    "the event, less the share treated without it, weighted by the odds of the threshold. Higher is better.",
    "auc": "The chance that a subject with the event by t has a higher forecast risk than one without it. "
    "Higher is better; whether the risks are right does not count.",
    "roc": "Of those with the event, the share above a threshold, over the same share of those without it.",
    "murphy": "A forecast that is lowest at every threshold is best by every proper score of this time.",
    "pinball": "How far each predicted quantile is off, over its level. Lower is better.",
    "censoring": "How long subjects are followed, and how many subjects each event represents.",
    "folds": "Grey lines join the means of one fold; their spread is no standard error of the mean.",
}
BELOW_ZERO = "Below zero, a forecast is better than {} at this time. "
AT_A_TIME = {"calibration": {}, "decision": {}, "murphy": {}, "roc": {"points": 50}}
FEW = 4  # forecasts, above which a page of several outcomes does not list all pairs of them
CALIBRATED = {True: ("yes", "✓"), False: ("no", "✗"), None: ("unknown", "?")}


def page(comparison: Comparison, title: str) -> str:
    """The whole page: a part for every outcome, which tabs choose, and what holds for all of them."""
    outcomes = list(dict.fromkeys(verdict.outcome for verdict in comparison.verdicts))
    pictured = [outcome for kind in CAPTIONS for outcome in comparison.pictured(kind)]
    outcomes += [name for name in dict.fromkeys(pictured) if name and name not in outcomes]
    censoring = _figures(comparison, "censoring", "")
    censoring = censoring or "".join(_figures(comparison, "censoring", name) for name in outcomes[:1])
    shared = {
        "compared": ("What was compared", pairs_table("What was compared.", _compared(comparison))),
        "censoring": (
            "Can the censoring distribution be trusted?",
            f"<div class='pictures'>{censoring}<div>"
            + pairs_table("How the censoring distribution weights the data.", comparison.censoring.lines())
            + "</div></div>",
        ),
        "notes": ("Notes", _notes(comparison)),
    }
    body = [
        _controls(comparison, outcomes),
        *(_outcome(comparison, outcome, i, list(shared)) for i, outcome in enumerate(outcomes)),
        *_sections(shared, ""),
    ]
    return without_repeats(whole_page(title, body, skip_to="scores"))


def _outcome(comparison: Comparison, outcome: str, number: int, shared: list[str]) -> str:
    """All of one outcome: the verdict and its picture first."""
    verdict = verdict_on(comparison, outcome)
    suffix = f"-{number + 1}" if number else ""
    parts = {
        "scores": ("Scores", _scores(comparison, outcome)),
        "calibration": ("Calibration", _calibration(comparison, outcome)),
        "pictures": ("Pictures", _pictures(comparison, outcome)),
        "subgroups": ("Subgroups", _subgroups(comparison, outcome)),
        "folds": ("Folds", _folds(comparison, verdict)),
    }
    first = "" if verdict is None else _first_screen(comparison, verdict)
    contents = [(f"{name}{suffix}", title) for name, (title, text) in parts.items() if text]
    contents += [(name, name.capitalize()) for name in shared]
    links = "".join(f"<li><a href='#{name}'>{html_text(title)}</a></li>" for name, title in contents)
    nav = f"<nav aria-label='Contents'><ul class='contents'>{links}</ul></nav>"
    name = f" data-outcome='{html_text(one_line(outcome))}'" if outcome else ""
    return f"<section class='outcome'{name}>{first}{nav}{''.join(_sections(parts, suffix))}</section>"


def _sections(parts: dict[str, tuple[str, str]], suffix: str) -> list[str]:
    return [f"<h2 id='{name}{suffix}'>{html_text(title)}</h2>{text}"
            for name, (title, text) in parts.items() if text]  # fmt: skip


def _controls(comparison: Comparison, outcomes: list[str]) -> str:
    """What the script shows: outcomes by tabs; models, time and bands for the whole page."""
    tabs = "".join(
        f"<button type='button' role='tab' aria-selected='{'false' if i else 'true'}'>"
        f"{html_text(one_line(outcome))}</button>"
        for i, outcome in enumerate(outcomes)
    )
    tabs = (
        f"<div class='tabs' role='tablist' aria-label='Outcome' hidden>{tabs}</div>" if outcomes[1:] else ""
    )
    looks = looks_of(comparison)
    models = "".join(
        f"<button type='button' aria-pressed='true' data-choose='{html_text(one_line(model))}'>"
        f"{swatch(looks[model])}{html_text(one_line(model))}</button>"
        for model in comparison.models
    )
    times = "".join(
        f"<option value='{t:.6g}'>{html_text(at_time(comparison, t))}</option>" for t in _times(comparison)
    )
    time = f"<label>Time <select><option value=''>all</option>{times}</select></label>" if times else ""
    bands = "<label><input type='checkbox' checked> bands</label>"
    fold = "<button type='button' class='unfold' aria-pressed='false'>unfold all</button>"
    chosen = f"{models}{time}{bands}{fold}"
    return f"{tabs}<div class='controls' role='group' aria-label='Shown' hidden>{chosen}</div>"


def _times(comparison: Comparison) -> list[float]:
    """Times that pictures can be chosen at; few where there are many subjects, since each takes its time."""
    times = [float(t) for t in comparison.settings.get("times", [])]
    return times if comparison.settings["subjects"] * len(comparison.models) <= LARGE else []


# ---- the first screen ------------------------------------------------------------------------------


def _first_screen(comparison: Comparison, verdict: Verdict) -> str:
    try:
        chart = verdict_chart(comparison, verdict)
    except InvalidInputError:  # one forecast, or too few events
        picture = ""
    else:
        picture = f"<figure><h3>{html_text(capital(chart.title))}</h3>{chart_html(chart)}</figure>"
    first, *others = map(html_text, verdict.sentences)
    items = "".join(f"<li>{sentence}</li>" for sentence in others)
    return (
        f"<div class='first'><p class='verdict'><strong>{first}</strong></p>{picture}<ul>{items}</ul>"
        f"<div>{_calibrated(comparison, verdict)}{_summary(comparison)}{_warnings(comparison)}</div></div>"
    )


def _calibrated(comparison: Comparison, verdict: Verdict) -> str:
    """Of every forecast a mark, and how far its risks are from the observed ones."""
    if not verdict.calibration:
        return ""
    lines = {line["model"]: line for line in verdict.calibration}
    items = []
    for model in ranked(comparison, verdict.outcome):
        (kind, mark), name = CALIBRATED[lines[model]["calibrated"]], html_text(one_line(model))
        distance = distance_text(lines[model], comparison.time_unit) or "cannot tell"
        items.append(
            f"<li class='{kind}' data-model='{name}'><span aria-hidden='true'>{mark}</span> "
            f"<strong>{name}</strong> {html_text(distance)}</li>"
        )
    words = (
        "✓ no sign against it; ✗ forecast and observed risks differ by more than chance explains. "
        "ICI: their mean distance."
    )
    return f"<h3>Is it calibrated?</h3><ul class='marks'>{''.join(items)}</ul><p class='soft'>{words}</p>"


def _summary(comparison: Comparison) -> str:
    s = comparison.settings
    return (
        f"<p>{len(comparison.models)} forecasts, {s['subjects']} subjects with {s['events']} events, scored "
        f"{html_text(_scored_until(comparison))}.</p>"
    )


def _scored_until(comparison: Comparison) -> str:
    """The horizon, also as a share of follow-up where that is longer."""
    end, last = comparison.settings["horizon"], comparison.last_time
    if end >= last:
        return f"up to time {with_unit(end, comparison.time_unit)}"
    whole = with_unit(last, comparison.time_unit)
    return f"up to time {end:.4g} of {whole} ({end / last:.0%} of follow-up)"


def _warnings(comparison: Comparison) -> str:
    warnings = comparison.censoring.warnings
    return "".join(
        f"<p class='warning' role='note'><strong>Warning.</strong> {html_text(w)}</p>" for w in warnings
    )


def notebook(comparison: Comparison) -> str:
    """The verdict and the tables, for a notebook; its style is its own and touches nothing else."""
    grids = shown_grids(comparison)
    parts = [f"<div class='verdict'>{verdict._repr_html_()}</div>" for verdict in comparison.verdicts]
    parts += [_summary(comparison), *(grid_table(comparison, grid, sortable=False) for grid in grids)]
    parts += [legend(grids, sortable=False), _warnings(comparison)]
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


# ---- tables ----------------------------------------------------------------------------------------


def _scores(comparison: Comparison, outcome: str) -> str:
    grids = [grid for grid in grids_of(comparison) if grid.outcome == outcome]
    if not grids:
        return ""
    tables = "".join(grid_table(comparison, grid) for grid in grids)
    return tables + legend(grids) + _difference_table(comparison, outcome)


def _difference_table(comparison: Comparison, outcome: str) -> str:
    pairs = [x for x in difference_lines(comparison) if x["by"] == "" and x["outcome"] == outcome]
    if not pairs:
        return "<p>There is nothing to compare: fewer than two forecasts share a score.</p>"
    title, verdict = "All paired differences", verdict_on(comparison, outcome)
    many = bool(comparison.kind.views) and len(comparison.models) > FEW  # pages stay small
    if many and verdict is not None:
        title, base = (
            "Paired differences from the best and the reference",
            {verdict.best, comparison.reference},
        )
        pairs = [x for x in pairs if base & {x["model"], x["versus"]}]
    words = (
        "Negative favours the first forecast; for concordance and AUC, positive does. Intervals and adjusted "
        "p-values hold for all pairs of a score together."
    )
    shown = differences_table(comparison, pairs)
    first = outcome == comparison.verdicts[0].outcome and not many
    picture = _figures(comparison, "differences", "") if first else ""
    return _folded(
        f"{title}, with intervals and p-values ({len(pairs)} lines)",
        f"<p>{words}</p>{shown}<div class='pictures'>{picture}</div>",
    )


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>{text}</details>"


def _subgroups(comparison: Comparison, outcome: str) -> str:
    summaries = [grid for grid in subgroup_summary(comparison) if grid.outcome == outcome]
    grids = [grid for grid in grids_of(comparison, subgroups=True) if grid.outcome == outcome]
    if not grids:
        return ""
    tables = "".join(grid_table(comparison, grid) for grid in grids)
    shown = "".join(grid_table(comparison, grid) for grid in summaries)
    return shown + _folded(f"All scores by subgroup ({len(grids)} tables)", tables)


def _folds(comparison: Comparison, verdict: Verdict | None) -> str:
    """Means by fold of a cross-validation: of the deciding score in a picture, and folded in a table."""
    lines = [] if verdict is None else comparison.fold_lines
    lines = [line for line in lines if verdict is not None and line["score"] == verdict.score]
    if verdict is None or not lines:
        return ""
    every = folds_table(lines)
    places = [float(at) for at in dict.fromkeys(line["at"] for line in lines)]
    column = places.index(verdict.at) if verdict.at in places else 0
    shown = _figure(comparison, "folds", {"score": verdict.score, "column": column})
    return f"<div class='pictures'>{shown}</div>" + _folded(f"Means by fold ({len(lines)} lines)", every)


def _compared(comparison: Comparison) -> list[tuple[str, str]]:
    """The data, the models, the call and everything that was decided, by the caller or by default."""
    s, about = comparison.settings, dict(comparison.compared)
    models = about.pop("models", {})
    first = {
        "subjects": f"{s['subjects']}, of whom {s['events']} had the event",
        "follow-up": _scored_until(comparison),
    }
    first |= {"covariates": about.pop("covariates")} if "covariates" in about else {}
    first |= {f"model: {name}": text for name, text in models.items() if name in comparison.models}
    later = {name: s[name] for name in s if name not in ("subjects", "events", "horizon", "censcore")}
    facts = first | later | about
    return [(name, setting_text(value)) for name, value in facts.items() if value is not None]


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    return "<ul>" + "".join(f"<li>{html_text(n)}</li>" for n in comparison.notes) + "</ul>"


# ---- pictures --------------------------------------------------------------------------------------


def _calibration(comparison: Comparison, outcome: str) -> str:
    """Numbers and curves of calibration, at the middle one of the evaluation times at first."""
    if outcome not in comparison.pictured("calibration"):
        return ""
    note = comparison.calibration_note
    remark = f"<p>p-values of calibration are {html_text(note)}.</p>" if note else ""
    tables = ""
    for t, shown in _chosen_times(comparison):
        text, at = calibration_table(comparison, outcome, t), f"data-time='{t:.6g}'" if t else ""
        tables += f"<div {at}{'' if shown else ' hidden'}>{text}</div>" if at else text
    figures = "".join(_figures(comparison, kind, outcome) for kind in ("calibration", "d-calibration"))
    return f"{remark}{tables}<div class='pictures'>{figures}</div>"


def _chosen_times(comparison: Comparison) -> list[tuple[float | None, bool]]:
    """Times of pictures, and whether each is shown at first; None is the middle one."""
    times = _times(comparison)
    return [(t, i == len(times) // 2) for i, t in enumerate(times)] or [(None, True)]


def _pictures(comparison: Comparison, outcome: str) -> str:
    """Gains over the reference and decisions; folded, what a statistician may want besides."""
    base = comparison.reference or (comparison.models[0] if comparison.models[1:] else None)
    first = _figures(comparison, "brier", outcome, versus=base) if base else ""
    first += _figures(comparison, "decision", outcome)
    kinds = ["brier", *(["auc"] if comparison.discrimination else []), "roc", "murphy", "pinball"]
    kinds = kinds if comparison.summed is None else []  # a table is read again for each of them
    more = "".join(_figures(comparison, kind, outcome) for kind in kinds)
    shown = f"<div class='pictures'>{first}</div>" if first else ""
    folded = "More pictures: Brier score, AUC, ROC curves, Murphy diagram, pinball score"
    return shown + (_folded(folded, f"<div class='pictures'>{more}</div>") if more else "")


def _figures(comparison: Comparison, kind: str, outcome: str, **more: Any) -> str:
    """The pictures of a kind that belong to the outcome; nothing where there are none."""
    if outcome not in comparison.pictured(kind):
        return ""
    options = {"outcome": outcome or None}
    if kind not in AT_A_TIME:
        return _figure(comparison, kind, options | more)
    # of several outcomes, what is folded away is shown at the middle time alone: pages stay small
    few = comparison.kind.views and kind in ("murphy", "roc")
    return "".join(
        _figure(comparison, kind, options | AT_A_TIME[kind] | ({} if t is None else {"time": t}), t, shown)
        for t, shown in ([(None, True)] if few else _chosen_times(comparison))
    )


def _figure(
    comparison: Comparison, kind: str, options: dict[str, Any], time: float | None = None, shown: bool = True
) -> str:
    at = ("" if time is None else f" data-time='{time:.6g}'") + ("" if shown else " hidden")
    try:
        chart = comparison.chart(kind, **options)
    except CenscoreError as error:
        if kind == "differences":  # of one forecast, there are none
            return ""
        return f"<figure{at}><p>{html_text(kind)}: not computed, because {html_text(str(error))}</p></figure>"
    versus = options.get("versus")
    words = CAPTIONS[kind] if versus is None else BELOW_ZERO.format(html_text(one_line(versus)))
    drawn = chart_html(chart)
    wide = " class='wide'" if chart.small and len(chart.panels) > 2 else ""
    caption = f"<figcaption>{words}</figcaption>"
    return f"<figure{wide}{at}><h3>{html_text(chart.title)}</h3>{drawn}{caption}</figure>"
