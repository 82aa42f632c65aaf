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
from censcore.distributions.survival_matrix import reading_of
from censcore.evaluation.designs.batches.counts import Counts
from censcore.evaluation.designs.batches.fitted_censoring import FittedCensoring
from censcore.evaluation.designs.batches.partial_sums import Keyed, PartialSums, merged
from censcore.evaluation.designs.batches.summed_estimates import power_sums
from censcore.evaluation.designs.batches.table_plan import Columns, Plan, Rows, rows_of
from censcore.evaluation.inference.losses import score_all
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.effective_events import counted_events
from censcore.evaluation.plan.checks import LARGEST_HAZARD
from censcore.evaluation.plan.horizon import FOLLOWED
from censcore.scores.known_at import weights_of_events

__all__ = ["Centre", "Counting", "Influences", "LossSums", "Support", "losses_of"]


@dataclass(frozen=True, eq=False)
class Counting:
    """First pass: numbers of subjects by stratum, time and event, and by label."""

    columns: Columns
    rows: int

    def __call__(self, batch: Any) -> PartialSums:
        """The counts of one batch."""
        return merged(self._of(rows) for rows in rows_of(batch, self.columns, (), self.rows))

    def _of(self, rows: Rows) -> PartialSums:
        time, event, w = to_numpy(rows.y.time), to_numpy(rows.y.event), rows.weight
        stratify = self.columns.stratify
        stratum = np.zeros(len(time)) if stratify is None else rows.labels[stratify]
        seen = np.column_stack([np.ones(len(time)), w > 0, w])
        entry = () if self.columns.entry is None else (to_numpy(rows.y.entry),)
        keyed = {"outcomes": Keyed.of((stratum, time, event, *entry), seen)}
        for by in self.columns.by:
            keyed[f"by {by}"] = Keyed.of((rows.labels[by],), seen)
        if self.columns.groups is not None:
            used = w > 0
            group, last = rows.labels[self.columns.groups], time[:, None]
            keyed["groups"] = Keyed.of((group,), last, largest=True)
            keyed["last"] = Keyed.of((group[used],), last[used], largest=True)
            for by in self.columns.by:
                keyed[f"groups by {by}"] = Keyed.of((rows.labels[by][used], group[used]), last[used], True)
        return PartialSums(keyed=keyed)


@dataclass(frozen=True, eq=False)
class Support:
    """How far the censoring distributions given covariates reach: the smallest times of all subjects."""

    columns: Columns
    rows: int
    fitted: FittedCensoring

    def __call__(self, batch: Any) -> PartialSums:
        """Of one batch, for shares 0 and ``FOLLOWED`` of follow-up."""
        some = rows_of(batch, self.columns, self.fitted.columns, self.rows)
        return merged(self._of(rows) for rows in some)

    def _of(self, rows: Rows) -> PartialSums:
        G, shares = self.fitted.distribution(rows.frame).marginal(0), (0.0, FOLLOWED)
        ends = np.array([[-float(to_numpy(G.isf(share)).min()) for share in shares]])
        return PartialSums(keyed={"ends": Keyed((np.zeros(1),), ends, largest=True)})


@dataclass(frozen=True, eq=False)
class LossSums:
    """Second pass: sums of losses, their derivatives by the hazard of C, and effective numbers of events."""

    plan: Plan

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        return merged(self._of(rows) for rows in self.plan.read(batch))

    def _of(self, rows: Rows) -> PartialSums:
        plan, cases, w = self.plan, self.plan.cases(rows), self.plan.shares(rows)
        losses = score_all(dict(cases), plan.scores)
        found = PartialSums(unavailable={f"{m}|{s}": why for (m, s), why in losses.unavailable.items()})
        for model, case in cases.items():
            pieces = list(plan.pieces(rows, case, w))
            for score in plan.scores:
                if (model, score.name) not in losses.values:
                    continue
                values, name = losses.values[model, score.name], f"{model}|{score.name}"
                found.sums[f"loss|{name}"] = weighted_sums(values, w)
                found.sums[f"infinite|{name}"] = (w > 0).T.astype(float) @ np.isinf(values)
                for i, subjects, some, weight, u in pieces:
                    found.sums[f"A|{i}|{name}"] = score.derivative(some, values[subjects], weight, u)
            found.sums[f"expected|{model}"] = np.array(_expected(case))
            reading = reading_of(case.F)
            if reading is not None and reading.repair is not None:
                found.sums[f"repaired|{model}"] = np.array(float(len(reading.repair.subjects)))
        return found + self._events(rows, cases, w)

    def _events(self, rows: Rows, cases: dict[str, Case], w: np.ndarray) -> PartialSums:
        """What the effective numbers of events need: sums of weights and of their squares, or by group."""
        counted = event_columns(self.plan, rows, cases)
        parts = [w[:, s, None] * counted for s in range(w.shape[1])]
        case = next(iter(cases.values()))
        time, event = to_numpy(rows.y.time), to_numpy(rows.y.event)
        seen = event & (time > 0) & (time <= self.plan.horizon) & (w[:, 0] > 0)
        of_event = weights_of_events(rows.y, case.C.marginal(0))
        weighted = w[:, 0] * np.where(seen & np.isfinite(of_event), of_event, 0.0)
        table = np.column_stack([*parts, weighted])
        found = PartialSums({"seen": np.array(float(seen.sum()))})
        if self.plan.fitted is not None:
            found = found + _weights(of_event, time <= self.plan.horizon)
        if self.plan.columns.groups is None:
            found.sums["events"] = np.stack([table.sum(axis=0), (table**2).sum(axis=0)])
        else:
            found.keyed["events"] = Keyed.of((rows.labels[self.plan.columns.groups],), table)
        return found


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


def _expected(case: Case) -> float:
    """The number of events that a forecast expects in the time that subjects were followed."""
    with np.errstate(divide="ignore"):
        hazard = -np.log(np.broadcast_to(to_numpy(case.F.marginal(0).sf(case.y.time)), len(case.y)))
    return float(np.minimum(hazard, LARGEST_HAZARD).sum())


def event_columns(plan: Plan, rows: Rows, cases: dict[str, Case]) -> np.ndarray:
    """Who counts as an event for each kind of score, (n, columns), see ``Comparison.effective_events``.

    First of scores without times; then, where there are such scores, those by each time, those free of the
    event beyond each time, and those before the quantiles of each level.
    """
    time, event = to_numpy(rows.y.time)[:, None], to_numpy(rows.y.event)[:, None]
    axes = {score.axis for score in plan.scores}
    counted = [event & (time <= plan.horizon)]
    if "time" in axes:
        until = np.minimum(plan.times, plan.horizon)
        counted += who_is_known(rows.y, next(iter(cases.values())).C, until)
    if "level" in axes:
        counted.append(event & (time <= np.max([case.quantiles for case in cases.values()], axis=0)))
    return np.column_stack(counted)


@dataclass(frozen=True, eq=False)
class Centre:
    """What influences are measured from, by subset and score.

    ``models`` are those that have the score; ``mean`` is (m, M, q). ``xi`` (J, m, M, q) belongs to the
    distinct outcomes of the counts, per unit of weight; None where no scored subject moves C.
    """

    models: list[str]
    mean: np.ndarray
    xi: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Influences:
    """Third pass: sums of powers of the influences, or their sums by group.

    Parameters
    ----------
    plan : Plan
        As in the second pass.
    centres : dict
        Score name -> centre.
    reference : str, optional
        Name of the reference.
    counts, strata : Counts, array
        The distinct outcomes that ``xi`` belongs to, and the number of the stratum of each.
    """

    plan: Plan
    centres: dict[str, Centre]
    reference: str | None
    counts: Counts
    strata: np.ndarray

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        return merged(self._of(rows) for rows in self.plan.read(batch))

    def _of(self, rows: Rows) -> PartialSums:
        plan, w = self.plan, self.plan.shares(rows)
        losses = score_all(dict(plan.cases(rows)), plan.scores)
        place = self._places(rows)
        found, tables = PartialSums(), []
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
                    found.sums[f"{kind}|{s}|{name}"] = value
        if plan.columns.groups is not None:
            keys = (rows.labels[plan.columns.groups],)
            found.keyed["psi"] = Keyed.of(keys, np.column_stack(tables))
        return found

    def _places(self, rows: Rows) -> np.ndarray:
        """Where the outcome of each subject is among the distinct ones, (n,)."""
        if all(centre.xi is None for centre in self.centres.values()):
            return np.zeros(len(rows.y), dtype=np.intp)
        return self.counts.places(self.strata, rows.y, self.plan.stratum(rows))


def losses_of(plan: Plan, rows: Rows) -> dict[str, np.ndarray]:
    """Losses of the subjects of a batch, by the names of columns."""
    columns: dict[str, np.ndarray] = {}
    cases = plan.cases(rows)
    for (model, name), values in score_all(dict(cases), plan.scores).values.items():
        score = next(score for score in plan.scores if score.name == name)
        for j, at in enumerate(score.at(cases[model])):
            columns[f"{model}__{name}" + ("" if np.isnan(at) else f"@{at:.10g}")] = values[:, j]
    return columns
