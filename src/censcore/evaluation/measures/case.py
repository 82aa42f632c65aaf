"""A forecast, what happened, and the censoring distribution: all that a comparison scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from censcore._arrays import searchsorted, to_numpy
from censcore._kept_values import KeepsValues
from censcore.distributions import Distribution, Grouped, Independent, Univariate
from censcore.distributions.derived.dropout import LastVisit
from censcore.distributions.univariate.monotone import ROUNDING
from censcore.estimators.risk_sets import entries_of
from censcore.evaluation.inference.estimates import effective_number
from censcore.evaluation.measures.cell_sums import brier_sums, sums_at
from censcore.exceptions import PositivityError
from censcore.outcomes import RightCensored
from censcore.outcomes.detection_times import DetectionTimes
from censcore.scores import SCORES
from censcore.scores.inputs.known_at import seen_beyond, weights_of_events
from censcore.scores.inputs.scoring_inputs import ScoringInputs, scoring_inputs, without_forecast
from censcore.scores.registry import ScoreInfo

if TYPE_CHECKING:
    from censcore.evaluation.measures.case_scores import CaseScore
    from censcore.evaluation.measures.discrimination import Measure
    from censcore.evaluation.measures.joint_scores import View

PARTS = 64  # groups up to which subjects are scored group by group
CELLS = 60  # of the distinct times, and of the time axis, for derivatives of integrated scores
CHUNK = 40_000  # subjects whose losses in cells are held at a time
#: What is derived of a case without its C.
WITHOUT_C = ("time", "entry", "cells", "quantiles", "expected_time", "_placed")


@dataclass(frozen=True, eq=False)
class RiskAt:
    """Forecast risks and inverse-probability weights at a time t, (n,) each.

    Means with these weights are those of uncensored data, over the subjects that enter before t. Where C is
    known for every subject, they are means over those that are also followed beyond t, whose weight is one.
    """

    p: np.ndarray  #: forecast risk of the event by t, given survival to the entry
    event: np.ndarray  #: weights of "event by t", zero where it is not known
    free: np.ndarray  #: weights of "no event by t", zero where it is not known
    counted: np.ndarray | None = None  #: the subjects that means are over; None for all


@dataclass(frozen=True, eq=False)
class Case(KeepsValues):
    """One forecast F of the outcomes y, the censoring distribution C, and where the forecast is scored."""

    y: RightCensored
    F: Distribution  #: one per subject or one for all, as is C
    C: Distribution
    horizon: float  #: end of all scores
    times: np.ndarray  #: of the scores that have such an axis, (q,)
    levels: np.ndarray
    mask: np.ndarray | None = None  #: false where a subject is not followed for an event time, (n, k)
    coordinate: int | None = None  #: which of several C a derivative is taken for; None for one of all events
    seed: int = 0  #: of the scores that draw
    #: With delayed entry the forecast given survival to the first entry of all, by which concordance ranks
    #: the subjects: F is given survival to the entry of each, so that it ranks them by their entries, too.
    prognosis: Distribution | None = None
    #: The outcome as scores take it, where that is more than y: competing risks, of which y is any cause.
    whole: Any = None
    #: The intervals, and the forecast of T, that y and F (of the time of detection) were made from.
    source: tuple[Any, Distribution] | None = None
    #: Cells of the times of every part of the kind, where they are those of more subjects than these.
    edges: tuple[np.ndarray, ...] | None = None
    scored: Any = field(init=False, repr=False)  #: the outcome as scores take it

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", in_time(self.C, self.y))
        object.__setattr__(self, "scored", self.y if self.whole is None else self.whole)

    def __getstate__(self) -> dict[str, Any]:
        """Without the inputs, which hold a module and are made again."""
        return {name: value for name, value in super().__getstate__().items() if name != "inputs"}

    def take(self, rows: np.ndarray | slice) -> Self:
        """The case of some subjects."""

        def part(D: Any) -> Any:
            return D if len(D) == 1 else D.take(rows)

        return replace(
            self.of_forecasts(part),
            y=self.y.take(rows),
            C=part(self.C),
            mask=None if self.mask is None else self.mask[rows],
            whole=None if self.whole is None else self.whole.take(rows),
            source=None if self.source is None else (self.source[0].take(rows), part(self.source[1])),
        )

    def ungrouped(self, rows: np.ndarray) -> Self:
        """The case of some subjects, without groups where all of them are of one."""
        part = self.take(rows)
        return replace(part, F=_plain(part.F), C=_plain(part.C))

    def parts(self) -> list[tuple[np.ndarray | slice, Self]]:
        """Subjects of one group of forecasts and of C, such as a fold, and their case; all, if none is."""
        grouped = [D for D in (self.F, self.C) if isinstance(D, Grouped) and len(D) == len(self.y)]
        code = np.zeros(len(self.y), dtype=np.intp)
        for D in grouped:
            code = code * (int(D.group.max()) + 1) + D.group
        if not grouped or not 1 < len(numbers := np.unique(code)) <= PARTS:
            return [(slice(None), self)]
        each = (np.nonzero(code == number)[0] for number in numbers)
        return [(rows, self.ungrouped(rows)) for rows in each]

    def of_forecasts(self, part: Callable[[Any], Distribution]) -> Self:
        """The case of a part of the forecast, such as one of its event times."""
        order = None if self.prognosis is None else part(self.prognosis)
        return replace(self, F=part(self.F), prognosis=order)

    @property
    def never(self) -> np.ndarray:
        """Who is known never to have the event, since one of another cause came first, (n,)."""
        return to_numpy(self.y.never)

    @property
    def G(self) -> Univariate:
        """The censoring distribution that a derivative is taken for."""
        return self.C.marginal(self.coordinate or 0)

    def with_censoring(self, G: Distribution, coordinate: int | None = None) -> Self:
        """The case under another distribution of C, or of the C of one coordinate where each has one."""
        if self.C.k == 1 or coordinate is None:
            changed = replace(self, C=G, coordinate=None)
        else:
            parts = [G if j == coordinate else self.C.marginal(j) for j in range(self.C.k)]
            changed = replace(self, C=Independent(cast(list[Univariate], parts)), coordinate=coordinate)
        changed.__dict__.update({name: self.__dict__[name] for name in WITHOUT_C if name in self.__dict__})
        return changed

    def of(self, view: View) -> Case:
        """The case of one view of the outcome; made once."""
        if view not in self._made:
            case = view.of(self)
            self._made[view] = case if self.edges is None else replace(case, edges=(self.edges[view.part],))
        return self._made[view]

    @cached_property
    def inputs(self) -> ScoringInputs:
        """What scores of one event time take, checked once for all of them."""
        return scoring_inputs(self.y, self.F, self.C, self.horizon, one_cause=True)

    def losses(self, info: ScoreInfo, times: np.ndarray | None = None) -> np.ndarray:
        """Losses (n, q) of a score, at its times or at others."""
        times = self.times if times is None else times
        if info.losses is None or self.whole is not None or self.y.time.ndim > 1:
            where = {"times": times, "levels": self.levels, "horizon": self.horizon}
            return as_losses(info(self.scored, self.F, self.C, **where))
        at = {"time": (times,), "level": (self.levels,)}.get(info.axis, ())
        return as_losses(info.losses(self.inputs, *at, **dict(info.options)))

    @cached_property
    def time(self) -> np.ndarray:
        """Observed times up to the horizon, (n,)."""
        return np.minimum(to_numpy(self.y.time), self.horizon)

    @cached_property
    def entry(self) -> np.ndarray | None:
        """Entries up to the horizon, (n,), minus infinity for subjects seen from the start; None without."""
        since = entries_of(self.y)
        return None if since is None else np.minimum(since, self.horizon)

    def risk_at(self, t: float, scale: str | None = None) -> RiskAt:
        """Forecast risks of the event by t, and what is known of it on a scale; made once.

        Without a scale weights are those that means over the counted subjects need.
        """
        if ("risk", t, scale) not in self._made:
            risk = _risk_at(self.inputs, t) if scale is None else risk_at(self.inputs, t, scale)
            self._made["risk", t, scale] = risk
        return self._made["risk", t, scale]

    def first(self, u: np.ndarray) -> np.ndarray:
        """The place in the ascending times u of the first that reaches the observed time, (n,).

        Several scores ask for the same u: the last answer is kept.
        """
        if self._placed.get("u") is not u:
            self._placed.update(u=u, first=searchsorted(u[None, :], self.time[None, :], "left")[0])
        return self._placed["first"]

    @cached_property
    def _placed(self) -> dict[str, np.ndarray]:
        return {}

    @cached_property
    def _made(self) -> dict[Any, Any]:
        """What was made before: cases of views, risks at times, the last sums."""
        return {}

    @cached_property
    def cells(self) -> np.ndarray:
        """Edges from 0 to the horizon, between quantiles of the distinct observed times."""
        return cells_of(self.time, self.horizon) if self.edges is None else self.edges[0]

    def brier_sums(self, weight: np.ndarray) -> np.ndarray:
        """Brier losses in the middle of every cell, summed with each column of weights (n, m).

        The sums (m, cells + 2, cells) are by the edge that reaches the time of a subject. They serve both
        scales, so that the last answer is kept; losses are made for some subjects at a time.
        """
        if self._made.get("weight") is not weight:
            edges, of_inputs = self.cells, self.whole is None
            middle, first = (edges[:-1] + edges[1:]) / 2, self.first(edges)
            sums = np.zeros((weight.shape[1], len(edges) + 1, len(middle)))
            for start in range(0, len(first), CHUNK):
                rows = slice(start, start + CHUNK)
                known = brier_sums(self.inputs.take(rows), weight[rows], edges, middle) if of_inputs else None
                if known is None:
                    part = self if len(first) <= CHUNK else self.take(rows)
                    losses = part.losses(SCORES["brier_score"], middle)
                    known = sums_at(first[rows], weight[rows], losses, len(edges))
                sums += known
            self._made.update(weight=weight, sums=sums)
        return self._made["sums"]

    @cached_property
    def quantiles(self) -> np.ndarray:
        """Forecast quantiles up to the horizon, (n, levels)."""
        q = np.minimum(to_numpy(self.F.marginal(0).icdf(self.levels[None, :])), self.horizon)
        return np.broadcast_to(q, (len(self.y), len(self.levels)))

    @cached_property
    def expected_time(self) -> np.ndarray:
        """What concordance ranks subjects by: the forecast mean of min(T, horizon), (n,).

        Of a forecast that is known at one time it is the survival there, which is all that it says.
        """
        F = (self.F if self.prognosis is None else self.prognosis).marginal(0)
        known = F.integrated_sf(0.0, self.horizon) if F.only_time is None else F.sf(F.only_time)
        return np.broadcast_to(to_numpy(known), (len(self.y),))

    def knows(self, t: float) -> bool:
        """Whether the forecast says anything of a time."""
        return self.F.only_time is None or bool(np.isclose(self.F.only_time, t, rtol=ROUNDING, atol=0))


def _plain(D: Distribution) -> Distribution:
    groups = D.groups() if isinstance(D, Grouped) else []
    return groups[0][1] if len(groups) == 1 else D


def _risk_at(inputs: ScoringInputs, t: float) -> RiskAt:
    """What is known at a time before the horizon; an error where P(C > t) = 0 of an unknown C."""
    beyond = seen_beyond(inputs.C, t)
    counted = np.broadcast_to(True if beyond is None else beyond, (inputs.n,))
    if inputs.y.entry is not None:
        counted = counted & (to_numpy(inputs.y.entry) < t)
    if not counted.any():
        raise PositivityError(
            f"No subject informs about the risk by t = {t:g}: got none that enters before it and is "
            "followed beyond it. Choose another time."
        )
    known = risk_at(inputs, t, "ipcw" if beyond is None else "localized", remedy="Choose an earlier time.")
    return replace(known, counted=None if counted.all() else counted)


def risk_at(inputs: ScoringInputs, t: float, scale: str, **options: str) -> RiskAt:
    """The forecast risk by a time, and the weights of "event by t" and of "no event by t"."""
    at = inputs.xp.full_like(inputs.time[:1], t)
    parts = (inputs.F.cdf_at(at), *inputs.known_at(at, scale, **options).weights())
    each = (np.broadcast_to(to_numpy(part)[:, 0], (inputs.n,)).astype(np.float64) for part in parts)
    return RiskAt(*each)


def cells_of(time: np.ndarray, horizon: float) -> np.ndarray:
    """Edges from 0 to the horizon, between quantiles of the distinct times up to it."""
    inner = np.quantile(np.unique(np.minimum(time, horizon)), np.linspace(0, 1, CELLS + 1)[1:-1])
    edges = np.unique(np.concatenate([inner, np.linspace(0, horizon, CELLS + 1)]))
    return edges[edges <= horizon]


def in_time(C: Distribution, y: Any) -> Distribution:
    """A censoring distribution; one of the number of the last visit, on the visits of the subjects of y."""
    return C.on(y.visits) if isinstance(C, LastVisit) and isinstance(y, DetectionTimes) else C


def effective_events(
    counted: tuple[np.ndarray, ...], weight: np.ndarray, groups: np.ndarray | None
) -> np.ndarray:
    """The effective number of events, (q,), as ``Comparison.effective_events`` describes it.

    ``counted`` are the inverse-probability weights of the subjects that count as an event, and as free of it,
    (n, q) each: see :func:`counted_events`. The fewer of them decide.
    """
    numbers = [[effective_number(column * weight, groups) for column in who.T] for who in counted]
    return np.min(numbers, axis=0)


def counted_events(score: CaseScore | Measure, cases: list[Case]) -> tuple[np.ndarray, ...]:
    """The weights of events for a score and, where its columns are times, of those free of it: (n, q) each.

    ``cases`` are those of all forecasts, whose quantiles a score of levels is about.
    """
    case = cases[0]
    if score.axis == "time":
        inputs = without_forecast(case.y, case.C)
        times = np.minimum(score.at(case), case.horizon)[None, :]
        known = inputs.known_at(inputs.xp.asarray(times, dtype=inputs.time.dtype)).weights()
        return tuple(map(to_numpy, known))
    time = to_numpy(case.y.time)[:, None]
    if case.y.time.ndim > 1:  # of several event times: the subjects with an event of any
        counted = to_numpy(case.y.event)[:, None] & (time <= case.horizon)
        counted = counted if case.mask is None else counted & case.mask[:, None]
        return (np.repeat(np.any(counted, axis=2), len(score.at(case)), axis=1),)
    curves = [of for of in cases if of.F.only_time is None] if score.axis == "level" else []
    ends = np.full((1, len(score.at(case))), case.horizon)
    until = np.max([of.quantiles for of in curves], axis=0) if curves else ends
    weight = weights_of_events(case.y, case.C.marginal(0))[:, None]
    return (np.where((time <= until) & np.isfinite(weight), weight, 0.0),)


def weighted_events(
    y: RightCensored, G: Univariate, horizon: float, weight: np.ndarray, groups: np.ndarray | None
) -> tuple[int, float]:
    """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
    counted, of_event = weights_of_counted(y, G, horizon, weight)
    return int(counted.sum()), effective_number(weight * of_event, groups)


def weights_of_counted(
    y: RightCensored, G: Univariate, horizon: float, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whose event counts up to the horizon, and its inverse-probability weight, (n,) each."""
    of_event = weights_of_events(y, G, horizon)
    counted = (of_event > 0) & (to_numpy(y.time) > 0) & (weight > 0)
    return counted, np.where(counted & np.isfinite(of_event), of_event, 0.0)


def first_event(y: RightCensored) -> RightCensored:
    """The first event of any of the event times, (n,); where none was seen, the first of the times."""
    if y.time.ndim == 1:
        return y
    time, event = to_numpy(y.time), to_numpy(y.event)
    first = np.argmin(np.where(event, time, np.inf), axis=1)[:, None]
    time, event = (np.take_along_axis(part, first, axis=1)[:, 0] for part in (time, event))
    return RightCensored(time, event).with_entry(y.entry)


def as_losses(values: Any) -> np.ndarray:
    """Losses of any library and precision as (n, q) doubles."""
    losses = to_numpy(values).astype(np.float64, copy=False)
    return losses[:, None] if losses.ndim == 1 else losses
