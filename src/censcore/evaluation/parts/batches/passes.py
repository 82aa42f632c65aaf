r"""The three passes over a table, each a sum over its batches.

:class:`Counting` gives the numbers of subjects by stratum, time and event, from which all decisions
before scoring follow. :class:`LossSums` gives mean losses and their derivatives A(u) with
respect to the hazard of C. :class:`Influences` gives the sums of powers of

.. math:: \psi_i=w_i(\ell_i-\bar\ell)+w_i\,\xi(y_i,\delta_i),

where :math:`\xi`, which follows from A, is what a subject with that time and event moves through the
estimated censoring distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.evaluation.decisions.horizon import FOLLOWED, LEAST
from censcore.evaluation.decisions.notes import count_repairs, expected_events
from censcore.evaluation.inference.estimates import (
    EMPTY,
    POWERS,
    Differences,
    Estimate,
    SummedEstimate,
    pairs_of,
    powers_up_to_6,
)
from censcore.evaluation.inference.mean_losses import Scored, score_case
from censcore.evaluation.inference.pooling import weighted_sums
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.case import Case, weights_of_counted
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.outcome_table import IN_MEMORY
from censcore.evaluation.parts.batches.counts import Counts
from censcore.evaluation.parts.batches.runners import Keyed, PartialSums, merged
from censcore.evaluation.parts.batches.table_plan import (
    BatchPlan,
    Columns,
    Rows,
    ScoredRows,
    TableCensoring,
    rows_of,
)
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.known_at import weights_of_events


@dataclass(frozen=True, eq=False)
class Counting:
    """First pass: numbers of subjects by stratum, time and event, and by label."""

    columns: Columns
    rows: int
    kind: Kind
    censoring: TableCensoring  #: how far it reaches is counted too, where it is given covariates

    def __call__(self, batch: Any) -> PartialSums:
        """The counts of one batch."""
        needed = () if self.censoring.pooled else self.censoring.columns
        return merged(self.of(rows) for rows in rows_of(batch, self.columns, needed, self.rows))

    def of(self, rows: Rows) -> PartialSums:
        """Those of some subjects."""
        y, w, columns = self.kind.read_outcome(rows.y), rows.weight, self.columns
        followed = self.kind.followed(y)
        if not followed.shares_censoring:
            raise InvalidInputError(f"event times with a censoring time each: {IN_MEMORY}")
        followed = followed.last()
        time, event = to_numpy(followed.time), to_numpy(followed.event)
        stratum = np.zeros(len(time)) if columns.stratify is None else rows.labels[columns.stratify]
        entry = np.zeros(len(time)) if followed.entry is None else to_numpy(followed.entry)
        counts = np.column_stack([np.ones(len(time)), w > 0, w])
        keyed = {"outcomes": Keyed.of((stratum, time, event.astype(np.intp), entry), counts)}
        for j, (t, code) in enumerate(self.kind.parts(y)):
            if t is not time or code is not event:  # else it is counted above
                keyed[f"part {j}"] = Keyed.of((stratum, t, code.astype(np.intp), entry), counts)
        if not self.censoring.pooled:
            C = self.censoring.of(self.censoring.covariates(rows.frame, rows.labels), followed)
            keyed["ends"] = ends_of(C, w)
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


def ends_of(C: Any, weight: np.ndarray) -> Keyed:
    """Last times with P(C >= t) of 0.1, of 0.001 and above zero, and the weight of subjects with each."""
    ends = to_numpy(C.marginal(0).isf(np.array([[FOLLOWED, LEAST, 0.0]])))
    return Keyed.of(tuple(np.broadcast_to(ends, (len(weight), 3)).T), weight[:, None])


@dataclass(frozen=True, eq=False)
class LossSums:
    """Second pass: sums of losses, their derivatives by the hazard of C, and effective numbers of events."""

    plan: BatchPlan

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        scored: list[ScoredRows] = []
        sums = merged(self._of(rows, scored) for rows in self.plan.read(batch))
        self.plan.keep(batch, scored)
        return sums

    def _of(self, rows: Rows, scored: list[ScoredRows]) -> PartialSums:
        plan, forecasts, w = self.plan, self.plan.forecast(rows), self.plan.shares(rows)
        cases = plan.cases(rows, forecasts)
        each, moving = {m: score_case(case, plan.scores) for m, case in cases.items()}, plan.part(rows)
        scored.append((rows, {model: of._replace(parts=[]) for model, of in each.items()}))
        missing = {f"{m}|{s}": why for m, of in each.items() for s, why in of.unavailable.items()}
        part = PartialSums(unavailable=missing)
        for model, case in cases.items():
            pieces = {} if moving is None else plan.pieces(moving, case, w)
            for score in plan.scores:
                values = each[model].losses.get(score.name)
                if values is None:
                    continue
                name = f"{model}|{score.name}"
                part.sums[f"loss|{name}"] = weighted_sums(values, w)
                part.sums[f"infinite|{name}"] = (w > 0).T.astype(float) @ np.isinf(values)
                for i, piece in pieces.items():
                    part.sums[f"A|{i}|{name}"] = piece.derivative([score], [values])
            if case.y.time.ndim == 1 and plan.kind.timed(case.F).only_time is None:
                part.sums[f"expected|{model}"] = np.array(expected_events(plan.kind.timed(case.F), case.y))
            part.sums[f"repaired|{model}"] = np.array(float(count_repairs(forecasts[model])))
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
        if not plan.censoring.pooled:
            part = part + event_weights(plan.follow_up(rows), cases[0].C, plan.horizon)
        for name, table in columns.items():
            if plan.columns.groups is None:
                part.sums[f"events|{name}"] = np.stack([table.sum(axis=0), (table**2).sum(axis=0)])
            else:
                part.keyed[f"events|{name}"] = Keyed.of((rows.labels[plan.columns.groups],), table)
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
    """What influences are measured from, by subset and score."""

    models: list[str]  #: those that have the score
    mean: np.ndarray  #: (m, M, q)
    factor: np.ndarray  #: by which influences are multiplied for few subjects, (m,)
    xi: np.ndarray | None  #: by distinct outcome, per unit of weight, (J, m, M, q); None where none moves C

    def number(self, model: str | None) -> int | None:
        """The place of a model; None where it does not have the score."""
        return self.models.index(model) if model in self.models else None


@dataclass(frozen=True, eq=False)
class Influences:
    """Third pass: sums of powers of the influences, or their sums by group."""

    plan: BatchPlan
    centres: dict[str, Centre]  #: by the name of the score
    reference: str | None
    counts: Counts  #: the distinct outcomes that ``xi`` belongs to

    def __call__(self, batch: Any) -> PartialSums:
        """The sums of one batch."""
        return merged(self._of(*scored) for scored in self.plan.scored(batch))

    def _of(self, rows: Rows, scored: dict[str, Scored]) -> PartialSums:
        plan, w = self.plan, self.plan.shares(rows)
        place = self._places(rows)
        part, tables = PartialSums(), []
        for name, centre in self.centres.items():
            values = np.stack([scored[model].losses[name] for model in centre.models], axis=1)  # (n, M, q)
            for s in range(w.shape[1]):
                with np.errstate(invalid="ignore"):  # infinity less infinity
                    psi = values - centre.mean[s]
                    psi *= w[:, s, None, None]
                psi[w[:, s] == 0] = 0.0
                if centre.xi is not None:
                    psi += rows.weight[:, None, None] * centre.xi[place, s]
                psi *= centre.factor[s]
                if plan.columns.groups is not None:
                    tables.append(psi.reshape(len(psi), -1))
                    continue
                for kind, value in power_sums(psi, centre.number(self.reference)).items():
                    part.sums[f"{kind}|{s}|{name}"] = value
        if plan.columns.groups is not None:
            part.keyed["psi"] = Keyed.of((rows.labels[plan.columns.groups],), np.column_stack(tables))
        return part

    def _places(self, rows: Rows) -> np.ndarray:
        """Where the outcome of each subject is among the distinct ones, (n,)."""
        n, stratify = len(rows.y), self.plan.columns.stratify
        if all(centre.xi is None for centre in self.centres.values()):
            return np.zeros(n, dtype=np.intp)
        stratum = np.zeros(n) if stratify is None else rows.labels[stratify]
        return self.counts.places(stratum, self.plan.follow_up(rows))


DEGREE = POWERS[-1]
SUMS = ("single", "pair", "product", "mixed")
CACHED = 8192  # subjects whose powers stay in the cache
LARGEST = 2**23  # numbers of all pairs of models that are in memory together


def power_sums(
    psi: np.ndarray, reference: int | None, repeat: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sums over the influences (n, M, q) of M models, each counted ``repeat`` times.

    ``single`` (4, M, q) and ``pair`` (4, P, q): powers of each model and each difference; ``product``
    (M, M, q): products less what models have in common; ``mixed`` (7, 7, M, q): products of powers of a
    difference from the reference and of that.
    """
    times = np.ones(len(psi)) if repeat is None else repeat
    rows = min(CACHED, LARGEST // psi.shape[1] ** 2 + 1)
    columns = []
    for j in range(psi.shape[2]):
        parts = []
        for start in range(0, max(len(psi), 1), rows):
            block = slice(start, start + rows)
            parts.append(_power_sums(np.ascontiguousarray(psi[block, :, j].T), reference, times[block]))
        columns.append({name: sum(part[name] for part in parts) for name in parts[0]})
    return {name: np.stack([column[name] for column in columns], axis=-1) for name in columns[0]}


@np.errstate(invalid="ignore")  # infinite losses have no spread
def _power_sums(psi: np.ndarray, reference: int | None, times: np.ndarray) -> dict[str, np.ndarray]:
    """The same of one column of influences (M, n)."""
    M, n = psi.shape
    a, b = pairs_of(M)
    every = np.concatenate([psi, psi[a] - psi[b]])
    square = every * every
    counted = square * times
    factors = np.ones_like(every), every, square, square * square
    powers = np.stack([np.einsum("mn,mn->m", factor, counted) for factor in factors])
    D = psi - np.nan_to_num(psi, posinf=0.0, neginf=0.0).mean(axis=0)  # any vector gives the same differences
    sums = {"single": powers[:, :M], "pair": powers[:, M:], "product": D @ (D * times).T}
    if reference is None:
        return sums
    others = np.arange(M) != reference
    from_reference = powers_up_to_6(psi[others] - psi[reference]).reshape(-1, n)
    of_reference = powers_up_to_6(psi[reference]) * times
    mixed = np.zeros((DEGREE + 1, M, DEGREE + 1))
    mixed[:, others] = (from_reference @ of_reference.T).reshape(DEGREE + 1, M - 1, DEGREE + 1)
    return sums | {"mixed": mixed.swapaxes(1, 2)}


@dataclass(frozen=True, eq=False)
class Moments:
    r"""The means of several models by one score in one subset, and the sums of powers of their influences.

    Standard errors, skewness and degrees of freedom need :math:`\sum\psi^p` for p = 2, 3, 4, 6 of every mean
    and every difference; simultaneous tests need the products of differences; the interval of a skill needs
    :math:`\sum(\psi-\psi_0)^i\psi_0^j`. Powers of differences are summed as such: nothing cancels.
    """

    value: np.ndarray  #: mean losses of M models, (M, q)
    sums: dict[str, Any]  #: see :func:`power_sums`
    size: int  #: how many contributions there are

    def means(self) -> list[MeanOfBatches]:
        """The mean of each model."""
        single = self.sums["single"]
        one = np.ones(self.value.shape[1])
        return [
            MeanOfBatches(v, EMPTY, single[:, a], self.size, one, self, a) for a, v in enumerate(self.value)
        ]

    def column(self, j: int) -> Moments:
        """Those of one column."""
        sums = {name: value[..., j : j + 1] for name, value in self.sums.items() if value is not None}
        return Moments(self.value[:, j : j + 1], sums, self.size)


@dataclass(frozen=True, eq=False)
class MeanOfBatches(SummedEstimate):
    """The mean of one of several models."""

    moments: Moments  #: of all of them
    who: int  #: the number of the model

    def column(self, j: int) -> MeanOfBatches:
        """The estimate of one column."""
        return self.moments.column(j).means()[self.who]

    @staticmethod
    def differences(estimates: Sequence[MeanOfBatches]) -> Differences:
        """Of all pairs, side by side; the means are in the order of the sums."""
        moments, models = estimates[0].moments, np.array([each.who for each in estimates])
        every = pairs_of(len(moments.value))
        among = np.isin(every, models).all(axis=0)
        means, (a, b) = moments.value[:, 0], models[pairs_of(len(models))]
        with np.errstate(invalid="ignore"):
            value = means[a] - means[b]
        squares, vectors = np.linalg.eigh(np.nan_to_num(moments.sums["product"][:, :, 0], posinf=0, neginf=0))
        root = np.sqrt(np.maximum(squares, 0.0))[:, None] * vectors.T
        summed, one = moments.sums["pair"][:, among, 0], np.ones(len(value))
        found = Differences(value, EMPTY, summed, moments.size, one, root, np.array([a, b]))
        return found._beyond_rounding(np.maximum(np.abs(means[a]), np.abs(means[b])))

    def skill(self, reference: Estimate) -> Estimate:
        """1 - value / reference, by the delta method."""
        mixed = self.moments.sums["mixed"][:, :, self.who]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.value / reference.value
            s = 1 - ratio  # psi - ratio psi_0 is their difference plus s psi_0
            square = mixed[2, 0] + 2 * s * mixed[1, 1] + s**2 * mixed[0, 2]
            error = np.sqrt(np.maximum(square, 0.0)) / np.abs(reference.value)
        return Estimate(1 - ratio, error[None, :])._beyond_rounding(np.ones_like(ratio))

    def residual_products(self, reference: Estimate) -> tuple[float, float, np.ndarray, int]:
        """See :meth:`Estimate.residual_products`; from products of the difference and the reference."""
        mixed = self.moments.sums["mixed"][:, :, self.who, 0]
        scale = float(np.hypot(self.standard_error[0], reference.standard_error[0]))
        mixed = mixed / scale ** np.add.outer(np.arange(DEGREE + 1), np.arange(DEGREE + 1))
        slope = -mixed[1, 1] / max(float(mixed[0, 2]), 1e-300)  # the residual is the difference + slope psi_0
        products = np.zeros_like(mixed)
        for i in range(DEGREE + 1):
            for j in range(DEGREE + 1 - i):
                products[i, j] = sum(comb(i, k) * slope**k * mixed[i - k, j + k] for k in range(i + 1))
        return scale, float(1 - slope), products, self.moments.size
