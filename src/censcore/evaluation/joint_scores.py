r"""Scores of joint forecasts in a comparison: of all event times together, of each, and of joint events.

A comparison of k event times holds one list of scores, each of one *outcome*: all times together ("joint"),
one of them, or a joint event. Names say which: ``energy_score``, ``crps[death]``, ``brier_score[either]``.

How their means move with the censoring distribution follows the formulas of
:mod:`censcore.evaluation.case_scores`. For one C that all event times share, Y is the time at which the loss
is decided: the last time of a subject for the energy score. Where every event time has its C, there is one
derivative for each of them, with Y the time of that coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_list, as_names
from censcore.distributions import Distribution, Ensemble, PointMass
from censcore.distributions.joint_events import JointEvent, first_is
from censcore.distributions.random_draws import SubjectDraws
from censcore.evaluation.case import Case, as_losses
from censcore.evaluation.case_scores import (
    CASE_SCORES,
    CaseScore,
    Custom,
    WithoutCensoring,
    by_name,
    of_single_times,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError, NoDensityError
from censcore.outcomes import RightCensored
from censcore.scores import energy_score, registry
from censcore.scores.compatible_times import subject_keys
from censcore.scores.joint_brier import decided_outcome
from censcore.scores.known_at import over_reached
from censcore.scores.registry import ScoreInfo

__all__ = [
    "JOINT",
    "MEMBERS",
    "Energy",
    "EventBrier",
    "JointNames",
    "OfCoordinate",
    "joint_scores",
    "lost_beyond",
]

JOINT = "joint"
DEFAULT_JOINT_SCORES = ("energy_score", "log_score", "crps", "brier_score")
KNOTS = 24  # censoring times at which the energy score is taken for its derivative
DRAWS = 4  # lags of the ensemble, or draws of the other censoring times, at each of them
MEMBERS = 128  # at most, for derivatives
CHUNK = 512  # subjects at a time


@dataclass(frozen=True)
class JointNames:
    """Names of the event times, and the joint events by name: "either", "all" or a function of times.

    ``terminal`` is the number of the event that prevents the others, None where there is none.
    """

    times: tuple[str, ...]
    events: dict[str, str | JointEvent]
    terminal: int | None = None

    @classmethod
    def of(cls, names: Any, events: Any, k: int, terminal: int | None = None) -> JointNames:
        """Names as given, or by number; events as given, or either, all, and each as the first."""
        numbered = [f"event {j + 1}" for j in range(k)]
        times = as_names(numbered if names is None else names, k, of="event time")
        known = cls._known(times)
        if events is None:
            if k == 2 and terminal is not None:  # the other one is first wherever it happens
                del known[f"{times[1 - terminal]} first"]
            return cls(times, known if k > 1 else {}, terminal)
        if isinstance(events, str):
            events = [events]
        if not isinstance(events, Mapping):
            events = dict.fromkeys(map(str, as_list(events, "events", "names of joint events")))
        chosen: dict[str, str | JointEvent] = {}
        for name, event in events.items():
            if event is not None and not callable(event) and event not in ("either", "all"):
                raise InvalidTypeError(
                    f"events: got {type(event).__name__} for {name!r}, expected a function of times (..., "
                    "k), such as in_order(0, 1)."
                )
            if event is None and name not in known:
                raise InvalidInputError(
                    f"events: got {name!r}, expected some of {', '.join(map(repr, known))}, or a dict of "
                    "functions of times (..., k), such as {'relapse, then death': in_order(0, 1)}."
                )
            chosen[str(name)] = known[name] if event is None else event
        clash = sorted(set(chosen) & {*times, JOINT})
        if clash:
            raise InvalidInputError(f"events: got the names {clash}, which are those of event times.")
        return cls(times, chosen, terminal)

    @staticmethod
    def _known(times: tuple[str, ...]) -> dict[str, str | JointEvent]:
        some, everything = ("either", "both") if len(times) == 2 else ("any", "all")
        order = {f"{name} first": first_is(j) for j, name in enumerate(times)}
        return {some: "either", everything: "all", **order}


# ---- all event times together --------------------------------------------------------------------------


class OfAllTimes(CaseScore):
    """A score of all event times that a subject is followed for."""

    @property
    def outcome(self) -> str:
        """All event times together."""
        return JOINT

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for some event time."""
        return None if case.mask is None else np.any(case.mask, axis=1)


class JointLog(OfAllTimes, WithoutCensoring):
    """The log score of all event times that a subject is followed for."""

    def losses(self, case: Case) -> np.ndarray:
        """A time that is left out counts as censored at zero, which says nothing."""
        if case.mask is None:
            return super().losses(case)
        y = case.y
        time, event = np.where(case.mask, y.time, 0.0), np.where(case.mask, y.event, False)
        if not getattr(case.F, "has_density", False):
            raise NoDensityError(f"{type(case.F).__name__} has no density, so it has no log score.")
        cut = RightCensored(time, event).censor_at(case.horizon)
        return as_losses(-case.F.log_likelihood(cut.time, cut.event))


class Energy(OfAllTimes):
    r"""The energy score; its loss is an average of e(c), the loss at a known c, over C given the observation.

    With :math:`e_i^{(u)}` the loss under the horizon u,

    .. math:: \ell_i-\ell_i^{(u)}=\frac{1}{G_i(y_i-)}\int_u^hG_i(c)\,de_i(c),\qquad y_i\le u,

    for subjects whose C is unknown: all events seen, with :math:`y_i` the last of them, or event j seen where
    every event time has its C. The integral is taken with e linear between knots.
    """

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject, (n, 1)."""
        return as_losses(self._score(case, case.C, seed=case.seed))

    def _score(self, case: Case, C: Distribution, **options: Any) -> Any:
        given = {"mask": case.mask, "horizon": case.horizon, **dict(self.info.options), **options}
        return energy_score(case.y, case.F, C, **given)

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), from the knots."""
        A = np.zeros((weight.shape[1], len(u), 1))
        before = u[u < case.horizon]
        if not len(before):
            return A
        spread = before[np.linspace(0, len(before) - 1, min(KNOTS, len(before))).astype(np.intp)]
        knots = np.append(np.unique(spread), case.horizon)
        y, seen = self._decided(case)
        unknown = np.nonzero(seen & (y <= case.horizon) & weight.any(axis=1))[0]
        at_knots = np.zeros((weight.shape[1], len(knots)))
        for start in range(0, len(unknown), CHUNK):
            some = unknown[start : start + CHUNK]
            at_knots += weight[some].T @ self._lost(case.take(some), y[some], knots)
        for m, values in enumerate(at_knots):
            A[m, : len(before), 0] = np.interp(before, knots, values)
        return A

    def _lost(self, case: Case, y: np.ndarray, knots: np.ndarray) -> np.ndarray:
        """What is lost under the horizon u, for each of the knots u, (n, knots)."""
        case = replace(case, F=self._few(case))
        e = np.stack([self._at(case, np.maximum(u, y)) for u in knots], axis=1)
        return lost_beyond(case, y, e, knots)

    def _decided(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """The time from which C is unknown, and whether it is, (n,) each."""
        return decided_by(case)

    def _few(self, case: Case) -> Distribution:
        """The forecast by few members."""
        return _few_members(case)

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


def _few_members(case: Case) -> Ensemble:
    """The forecast as an ensemble of few members; a derivative averages over subjects, and needs no more."""
    F, n = case.F, len(case.y)
    if not isinstance(F, Ensemble):
        m = MEMBERS * (n if len(F) == 1 else 1)
        draws = SubjectDraws(subject_keys(case.y, seed=case.seed), flat=len(F) == 1)
        return Ensemble(to_numpy(F.sample(m, draws)).reshape(n, MEMBERS, case.y.k))
    if F.m <= MEMBERS or F.weights is not None:
        return F
    chosen = np.random.default_rng(case.seed).permutation(F.m)[:MEMBERS]
    return Ensemble(F.samples[:, chosen])


def decided_by(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The last time of each subject, or the time of one coordinate, and whether it was an event, (n,)."""
    j = case.coordinate
    seen = decided_outcome(case.y, "all") if j is None else case.y.marginal(j)
    return to_numpy(seen.time), to_numpy(seen.event)


class JointCustom(Custom):
    """A custom score of all event times."""

    @property
    def outcome(self) -> str:
        """All event times together."""
        return JOINT


# ---- one of the event times ----------------------------------------------------------------------------


@dataclass(frozen=True)
class OfCoordinate(CaseScore):
    """A score of one event time, over the subjects who are followed for it."""

    base: CaseScore
    j: int
    event_time: str

    @classmethod
    def of(cls, base: CaseScore, j: int, name: str) -> OfCoordinate:
        """A score of the event time with this number and name."""
        return cls(_renamed(base.info, name), base, j, name)

    @property
    def outcome(self) -> str:
        """Name of the event time."""
        return self.event_time

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for it."""
        return None if case.mask is None else case.mask[:, self.j]

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q); zero for subjects that are not followed."""
        rows = self._rows(case)
        if rows is None:
            return self.base.losses(case.marginal(self.j))
        found = np.zeros((len(case.y), len(self.at(case))))
        if len(rows):
            found[rows] = self.base.losses(case.take(rows).marginal(self.j))
        return found

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of the score, if the C of this event time moves."""
        rows = self._rows(case)
        if case.coordinate not in (None, self.j) or (rows is not None and not len(rows)):
            return np.zeros((weight.shape[1], len(u), losses.shape[1]))
        if rows is not None:
            case, losses, weight = case.take(rows), losses[rows], weight[rows]
        return self.base.derivative(case.marginal(self.j), losses, weight, u)

    def _rows(self, case: Case) -> np.ndarray | None:
        return None if case.mask is None else np.nonzero(case.mask[:, self.j])[0]


# ---- joint events --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventBrier(CaseScore):
    """The Brier score of a joint event, over the subjects who are followed for all event times."""

    event: str | JointEvent
    event_name: str
    functions: ClassVar[dict[str, str]] = {"brier_score": "localized", "brier_score:ipcw": "ipcw"}

    @classmethod
    def of(cls, name: str, event_name: str, event: str | JointEvent) -> EventBrier:
        """The Brier score with this name, on its scale."""
        of_one, joint = registry.SCORES[name], registry.SCORES["joint_brier_score"]
        options = (("event", event), ("scale", cls.functions[name]))
        info = replace(of_one, function=joint.function, formula=joint.formula, options=options)
        return cls(_renamed(info, event_name), event, event_name)

    @property
    def outcome(self) -> str:
        """Name of the joint event."""
        return self.event_name

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for all event times."""
        return None if case.mask is None else np.all(case.mask, axis=1)

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and time, (n, q)."""
        options = dict(self.info.options)
        return as_losses(
            self.info.function(
                case.y, case.F, case.C, case.times, horizon=case.horizon, seed=case.seed, **options
            )
        )

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of every score of a single time."""
        y = np.minimum(self.decided(case)[0], case.horizon)
        places = np.searchsorted(u, y)
        return of_single_times(places, losses, weight, case.times, u, self.ipcw, case.entry)

    def decided(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """The time that decides the weight of a subject, and whether it was an event."""
        if case.coordinate is not None:
            return decided_by(case)
        seen = decided_outcome(case.y, self.event)
        return to_numpy(seen.time), to_numpy(seen.event)


# ---- by name -------------------------------------------------------------------------------------------


def _renamed(info: ScoreInfo, outcome: str) -> ScoreInfo:
    return replace(info, name=f"{info.name}[{outcome}]", title=f"{info.title}, {outcome}")


def _of_all(name: str) -> CaseScore | None:
    """A score of all event times together."""
    info = registry.SCORES.get(name)
    if info is None or not info.joint or info.needs_times:
        return None
    return JointLog(info) if info.univariate else Energy(info)


def joint_scores(scores: Any, names: JointNames) -> list[CaseScore]:
    """Scores by name; a name without an outcome stands for every outcome that has the score.

    ``"energy_score"`` and ``"log_score"`` are of all event times, ``"log_score[death]"`` of one of them,
    ``"crps"`` of each of them, ``"brier_score"`` of each of them and of every joint event.
    """
    if scores is None:
        scores = DEFAULT_JOINT_SCORES
    if isinstance(scores, str):
        scores = list(dict.fromkeys((*DEFAULT_JOINT_SCORES, *CASE_SCORES))) if scores == "all" else [scores]
    given = by_name(scores)
    found: list[CaseScore] = []
    for name, function in given.items():
        if callable(function):
            found.append(JointCustom.of(name, function))
        else:
            found += _named(str(name), names)
    if not found:
        raise InvalidInputError("scores: got none, expected at least one name, such as 'crps'.")
    return list({score.name: score for score in found}.values())


def _named(name: str, names: JointNames) -> Sequence[CaseScore]:
    base, _, outcome = name.partition("[")
    outcome = outcome.removesuffix("]")
    whole = _of_all(base)
    if whole is not None and outcome in ("", JOINT):
        return [whole]
    found: list[CaseScore] = []
    if base in CASE_SCORES:
        found += [OfCoordinate.of(CASE_SCORES[base], j, time) for j, time in enumerate(names.times)]
    if base in EventBrier.functions:
        found += [EventBrier.of(base, event, rule) for event, rule in names.events.items()]
    chosen = [score for score in found if outcome in ("", score.outcome)]
    if not chosen:
        raise InvalidInputError(_no_such_score(name, names))
    return chosen


def _no_such_score(name: str, names: JointNames) -> str:
    whole = [score for score in registry.SCORES if _of_all(score) is not None]
    briers, events = ", ".join(EventBrier.functions), ", ".join(names.events) or "joint events"
    return (
        f"There is no score called {name!r} for these event times. There are {', '.join(whole)} of all of "
        f"them together; {', '.join(CASE_SCORES)} of each, such as 'crps[{names.times[0]}]', with one of "
        f"{', '.join(names.times)}; and {briers} of {events}. A custom score is given as {{name: function}}, "
        "with function(y, forecast, censoring, horizon=h) giving one loss per subject."
    )
