r"""What a comparison adds to the registry of scores: losses of a case, and how means move with C.

Every score here is an integral over times s. Its integrand is weighted by :math:`G_i(s)/G_i(y_i-)` after an
event and by 1 while the subject is followed (both divided by :math:`G_i(s)` on the ipcw scale). A larger
hazard of C at time u reduces the weight of everything beyond u. So the derivative of a mean loss with respect
to :math:`\log\{1-d\Lambda_C(u)\}`, changed for all subjects at once, is

.. math::
    A(u)=\sum_{i:\,y_i\le u}w_i\{\ell_i-\ell_i^{(u)}\}\quad\text{(localized)},\qquad
    A(u)=-\sum_{i:\,y_i>u}w_i\{\ell_i-\ell_i^{(u)}\}\quad\text{(ipcw)},

where :math:`\ell^{(u)}` is the loss under the horizon u. Each subject may have a censoring distribution
:math:`G_i`; where these move by different amounts, the amounts enter the weights :math:`w_i`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_list
from censcore.distributions import ProportionalHazards, Step, Univariate
from censcore.evaluation.measures.case import Case, RiskAt, as_losses, counted_events, first_event
from censcore.evaluation.measures.cell_sums import sums_at
from censcore.exceptions import InvalidInputError, InvalidTypeError, PositivityError
from censcore.outcomes import RightCensored
from censcore.scores import SCORES
from censcore.scores.inputs.known_at import known_at, over_reached
from censcore.scores.inputs.scoring_inputs import as_columns
from censcore.scores.registry import ScoreInfo, no_such_score
from censcore.scores.rules.pinball import pinball_of

__all__ = ["CASE_SCORES", "DEFAULT_SCORES", "CaseScore", "Custom", "by_name", "raise_no_case_score"]

KNOTS = 100  # times at which the derivative of the pinball score is taken; it is interpolated between them
BLOCKS = 48  # of the hazard of C, for numerical derivatives
STEP = 0.01  # by which the hazard in a block is changed, relative to itself
CHUNK = 4096  # subjects with curves of their own at a time


class Places(Protocol):
    """Where scores are taken."""

    @property
    def times(self) -> np.ndarray:
        """Evaluation times."""

    @property
    def levels(self) -> np.ndarray:
        """Quantile levels."""


@dataclass(frozen=True)
class CaseScore(ABC):
    """A score in a comparison: an entry of the registry, with the derivative of its means."""

    #: Whether losses are taken of all subjects at once, and not of those who share a curve.
    whole: ClassVar[bool] = False

    info: ScoreInfo
    #: Which of several event times, which cause or joint event is scored; empty where there is one time.
    outcome: str = field(default="", kw_only=True)

    @cached_property
    def name(self) -> str:
        """By which the score is asked for."""
        return self.info.name

    @property
    def title(self) -> str:
        """In tables and pictures."""
        return self.info.title

    @property
    def axis(self) -> str:
        """What the columns are: "time", "level" or nothing for a single column."""
        return self.info.axis

    def counted(self, case: Case) -> np.ndarray | None:
        """The subjects that the mean is over, (n,); None for all."""
        return None

    @cached_property
    def ipcw(self) -> bool:
        """Whether losses are divided by P(C > t)."""
        return self.info.scale == "ipcw"

    def at(self, places: Places) -> np.ndarray:
        """The times or levels of the columns, of a case or as decided; NaN for a score without any."""
        return {"time": places.times, "level": places.levels}.get(self.axis, np.array([np.nan]))

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q)."""
        return case.losses(self.info)

    @abstractmethod
    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u) for each column of weights (n, m), (m, J, q); weights may have any sign and sum."""

    def events(self, case: Case) -> tuple[RightCensored, Univariate]:
        """The events that the score is about, as an outcome (n,), and the distribution of their C."""
        return first_event(case.y), case.C.marginal(0)

    def counted_events(self, cases: list[Case]) -> tuple[np.ndarray, ...]:
        """The weights of events and, for a score of times, of subjects free of it, (n, q) each.

        ``cases`` are those of all forecasts. Scores of one outcome with the same axis count the same events.
        """
        return counted_events(self, cases)


Pieces = list[tuple[np.ndarray | slice, Case]]


def losses_of(score: CaseScore, case: Case, parts: Pieces | None = None) -> np.ndarray:
    """Losses (n, q) of a score, part by part: a curve that the subjects of a fold share stays shared."""
    parts = case.parts() if parts is None else parts
    if len(parts) == 1 or score.whole:
        return score.losses(case)
    try:
        pieces = [score.losses(part) for _, part in parts]
    except PositivityError:  # its message numbers subjects of a part: the whole case numbers all of them
        return score.losses(case)
    losses = np.empty((len(case.y), pieces[0].shape[1]))
    for (rows, _), values in zip(parts, pieces, strict=True):
        losses[rows] = values
    return losses


class WithoutCensoring(CaseScore):
    """The censoring distribution cancels, as in the log score."""

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.zeros((weight.shape[1], len(u), losses.shape[1]))


class AtTimes(CaseScore):
    """A score of F(tau), whose loss depends on C at the one time s = tau."""

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        return of_single_times(case.first(u), losses, weight, case.times, u, self.ipcw, case.entry)


#: Of means that no registry has: their losses are computed from what is known at a time.
OF_RISK = ScoreInfo("risk", lambda *_: None, "risk by a time", formula="", reference="", scale="ipcw")


@dataclass(frozen=True, eq=False)
class OfRisk(CaseScore):
    """The mean of a function of the risk by ``time`` and of the weights of what is known then.

    Net benefit, sensitivity, predictive values and the observed risk are made of such means. Without a
    ``scale`` they estimate what uncensored data would give.
    """

    info: ScoreInfo = field(default=OF_RISK, kw_only=True)
    time: float
    values: Callable[[RiskAt], np.ndarray]  #: one number per subject and column, (n, q)
    whole: ClassVar[bool] = True
    scale: str | None = None  #: on which all subjects count, "localized" or "ipcw"
    weighted: bool = True  #: whether values are linear in the weights; else they do not move with C

    @cached_property
    def ipcw(self) -> bool:
        """Whether losses are divided by P(C > t)."""
        return self.scale != "localized"

    def losses(self, case: Case) -> np.ndarray:
        """The values at the time."""
        known = case.risk_at(self.time, self.scale)
        none = np.zeros_like(known.event)
        if self.weighted and self.values(replace(known, event=none, free=none)).any():
            raise InvalidInputError(
                "values: got some without a weight of what is known, expected multiples of known.event and "
                "known.free; weighted=False is for values that depend on neither."
            )
        return self.values(known)

    def counted(self, case: Case) -> np.ndarray | None:
        """The subjects that enter before the time and, where C is known for all, are followed beyond it."""
        return case.risk_at(self.time, self.scale).counted

    def counted_events(self, cases: list[Case]) -> tuple[np.ndarray, ...]:
        """The weights of events by the time, and of subjects known to be free of it, (n, 1) each."""
        known = cases[0].risk_at(self.time)
        return known.event[:, None], known.free[:, None]

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of every score of a single time."""
        if not self.weighted:
            return np.zeros((weight.shape[1], len(u), losses.shape[1]))
        times = np.full(losses.shape[1], self.time)
        return of_single_times(case.first(u), losses, weight, times, u, self.ipcw, case.entry)


def of_single_times(
    first: np.ndarray,
    losses: np.ndarray,
    weight: np.ndarray,
    times: np.ndarray,
    u: np.ndarray,
    ipcw: bool,
    entry: np.ndarray | None = None,
) -> np.ndarray:
    """A(u) of losses that depend on C at single times.

    ``first`` is the place in u of the first time that reaches the observed time of a subject, (n,).
    """
    sums = sums_at(first, weight, losses, len(u))
    if ipcw and entry is not None:  # only the hazard after its entry is in the weights of a subject
        since = sums_at(np.searchsorted(u, entry, side="right"), weight, losses, len(u))
        return up_to(sums - since, times, u, ipcw=False)
    return up_to(sums, times, u, ipcw)


def up_to(sums: np.ndarray, times: np.ndarray, u: np.ndarray, ipcw: bool) -> np.ndarray:
    """A(u), (m, J, q), from sums (m, J + 1, q) over the subjects whose time u_j is the first to reach."""
    A = np.cumsum(sums, axis=1)
    if ipcw:
        A -= A[:, -1:]
    return np.where(u[:, None] <= times, A[:, :-1], 0.0)


class Integrated(CaseScore):
    """A Brier score integrated over time; the derivative is taken cell by cell and interpolated.

    On the localized scale it is the CRPS, on the ipcw scale a mean over [0, horizon].
    """

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        edges, G = case.cells, case.C.marginal(0)
        middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        if not self.ipcw:
            A = up_to(case.brier_sums(weight), middle, edges, ipcw=False) @ width
        elif len(G) == 1 and case.entry is None:  # all subjects have the same inverse weight
            inverse = known_at(case.y, G, middle[None, :], "ipcw").factors()[1][0]
            mean_width = width * inverse / case.horizon
            A = up_to(case.brier_sums(weight), middle, edges, ipcw=True) @ mean_width
        else:
            brier = case.losses(SCORES["brier_score:ipcw"], middle)
            first = case.first(edges)
            A = of_single_times(first, brier, weight, middle, edges, True, case.entry) @ width / case.horizon
        return np.stack([np.interp(u, edges, column) for column in A])[:, :, None]


class Pinball(CaseScore):
    r"""The loss of an event holds the area under G between y and the quantile, divided by G(y-).

    After an event of another cause it holds the area beyond both of them, since min(T, C) = C. So A(u) is the
    sum of :math:`w(1-\alpha)\{a(q)-a(u)\}/G(y-)` over events with y <= u < q, where a is the area under G up
    to a time, and of :math:`w\alpha\{a(h)-a(\max(q,u))\}/G(y-)` over those who never have the event, y <= u.
    """

    def losses(self, case: Case) -> np.ndarray:
        """Losses (n, q) at the forecast quantiles."""
        levels, _ = as_columns(case.levels, "levels", case.inputs.y)
        return as_losses(pinball_of(case.inputs, levels, case.quantiles.astype(levels.dtype, copy=False)))

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        knots = u if len(u) <= KNOTS else u[np.linspace(0, len(u) - 1, KNOTS).astype(np.intp)]
        G, y, counted = case.C.marginal(0), case.time, to_numpy(case.y.time) <= case.horizon
        reached = np.broadcast_to(to_numpy(G.sf_left(y)), y.shape)
        event, never = (
            weight * over_reached(kind & counted, reached)[:, None]
            for kind in (to_numpy(case.y.event), case.never)
        )
        if len(G) == 1:
            return interpolated(self._under_one(case, G, event, never, knots), knots, u)
        A = np.zeros((weight.shape[1], len(knots), len(case.levels)))
        for start in range(0, len(y), CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(y)))
            A += self._under_many(case, rows, event[rows], never[rows], knots)
        return interpolated(A, knots, u)

    def _under_one(
        self, case: Case, G: Univariate, event: np.ndarray, never: np.ndarray, u: np.ndarray
    ) -> np.ndarray:
        """All subjects have one area: sums over those with y <= u, less those with max(y, q) <= u."""
        y, q, J = case.time, case.quantiles, len(u)
        a_q, a_u = (to_numpy(G.integrated_sf(0.0, t.reshape(1, -1))) for t in (q, u))
        a_q, began = a_q.reshape(q.shape), np.searchsorted(u, y)
        a_h = float(to_numpy(G.integrated_sf(0.0, case.horizon))[0])
        A, one = np.empty((event.shape[1], J, q.shape[1])), np.ones((len(y), 1))
        *areas, number = summed(began, event, np.append(a_q, one, axis=1), J)
        *others, number_of_others = summed(began, never, np.append(a_q, one, axis=1), J)
        for k, level in enumerate(case.levels):
            ended = np.searchsorted(u, np.maximum(y, q[:, k]))
            values = np.append(a_q[:, [k]], one, axis=1)
            area_after, number_after = summed(ended, event, values, J)
            A[:, :, k] = (1 - level) * (areas[k] - area_after - a_u[0] * (number - number_after))
            if case.never.any():
                area_after, number_after = summed(ended, never, values, J)
                passed = others[k] - area_after + a_u[0] * number_after
                A[:, :, k] += level * (a_h * number_of_others - passed)
        return np.where((u < case.horizon)[:, None], A, 0.0)  # beyond the horizon sums leave rounding errors

    def _under_many(
        self, case: Case, rows: np.ndarray, event: np.ndarray, never: np.ndarray, u: np.ndarray
    ) -> np.ndarray:
        """Every subject has its own area; the sums of some of them."""
        y, q, G = case.time[rows], case.quantiles[rows], case.C.marginal(0).take(rows)
        area_up_to_q, area_up_to_u = (to_numpy(G.integrated_sf(0.0, t)) for t in (q, u[None, :]))
        begun = y[:, None] <= u
        A = np.empty((event.shape[1], len(u), q.shape[1]))
        for k, level in enumerate(case.levels):
            beyond = area_up_to_q[:, k, None] - area_up_to_u
            A[:, :, k] = (1 - level) * event.T @ np.where(begun & (u < q[:, k, None]), beyond, 0.0)
            if never.any():
                area = to_numpy(G.integrated_sf(0.0, np.array([[case.horizon]])))
                rest = area - np.maximum(area_up_to_q[:, k, None], area_up_to_u)
                A[:, :, k] += level * never.T @ np.where(begun & (u < case.horizon), rest, 0.0)
        return A


def summed(at: np.ndarray, weight: np.ndarray, values: np.ndarray, J: int) -> np.ndarray:
    """Sums of ``values`` (n, q) under weights (n, m) over subjects up to each of J places, (q, m, J)."""
    return np.moveaxis(np.cumsum(sums_at(at, weight, values, J), axis=1)[:, :-1], 2, 0)


def interpolated(A: np.ndarray, knots: np.ndarray, u: np.ndarray) -> np.ndarray:
    """A (m, K, q) at the knots as (m, J, q) at u, linear in between."""
    if len(knots) == len(u):
        return A
    at = np.interp(u, knots, np.arange(len(knots)))
    low = np.minimum(at.astype(np.intp), len(knots) - 2)
    part = (at - low)[:, None]
    return (1 - part) * A[:, low] + part * A[:, low + 1]


class Numerical(CaseScore):
    r"""A score of which it is not known how it depends on the censoring distribution.

    Its derivative is numerical: the hazard of C is made larger by the factor 1 + epsilon in one block B of
    jumps after the other, and all losses are computed again. Within a block the derivative is constant,

    .. math:: a_i(u)\approx\frac{\ell_i(G_i^{B,\epsilon})-\ell_i(G_i)}{\epsilon\sum_{v\in B}
        \log\{1-d\Lambda_i(v)\}},\qquad u\in B.
    """

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q)."""
        losses, expected = super().losses(case), (len(case.y), len(self.at(case)))
        if losses.shape != expected:
            raise InvalidInputError(
                f"The score {self.name!r}: got losses of shape {losses.shape}, expected one per subject"
                f"{f' and {self.axis}, {expected}' if self.axis else f', ({expected[0]},)'}."
            )
        return losses

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), constant within each of the blocks."""
        A = np.zeros((weight.shape[1], len(u), losses.shape[1]))
        for block in np.array_split(np.nonzero(u < case.horizon)[0], BLOCKS):
            if len(block):
                slope = self._slope(case, losses, u[block[0]], u[block[-1]])
                A[:, block] = (weight.T @ slope)[:, None]
        return A

    def _slope(self, case: Case, losses: np.ndarray, first: float, last: float) -> np.ndarray:
        """a_i for the jumps from ``first`` to ``last``, (n, q)."""
        G = case.G
        change = np.log(to_numpy(G.sf(last))) - np.log(to_numpy(G.sf_left(first)))
        larger = with_larger_hazard(G, first, last, STEP)
        moved = self.losses(case.with_censoring(larger, case.coordinate))
        with np.errstate(invalid="ignore"):
            difference = moved - losses
        return np.where(np.isfinite(difference), difference, 0.0) / (STEP * change[:, None])


class Custom(Numerical):
    """A score that is given to a comparison as a function, ``f(y, forecast, censoring, horizon=h)``."""

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], outcome: str = "") -> Custom:
        """From its name and function."""
        return cls(ScoreInfo(name, function, name, formula="", reference=""), outcome=outcome)


def with_larger_hazard(G: Univariate, first: float, last: float, step: float) -> Univariate:
    r"""Step distributions with :math:`\log(1-d\Lambda)` larger by 1 + step at jumps from first to last."""
    if isinstance(G, ProportionalHazards):
        times, H = map(to_numpy, G.baseline())
        return ProportionalHazards(times, H[1:] + step * _gained(times, H[1:], first, last), G.risk)
    times, sf = (to_numpy(values) for values in G.steps())
    with np.errstate(divide="ignore"):
        gained = _gained(times, -np.log(sf), first, last)
    return Step(times, sf=sf * np.exp(-step * gained))


def _gained(times: np.ndarray, H: np.ndarray, first: float, last: float) -> np.ndarray:
    """What a cumulative hazard after each jump has gained at jumps from ``first`` to ``last``."""
    with np.errstate(invalid="ignore"):
        jump = np.diff(H, prepend=0.0, axis=-1)
    return np.cumsum(np.where((times >= first) & (times <= last), jump, 0.0), axis=-1)


#: How the mean moves with the censoring distribution, by what the entry of the registry says of it.
BY_USE: dict[str, type[CaseScore]] = {
    "none": WithoutCensoring,
    "at times": AtTimes,
    "integrated": Integrated,
    "area": Pinball,
    "": Numerical,
}


class CaseScores(Mapping[str, CaseScore]):
    """The scores of one event time by name, as they are in the registry when they are asked for."""

    def __getitem__(self, name: str) -> CaseScore:
        info = SCORES[name]
        if not info.univariate:
            raise KeyError(name)
        return BY_USE[info.uses_censoring](info)

    def __iter__(self) -> Iterator[str]:
        return (name for name, info in SCORES.items() if info.univariate)

    def __len__(self) -> int:
        return sum(info.univariate for info in SCORES.values())


CASE_SCORES = CaseScores()
#: What readers look for; the first decides the verdict of a comparison. "all" asks for every score.
DEFAULT_SCORES = ("integrated_brier_score:ipcw", "crps", "brier_score:ipcw", "log_score")


EXPECTED_NAMES = "names of scores, such as 'crps'"


def by_name(scores: Any, default: Iterable[str], others: Iterable[str]) -> dict[str, Any]:
    """The scores asked for: names with functions, or with None for scores of the library.

    "all" asks for those by default first, then for the others.
    """
    if isinstance(scores, str):
        scores = list(dict.fromkeys((*default, *others))) if scores == "all" else [scores]
    names = list(scores) if isinstance(scores, Mapping) else as_list(scores, "scores", EXPECTED_NAMES)
    if not all(isinstance(name, str) for name in names):
        raise InvalidTypeError(f"scores: got {names[:5]}, expected {EXPECTED_NAMES}.")
    if not names:
        raise InvalidInputError("scores: got none, expected at least one name, such as 'crps'.")
    return dict(scores) if isinstance(scores, Mapping) else dict.fromkeys(names)


def raise_no_case_score(name: str) -> NoReturn:
    """Raise an error that says which scores of one event time there are."""
    raise InvalidInputError(
        f"{no_such_score(name, CASE_SCORES)} A custom score is registered by censcore.scores.score, or "
        "given as {name: function}, with function(y, forecast, censoring, horizon=h) giving one loss per "
        "subject."
    )
