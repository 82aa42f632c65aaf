r"""Scores of several event times, or causes, together: log, energy, and Brier scores of joint events.

How their means move with the censoring distribution follows the formulas of
:mod:`censcore.evaluation.measures.case_scores`. For one C that all event times share, Y is the time at which
the loss is decided: the last time of a subject for the energy score. Where every event time has its C, there
is one derivative for each of them, with Y the time of that coordinate. A subject with an event at y, of any
cause, has the weight :math:`G(s)/G(y-)` at times s beyond y; so the derivatives hold for every cause, with
the loss of that cause. Only the log score of one cause depends on C where that of one event time does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_kind
from censcore.distributions import CauseEnsemble, Distribution, Ensemble, PointMass, TimeAndCause, Univariate
from censcore.distributions.joint_events import JointEvent
from censcore.distributions.random_draws import SubjectDraws
from censcore.evaluation.measures.case import Case, as_losses
from censcore.evaluation.measures.case_scores import (
    CASE_SCORES,
    CaseScore,
    Integrated,
    WithoutCensoring,
    losses_of,
    of_single_times,
)
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores import energy_score, log_score, registry
from censcore.scores.inputs.compatible_times import subject_keys
from censcore.scores.inputs.known_at import over_reached
from censcore.scores.rules.joint_brier import decided_outcome, event_rule, joint_weights

if TYPE_CHECKING:
    from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring

KNOTS = 24  # censoring times at which the energy score is taken for its derivative
DRAWS = 4  # lags of the ensemble, or draws of the other censoring times, at each of them
MEMBERS = 128  # at most, for derivatives
CHUNK = 512  # subjects at a time


# ---- all event times together --------------------------------------------------------------------------


class OfAllTimes(CaseScore):
    """A score of all event times that a subject is followed for."""

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for some event time."""
        return None if case.mask is None else np.any(case.mask, axis=1)


class JointLog(OfAllTimes, WithoutCensoring):
    """The log score of all event times that a subject is followed for."""

    def losses(self, case: Case) -> np.ndarray:
        """A time that is left out counts as censored at zero, which contributes zero."""
        if case.mask is None:
            return super().losses(case)
        y = case.y
        time, event = np.where(case.mask, y.time, 0.0), np.where(case.mask, y.event, False)
        cut = RightCensored(time, event).censor_at(case.horizon)
        return as_losses(-case.F.log_likelihood(cut.time, cut.event))


class Energy(OfAllTimes):
    r"""The energy score; its loss is an average of e(c), the loss at a known c, over C given the observation.

    With :math:`e_i^{(u)}` the loss under the horizon u,

    .. math:: \ell_i-\ell_i^{(u)}=\frac{1}{G_i(y_i-)}\int_u^hG_i(c)\,de_i(c),\qquad y_i\le u,

    for subjects whose C is unknown: all events seen, with :math:`y_i` the last of them, or event j seen where
    every event time has its C. The integral is taken with e linear between knots.
    """

    whole: ClassVar[bool] = True

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject, (n, 1)."""
        return as_losses(self._score(case, case.C, seed=case.seed))

    def _score(self, case: Case, C: Distribution, **options: Any) -> Any:
        known = {"mask": case.mask, "horizon": case.horizon, **dict(self.info.options), **options}
        return energy_score(case.scored, case.F, C, **known)

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), from the knots."""
        A = np.zeros((weight.shape[1], len(u), 1))
        before = u[u < case.horizon]
        if not len(before):
            return A
        spread = before[np.linspace(0, len(before) - 1, min(KNOTS, len(before))).astype(np.intp)]
        knots = np.append(np.unique(spread), case.horizon)
        y, event = decided_by(case)
        unknown = np.nonzero(event & (y <= case.horizon) & weight.any(axis=1))[0]
        at_knots = np.zeros((weight.shape[1], len(knots)))
        for start in range(0, len(unknown), CHUNK):
            chunk = unknown[start : start + CHUNK]
            at_knots += weight[chunk].T @ self._lost(case.take(chunk), y[chunk], knots)
        for m, values in enumerate(at_knots):
            A[m, : len(before), 0] = np.interp(before, knots, values)
        return A

    def _lost(self, case: Case, y: np.ndarray, knots: np.ndarray) -> np.ndarray:
        """What is lost under the horizon u, for each of the knots u, (n, knots)."""
        case = replace(case, F=_few_members(case))
        e = np.stack([self._at(case, np.maximum(u, y)) for u in knots], axis=1)
        return lost_beyond(case, y, e, knots)

    def _at(self, case: Case, c: np.ndarray) -> np.ndarray:
        """e(c), (n,): the loss at a known C, or at a known C of one coordinate."""
        C = case.with_censoring(PointMass(c), case.coordinate).C
        loss = self._score(case, C, pairs="lagged", draws=DRAWS, seed=case.seed)
        return to_numpy(loss).astype(np.float64)


def lost_beyond(case: Case, y: np.ndarray, e: np.ndarray, knots: np.ndarray) -> np.ndarray:
    r""":math:`\int_u^hG(c)\,de(c)/G(y-)` for each of the knots u >= y, the last of them h, (n, knots).

    ``e`` (n, knots) is the loss at a known C = c, linear between the knots; zero is given for u < y.
    """
    area = to_numpy(case.G.integrated_sf(0.0, knots[None, :]))
    pieces = np.diff(e, axis=1) * np.diff(area, axis=1) / np.diff(knots)
    beyond = np.cumsum(pieces[:, ::-1], axis=1)[:, ::-1]
    beyond = np.concatenate([beyond, np.zeros((len(y), 1))], axis=1)
    inverse = over_reached(y <= knots[-1], np.broadcast_to(to_numpy(case.G.sf_left(y)), y.shape))
    return np.where(y[:, None] <= knots, beyond * inverse[:, None], 0.0)


def _few_members(case: Case) -> Distribution:
    """The forecast as an ensemble of few members; a derivative averages over subjects, and needs no more."""
    F, n = case.F, len(case.y)
    if isinstance(F, CauseEnsemble):
        return F
    if not isinstance(F, Ensemble):
        m = MEMBERS * (n if len(F) == 1 else 1)
        draws = SubjectDraws(subject_keys(case.y, seed=case.seed), flat=len(F) == 1)
        if isinstance(F, TimeAndCause):
            return CauseEnsemble(*(to_numpy(part).reshape(n, MEMBERS) for part in F.sample(m, draws)))
        return Ensemble(to_numpy(F.sample(m, draws)).reshape(n, MEMBERS, case.y.k))
    if F.m <= MEMBERS or F.weights is not None:
        return F
    chosen = np.random.default_rng(case.seed).permutation(F.m)[:MEMBERS]
    return Ensemble(F.samples[:, chosen])


def decided_by(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The last time of each subject, or the time of one coordinate, and whether it was an event, (n,)."""
    y, j = case.y, case.coordinate
    if y.time.ndim > 1:
        y = decided_outcome(y, "all") if j is None else y.marginal(j)
    return to_numpy(y.time), to_numpy(y.event)


class LogOfCause(CaseScore):
    r"""The log score of one cause: after an event of another one, the mean of :math:`-\log P(T_j>C)`.

    At a known C = c it is :math:`e(c)=-\log P(T_j>c)`, and as for every average over C given C >= y

    .. math:: \ell-\ell^{(u)}=\frac1{G(y-)}\int_u^hG(c)\,de(c),\qquad y\le u.
    """

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u) of the subjects with an event of another cause."""
        rows = np.nonzero(case.never & (to_numpy(case.y.time) <= case.horizon))[0]
        if not len(rows):
            return np.zeros((weight.shape[1], len(u), 1))
        knots, others = case.cells, case.take(rows)
        log_survival = to_numpy(others.F.marginal(0).logsf(knots[None, :]))
        e = -np.broadcast_to(log_survival, (len(rows), len(knots)))
        A = weight[rows].T @ lost_beyond(others, others.time, e, knots)
        return np.stack([np.interp(u, knots, column, right=0.0) for column in A])[:, :, None]


def of_one_cause(score: CaseScore) -> CaseScore:
    """Return a score of one event time as that of one cause, of which only the log score differs."""
    return LogOfCause(score.info) if score.info.function is log_score else score


# ---- joint events --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventBrier(CaseScore):
    """The Brier score of a joint event, over the subjects who are followed for all event times."""

    whole: ClassVar[bool] = True

    event: str | JointEvent
    functions: ClassVar[dict[str, str]] = {"brier_score": "localized", "brier_score:ipcw": "ipcw"}

    @classmethod
    def of(cls, name: str, event_name: str, event: str | JointEvent) -> EventBrier:
        """The Brier score with this name, on its scale."""
        of_one, joint = registry.SCORES[name], registry.SCORES["joint_brier_score"]
        options = (("event", event), ("scale", cls.functions[name]))
        info = replace(of_one, function=joint.function, formula=joint.formula, options=options)
        info = replace(info, name=f"{name}[{event_name}]", title=f"{of_one.title}, {event_name}")
        return cls(info, event, outcome=event_name)

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for all event times."""
        return None if case.mask is None else np.all(case.mask, axis=1)

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and time, (n, q)."""
        options = {"horizon": case.horizon, "seed": case.seed, **dict(self.info.options)}
        return as_losses(self.info.function(case.y, case.F, case.C, case.times, **options))

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of every score of a single time."""
        y = np.minimum(self.decided(case)[0], case.horizon)
        places = np.searchsorted(u, y)
        return of_single_times(places, losses, weight, case.times, u, self.ipcw, case.entry)

    def decided(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """The time that decides the weight of a subject, and whether it was an event."""
        if case.coordinate is not None:
            return decided_by(case)
        outcome = decided_outcome(case.y, self.event)
        return to_numpy(outcome.time), to_numpy(outcome.event)

    def counted_events(self, cases: list[Case]) -> tuple[np.ndarray, ...]:
        """Those who are known to have had the event by t, and not to have had it."""
        case, rule = cases[0], event_rule(self.event)
        known = to_numpy(joint_weights(case.y, case.C, case.times[None, :], self.event))
        counted = self.counted(case)
        known = known if counted is None else known * counted[:, None]
        time, event = to_numpy(case.y.time), to_numpy(case.y.event)
        happened = np.column_stack(
            [rule(np.where(event & (time <= t), time, np.inf)) for t in case.times]
        ).astype(bool)
        return known * happened, known * ~happened


# ---- one part of the outcome ---------------------------------------------------------------------------


@dataclass(frozen=True)
class View(ABC):
    """A part of the outcome that is scored as if it were the only one."""

    name: str  #: for tables, ``comparison.of(name)`` and names of scores, ``crps[name]``

    @abstractmethod
    def of(self, case: Case) -> Case:
        """The outcome of the view, and the forecast's part; ``case.of(view)`` makes it once."""

    @property
    def part(self) -> int:
        """The number of its times among the parts of the kind."""
        return 0

    def counted(self, case: Case) -> np.ndarray | None:
        """The subjects who count, (n,); None for all."""
        return None

    def depends_on(self, coordinate: int | None) -> bool:
        """Whether scores of the view depend on the censoring time of an event time; None for one of all."""
        return True

    def censoring(self, resolved: ResolvedCensoring) -> ResolvedCensoring:
        """The censoring distribution of the view."""
        return resolved


def view_called(name: str, views: Sequence[View]) -> View:
    """Return the view with a name, which must be one of those of the outcome."""
    by_names = {view.name: view for view in views}
    expected = f"one of {', '.join(by_names)}" if by_names else "none: there is one event time"
    check_kind(name, "outcome", str, expected)
    if name not in by_names:
        raise InvalidInputError(f"outcome: got {name!r}, expected {expected}.")
    return by_names[name]


@dataclass(frozen=True)
class OfView(CaseScore):
    """A score of one view, over the subjects who count in it."""

    whole: ClassVar[bool] = True  # the view has parts of its own

    base: CaseScore
    view: View

    @classmethod
    def score(cls, base: CaseScore, view: View, title: str | None = None, **others: Any) -> Self:
        """The score, with the view in its name and title."""
        title = base.info.title if title is None else title
        info = replace(base.info, name=f"{base.info.name}[{view.name}]", title=f"{title}, {view.name}")
        return cls(info, base, view, outcome=view.name, **others)

    def counted(self, case: Case) -> np.ndarray | None:
        """Those of the view."""
        return self.view.counted(case)

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q); zero for subjects who do not count."""
        counted = self.counted(case)
        if counted is None:
            return losses_of_view(self.base, case, self.view)
        rows, losses = np.nonzero(counted)[0], np.zeros((len(case.y), len(self.at(case))))
        if len(rows):
            losses[rows] = losses_of(self.base, case.take(rows).of(self.view))
        return losses

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of the score, if the censoring time of the view moves."""
        counted = self.counted(case)
        if not self.view.depends_on(case.coordinate) or (counted is not None and not counted.any()):
            return np.zeros((weight.shape[1], len(u), losses.shape[1]))
        if counted is not None:
            case, losses, weight = case.take(np.nonzero(counted)[0]), losses[counted], weight[counted]
        return self.base.derivative(case.of(self.view), losses, weight, u)

    def events(self, case: Case) -> tuple[RightCensored, Univariate]:
        """Those of the view."""
        return self.base.events(case.of(self.view))

    def counted_events(self, cases: list[Case]) -> tuple[np.ndarray, ...]:
        """Those of the view."""
        counted = self.counted(cases[0])
        events = self.base.counted_events([case.of(self.view) for case in cases])
        return events if counted is None else tuple(who * counted[:, None] for who in events)


def plain(score: CaseScore) -> CaseScore:
    """Return a score of one view without its name; the Brier score of a joint event is that of its time."""
    if isinstance(score, OfView):
        return score.base
    return CASE_SCORES.get(score.name.partition("[")[0], score)


def losses_of_view(score: CaseScore, case: Case, view: View) -> np.ndarray:
    """The losses of a score of one view; made once, since scores of all causes are sums of them."""
    part, key = case.of(view), ("losses", score.name)
    if key not in part._made:
        part._made[key] = losses_of(score, part)
    losses: np.ndarray = part._made[key]
    return losses


@dataclass(frozen=True)
class OverCauses(OfView):
    """Half the sum of a score over any cause and each of them, which is that of all causes together."""

    parts: tuple[View, ...] = ()  #: any cause, and each

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q)."""
        return np.sum([losses_of_view(self.base, case, part) for part in self.parts], axis=0) / 2

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of integrated Brier scores is half the sum of those of the parts, whatever their losses."""
        if not isinstance(self.base, Integrated):
            return super().derivative(case, losses, weight, u)
        each = [self.base.derivative(case.of(part), losses, weight, u) for part in self.parts]
        return np.sum(each, axis=0) / 2
