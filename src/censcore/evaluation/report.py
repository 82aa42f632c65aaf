"""A comparison as one self-contained page: no scripts, no fonts, nothing to fetch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.page import image, table, whole_page
from censcore.evaluation.plots import PLOTS
from censcore.evaluation.text import CANNOT_TELL, label, lines_of, p_text

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["page"]

CAPTIONS = {
    "brier": "How far each forecast of “the event happens by t” is off, over time. Lower is better.",
    "pinball": "How far each predicted quantile is off, over its level. Lower is better.",
    "differences": "Differences from the reference on the same rows; an interval clear of zero is no noise.",
    "murphy": "A forecast that is lowest at every threshold is best by every proper score of this time.",
    "calibration": "Bars of equal height mean that predicted probabilities hold on average.",
    "censoring": "How long rows are followed, and how many rows each event stands for.",
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
            _pairs("What the censoring distribution asks of the data.", comparison.censoring.lines()),
            "<h2 id='settings'>Settings</h2>",
            _pairs("Everything that was decided, by the caller or by default.", _settings(comparison)),
            _notes(comparison),
        ]
    )
    return whole_page(title, [body], skip_to="scores")


def _summary(comparison: Comparison) -> str:
    s = comparison.settings
    text = (
        f"<p>{len(comparison.models)} forecasts, {s['rows']} rows with {s['events']} events, judged up to "
        f"time {s['horizon']:.6g}.</p>"
    )
    return text + _verdict(comparison)


def _verdict(comparison: Comparison) -> str:
    """In words: who has the smallest mean of the first score that all have, and whether that is noise."""
    frame = comparison.frame(discrimination=False)
    frame = frame[(frame["by"] == "") & (frame["note"] != "not available")]
    counts = frame.groupby("score", sort=False)["model"].nunique()
    whole = [name for name in counts.index if counts[name] == len(comparison.models)]
    if not whole or len(comparison.models) < 2:
        return ""
    name = "crps" if "crps" in whole else whole[0]
    block = frame[frame["score"] == name]
    block = block[block["at"].isna() | (block["at"] == block["at"].iloc[0])].sort_values("mean")
    first, second = block["model"].iloc[0], block["model"].iloc[1]
    pairs = comparison.differences(discrimination=False)
    at = block["at"].iloc[0]
    same_at = pairs["at"].isna() if np.isnan(at) else pairs["at"] == at
    chosen = pairs[(pairs["by"] == "") & (pairs["score"] == name) & same_at]
    row = chosen[chosen["model"].isin([first, second]) & chosen["versus"].isin([first, second])].iloc[0]
    p = float(row["p_adjusted"])
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
    told = (
        "Lower is better; the best is bold and marked ★. Lines with * (concordance, AUC) are descriptive, "
        "not proper, and there higher is better."
    )
    caption = "Mean loss ± standard error"
    return f"<p>{told}</p>" + _table("Scores", caption, ["score", *map(escape, comparison.models)], rows)


def _scored(cell: str) -> str:
    text = escape(cell.strip())
    return f"<span class='best'>★ {text[:-1]}</span>" if text.endswith("!") else text


def _difference_table(comparison: Comparison) -> str:
    pairs = comparison.differences(discrimination=False)
    if not len(pairs):
        return "<p>There is nothing to compare: fewer than two forecasts share a score.</p>"
    titles = {score.name: (score.title, score.axis) for score in comparison.scores}
    rows = []
    for row in pairs[pairs["by"] == ""].itertuples():
        title, axis = titles[row.score]
        rows.append(
            [
                escape(label(title, row.at, axis)),
                f"{escape(row.model)} − {escape(row.versus)}",
                _number(row.difference),
                f"{_number(row.low)} to {_number(row.high)}",
                escape(p_text(row.p_value)),
                escape(p_text(row.p_adjusted)),
            ]
        )
    head = [
        "score",
        "forecasts",
        "difference",
        f"{100 * comparison.confidence:g} % interval",
        "p",
        "adjusted p",
    ]
    told = (
        "Negative favours the first forecast. Intervals and adjusted p-values hold for all pairs of a line "
        "together."
    )
    caption = "Paired differences of mean losses"
    return (
        "<details><summary>All paired differences, with intervals and p-values "
        f"({len(rows)} lines)</summary><p>{told}</p>{_table('Differences', caption, head, rows, 2)}</details>"
    )


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:+.4g}".replace("-", "−")


def _pictures(comparison: Comparison) -> str:
    parts = []
    for kind in PLOTS:
        if kind == "differences" and not _has_intervals(comparison):
            continue
        alt = f"{CAPTIONS[kind]} {_in_words(comparison, kind)}"
        shown = image(comparison.plot(kind), alt)
        parts.append(f"<figure>{shown}<figcaption>{CAPTIONS[kind]}</figcaption></figure>")
    return f"<div class='pictures'>{''.join(parts)}</div>"


def _has_intervals(comparison: Comparison) -> bool:
    """Whether some pair of forecasts has an interval."""
    pairs = comparison.differences()
    return bool(len(pairs)) and bool(pairs["standard_error"].notna().any())


def _in_words(comparison: Comparison, kind: str) -> str:
    """What the picture shows, for those who do not see it."""
    models = ", ".join(comparison.models)
    if kind == "censoring":
        return f"Largest weight {comparison.censoring.weights['largest']:.3g}."
    return f"Forecasts shown: {models}. The numbers are in the tables of this page."


def _subgroups(comparison: Comparison) -> str:
    frame = comparison.frame(discrimination=False)
    frame = frame[frame["by"] != ""]
    if not len(frame):
        return ""
    titles = {score.name: (score.title, score.axis) for score in comparison.scores}
    rows = []
    for row in frame.itertuples():
        mean = f"{row.mean:.4f} ± {row.standard_error:.4f}"
        if row.note:
            mean = f"{row.mean:.4f} ({CANNOT_TELL})" if row.note.startswith(CANNOT_TELL) else row.note
        title, axis = titles[row.score]
        rows.append(
            [escape(f"{row.by} = {row.group}"), escape(label(title, row.at, axis)), escape(row.model), mean,
             "" if np.isnan(row.skill) else f"{row.skill:.3f}", str(row.n)]
        )  # fmt: skip
    head = ["subgroup", "score", "forecast", "mean loss ± standard error", "skill", "rows"]
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
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    return (
        "<h2 id='notes'>Notes</h2><ul>" + "".join(f"<li>{escape(n)}</li>" for n in comparison.notes) + "</ul>"
    )
