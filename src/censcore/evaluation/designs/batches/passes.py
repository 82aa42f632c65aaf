r"""The three passes over a table, each a sum over its batches.

:class:`Counting` gives the numbers of subjects by stratum, time and event, of which everything that is
decided before scoring is a function. :class:`LossSums` gives mean losses and their derivatives A(u) with
respect to the hazard of C. :class:`Influences` gives the sums of powers of

.. math:: \psi_i=w_i(\ell_i-\bar\ell)+w_i\,\xi(y_i,\delta_i),

where :math:`\xi`, which follows from A, is what a subject with that time and event moves through the
estimated censoring distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.designs.batches.counts import Counts
from censcore.evaluation.designs.batches.fitted_censoring import FittedCensoring
from censcore.evaluation.designs.batches.outcome_table import IN_MEMORY
from censcore.evaluation.designs.batches.partial_sums import Keyed, PartialSums, merged
from censcore.evaluation.designs.batches.summed_estimates import power_sums
from censcore.evaluation.designs.batches.table_plan import Columns, Plan, Rows, rows_of
from censcore.evaluation.inference.losses import score_all
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.case import Case, weights_of_counted
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.checks import expected_events
from censcore.evaluation.plan.horizon import FOLLOWED, LEAST, last_follow_up
from censcore.exceptions import InvalidInputError
from censcore.scores.known_at import weights_of_events

__all__ = ["Centre", "Counting", "Influences", "LossSums", "Support", "event_scores"]


@dataclass(frozen=True, eq=False)
class Counting:
    """First pass: numbers of subjects by stratum, time and event, and by label."""

    columns: Columns
    rows: int
    kind: Kind

    def __call__(self, batch: Any) -> PartialSums:
        """The counts of one batch."""
        return merged(self.of(rows) for rows in rows_of(batch, self.columns, (), self.rows))

    def of(self, rows: Rows) -> PartialSums:
        """Those of some subjects."""
        y, w, columns = self.kind.read_outcome(rows.y), rows.weight, self.columns
        followed = self.kind.followed(y)
        if not followed.shares_censoring:
            raise InvalidInputError(f"event times with a censoring time each: {IN_MEMORY}")
        followed = last_follow_up(followed)
        time, event = to_numpy(followed.time), to_numpy(followed.event)
        stratum = np.zeros(len(time)) if columns.stratify is None else rows.labels[columns.stratify]
        entry = np.zeros(len(time)) if followed.entry is None else to_numpy(followed.entry)
        counts = np.column_stack([np.ones(len(time)), w > 0, w])
        keyed = {"outcomes": Keyed.of((stratum, time, event.astype(np.intp), entry), counts)}
        for j, (t, code) in enumerate(self.kind.parts(y)):
            if t is not time or code is not event:  # else it is counted above
                keyed[f"part {j}"] = Keyed.of((stratum, t, code.astype(np.intp), entry), counts)
        for by in columns.by:
            keyed[f"by {by}"] = Keyed.of((rows.labels[by],), counts)
        if columns.groups is not None:
            used = w > 0
            group, last = rows.labels[columns.groups], time[:, None]
            keyed["groups"] = Keyed.of((group,), last, largest=True)
            keyed["last"] = Keyed.of((group[used],), last[used], largest=True)
            for by in columns.by:
                keyed[f"groups by {by}"] = Keyed.of((rows.labels[by][used], group[used]), last[used], True)
        return PartialSums(keyed=keyed)


@dataclass(frozen=True, eq=False)
class Support:
    """How far the censoring distributions given covariates reach: the smallest times of all subjects."""

    columns: Columns
    rows: int
    fitted: FittedCensoring

    def __call__(self, batch: Any) -> PartialSums:
        """Of one batch: the last times of all, and how many have the same, see ``horizon.reach``."""
        return merged(self._of(rows) for rows in rows_of(batch, self.columns, self.fitted.columns, self.rows))

    def _of(self, rows: Rows) -> PartialSums:
        G = self.fitted.distribution(rows.frame).marginal(0)
        last, *ends = to_numpy(G.isf(np.array([[0.0, FOLLOWED, LEAST]]))).T
        each = Keyed.of(tuple(ends), rows.weight[:, None])
        return PartialSums(
            keyed={"ends": each, "last": Keyed((np.zeros(1),), np.array([[-last.min()]]), largest=True)}
        )


@dataclass(frozen=True, eq=False)
class LossSums:
    """Second pass: sums of losses, their derivatives by the hazard of C, and effective numbers of events."""

    plan: Plan

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        return merged(self._of(rows) for rows in self.plan.read(batch))

    def _of(self, rows: Rows) -> PartialSums:
        plan, forecasts, w = self.plan, self.plan.forecast(rows), self.plan.shares(rows)
        cases = plan.cases(rows, forecasts)
        losses = score_all(dict(cases), plan.scores)
        part = PartialSums(unavailable={f"{m}|{s}": why for (m, s), why in losses.unavailable.items()})
        for model, case in cases.items():
            pieces = list(plan.pieces(rows, case, w))
            for score in plan.scores:
                if (model, score.name) not in losses.values:
                    continue
                values, name = losses.values[model, score.name], f"{model}|{score.name}"
                part.sums[f"loss|{name}"] = weighted_sums(values, w)
                part.sums[f"infinite|{name}"] = (w > 0).T.astype(float) @ np.isinf(values)
                for i, subjects, piece, weight, u in pieces:
                    part.sums[f"A|{i}|{name}"] = score.derivative(piece, values[subjects], weight, u)
            if case.y.time.ndim == 1:
                part.sums[f"expected|{model}"] = np.array(expected_events(plan.kind.timed(case.F), case.y))
            part.sums[f"repaired|{model}"] = np.array(float(plan.kind.repairs(forecasts[model])))
        return part + self._events(rows, list(cases.values()), w)

    def _events(self, rows: Rows, cases: list[Case], w: np.ndarray) -> PartialSums:
        """What the effective numbers of events need: sums of weights and of their squares, or by group."""
        plan, part, columns = self.plan, PartialSums(), dict[str, np.ndarray]()
        for (outcome, axis), score in event_scores(plan.scores).items():
            who = score.counted_events(cases)
            columns[f"{axis}|{outcome}"] = np.column_stack([v[:, None] * each for v in w.T for each in who])
            if f"seen|{outcome}" not in part.sums:
                counted, weight = weights_of_counted(*score.events(cases[0]), plan.horizon, w[:, 0])
                columns[f"all|{outcome}"] = w[:, :1] * np.column_stack([counted, weight])
                part.sums[f"seen|{outcome}"] = np.array(float(counted.sum()))
        if plan.fitted is not None:
            y, G = plan.follow_up(rows), cases[0].C.marginal(0)
            part = part + _weights(weights_of_events(y, G), to_numpy(y.time) <= plan.horizon)
        for name, table in columns.items():
            if plan.columns.groups is None:
                part.sums[f"events|{name}"] = np.stack([table.sum(axis=0), (table**2).sum(axis=0)])
            else:
                part.keyed[f"events|{name}"] = Keyed.of((rows.labels[plan.columns.groups],), table)
        return part


def event_scores(scores: list[CaseScore]) -> dict[tuple[str, str], CaseScore]:
    """One score for each outcome and axis, whose events are those that all of them are based on."""
    return {(score.outcome, score.axis): score for score in scores}


def _weights(of_event: np.ndarray, counted: np.ndarray) -> PartialSums:
    """What is told of the weights of events: how many have each, to three digits, or none."""
    exact = of_event[counted & (of_event > 0) & np.isfinite(of_event)]
    digit = 10 ** (np.floor(np.log10(exact)) - 2)
    weight, count = np.unique(np.round(exact / digit) * digit, return_counts=True)
    beyond = np.array(float(np.isinf(of_event).sum()))
    return PartialSums({"beyond": beyond}, {"weights": Keyed((weight,), count[:, None].astype(float))})


def weighted_sums(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Sums of losses (n, q) under each column of weights (n, m); those of weight zero do not count."""
    if np.isfinite(values).all():
        return w.T @ values
    return np.stack([column[column > 0] @ values[column > 0] for column in w.T])


@dataclass(frozen=True, eq=False)
class Centre:
    """What influences are measured from, by subset and score."""

    models: list[str]  #: those that have the score
    mean: np.ndarray  #: (m, M, q)
    xi: np.ndarray | None  #: by distinct outcome, per unit of weight, (J, m, M, q); None where none moves C


@dataclass(frozen=True, eq=False)
class Influences:
    """Third pass: sums of powers of the influences, or their sums by group."""

    plan: Plan
    centres: dict[str, Centre]  #: by the name of the score
    reference: str | None
    counts: Counts  #: the distinct outcomes that ``xi`` belongs to
    strata: np.ndarray  #: the number of the stratum of each

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        return merged(self._of(rows) for rows in self.plan.read(batch))

    def _of(self, rows: Rows) -> PartialSums:
        plan, w = self.plan, self.plan.shares(rows)
        losses = score_all(dict(plan.cases(rows)), plan.scores)
        place = self._places(rows)
        part, tables = PartialSums(), []
        for name, centre in self.centres.items():
            values = np.stack([losses.values[model, name] for model in centre.models], axis=1)  # (n, M, q)
            for s in range(w.shape[1]):
                with np.errstate(invalid="ignore"):  # infinity less infinity
                    spread = w[:, s, None, None] * (values - centre.mean[s])
                psi = np.where(w[:, s, None, None] > 0, spread, 0.0)
                if centre.xi is not None:
                    psi = psi + rows.weight[:, None, None] * centre.xi[place, s]
                if plan.columns.groups is not None:
                    tables.append(psi.reshape(len(psi), -1))
                    continue
                number = centre.models.index(self.reference) if self.reference in centre.models else None
                for kind, value in power_sums(psi, number).items():
                    part.sums[f"{kind}|{s}|{name}"] = value
        if plan.columns.groups is not None:
            part.keyed["psi"] = Keyed.of((rows.labels[plan.columns.groups],), np.column_stack(tables))
        return part

    def _places(self, rows: Rows) -> np.ndarray:
        """Where the outcome of each subject is among the distinct ones, (n,)."""
        if all(centre.xi is None for centre in self.centres.values()):
            return np.zeros(len(rows.y), dtype=np.intp)
        return self.counts.places(self.strata, self.plan.follow_up(rows), self.plan.stratum(rows))
