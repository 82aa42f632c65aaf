"""Subjects at risk at a landmark, and means over landmarks whose errors know who is at risk at several."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_number
from censcore.estimators.covariates import take_rows
from censcore.evaluation.inference.estimates import Estimate, adjust
from censcore.evaluation.lines import Line
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, RightCensored
from censcore.outcomes.start_stop import read_start_stop

if TYPE_CHECKING:
    from censcore.evaluation.landmarks import LandmarkComparison

__all__ = ["Averages", "at_landmark"]

FrameT = TypeVar("FrameT")


@overload
def at_landmark(
    frame: FrameT, s: float, *, id: str = ..., start: str = ..., stop: str = ..., event: str = ...
) -> tuple[FrameT, RightCensored]: ...


@overload
def at_landmark(
    frame: FrameT, s: float, *, cause: str, names: Sequence[str] | None = ..., id: str = ...,
    start: str = ..., stop: str = ...,
) -> tuple[FrameT, CompetingRisks]: ...  # fmt: skip


def at_landmark(
    frame: FrameT,
    s: float,
    *,
    id: str = "id",
    start: str = "start",
    stop: str = "stop",
    event: str = "event",
    cause: str | None = None,
    names: Sequence[str] | None = None,
) -> tuple[FrameT, RightCensored | CompetingRisks]:
    """Rows and outcome of the subjects at risk at a landmark, from a table of intervals (start, stop].

    The table has one row per subject and interval in which its covariates are constant (the long format of
    lifelines and of R's survival). The row that holds s, start <= s < stop, has what is known at s. The
    outcome is that of the whole subject: its last stop, and whether its last row ends with the event.

    Parameters
    ----------
    frame : pandas or polars frame
        The table.
    s : float
        The landmark.
    id, start, stop, event : str
        Columns: the subject, the ends of the interval, and 1 where the interval ends with the event.
    cause : str, optional
        For competing risks, in place of ``event``: the column with the number of the cause where the interval
        ends with an event, else 0.
    names : sequence of str, optional
        Names of the causes 1, 2, ...

    Returns
    -------
    rows : frame
        Of the same library. One row per subject at risk, with the covariates at s.
    y : RightCensored or CompetingRisks
        Their outcome, with the entry s.

    Examples
    --------
    >>> import pandas as pd
    >>> import censcore as cs
    >>> table = pd.DataFrame(
    ...     [[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [2, 0, 1, 0, 3], [3, 1, 4, 0, 4]],
    ...     columns=["id", "start", "stop", "event", "x"],
    ... )
    >>> rows, y = cs.at_landmark(table, 3.0)
    >>> rows["x"].tolist(), y.time, y.event, y.entry
    ([9, 4], array([5., 4.]), array([ True, False]), array([3., 3.]))
    """
    s = as_number(s, "s", least=0)
    if cause is None and names is not None:
        raise InvalidInputError(f"names: got {names!r:.80} without cause=, the column of the causes.")
    table = read_start_stop(frame, id, start, stop, event if cause is None else cause)
    here = (table.start[table.order] <= s) & (s < table.stop[table.order])
    if not here.any():
        raise InvalidInputError(f"No subject is at risk at {s:g}: got intervals up to {table.stop.max():g}.")
    last = table.order[table.last[np.searchsorted(table.last, np.nonzero(here)[0])]]
    outcome: RightCensored | CompetingRisks
    if cause is None:
        outcome = RightCensored(table.stop[last], table.event[last], entry=float(s))
    else:
        outcome = CompetingRisks(table.stop[last], table.event[last], entry=float(s), names=names)
    return take_rows(frame, table.order[here]), outcome


class Averages:
    r"""Estimates :math:`\frac1L\sum_s\bar\ell_s` over L landmarks, each landmark with the same weight.

    A subject at risk at several landmarks contributes to several means. Its influence on the average is the
    sum of its influences on them, so that the sum of squares over subjects (or groups) is the variance of
    the average, whatever the dependence of the means.
    """

    def __init__(self, of: LandmarkComparison) -> None:
        self.comparisons, self.at_risk = of.comparisons, of.at_risk
        labels = (None if each is None else to_numpy(each) for each in (of.groups, of.train_groups))
        self.groups, self.train_groups = labels
        if any(comparison.resolved_censoring.refit is not None for comparison in of.comparisons):
            raise InvalidInputError(
                "A mean over landmarks needs a censoring distribution whose estimator has an influence "
                "function: got one whose error comes from refits. Pass Censoring(KaplanMeier()) or "
                "Censoring(CoxRegression())."
            )
        scored_as = self._training_numbers()
        self._number: dict[Hashable, int] = {}
        self.rows = [
            np.array([self._number.setdefault(label, len(self._number)) for label in who], dtype=np.intp)
            for who in (self._labels(i, scored_as) for i in range(len(of.comparisons)))
        ]

    def lines(self) -> list[Line]:
        """One line per score with a number at every landmark, and model."""
        confidence = self.comparisons[0].confidence
        return [
            about | {"model": model, "mean": float(estimate.value[0])} | _spread(estimate, confidence)
            for about, estimates in self._estimates()
            for model, estimate in estimates.items()
        ]

    def difference_lines(self, adjustment: str) -> list[Line]:
        """One line per score and pair of models, adjusted over the pairs of a score."""
        first, lines = self.comparisons[0], []
        for about, estimates in self._estimates():
            pairs = {(a, b): estimates[a] - estimates[b] for a, b in combinations(estimates, 2)}
            if not pairs:
                continue
            together = adjust(list(pairs.values()), adjustment, first.confidence, first.seed)
            for ((a, b), estimate), p in zip(pairs.items(), together.p_value, strict=True):
                difference = {"model": a, "versus": b, "difference": float(estimate.value[0])}
                tests = {"p_value": float(estimate.p_value[0]), "p_adjusted": float(p)}
                lines.append(about | difference | _spread(estimate, together.confidence, tests))
        return lines

    def _estimates(self) -> Iterator[tuple[Line, dict[str, Estimate]]]:
        """What a line is about, and the averages of the models that have one."""
        first = self.comparisons[0]
        for score in first.scores:
            of_models = {m: self._average(m, score.name) for m in first.models}
            known = {m: estimate for m, estimate in of_models.items() if estimate is not None}
            if known:
                about = {"score": score.name, "outcome": score.outcome}
                yield about | {"landmarks": len(self.comparisons)}, known

    def _average(self, model: str, score: str) -> Estimate | None:
        """The mean over landmarks; None where one of them has no number, or several times or levels."""
        parts = [comparison.estimate(model, score) for comparison in self.comparisons]
        L, influence = len(parts), np.zeros(len(self._number))
        for part, rows in zip(parts, self.rows, strict=True):
            if part is None or len(part.value) != 1:
                return None
            np.add.at(influence, rows, part.influence[:, 0] / L)
        value = np.mean([part.value[0] for part in parts if part is not None])
        return Estimate(np.array([value]), influence[:, None])

    def _training_numbers(self) -> dict[int, int]:
        """Scored subjects that are known to be training subjects, at any landmark."""
        numbers: dict[int, int] = {}
        for comparison, subjects in zip(self.comparisons, self.at_risk, strict=True):
            if not comparison.resolved_censoring.in_sample:
                for scored, training in comparison.resolved_censoring.shared.pairs.tolist():
                    numbers[int(subjects[scored])] = training
        return numbers

    def _labels(self, i: int, scored_as: dict[int, int]) -> list[Hashable]:
        """Who each entry of an influence at landmark i stands for, under a name that all landmarks share."""
        of, subjects = self.comparisons[i], self.at_risk[i]
        groups, train_groups = self.groups, self.train_groups

        def scored(r: int) -> Hashable:
            subject = int(subjects[r])
            if groups is not None:
                return "group", groups[subject]
            return ("training", scored_as[subject]) if subject in scored_as else ("scored", subject)

        def training(t: int) -> Hashable:
            return ("training", t) if train_groups is None else ("group", train_groups[t])

        first_scored, first_training = of.scope.clusters.representatives(of.subsets[0].weight > 0)
        return [*map(scored, first_scored), *map(training, first_training)]


def _spread(estimate: Estimate, confidence: float, tests: Line | None = None) -> Line:
    """The columns of an estimate that come last; tests are between its error and its interval."""
    low, high = (float(end[0]) for end in estimate.interval(confidence))
    return {"standard_error": float(estimate.standard_error[0])} | (tests or {}) | {"low": low, "high": high}
