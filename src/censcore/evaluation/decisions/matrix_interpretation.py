"""Survival matrices in a comparison: how they are read, and whether the answer depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.distributions.univariate.monotone import ROUNDING
from censcore.distributions.univariate.survival_matrix import (
    Reading,
    columns_of,
    other_readings,
    reading_of,
    up_to,
)
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Means, score_case
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.report.text import label

if TYPE_CHECKING:
    from censcore.evaluation.decisions.decide import Decided

CHECKED = 4000  # subjects on which another reading is tried
MATTERS = 1.0  # standard errors by which another reading must move a difference
READINGS = ("lines", "late steps", "early steps")

Losses = Mapping[tuple[str, str], np.ndarray]  # by forecast and score
Shifts = dict[tuple[str, str], np.ndarray]  # by reading and score
Answers = dict[tuple[str, ...], dict[CaseScore, list[float]]]  # who is better, and by which score at what


def readings_of(cases: Mapping[str, Case]) -> dict[str, str]:
    """How survival matrices are read, by the name of the forecast."""
    readings = {name: reading_of(case.F) for name, case in cases.items()}
    return {name: str(reading) for name, reading in readings.items() if reading is not None}


def on_grid(times: np.ndarray, distributions: Mapping[str, Distribution], horizon: float) -> np.ndarray:
    """Evaluation times, moved to the nearest times that all interpolated matrices share, if any."""
    grids = [columns_of(distributions[name]) for name in _interpolated(distributions)]
    if not grids or any((grid != grid[0]).any() for grid in grids):
        return times
    common = grids[0][0]
    for grid in grids[1:]:
        distance = np.abs(common[:, None] - grid[0]).min(axis=1)
        common = common[distance <= ROUNDING * common]  # some may be in single precision
    common = common[(common > 0) & (common < horizon)]
    if not len(common):
        return times
    return np.unique(common[np.abs(times[:, None] - common).argmin(axis=1)])


def _interpolated(distributions: Mapping[str, Distribution]) -> dict[str, Reading]:
    """How matrices that are interpolated between their times are read, by the name of the forecast."""
    readings = {name: reading_of(F) for name, F in distributions.items()}
    return {name: reading for name, reading in readings.items() if reading is not None and not reading.exact}


# ---- notes ---------------------------------------------------------------------------------------


def reading_notes(decided: Decided, cases: Mapping[str, Case], losses: Losses, means: Means) -> list[str]:
    """What a reader should know of the matrices among the forecasts; nothing where there are none."""
    matrices = {name: case for name, case in cases.items() if reading_of(case.F) is not None}
    if not matrices:
        return []
    readings = {name: reading for name, case in matrices.items() if (reading := reading_of(case.F))}
    repaired = {name: reading.repair for name, reading in readings.items() if reading.repair is not None}
    notes = [*_chosen(readings), *(f"{name!r}: {repair}." for name, repair in repaired.items())]
    notes += [*_beyond(matrices), *_infinite(decided, matrices, losses), *_same_for_all(matrices, readings)]
    return [*notes, *_depends(decided, cases, losses, means)]


def _chosen(readings: Mapping[str, Reading]) -> list[str]:
    """What was decided for the caller."""
    by_reading: dict[str, list[str]] = {}
    for name, reading in readings.items():
        if reading.reason not in ("as asked", "the model is a step function"):
            J = reading.size
            by_reading.setdefault(f"of {J} time{'s' * (J > 1)}: {reading}", []).append(name)
    return [
        f"{', '.join(map(repr, names))}: survival matrix {how}. as_forecast(..., interpolation=, tail=) "
        "reads it otherwise."
        for how, names in by_reading.items()
    ]


def _beyond(matrices: Mapping[str, Case]) -> list[str]:
    """Where a forecast ends before the comparison does."""
    by_end: dict[tuple[float, str], list[str]] = {}
    for name, reading in _interpolated({name: case.F for name, case in matrices.items()}).items():
        last = float(columns_of(matrices[name].F)[:, -1].min())
        if last < matrices[name].horizon:
            by_end.setdefault((last, reading.tail), []).append(name)
    horizon = next(iter(matrices.values())).horizon
    return [
        f"{', '.join(map(repr, names))}: the last time is {last:.6g}, before the horizon {horizon:.6g}. What "
        f"is scored beyond it follows the rule tail={tail!r}; horizon={last:.6g} stops there."
        for (last, tail), names in by_end.items()
    ]


def _infinite(decided: Decided, matrices: Mapping[str, Case], losses: Losses) -> list[str]:
    notes = []
    for name in matrices:
        for score in decided.scores:
            values = losses.get((name, score.name))
            count = 0 if values is None else int(np.isinf(values).any(axis=1).sum())
            if count:
                notes.append(
                    f"{score.title} of {name!r}: infinite for {count} subject{'s' * (count > 1)}, to whose "
                    "outcome the matrix, as it is read, gives no chance (a curve that is flat, 0 or 1 there)."
                )
    return notes


def _same_for_all(matrices: Mapping[str, Case], readings: Mapping[str, Reading]) -> list[str]:
    notes = []
    for name, case in matrices.items():
        F = case.F.marginal(0)
        sf = to_numpy(F.sf(case.times[None, :]))
        same = case.times[(sf == sf[:1]).all(axis=0)]
        if len(F) > 1 and len(same):
            first = float(columns_of(case.F)[:, 0].min())
            steps = readings[name].interpolation == "step" and (same < first).all()
            why = f" (read as steps, before its first time {first:.4g})" if steps else ""
            notes.append(
                f"{name!r} gives all subjects the same survival at t = {', '.join(f'{t:.4g}' for t in same)}"
                f"{why}: it cannot rank them there, and an AUC of 0.5 says nothing."
            )
    return notes


# ---- does the answer depend on the reading? ------------------------------------------------------


def _depends(decided: Decided, cases: Mapping[str, Case], losses: Losses, means: Means) -> list[str]:
    """Pairs of forecasts whose answer changes when matrices are read as lines, late steps or early steps.

    Other readings are tried on a sample of subjects. They move the mean loss of a forecast by the mean of the
    changes there; the standard errors stay.
    """
    open_ = _interpolated({name: case.F for name, case in cases.items()})
    if not open_ or len(cases) < 2:
        return []
    asked, weight = decided.asked, decided.subsets[0].weight
    rows = np.nonzero(weight > 0)[0]
    if len(rows) > CHECKED:
        rows = np.sort(np.random.default_rng(asked.seed).choice(rows, CHECKED, replace=False))
    shifts = {name: _shifts(decided, cases[name], losses, name, rows, weight[rows]) for name in open_}
    pairs = []
    for a, b in combinations(cases, 2):
        answers: Answers = {}
        for score in decided.scores if a in open_ or b in open_ else []:
            for j, answer in _answers(a, b, score.name, means, shifts, 1 - asked.confidence).items():
                answers.setdefault(answer, {}).setdefault(score, []).append(float(score.at(cases[a])[j]))
        if answers:
            sizes = {open_[name].size for name in (a, b) if name in open_}
            pairs.append(_too_coarse(a, b, answers, " and ".join(map(str, sorted(sizes)))))
    if not pairs:
        return []
    return [
        "The answer depends on how survival matrices are read between their times, which are too few to "
        f"tell. {' '.join(pairs)}"
    ]


def _shifts(
    decided: Decided, case: Case, losses: Losses, name: str, rows: np.ndarray, weight: np.ndarray
) -> Shifts:
    """By how much each other reading moves each mean loss, (q,)."""
    few = case.take(rows)
    shifts: Shifts = {}
    for reading, F in other_readings(few.F).items():
        again = score_case(replace(few, F=up_to(F, case.horizon)), decided.scores)
        for score, values in again.losses.items():
            if (name, score) in losses:
                with np.errstate(invalid="ignore"):
                    change = values - losses[name, score][rows]
                shifts[reading, score] = weight @ change / weight.sum()
    return shifts


def _answers(
    a: str, b: str, score: str, means: Means, shifts: Mapping[str, Shifts], alpha: float
) -> dict[int, tuple[str, ...]]:
    """For each time or level at which it depends on the reading, who is better by each of them."""
    if (0, a, score) not in means or (0, b, score) not in means:
        return {}
    d = means[0, a, score] - means[0, b, score]
    answers: dict[int, tuple[str, ...]] = {}
    ours = _winners(d, a, b, alpha)
    for reading in READINGS:
        key = reading, score  # nothing changes for a forecast that is no matrix
        moves: list[Any] = [shifts[name].get(key) if name in shifts else np.zeros(1) for name in (a, b)]
        if any(move is None for move in moves):  # it is the one taken, or has no such score
            continue
        with np.errstate(invalid="ignore"):
            shift = np.subtract(*moves) + np.zeros_like(d.value)
            least = np.maximum(MATTERS * d.standard_error, ROUNDING * np.abs(means[0, a, score].value))
            matters = np.isfinite(shift) & (np.abs(shift) > least)
        theirs = _winners(Estimate(d.value + shift, d.influence), a, b, alpha)
        for j in map(int, np.nonzero(matters)[0]):
            if theirs[j] != ours[j]:
                so_far = answers.get(j, (f"{ours[j]} as read here",))
                answers[j] = (*so_far, f"{theirs[j]} with {reading}")
    return answers


def _winners(difference: Estimate, a: str, b: str, alpha: float) -> list[str]:
    clear = np.nan_to_num(difference.p_value, nan=1.0) < alpha
    return [
        f"{a if d < 0 else b!r} is better" if sure else "neither is clearly better"
        for d, sure in zip(difference.value, clear, strict=True)
    ]


def _too_coarse(a: str, b: str, answers: Answers, J: str) -> str:
    details = []
    for answer, where in answers.items():
        titles = (
            ", ".join([label(score.title, at[0], score.axis), *(f"{t:.4g}" for t in at[1:])])
            for score, at in where.items()
        )
        details.append(f"{'; '.join(titles)}: {', '.join(answer)}.")
    return f"{a!r} against {b!r} ({J} time{'s' * (J != '1')}): {' '.join(details)}"
