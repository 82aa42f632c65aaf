"""A comparison in words: the best forecast, what is tied with it or worse, and what beats the reference."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.lines import CANNOT_TELL, MINIMUM_EVENTS, Line
from censcore.evaluation.report.table_lines import (
    Key,
    against,
    blocks,
    difference_lines,
    differences_from,
    key_of,
    mean_lines,
    title_of,
)
from censcore.evaluation.report.text import about, p_is, with_unit
from censcore.exceptions import CenscoreError
from censcore.outcomes import EventOfCause
from censcore.plain_text import html_text, one_line
from censcore.published import DCalibration, d_calibration

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.measures.case import Case
    from censcore.evaluation.measures.case_scores import CaseScore

MOST_NAMES = 5  # of forecasts in one sentence
MOST_GAPS = 3  # with numbers
LARGE = 100_000  # subjects, above which the curve behind the ICI is left to those who ask for it
ROUNDING = 1e-6  # of a time at which follow-up ends
SHORT = 0.9  # of follow-up: a shorter horizon is reported beside the last time


@dataclass(frozen=True)
class Verdict:
    """Which forecast is best by one score, as data and in words; ``str(verdict)`` gives the words.

    Attributes
    ----------
    outcome : str
        The event it is about; empty where there is only one.
    score : str
        Name of the score: the first that all forecasts have.
    at : float
        The time or level that it is taken at, the middle one of several; NaN for a score without any.
    best : str
        The forecast with the smallest mean loss; empty where the data cannot tell.
    tied : list of str
        Forecasts without a clear difference from the best.
    worse : list of dict
        Forecasts that are clearly worse, the nearest first: ``model``, ``difference`` of the mean losses with
        ``low`` and ``high``, ``percent`` of its loss (NaN without a natural zero), ``p_adjusted``.
    beats_reference : list of str
        Forecasts that are clearly better than the reference, also where the best is tied with all of them.
    subjects, events : int
        Subjects, and events up to the horizon.
    weighted : bool
        Whether the subjects have different sampling weights.
    effective_events : float
        Kish's effective number of these events, by their sampling and inverse-probability weights; of
        clusters where there are ``groups``.
    calibration : list of dict
        Per forecast: ``time``, ``ici`` and ``p_value`` of its calibration curve there, the p-value of its
        ``d_calibration``, and whether it is ``calibrated``: whether ``p_value`` is at least 1 - confidence
        (where there is no curve that of ``d_calibration``; None where neither can tell). Empty for outcomes
        that are no risk of one event, such as all causes together.
    sentences : list of str
        The verdict in words.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> forecasts = {"fast": cs.Exponential(1.0), "slow": cs.Exponential(0.3)}
    >>> comparison = cs.compare(forecasts, y, cs.Uniform(0.0, 5.0), scores="crps", time_unit="years")
    >>> print(comparison.verdict)
    Cannot tell which forecast is best: the comparison is based on 2.33 effective events, at least 5 are
    needed.
    """

    score: str
    at: float = np.nan
    outcome: str = ""
    best: str = ""
    tied: list[str] = field(default_factory=list)
    worse: list[dict[str, Any]] = field(default_factory=list)
    beats_reference: list[str] = field(default_factory=list)
    subjects: int = 0
    events: int = 0
    effective_events: float = 0.0
    weighted: bool = False
    calibration: list[dict[str, Any]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        first, *others = map(html_text, self.sentences)
        return f"<p><strong>{first}</strong> {' '.join(others)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """All of it, with the words as ``text``."""
        return {"text": str(self)} | asdict(self)


def verdicts_of(comparison: Comparison) -> list[Verdict]:
    """One verdict per outcome, over all subjects."""
    lines = [line for line in mean_lines(comparison, discrimination=False) if line["by"] == ""]
    outcomes = dict.fromkeys(line["outcome"] for line in lines)
    return [_verdict(comparison, outcome, blocks(x for x in lines if x["outcome"] == outcome))
            for outcome in outcomes]  # fmt: skip


def _verdict(comparison: Comparison, outcome: str, means: dict[Key, list[Line]]) -> Verdict:
    block = _leading(means)
    score = next(s for s in comparison.scores if s.name == block[0]["score"])
    events, effective = comparison.weighted_events(score)
    verdict = Verdict(
        score.name, block[0]["at"], outcome, subjects=block[0]["n"], events=events,
        effective_events=effective, weighted=comparison.subsets[0].weighted,
        calibration=calibration_lines(comparison, outcome, block[0]["at"] if score.axis == "time" else None),
    )  # fmt: skip

    def verdict_with(*sentences: str, **facts: Any) -> Verdict:
        first, *others = (s for s in sentences if s)
        return replace(verdict, **facts, sentences=[about(outcome) + first, *others])

    article = "the " if score.info.formula else ""  # a custom score has a name, and no formula
    title = title_of(score).replace(", ipcw", " (ipcw)")
    named = f"{article}{title}{_until(comparison, score, block[0]['at'])}"
    if block[0]["note"].startswith(CANNOT_TELL):
        return verdict_with(
            f"Cannot tell which forecast is best: the comparison is based on {block[0]['events']:.3g} "
            f"{'' if float(block[0]['events']).is_integer() else 'effective '}events, at least "
            f"{MINIMUM_EVENTS} are needed."
        )
    if len(block) == 1:
        return verdict_with(
            f"{one_line(block[0]['model'])} has {_plus_minus(block[0])} by {named}; there is no other "
            "forecast to compare it with.", *_calibration_sentences(comparison, verdict, block[0]["model"]),
            _based_on(verdict), best="",
        )  # fmt: skip
    finite = sorted((x for x in block if np.isfinite(x["mean"])), key=lambda line: line["mean"])
    if not finite:
        return verdict_with(f"Cannot tell which forecast is best: every one has an infinite mean by {named}.")
    best = finite[0]
    pairs = blocks(difference_lines(comparison, discrimination=False)).get(key_of(best), [])
    clear = against(pairs, best["model"], comparison.confidence)
    tied = [x["model"] for x in finite[1:] if not clear.get(x["model"], False)]
    worse = [_gap(x, best, pairs, score) for x in finite[1:] if clear.get(x["model"], False)]
    endless = [x["model"] for x in block if not np.isfinite(x["mean"])]
    wins = _clear_wins(pairs, comparison.confidence)
    beats = [x["model"] for x in finite if (x["model"], comparison.reference) in wins]
    facts = {"best": best["model"], "tied": tied, "worse": worse, "beats_reference": beats}
    among_three = len(finite) > 2
    return verdict_with(
        _first_sentence(best, tied, wins, named, len(block)),
        _worse_sentence(best["model"], worse, comparison.confidence),
        _reference_sentence(comparison.reference, beats, finite) if wins and among_three else "",
        _others_sentence(wins, comparison.reference) if not worse else "",
        f"Infinite mean: {_listed(endless)}." if endless else "",
        _largest_gap(best["model"], pairs, comparison.confidence) if tied and not worse else "",
        *_calibration_sentences(comparison, verdict, best["model"]),
        _based_on(verdict),
        _other_scores(comparison, means, best["model"]),
        **facts,
    )


def _leading(means: dict[Key, list[Line]]) -> list[Line]:
    """The first score that has a number for every forecast, otherwise that with most; at its middle time."""

    def lacking(block: list[Line]) -> int:
        return sum(bool(np.isnan(line["mean"])) for line in block)

    chosen = min(means.values(), key=lacking)
    same = [block for block in means.values() if block[0]["score"] == chosen[0]["score"]]
    alike = [block for block in same if lacking(block) == lacking(chosen)]
    middle = alike[len(alike) // 2]
    return [line for line in middle if not np.isnan(line["mean"])] or middle[:1]


def _gap(line: Line, best: Line, pairs: list[Line], score: CaseScore) -> dict[str, Any]:
    """How much worse a forecast is than the best."""
    pair, (gap, low, high) = next(
        (pair, map(float, ends))
        for pair, other, ends in differences_from(pairs, best["model"])
        if other == line["model"]
    )
    percent = 100 * gap / line["mean"] if score.info.has_skill and line["mean"] > 0 else np.nan
    return {"model": line["model"], "difference": gap, "low": low, "high": high, "percent": percent,
            "p_adjusted": pair["p_adjusted"]}  # fmt: skip


def _clear_wins(pairs: list[Line], confidence: float) -> list[tuple[str, str]]:
    """Pairs (better, worse) of all forecasts with a clear difference."""
    clear = [line for line in pairs if line["p_adjusted"] < 1 - confidence]
    named = [(line["model"], line["versus"], line["difference"]) for line in clear]
    return [(a, b) if difference < 0 else (b, a) for a, b, difference in named]


def _first_sentence(best: Line, tied: list[str], wins: list[tuple[str, str]], named: str, count: int) -> str:
    name, mean = one_line(best["model"]), _plus_minus(best)
    if tied and not wins:
        return (
            f"No clear difference between the {count} forecasts: by {named}, {name} has the smallest mean "
            f"({mean}), but chance can explain its lead over {_listed(tied)}."
        )
    if tied and best["model"] not in {better for better, _ in wins}:
        return f"{name} has the smallest mean by {named} ({mean}), without a clear lead over {_listed(tied)}."
    return f"{name} is best by {named} ({mean}){f', tied with {_listed(tied)}' if tied else ''}."


def _reference_sentence(reference: str | None, beats: list[str], finite: list[Line]) -> str:
    """Which forecasts are clearly better than the reference, also where they are tied with each other."""
    if reference not in [line["model"] for line in finite]:
        return ""
    name = one_line(str(reference))
    if not beats:
        return f"No forecast is clearly better than the reference, {name}."
    return f"Clearly better than the reference, {name}: {_listed(beats)}."


def _others_sentence(wins: list[tuple[str, str]], reference: str | None) -> str:
    """Clear differences in which neither the best nor the reference takes part."""
    gaps = [
        f"{one_line(worse)} is worse than {one_line(better)}" for better, worse in wins if worse != reference
    ]
    return f"Other clear differences: {_first(gaps)}." if gaps else ""


def _first(words: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = [f"{len(words) - MOST_GAPS} more"] if len(words) > MOST_GAPS else []
    return "; ".join(words[:MOST_GAPS] + more)


def _worse_sentence(best: str, worse: list[dict[str, Any]], confidence: float) -> str:
    if not worse:
        return ""
    gaps = []
    for gap in worse[:MOST_GAPS]:
        share = "" if np.isnan(gap["percent"]) else f", {gap['percent']:.2g} % of its loss"
        interval = f"{100 * confidence:g} % interval {gap['low']:.2g} to {gap['high']:.2g}"
        gaps.append(f"{one_line(gap['model'])} (by {gap['difference']:.2g}{share}; {interval})")
    more = len(worse) - len(gaps)
    gaps += [f"{more} more (by up to {worse[-1]['difference']:.2g})"] if more else []
    before = ", ".join(gaps[:-1]) + " and " if gaps[1:] else ""
    return f"Clearly worse than {one_line(best)}: {before}{gaps[-1]}."


def _largest_gap(best: str, pairs: list[Line], confidence: float) -> str:
    """How much the data still allow, where there is no clear difference from the best."""
    ends = [high for _, _, (_, _, high) in differences_from(pairs, best) if not np.isnan(high)]
    return f"{100 * confidence:g} % intervals allow it a lead of up to {max(ends):.2g}." if ends else ""


def _calibration_sentences(comparison: Comparison, verdict: Verdict, best: str) -> list[str]:
    """Whether the risks of the best agree with the observed ones, and which others do not."""
    sentences = []
    for line in verdict.calibration:
        if line["model"] == best and line["calibrated"] is not None:
            words = "agree with" if line["calibrated"] else "differ, by more than chance explains, from"
            distance = distance_text(line, comparison.time_unit)
            sentences.append(f"The risks of {one_line(best)} {words} the observed ones ({distance}).")
    known = (best, comparison.reference)  # a reference is no candidate
    off = [x for x in verdict.calibration if x["calibrated"] is False and x["model"] not in known]
    named = [f"{one_line(x['model'])} ({distance_text(x, comparison.time_unit)})" for x in off]
    return [*sentences, f"Not calibrated: {_first(named)}."] if named else sentences


def calibration_lines(comparison: Comparison, outcome: str, time: float | None = None) -> list[Line]:
    """Per forecast of a risk: its ICI at a time, by default the middle one, and whether it is calibrated.

    One test decides: whether chance explains the distance between forecast and observed risks at the time.
    Where there is no curve (one risk for all subjects, very many subjects) it is the D-calibration over all
    times; ``calibrated`` is None where neither can tell. Empty where there is no such picture of the outcome,
    or the data do not reach the time.
    """
    if outcome not in comparison.pictured("calibration"):
        return []
    try:
        return comparison.once(f"calibrated, {outcome}", lambda: _lines(comparison, outcome, time))
    except CenscoreError:  # the page says why, where the curves would be
        return []


def _lines(comparison: Comparison, outcome: str, time: float | None) -> list[Line]:
    one = comparison.of(outcome) if outcome else comparison
    lines, over_time, t = list[Line](), d_calibrations(one), one.one_time(time)
    enough = all(one.weighted_events(score)[1] >= MINIMUM_EVENTS for score in one.scores[:1])
    for model, case in one.cases.items():
        line: Line = {"model": model, "time": t, "ici": np.nan, "p_value": np.nan, "d_calibration": np.nan}
        if case.knows(t) and len(one.outcome) <= LARGE:
            curve = one.calibration(model, time)
            line |= {"ici": curve.ici, "p_value": curve.p_value}
        if model in over_time and enough:
            line["d_calibration"] = over_time[model].p_value
        p = decisive_p(line)
        lines.append(line | {"calibrated": None if np.isnan(p) else bool(p >= 1 - one.confidence)})
    return lines


def decisive_p(line: Line) -> float:
    """The p-value that decides whether a forecast is called calibrated."""
    return float(line["d_calibration"] if np.isnan(line["p_value"]) else line["p_value"])


def d_calibrations(comparison: Comparison, bins: int = 10) -> dict[str, DCalibration]:
    """D-calibration of every forecast of one event."""
    weight, groups = comparison.subsets[0].weight, comparison.groups

    def of_case(case: Case) -> DCalibration:
        y, C = case.y, None
        if isinstance(y, EventOfCause):  # C matters, and is known up to the horizon
            y, C = y.censor_at(case.horizon), case.C.censor_at(case.horizon)
        return d_calibration(y, case.F, C, bins=bins, sample_weight=weight, groups=groups)

    curves = [(model, case) for model, case in comparison.cases.items() if case.F.only_time is None]
    return comparison.once(f"d-calibration, {bins}", lambda: {model: of_case(case) for model, case in curves})


def distance_text(line: dict[str, Any], time_unit: str = "") -> str:
    """How far forecast and observed risks are apart at the time, and the p-value that decides."""
    parts = (
        [] if np.isnan(line["ici"]) else [f"ICI {line['ici']:.2g} at {with_unit(line['time'], time_unit)}"]
    )
    if not np.isnan(p := decisive_p(line)):
        parts.append(f"{'D-calibration ' if np.isnan(line['p_value']) else ''}{p_is(p)}")
    return ", ".join(parts)


def _based_on(verdict: Verdict) -> str:
    fewer = verdict.effective_events <= 0.995 * verdict.events
    effective = f" ({verdict.effective_events:.0f} effective)" if fewer else ""
    subjects = f"{verdict.subjects} {'weighted ' if verdict.weighted else ''}subjects"
    return f"It is based on {verdict.events} events{effective} among {subjects}."


def _other_scores(comparison: Comparison, means: dict[Key, list[Line]], best: str) -> str:
    """Scores by which another forecast is clearly better than the best one."""
    pairs = blocks(difference_lines(comparison, discrimination=False))
    scores = {score.name: score for score in comparison.scores}
    better: dict[str, dict[str, list[float]]] = {}
    for key, block in means.items():
        ranked = [x["model"] for x in block if x["rank"] == 1] or [best]
        clear = against(pairs.get(key, []), ranked[0], comparison.confidence)
        if best not in ranked and clear.get(best):
            better.setdefault(ranked[0], {}).setdefault(key[3], []).append(key[4])

    def with_places(name: str, places: list[float]) -> str:
        unit = f" {comparison.time_unit}".rstrip() if scores[name].axis == "time" else ""
        known = [f"{at:.4g}" for at in places if at >= 0]
        return title_of(scores[name]) + (f" at {_listed(known)}{unit}" if known else "")

    others = "; ".join(
        f"{one_line(model)} by the {_listed([with_places(*pair) for pair in places.items()])}"
        for model, places in better.items()
    )
    return f"Other scores disagree: {one_line(best)} is clearly worse than {others}." if others else ""


def _until(comparison: Comparison, score: CaseScore, at: float) -> str:
    if score.axis == "level":
        return f" at level {at:.4g}"
    unit, named = comparison.time_unit, "" if comparison.time_unit else "time "
    end, last = comparison.horizon, comparison.last_time
    end = at if score.axis == "time" else end
    beyond = f", though follow-up ends at {with_unit(last, unit)}" if end > last * (1 + ROUNDING) else ""
    if score.axis == "time":
        return f" at {named}{with_unit(at, unit)}{beyond}"
    whole = f" of {last:.4g}" if end < SHORT * last else ""
    return f" up to {named}{end:.4g}{whole} {unit}".rstrip() + beyond


def _plus_minus(line: Line) -> str:
    mean, error = line["mean"], line["standard_error"]
    form = ".4f" if abs(mean) >= 5e-5 or mean == 0 else ".3g"
    return f"{mean:{form}}" if np.isnan(error) else f"{mean:{form}} ± {error:{form}}"


def _listed(names: list[str]) -> str:
    names = [one_line(name) for name in names]
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
