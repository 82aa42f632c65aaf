"""Several event times per subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_list, as_names
from censcore.distributions import Distribution, Ensemble, Independent, Univariate
from censcore.distributions.joint_events import JointEvent, first_is
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.estimators import KaplanMeier
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.kinds.kind import Kind
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore
from censcore.evaluation.measures.joint_scores import Energy, EventBrier, JointLog, OfView, View
from censcore.evaluation.sample import Sample
from censcore.evaluation.sensitivity.diagnostic import (
    CensoringDiagnostic,
    JointCensoringDiagnostic,
    given_covariates,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.outcomes import RightCensored
from censcore.outcomes.ended_follow_up import check_no_event_ends_follow_up
from censcore.scores import registry
from censcore.scores.inputs.compatible_times import subject_keys
from censcore.scores.inputs.scoring_inputs import left_out
from censcore.scores.rules.joint_brier import decided_outcome

JOINT = "joint"
MEMBERS = 1024  # of the time by which all events have happened, for forecasts that are no ensemble


@dataclass(frozen=True)
class TimeView(View):
    """One of the event times, j, of the subjects who are followed for it."""

    j: int

    def of(self, case: Case) -> Case:
        """The event time alone."""
        C = case.C.marginal(self.j if case.C.k > 1 else 0)
        part = case.of_forecasts(lambda F: F.marginal(self.j))
        return replace(part, y=case.y.marginal(self.j), C=C, mask=None, coordinate=None)

    @property
    def part(self) -> int:
        """Its number."""
        return self.j

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for it."""
        return None if case.mask is None else case.mask[:, self.j]

    def depends_on(self, coordinate: int | None) -> bool:
        """On its own censoring time, and on one that all share."""
        return coordinate in (None, self.j)

    def censoring(self, resolved: ResolvedCensoring) -> ResolvedCensoring:
        """That of the event time, where each has one."""
        return resolved.of_time(self.j)


@dataclass(frozen=True)
class EventView(View):
    """The earliest ("either") or the last ("all") of the event times, under one C that all share."""

    event: str

    def of(self, case: Case) -> Case:
        """The earliest or last event time, of the subjects who are followed for all of them."""
        y = case.y.first() if self.event == "either" else case.y.last()
        part = case.of_forecasts(lambda F: F.first() if self.event == "either" else _last(F, case))
        return replace(part, y=y, mask=None, coordinate=None)

    def counted(self, case: Case) -> np.ndarray | None:
        """Subjects who are followed for all event times."""
        return None if case.mask is None else np.all(case.mask, axis=1)


def _last(F: Distribution, case: Case) -> Ensemble:
    """The distribution of the last event time: that of the members, or of draws."""
    if isinstance(F, Ensemble):
        return Ensemble(to_numpy(F.samples).max(axis=2), F.weights)
    keys = keys_of([np.zeros(1)], case.seed) if len(F) == 1 else subject_keys(case.y, seed=case.seed)
    return Ensemble(to_numpy(F.sample(MEMBERS, SubjectDraws(keys))).max(axis=2))


@dataclass(frozen=True, eq=False)
class SeveralTimes(Kind):
    """k event times, (n, k); a score is of all of them together ("joint"), of one, or of a joint event.

    Where a subject is not followed for an event time, y has an event at time zero.
    """

    names: tuple[str, ...] = ()
    #: Joint events by name: "either", "all" or a function of times.
    events: dict[str, str | JointEvent] = field(default_factory=dict)
    mask: np.ndarray | None = None  #: false where a subject is not followed for an event time, (n, k)
    shared: bool = True  #: whether one C serves all event times
    masked: bool = False  #: whether a mask was passed, be it true everywhere

    whole: ClassVar[str] = JOINT
    whole_of: ClassVar[str] = "event times"
    default_scores: ClassVar[tuple[str, ...]] = ("energy_score", "log_score", "crps", "brier_score")

    # ---- the outcome -----------------------------------------------------------------------------------

    @classmethod
    def settle(cls, asked: Asked) -> tuple[Self, Asked]:
        """Names and joint events by default, and who is followed for what."""
        y = cls.read_outcome(asked.sample.y)
        names = y.names if asked.names is None else asked.names
        names = [f"event {j + 1}" for j in range(y.k)] if names is None else names
        names = as_names(names, y.k, of="event time")
        y, mask = cls._followed_for(y, asked.sample.mask, "mask")
        cls._check(y, names, "y", mask)
        events, masked = cls._joint_events(asked.events, names, y), asked.sample.mask is not None
        return cls(y, names, events, mask, masked=masked), asked

    @staticmethod
    def _check(y: Any, names: tuple[str, ...], of: str, mask: np.ndarray | None) -> None:
        check_no_event_ends_follow_up(y, mask, names=names, of=of)

    @staticmethod
    def _followed_for(y: Any, mask: Any, name: str) -> tuple[Any, np.ndarray | None]:
        """The outcome, with an event at time zero where a subject is not followed, and the mask."""
        if mask is None:
            return y, None
        try:
            y, _, followed = left_out(y, "not needed", mask)
        except InvalidInputError as error:
            raise InvalidInputError(f"{name}: {error}") from error
        counted = np.asarray(to_numpy(followed))
        if counted.all():
            return y, None
        if y.has_delayed_entry:
            raise UnsupportedOutcomeError(
                f"{name}: got event times that are not followed, of subjects with entries. What is known of "
                "those times at the entry is not known to a comparison: leave such subjects out, or compare "
                "y.marginal(j) with forecast.given_survival(y.entry).marginal(j)."
            )
        return y, counted

    def read_training(self, train: Sample, notes: list[str]) -> Sample:
        """As many event times, and an event at time zero where a subject is not followed."""
        train = train.checked(self.read_outcome)
        if train.y.k != self.y.k:
            raise InvalidInputError(f"train: got outcomes of {train.y.k} event times, expected {self.y.k}.")
        mask = train.mask
        if mask is None and self.masked:
            if train.same_as(self.y):
                mask = self.mask
            else:
                notes.append(
                    "The scored subjects have a mask, the training subjects have none: pass train=Sample(X, "
                    "y, mask=) if some of their event times were not followed either."
                )
        y, mask = self._followed_for(train.y, mask, "train: mask")
        self._check(y, self.names, "train", mask)
        return replace(train, y=y, mask=mask)

    def parts(self, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Each event time."""
        time, event = to_numpy(y.time), to_numpy(y.event)
        return [(time[:, j], event[:, j]) for j in range(y.k)]

    def of_parts(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], entry: Any) -> Any:
        """Subjects with all event times."""
        time, event = (np.column_stack(columns) for columns in zip(*parts, strict=True))
        return RightCensored(time, event, entry=entry)

    # ---- forecasts -------------------------------------------------------------------------------------

    def check(self, name: str, F: Any) -> Any:
        """The forecast, if it is of as many event times."""
        if F.k != self.y.k:
            raise InvalidInputError(
                f"Forecast {name!r}: got a distribution of {F.k} event times, expected {self.y.k}, as the "
                "outcome has. Forecasts of single times are joined by Independent([F_1, ..., F_k])."
            )
        return F

    def reference_model(self, train: Any) -> Any:
        """Independent Kaplan-Meier curves."""
        return kaplan_meier_curves

    def under(self, C: Distribution) -> Self:
        """With or without one C that all event times share."""
        return replace(self, shared=C.k == 1)

    # ---- what is scored --------------------------------------------------------------------------------

    @staticmethod
    def _joint_events(events: Any, names: tuple[str, ...], y: Any) -> dict[str, str | JointEvent]:
        """Joint events as asked for, or either, all, and each as the first."""
        first, last = ("either", "both") if len(names) == 2 else ("any", "all")
        known: dict[str, str | JointEvent] = {first: "either", last: "all"}
        known |= {f"{name} first": first_is(j) for j, name in enumerate(names)}
        if events is None:
            return known if len(names) > 1 else {}
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
        clash = sorted(set(chosen) & {*names, JOINT})
        if clash:
            raise InvalidInputError(f"events: got the names {clash}, which are those of event times.")
        return chosen

    @property
    def views(self) -> Sequence[View]:
        """Each event time; the earliest and the last where one C serves all."""
        single = [EventView(name, e) for name, e in self.events.items() if isinstance(e, str)]
        return [*(TimeView(name, j) for j, name in enumerate(self.names)), *(single if self.shared else [])]

    @property
    def outcomes(self) -> list[str]:
        """All times jointly, each time, each joint event."""
        return [JOINT, *self.names, *self.events]

    @property
    def ranked(self) -> list[str]:
        """The event times."""
        return list(self.names)

    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """Of all event times together, of each of them, and of every joint event.

        The score of all event times is meant where there is one, and no outcome is named.
        """
        possible = _of_all(base)
        if possible and not named:
            return possible
        if base in CASE_SCORES:
            possible += [OfView.score(CASE_SCORES[base], TimeView(n, j)) for j, n in enumerate(self.names)]
        if base in EventBrier.functions:
            possible += [EventBrier.of(base, event, rule) for event, rule in self.events.items()]
        return possible

    def case(self, F: Any, C: Distribution, *where: Any, **beside: Any) -> Case:
        """With the mask of subjects who are not followed for all event times."""
        return super().case(F, C, *where, mask=self.mask, **beside)

    def pooled(self, sample: Sample) -> Sample:
        """All event times as if of different subjects.

        An event at time zero, such as one that a subject is not followed for, is left out.
        """
        time, event = (to_numpy(part).reshape(-1) for part in (sample.y.time, sample.y.event))
        weight = None if sample.weight is None else np.repeat(sample.weight, sample.y.k)
        used = np.nonzero(~event | (time > 0))[0]
        return Sample(None, RightCensored(time, event), weight).take(used)

    # ---- reporting -------------------------------------------------------------------------------------

    def settings(self, count: np.ndarray | None = None) -> dict[str, Any]:
        """Events by event time, and who is followed for them."""
        event = to_numpy(self.y.event)
        event = event if self.mask is None else event & self.mask
        count = np.ones(len(event), dtype=np.intp) if count is None else count.astype(np.intp)
        settings: dict[str, Any] = {"events": int(count @ event.sum(axis=1)), "event times": list(self.names)}
        settings["events by event time"] = (count @ event).tolist()
        if self.mask is not None:
            settings["subjects followed for each"] = self.mask.sum(axis=0).tolist()
        settings["censoring"] = "one C shared by all event times" if self.shared else "one C per event time"
        return settings

    def diagnostic(
        self, case: Case, resolved: ResolvedCensoring, diagnose: Callable[..., CensoringDiagnostic]
    ) -> Any:
        """One for every censoring time."""
        C, conditional = resolved.distribution, given_covariates(resolved.distribution)
        if C.k == 1:
            return replace(diagnose(decided_outcome(case.y, "all"), C), conditional=conditional)
        parts = {name: diagnose(case.y.marginal(j), C.marginal(j)) for j, name in enumerate(self.names)}
        return JointCensoringDiagnostic(
            {name: replace(part, conditional=conditional) for name, part in parts.items()}
        )

    def pictured(self, picture: str, scored: set[str]) -> list[str]:
        """One picture per event time, and of "either" and "both" where they are scored."""
        if picture == "differences" or (picture == "censoring" and self.shared):
            return [""]
        events = [view.name for view in self.views if isinstance(view, EventView)]
        return [*self.names, *(name for name in events if picture == "brier" and name in scored)]


def _of_all(name: str) -> list[CaseScore]:
    """The score of all event times together, if there is one."""
    info = registry.SCORES.get(name)
    if info is None or not info.joint or info.needs_times:
        return []
    return [(JointLog if info.univariate else Energy)(info, outcome=JOINT)]


def kaplan_meier_curves(
    X: Any, y: RightCensored, X_test: Any, sample_weight: Any = None, mask: Any = None
) -> Independent:
    """The Kaplan-Meier curve of every event time, from the subjects who are followed for it."""
    curves: list[Univariate] = []
    for j in range(y.k):
        rows = np.arange(len(y)) if mask is None or not mask[:, j].any() else np.nonzero(mask[:, j])[0]
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        curves.append(KaplanMeier().fit(None, y.marginal(j).take(rows), weight).predict_distribution())
    return Independent(curves)
