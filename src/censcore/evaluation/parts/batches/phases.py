r"""The two phases of scoring over a table, each a sum over its batches.

:class:`Facts` sums losses and their derivatives A(u) by the hazard of C, with
:mod:`censcore.evaluation.inference.pooling`. :class:`Powers` sums powers of

.. math:: \psi_i=w_i(\ell_i-\bar\ell)+w_i\,\xi(y_i,\delta_i),

where :math:`\xi`, which follows from A, is what a subject with that time and event moves through the
estimated censoring distribution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.distributions.univariate.survival_matrix import settled
from censcore.estimators.risk_sets import empty_follow_up
from censcore.evaluation.decisions.notes import count_repairs, expected_events
from censcore.evaluation.inference.censoring_influence import Part
from censcore.evaluation.inference.mean_losses import Scored, score_case
from censcore.evaluation.inference.moments import power_sums
from censcore.evaluation.inference.pooling import ScoredPart, contributions, facts
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.case import Case, weights_of_counted
from censcore.evaluation.measures.case_scores import CaseScore, OfRisk
from censcore.evaluation.measures.joint_scores import View
from censcore.evaluation.parts.batches.censoring import TableCensoring
from censcore.evaluation.parts.batches.counts import Places
from censcore.evaluation.parts.batches.reading import Columns, Rows
from censcore.evaluation.parts.batches.sums import Keyed, PartialSums, merged
from censcore.evaluation.sample import in_numpy
from censcore.exceptions import CenscoreError
from censcore.outcomes import RightCensored
from censcore.scores.inputs.known_at import weights_of_events

KEPT = 2**28  # bytes of losses that are not computed again in the next phase
Events = tuple[np.ndarray, np.ndarray, str]
"""Distinct event times, how often each was seen, and whose they are."""


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that the scoring of a batch needs."""

    columns: Columns
    kind: Kind  #: with the names that all batches share
    rows: int  #: to read at a time
    forecasts: dict[str, Distribution | Callable[[Any], Any]]  #: functions of rows, or one for all subjects
    scores: list[CaseScore]
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    censoring: TableCensoring
    subsets: list[tuple[str, str]]  #: column and label; two empty texts and "all" first
    events: Events
    edges: tuple[np.ndarray, ...]  #: cells of all subjects, for every part of the outcome
    by_curve: list[tuple[np.ndarray, ...]]  #: those of strata with a curve each
    seed: int = 0
    view: View | None = None  #: of the outcome, where it alone is scored

    @cached_property
    def needed(self) -> tuple[str, ...] | None:
        """Columns of the forecasts; None where functions do not name them."""
        names = [] if self.censoring.pooled else list(self.censoring.columns)
        for forecast in self.forecasts.values():
            if isinstance(forecast, Distribution):
                continue
            columns = getattr(forecast, "columns", None)
            if columns is None:
                return None
            names += columns
        return tuple(names)

    def read(self, batch: Any) -> Iterator[Subjects]:
        """The subjects of a batch, piece by piece."""
        return (Subjects(self, rows) for rows in self.columns.read(batch, self.needed, self.rows))


def read_forecasts(kind: Kind, forecasts: dict[str, Any], rows: Rows, events: Events) -> dict[str, Any]:
    """Distributions of the subjects in some rows; survival matrices are read by the ``events`` of all."""
    read: dict[str, Any] = {}
    times, count, whose = events
    for name, forecast in forecasts.items():
        try:
            called = forecast if isinstance(forecast, Distribution) else forecast(rows.frame)
            F = kind.as_forecast(called, None, len(rows.y))
        except CenscoreError as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        read[name] = settled(in_numpy(F), times, whose, count)
    return read


@dataclass(frozen=True, eq=False)
class Subjects:
    """Some subjects of a batch, as a comparison in memory has them."""

    task: Task
    rows: Rows

    @cached_property
    def kind(self) -> Kind:
        """Of their outcomes."""
        return self.task.kind.of_subjects(self.rows.y)

    @cached_property
    def followed(self) -> RightCensored:
        """How long they were followed, (n,)."""
        followed: RightCensored = self.kind.followed(self.kind.y).last()
        return followed

    @cached_property
    def weight(self) -> np.ndarray:
        """Weights (n, m) in each subset."""
        rows = self.rows
        w = np.where(empty_follow_up(self.followed), 0.0, rows.weight)
        inside = (not by or rows.labels[by].astype(str) == label for by, label in self.task.subsets)
        return np.column_stack([np.where(mine, w, 0.0) for mine in inside])

    @cached_property
    def forecasts(self) -> dict[str, Any]:
        """The forecast of every model, before it is conditioned on the entry."""
        read = read_forecasts(self.kind, self.task.forecasts, self.rows, self.task.events)
        return dict(self.kind.settled(read, None, self.task.horizon, []))

    @cached_property
    def cases(self) -> dict[str, Case]:
        """One case per forecast."""
        task, kind = self.task, self.kind
        C = task.censoring.distribution(task.censoring.covariates(self.rows), self.followed)
        late, cases = kind.events_of(kind.y).has_delayed_entry, {}
        for name, F in self.forecasts.items():
            given = kind.given_entry(name, F, task.horizon) if late else F
            where: Any = C, task.horizon, task.times, task.levels
            case = kind.case(given, *where, seed=task.seed, edges=task.edges)
            cases[name] = case if task.view is None else case.of(task.view)
        return cases

    def weight_of(self, score: CaseScore) -> np.ndarray:
        """Weights (n, m) of the subjects who count for a score."""
        if not isinstance(score, OfRisk):
            return self.weight
        case = next(iter(self.cases.values()))
        return ScoredPart(case, {}, slice(None)).weight(score, self.weight)

    @cached_property
    def part(self) -> list[Part]:
        """How their mean losses move with the estimate of C; none where it counts as known."""
        part = self.task.censoring.part(self.rows)
        if part is None or not self.task.by_curve:
            return [] if part is None else [part]
        return [_InStrata(part, self.task.by_curve)]  # type: ignore[list-item]  # has what facts need

    @property
    def stratum(self) -> np.ndarray:
        """The labels of the strata that C is estimated in."""
        return self.rows.stratum(self.task.columns.stratify)


@dataclass(frozen=True, eq=False)
class _InStrata:
    """A part in which the subjects of a stratum have the cells of all subjects of that stratum."""

    part: Part
    by_curve: list[tuple[np.ndarray, ...]]

    @property
    def subjects(self) -> np.ndarray:
        return self.part.subjects

    def derivatives(
        self, scores: Any, losses: list[np.ndarray], case: Case, weight: np.ndarray
    ) -> dict[int, np.ndarray]:
        pieces = self.part.pieces(case, weight).items()
        cut = ((i, replace(p, case=replace(p.case, edges=self.by_curve[i]))) for i, p in pieces)
        return {i: piece.derivative(scores, losses) for i, piece in cut}


Scores = list[tuple[Subjects, dict[str, Scored]]]


class Kept:
    """Losses of batches, in order, that are not computed again in the next phase, as far as there is room."""

    def __init__(self) -> None:
        self.batches, self.room = deque[Scores | None](), KEPT

    def keep(self, scored: Scores) -> None:
        """Keep the losses of the next batch."""
        size = sum(v.nbytes for _, each in scored for of in each.values() for v in of.losses.values())
        fits = size <= self.room
        self.room -= size if fits else 0
        self.batches.append(scored if fits else None)


@dataclass(frozen=True, eq=False)
class Facts:
    """Sums of losses, their derivatives by the hazard of C, and effective numbers of events."""

    task: Task
    kept: Kept | None = None

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        scored: Scores = []
        sums = merged(self._of(subjects, scored) for subjects in self.task.read(batch))
        if self.kept is not None:
            self.kept.keep(scored)
        return sums

    def _of(self, of: Subjects, scored: Scores) -> PartialSums:
        each = {model: score_case(case, self.task.scores) for model, case in of.cases.items()}
        missing = {f"{m}|{s}": why for m, one in each.items() for s, why in one.unavailable.items()}
        sums: dict[str, Any] = {}
        for model, case in of.cases.items():
            sums |= self._of_model(of, model, case, each[model])
        if self.kept is not None:
            alone = Subjects(self.task, replace(of.rows, frame=None))
            scored.append((alone, {model: one._replace(parts=[]) for model, one in each.items()}))
        return PartialSums(sums, unavailable=missing) + self._events(of)

    def _of_model(self, of: Subjects, model: str, case: Case, scored: Scored) -> dict[str, Any]:
        known = {score.name: score for score in self.task.scores if score.name in scored.losses}
        sums: dict[str, Any] = {}
        if known:
            w = of.weight_of(next(iter(known.values())))
            pooled = facts(ScoredPart(case, scored.losses, slice(None)), known, w, of.part)
            ends = np.cumsum([0] + [scored.losses[name].shape[1] for name in known])
            for name, (a, b) in zip(known, pairwise(ends), strict=True):
                key = f"{model}|{name}"
                sums |= {f"total|{key}": pooled.total, f"used|{key}": (w > 0).sum(axis=0)}
                sums[f"loss|{key}"] = pooled.sums[:, a:b]
                sums |= {f"A|{i}|{key}": A[:, :, a:b] for (_, i), A in pooled.derivatives.items()}
                infinite = np.isinf(scored.losses[name])
                sums[f"infinite|{key}"] = (w > 0).T.astype(float) @ infinite
        if self.task.view is not None:
            return sums
        timed = self.task.kind.timed(case.F)
        if case.y.time.ndim == 1 and timed.only_time is None:
            sums[f"expected|{model}"] = np.array(expected_events(timed, case.y))
        sums[f"repaired|{model}"] = np.array(float(count_repairs(of.forecasts[model])))
        return sums

    def _events(self, of: Subjects) -> PartialSums:
        """What the effective numbers of events need: sums of weights and of their squares, or by group."""
        task, w, sums, columns = self.task, of.weight, dict[str, Any](), dict[str, np.ndarray]()
        cases = list(of.cases.values())
        for (outcome, axis), score in event_scores(task.scores).items():
            who = score.counted_events(cases)
            columns[f"{axis}|{outcome}"] = np.column_stack([v[:, None] * each for v in w.T for each in who])
            if f"seen|{outcome}" not in sums:
                counted, weight = weights_of_counted(*score.events(cases[0]), task.horizon, w[:, 0])
                columns[f"all|{outcome}"] = w[:, :1] * np.column_stack([counted, weight])
                sums[f"seen|{outcome}"] = np.array(float(counted.sum()))
        keyed = {}
        for name, table in columns.items():
            if task.columns.groups is None:
                sums[f"events|{name}"] = np.stack([table.sum(axis=0), (table**2).sum(axis=0)])
            else:
                keyed[f"events|{name}"] = Keyed.of((of.rows.labels[task.columns.groups],), table)
        part = PartialSums(sums, keyed)
        if not task.censoring.pooled:
            part = part + event_weights(of.followed, cases[0].C, task.horizon)
        return part


def event_scores(scores: list[CaseScore]) -> dict[tuple[str, str], CaseScore]:
    """One score for each outcome and axis, whose events are those that all of them are based on."""
    return {(score.outcome, score.axis): score for score in scores}


def event_weights(
    y: RightCensored, C: Distribution | None, horizon: float, count: np.ndarray | None = None
) -> PartialSums:
    """How many events have each weight, to three digits unless ``count`` subjects have each outcome."""
    every = to_numpy(y.event).astype(float) if C is None else weights_of_events(y, C.marginal(0))
    used = (to_numpy(y.time) <= horizon) & (every > 0) & np.isfinite(every)
    weight, number = every[used], np.ones(len(y)) if count is None else count
    if count is None:
        digit = 10 ** (np.floor(np.log10(weight)) - 2)
        weight = np.round(weight / digit) * digit
    keyed = Keyed.of((weight,), number[used][:, None])
    return PartialSums({"beyond": number[np.isinf(every)].sum()}, {"weights": keyed})


@dataclass(frozen=True, eq=False)
class Centre:
    """What contributions to the means of a score are taken from, by subset."""

    models: list[str]  #: those that have the score
    total: np.ndarray  #: weights of the subjects, (m,)
    mean: np.ndarray  #: (m, M, q)
    used: np.ndarray  #: how many units the factor of few units is of, (m,)
    xi: np.ndarray | None  #: by distinct outcome, per unit of weight, (J, m, M, q); None where none moves C
    combine: np.ndarray | None = None  #: derivatives of functions of the means by these, (M q, functions)

    def contributions(
        self, values: np.ndarray, w: np.ndarray, everyone: np.ndarray, s: int, place: Any
    ) -> np.ndarray:
        """What subjects with losses (n, M q) and weights (n, m) add to the means in subset s, (n, M, q).

        ``everyone`` are the weights of those whom C was fitted to, (n,).
        """
        mean = self.mean[s].reshape(1, -1)
        psi = contributions(values, w[:, [s]], self.total[[s]], mean).reshape(-1, *self.mean.shape[1:])
        if self.xi is not None:
            psi += everyone[:, None, None] * self.xi[place, s]
        return self.combined(psi)

    def combined(self, psi: np.ndarray) -> np.ndarray:
        """Contributions to the functions of means (n, 1, functions), or to the means as they are."""
        return psi if self.combine is None else (psi.reshape(len(psi), -1) @ self.combine)[:, None]

    def number(self, model: str | None) -> int | None:
        """The place of a model; None where it does not have the score."""
        return self.models.index(model) if model in self.models else None


@dataclass(frozen=True, eq=False)
class Powers:
    """Sums of powers of the contributions, or their sums by group."""

    task: Task
    centres: dict[str, Centre]  #: by the name of the score
    reference: str | None
    places: Places | None  #: among the distinct outcomes that ``xi`` belongs to
    kept: Kept | None = None

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        scores, kept = self.task.scores, None
        if self.kept is not None and self.kept.batches:
            kept = self.kept.batches.popleft()
        if kept is not None:
            return merged(self._of(*each) for each in kept)
        return merged(
            self._of(of, {model: score_case(case, scores) for model, case in of.cases.items()})
            for of in self.task.read(batch)
        )

    def _of(self, of: Subjects, scored: dict[str, Scored]) -> PartialSums:
        sums, tables, groups = dict[str, Any](), list[np.ndarray](), self.task.columns.groups
        place = None if self.places is None else self.places(of.stratum, of.followed)
        by_name = {score.name: score for score in self.task.scores}
        for name, centre in self.centres.items():
            values = np.concatenate([scored[model].losses[name] for model in centre.models], axis=1)
            w = of.weight_of(by_name[name])
            for s in range(w.shape[1]):
                psi = centre.contributions(values, w, of.weight[:, 0], s, place)
                if groups is not None:
                    tables += [psi.reshape(len(psi), -1), w[:, [s]] > 0]
                    continue
                psi *= np.sqrt(g / (g - 1)) if (g := centre.used[s]) > 1 else np.nan
                for kind, value in power_sums(psi, centre.number(self.reference)).items():
                    sums[f"{kind}|{s}|{name}"] = value
        if groups is None:
            return PartialSums(sums)
        return PartialSums(keyed={"psi": Keyed.of((of.rows.labels[groups],), np.column_stack(tables))})
