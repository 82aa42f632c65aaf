"""The numbers of a comparison, line by line: means, intervals, ranks, skills and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.inference.estimates import Estimate, adjust, skill_interval
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, cannot_tell
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.discrimination import Measure

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["blocks", "deciding", "difference_lines", "marks", "mean_lines", "ranked"]

NOT_AVAILABLE = "not available"
DESCRIPTIVE = "descriptive, not proper"
NO_ERROR = "; the pairs, all won, all lost, or all with one subject in common, do not show its error"
UNTOLD = ("standard_error", "low", "high", "rank", "skill_standard_error", "skill_low", "skill_high")
NUMBERS = ("mean", *UNTOLD[:4], "skill", *UNTOLD[4:], "events")


# ---- means -----------------------------------------------------------------------------------------


def mean_lines(comparison: Comparison, discrimination: bool = True) -> list[Line]:
    """One line per subset, score, time or level, and model; see :meth:`Comparison.frame`."""
    subsets = range(len(comparison.subsets))
    lines = _once(comparison, "means", lambda: [x for s in subsets for x in _score_lines(comparison, s)])
    if not (discrimination and comparison.discrimination):
        return list(lines)
    return lines + _once(
        comparison, "shares", lambda: [x for s in subsets for x in _discrimination_lines(comparison, s)]
    )


def _once(comparison: Comparison, what: str, make: Callable[[], list[Line]]) -> list[Line]:
    """Lines that are made on first use: text, notebook and page read them several times."""
    if what not in comparison.made:
        comparison.made[what] = make()
    return comparison.made[what]


def _columns(comparison: Comparison, s: int) -> Iterator[tuple[CaseScore, int, float, float]]:
    """Every column of every score: its number, its time or level, and its effective events."""
    for score in comparison.scores:
        events = comparison.effective_events(score, s)
        for j, at in enumerate(comparison.design.places(comparison, score)):
            yield score, j, float(at), float(events[j])


def _score_lines(comparison: Comparison, s: int) -> Iterator[Line]:
    for score, j, at, events in _columns(comparison, s):
        found = {model: _column(comparison.estimate(model, score.name, s), j) for model in comparison.models}
        ranks = _ranks({model: e.value[0] for model, e in found.items() if e is not None})
        against = None if comparison.reference is None else found.get(comparison.reference)
        for model, estimate in found.items():
            line = _line(comparison, s, score, at, model) | {"events": events}
            if estimate is None:
                yield line | {"note": NOT_AVAILABLE}
                continue
            line |= _numbers(estimate, comparison.confidence) | {"rank": ranks[model]}
            line["infinite"] = comparison.design.infinite_losses(comparison, model, score.name, j, s)
            if against is not None and score.info.has_skill:
                same = model == comparison.reference
                line |= NO_SKILL if same else _skill(estimate, against, comparison.confidence)
            yield line | (_untold(events) if events < MINIMUM_EVENTS else {})


def outcome_of(score: CaseScore | Measure) -> str:
    """The event that a score is about, a cause or one of several event times; empty for the only one."""
    return str(getattr(score, "outcome", ""))


def title_of(score: CaseScore | Measure) -> str:
    """The title of a score without the outcome, which tables name once."""
    return score.title.removesuffix(f", {outcome_of(score)}")


def _line(comparison: Comparison, s: int, score: CaseScore | Measure, at: float, model: str) -> Line:
    subset = comparison.subsets[s]
    line: Line = {"by": subset.by, "group": subset.label, "score": score.name, "outcome": outcome_of(score)}
    line |= {"at": at, "model": model}
    line |= dict.fromkeys(NUMBERS, np.nan)
    return line | {"n": subset.count, "infinite": 0, "proper": True, "note": ""}


def _untold(events: float) -> Line:
    return dict.fromkeys(UNTOLD, np.nan) | {"note": cannot_tell(events)}


def _numbers(estimate: Estimate, confidence: float) -> dict[str, float]:
    low, high = estimate.interval(confidence)
    error = np.where(estimate.varies, estimate.standard_error, np.nan)
    numbers = {"mean": estimate.value, "standard_error": error, "low": low, "high": high}
    return {name: float(value[0]) for name, value in numbers.items()}


NO_SKILL = dict.fromkeys(("skill", "skill_standard_error", "skill_low", "skill_high"), 0.0)
"""Of the reference against itself, which is certain."""


def _skill(estimate: Estimate, against: Estimate, confidence: float) -> dict[str, float]:
    skill = estimate.skill(against)
    error = float(skill.standard_error[0]) if skill.varies[0] else np.nan
    low, high = skill_interval(estimate, against, confidence)
    return {
        "skill": float(skill.value[0]),
        "skill_standard_error": error,
        "skill_low": low,
        "skill_high": high,
    }


def _column(estimate: Estimate | None, j: int) -> Estimate | None:
    return None if estimate is None else estimate.column(j)


def _ranks(values: dict[str, float]) -> dict[str, float]:
    """1 for the smallest; ties share the better rank, NaN stays."""
    known = np.array([value for value in values.values() if not np.isnan(value)])
    return {m: float("nan") if np.isnan(v) else 1.0 + float((known < v).sum()) for m, v in values.items()}


# ---- concordance and AUC ---------------------------------------------------------------------------


def _measures(comparison: Comparison, s: int) -> Iterator[tuple[int, Measure, float]]:
    """Every measure with its number and effective events."""
    for k, measure in enumerate(comparison.pair_measures.measures):
        yield k, measure, float(comparison.effective_events(measure, s)[0])


def _discrimination_lines(comparison: Comparison, s: int) -> Iterator[Line]:
    of_pairs = comparison.pair_measures
    for k, measure, events in _measures(comparison, s):
        found = {model: of_pairs.values.get((s, model, k)) for model in comparison.models}
        ranks = _ranks({model: -e.value[0] for model, e in found.items() if e is not None})
        for model, estimate in found.items():
            line = _line(comparison, s, measure, measure.at_time, model)
            line |= {"proper": False, "events": events, "note": DESCRIPTIVE}
            if estimate is None:
                line["note"] = f"{NOT_AVAILABLE}: {of_pairs.unavailable[s, model, k]}"
            else:
                line |= _numbers_of_share(estimate, comparison.confidence) | {"rank": ranks[model]}
                if events < MINIMUM_EVENTS:
                    line |= _untold(events)
                elif np.isnan(line["standard_error"]) and not np.isnan(line["mean"]):
                    line["note"] += NO_ERROR
            yield line


def _numbers_of_share(estimate: Estimate, confidence: float) -> dict[str, float]:
    """A share of pairs with an interval within [0, 1], from the logit scale."""
    share, error = float(estimate.value[0]), float(estimate.standard_error[0])
    if error == 0:  # a forecast that is the same for all subjects ranks none of them, whatever the data
        return {"mean": share, "standard_error": 0.0, "low": share, "high": share}
    with np.errstate(divide="ignore", invalid="ignore"):
        value = estimate.value
        logit = Estimate(np.log(value / (1 - value)), estimate.influence / (value * (1 - value)))
        low, high = (1 / (1 + np.exp(-end[0])) for end in logit.interval(confidence))
    return {"mean": share, "standard_error": error, "low": float(low), "high": float(high)}


# ---- paired differences ----------------------------------------------------------------------------


def difference_lines(
    comparison: Comparison, adjustment: str = "max-t", discrimination: bool = True
) -> list[Line]:
    """One line per subset, score, time or level, and pair; see :meth:`Comparison.differences`."""
    subsets = range(len(comparison.subsets))
    lines = _once(
        comparison,
        f"differences, {adjustment}",
        lambda: [x for s in subsets for x in _score_pairs(comparison, s, adjustment)],
    )
    if not (discrimination and comparison.discrimination):
        return list(lines)
    return lines + _once(
        comparison,
        f"differences of shares, {adjustment}",
        lambda: [x for s in subsets for x in _share_pairs(comparison, s, adjustment)],
    )


def _score_pairs(comparison: Comparison, s: int, adjustment: str) -> Iterator[Line]:
    for score, j, at, events in _columns(comparison, s):
        found = {m: _column(comparison.estimate(m, score.name, s), j) for m in comparison.models}
        yield from _pairs(comparison, s, score, at, events, found, adjustment)


def _share_pairs(comparison: Comparison, s: int, adjustment: str) -> Iterator[Line]:
    for k, measure, events in _measures(comparison, s):
        found = {m: comparison.pair_measures.values.get((s, m, k)) for m in comparison.models}
        for line in _pairs(comparison, s, measure, measure.at_time, events, found, adjustment):
            yield line | {"better": "higher", "proper": False}


def _pairs(
    comparison: Comparison,
    s: int,
    score: CaseScore | Measure,
    at: float,
    events: float,
    found: dict[str, Estimate | None],
    adjustment: str,
) -> list[Line]:
    known = {m: e for m, e in found.items() if e is not None}
    pairs = {(a, b): known[a] - known[b] for a, b in combinations(known, 2)}
    if not pairs:
        return []
    together = adjust(list(pairs.values()), adjustment, comparison.confidence, comparison.seed)
    subset, lines = comparison.subsets[s], []
    for ((a, b), difference), p in zip(pairs.items(), together.p_value, strict=True):
        low, high = difference.interval(together.confidence)
        line: Line = {"by": subset.by, "group": subset.label, "score": score.name}
        line |= {"outcome": outcome_of(score), "at": at, "model": a, "versus": b}
        line["difference"] = float(difference.value[0])
        numbers = {
            "standard_error": float(difference.standard_error[0]),
            "p_value": float(difference.p_value[0]),
            "p_adjusted": float(p),
            "low": float(low[0]),
            "high": float(high[0]),
        }
        told = bool(difference.varies[0]) and events >= MINIMUM_EVENTS
        line |= numbers if told else dict.fromkeys(numbers, np.nan)
        note = cannot_tell(events) if events < MINIMUM_EVENTS else ""
        lines.append(line | {"better": "lower", "proper": True, "events": events, "note": note})
    return lines


# ---- what decides -------------------------------------------------------------------------------------


def deciding(comparison: Comparison, lines: Iterable[Line], outcome: str) -> list[Line]:
    """The lines of all subjects by the score, and at the time or level, that the verdict is about."""
    verdict = next(v for v in comparison.verdicts if v.outcome == outcome)
    return [
        x for x in lines
        if x["by"] == "" and (x["outcome"], x["score"]) == (outcome, verdict.score)
        and (np.isnan(x["at"]) or x["at"] == verdict.at)
    ]  # fmt: skip


def ranked(comparison: Comparison, outcome: str) -> list[str]:
    """The forecasts from the best to the worst by the score that decides; those without it last."""
    means = {x["model"]: x["mean"] for x in deciding(comparison, mean_lines(comparison, False), outcome)}
    known = {m: np.inf if np.isnan(means.get(m, np.nan)) else means[m] for m in comparison.models}
    return sorted(comparison.models, key=known.__getitem__)


# ---- what is clear ---------------------------------------------------------------------------------

Key = tuple[str, str, str, str, float]
"""Subset (its column and group), outcome, score, and time or level; -1 in place of a missing one."""

CLEARLY_BEST, AMONG_BEST = "*", "~"


def key_of(line: Line) -> Key:
    """What a line is about, apart from the model."""
    at = -1.0 if np.isnan(line["at"]) else float(line["at"])
    return line["by"], line["group"], line["outcome"], line["score"], at


def blocks(lines: Iterable[Line]) -> dict[Key, list[Line]]:
    """Lines that differ in the model alone, in order."""
    found: dict[Key, list[Line]] = {}
    for line in lines:
        found.setdefault(key_of(line), []).append(line)
    return found


def marks(comparison: Comparison) -> dict[Key, dict[str, str]]:
    """Per block, which models are clearly the best, or tied with it while others are clearly worse.

    "*" for a model that is better than each of the others by more than chance explains (adjusted p-values);
    "~" for all models that are tied with the best, where another is clearly worse. A block with one
    model, and one without a clear difference from the best, has no marks.
    """
    if "marks" in comparison.made:
        made: dict[Key, dict[str, str]] = comparison.made["marks"]
        return made
    pairs = blocks(difference_lines(comparison))
    found: dict[Key, dict[str, str]] = {}
    for key, block in blocks(mean_lines(comparison)).items():
        best = [line["model"] for line in block if line["rank"] == 1]
        worse = {
            m for m, clear in against(pairs.get(key, []), best[:1], comparison.confidence).items() if clear
        }
        known = [line["model"] for line in block if not np.isnan(line["rank"])]
        top = [model for model in known if model not in worse]
        if worse:
            found[key] = dict.fromkeys(top, CLEARLY_BEST if len(top) == 1 else AMONG_BEST)
    comparison.made["marks"] = found
    return found


def against(pairs: list[Line], best: list[str], confidence: float) -> dict[str, bool]:
    """For every model paired with the best one: whether it is clearly worse."""
    found = {}
    for line in pairs:
        if best and best[0] in (line["model"], line["versus"]):
            other = line["versus"] if line["model"] == best[0] else line["model"]
            found[other] = bool(line["p_adjusted"] < 1 - confidence)
    return found
