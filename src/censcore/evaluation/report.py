"""A comparison as one self-contained page: no scripts, no fonts, nothing to fetch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.page import image, table, whole_page
from censcore.evaluation.plots import PLOTS
from censcore.evaluation.tables import CANNOT_TELL, NOT_AVAILABLE, Line, difference_lines, mean_lines
from censcore.evaluation.text import label, lines_of, p_text

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["page"]

CAPTIONS = {
    "brier": "How far each forecast of “the event happens by t” is off, over time. Lower is better.",
    "pinball": "How far each predicted quantile is off, over its level. Lower is better.",
    "differences": "Differences from the reference on the same subjects. Noise explains intervals with zero.",
    "murphy": "A forecast that is lowest at every threshold is best by every proper score of this time.",
    "calibration": "Bars of equal height mean that predicted probabilities hold on average.",
    "censoring": "How long subjects are followed, and how many subjects each event represents.",
}


def page(comparison: Comparison, title: str) -> str:
    """The whole page."""
    body = "\n".join(
        [
            _summary(comparison),
            _warnings(comparison),
            "<h2 id='scores'>Scores</h2>",
            _score_table(comparison),
            "<h2 id='differences'>Differences</h2>",
            _difference_table(comparison),
            "<h2 id='pictures'>Pictures</h2>",
            _pictures(comparison),
            _subgroups(comparison),
            "<h2 id='censoring'>Can the censoring distribution be trusted?</h2>",
            _pairs("How the censoring distribution weights the data.", comparison.censoring.lines()),
            "<h2 id='settings'>Settings</h2>",
            _pairs("Everything that was decided, by the caller or by default.", _settings(comparison)),
            _notes(comparison),
        ]
    )
    return whole_page(title, [body], skip_to="scores")


def _summary(comparison: Comparison) -> str:
    s = comparison.settings
    text = (
        f"<p>{len(comparison.models)} forecasts, {s['subjects']} subjects with {s['events']} events, scored "
        f"up to time {s['horizon']:.6g}.</p>"
    )
    return text + _verdict(comparison)


def _verdict(comparison: Comparison) -> str:
    """In words: who has the smallest mean of the first score that all have, and whether that is noise."""
    lines = [line for line in mean_lines(comparison, discrimination=False) if line["by"] == ""]
    lacking = {line["score"] for line in lines if line["note"] == NOT_AVAILABLE}
    whole = [score.name for score in comparison.scores if score.name not in lacking]
    if not whole or len(comparison.models) < 2:
        return ""
    name = "crps" if "crps" in whole else whole[0]
    block = [line for line in lines if line["score"] == name][: len(comparison.models)]  # its first column
    first, second = (line["model"] for line in sorted(block, key=lambda line: line["mean"])[:2])
    pairs = difference_lines(comparison, discrimination=False)
    row = next(
        row for row in pairs
        if row["by"] == "" and row["score"] == name and {row["model"], row["versus"]} == {first, second}
    )  # fmt: skip
    p = row["p_adjusted"]
    title = next(score.title for score in comparison.scores if score.name == name)
    if np.isnan(p):
        reason = row["note"] or "the losses of the two do not differ, or not by a finite amount"
        return f"<p>Which forecast has the smallest mean {escape(title)}: {escape(_cannot(reason))}.</p>"
    told = "more than noise explains" if p < 1 - comparison.confidence else "which noise can explain"
    shown = p_text(p)
    return (
        f"<p><strong>{escape(first)}</strong> has the smallest mean {escape(title)}, "
        f"{abs(row['difference']):.3g} below {escape(second)} "
        f"(adjusted p {escape(shown) if shown.startswith('<') else f'= {shown}'}): {told}.</p>"
    )


def _cannot(reason: str) -> str:
    return reason if reason.startswith(CANNOT_TELL) else f"{CANNOT_TELL}: {reason}"


def _warnings(comparison: Comparison) -> str:
    found = comparison.censoring.warnings
    return "".join(f"<p class='warning' role='note'><strong>Warning.</strong> {escape(w)}</p>" for w in found)


def _table(name: str, caption: str, head: list[str], rows: list[list[str]], text_columns: int = 1) -> str:
    return table(head, rows, name=name, caption=caption, text_columns=text_columns)


def _score_table(comparison: Comparison) -> str:
    rows = []
    for name, cells in lines_of(comparison):
        rows.append([escape(name), *(_scored(cell) for cell in cells)])
    words = (
        "Lower is better; the best is bold and marked ★. Lines with * (concordance, AUC) are descriptive, "
        "not proper, and there higher is better."
    )
    caption = "Mean loss ± standard error"
    return f"<p>{words}</p>" + _table("Scores", caption, ["score", *map(escape, comparison.models)], rows)


def _scored(cell: str) -> str:
    text = escape(cell.strip())
    return f"<span class='best'>★ {text[:-1]}</span>" if text.endswith("!") else text


def _difference_table(comparison: Comparison) -> str:
    pairs = [row for row in difference_lines(comparison, discrimination=False) if row["by"] == ""]
    if not pairs:
        return "<p>There is nothing to compare: fewer than two forecasts share a score.</p>"
    rows = [
        [
            escape(_label(comparison, row)),
            f"{escape(row['model'])} − {escape(row['versus'])}",
            _number(row["difference"]),
            f"{_number(row['low'])} to {_number(row['high'])}",
            escape(p_text(row["p_value"])),
            escape(p_text(row["p_adjusted"])),
        ]
        for row in pairs
    ]
    head = [
        "score",
        "forecasts",
        "difference",
        f"{100 * comparison.confidence:g} % interval",
        "p",
        "adjusted p",
    ]
    words = (
        "Negative favours the first forecast. Intervals and adjusted p-values hold for all pairs of a line "
        "together."
    )
    caption = "Paired differences of mean losses"
    shown = _table("Differences", caption, head, rows, 2)
    return (
        "<details><summary>All paired differences, with intervals and p-values "
        f"({len(rows)} lines)</summary><p>{words}</p>{shown}</details>"
    )


def _label(comparison: Comparison, row: Line) -> str:
    score = next(score for score in comparison.scores if score.name == row["score"])
    return label(score.title, row["at"], score.axis)


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:+.4g}".replace("-", "−")


def _pictures(comparison: Comparison) -> str:
    parts = []
    for kind in PLOTS:
        if kind == "differences" and not _has_intervals(comparison):
            continue
        for options in comparison.pictured(kind):
            words = ": ".join([*options.values(), CAPTIONS[kind]])
            shown = image(comparison.plot(kind, **options), f"{words} {_in_words(comparison, kind)}")
            parts.append(f"<figure>{shown}<figcaption>{escape(words)}</figcaption></figure>")
    return f"<div class='pictures'>{''.join(parts)}</div>"


def _has_intervals(comparison: Comparison) -> bool:
    """Whether some pair of forecasts has an interval."""
    return any(not np.isnan(row["standard_error"]) for row in difference_lines(comparison))


def _in_words(comparison: Comparison, kind: str) -> str:
    """What the picture shows, for those who do not see it."""
    models = ", ".join(comparison.models)
    if kind == "censoring":
        return f"Largest weight {comparison.censoring.weights['largest']:.3g}."
    return f"Forecasts shown: {models}. The numbers are in the tables of this page."


def _subgroups(comparison: Comparison) -> str:
    rows = []
    for row in mean_lines(comparison, discrimination=False):
        if row["by"] == "":
            continue
        mean, note = f"{row['mean']:.4f} ± {row['standard_error']:.4f}", row["note"]
        if note:
            mean = f"{row['mean']:.4f} ({CANNOT_TELL})" if note.startswith(CANNOT_TELL) else note
        subgroup, skill = f"{row['by']} = {row['group']}", row["skill"]
        shown = "" if np.isnan(skill) else f"{skill:.3f}"
        names = (subgroup, _label(comparison, row), row["model"])
        rows.append([*map(escape, names), mean, shown, str(row["n"])])
    if not rows:
        return ""
    head = ["subgroup", "score", "forecast", "mean loss ± standard error", "skill", "subjects"]
    table = _table("Subgroups", "Mean losses and skills by subgroup.", head, rows, 3)
    return f"<h2 id='subgroups'>Subgroups</h2><details><summary>{len(rows)} lines</summary>{table}</details>"


def _pairs(caption: str, lines: list[tuple[str, str]]) -> str:
    rows = [[escape(name), escape(value)] for name, value in lines]
    return _table(caption, caption, ["what", "value"], rows, 2)


def _settings(comparison: Comparison) -> list[tuple[str, str]]:
    return [(name, _setting(value)) for name, value in comparison.settings.items() if value is not None]


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_setting(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_setting(item)}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    return (
        "<h2 id='notes'>Notes</h2><ul>" + "".join(f"<li>{escape(n)}</li>" for n in comparison.notes) + "</ul>"
    )
