"""The result of a comparison of joint forecasts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble, Univariate
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic, given_covariates
from censcore.evaluation.discrimination import Measure
from censcore.evaluation.inference import effective_number
from censcore.evaluation.joint_scores import JOINT, EventBrier, JointNames, OfCoordinate
from censcore.evaluation.losses import shares_of
from censcore.evaluation.resolved_censoring import Refit, ResolvedCensoring
from censcore.evaluation.several_outcomes import MeasureOf, SeveralOutcomes
from censcore.evaluation.subjects import Subjects
from censcore.evaluation.subsets import labels_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.plain_text import one_line
from censcore.scores.compatible_times import subject_keys
from censcore.scores.joint_brier import decided_outcome, event_rule, joint_weights

if TYPE_CHECKING:
    from censcore.evaluation.charts import Chart

__all__ = ["JointCensoringDiagnostic", "JointComparison", "of_censoring_time"]

MEMBERS = 1024  # of the time by which all events have happened, for forecasts that are no ensemble


@dataclass(frozen=True, repr=False, eq=False)
class JointComparison(SeveralOutcomes):
    """What :func:`compare` found for forecasts of several event times, of which one may prevent the others.

    Everything of :class:`Comparison` is here. ``frame()`` and ``differences()`` have a column ``outcome``:
    "joint" for scores of all event times together, the name of an event time, or that of a joint event.
    :meth:`of` gives the comparison of one outcome, with all its tables and plots.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> truth = cs.Copula("clayton", [cs.Exponential(1.0), cs.Exponential(0.5)], theta=3.0)
    >>> T, C = truth.sample(400, seed=1)[0], rng.uniform(0, 4, (400, 1))
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> models = {"clayton": truth, "independent": cs.Independent([cs.Exponential(1.0), cs.Exponential(0.5)])}
    >>> comparison = cs.compare(
    ...     models, y, cs.Censoring(cs.KaplanMeier()), names=["left", "right"], discrimination=False,
    ...     scores=["energy_score", "crps"],
    ... )
    >>> comparison.outcomes
    ['joint', 'left', 'right', 'either', 'both', 'left first', 'right first']
    >>> comparison.frame()[["score", "outcome", "model", "mean"]].round(3)
              score outcome        model   mean
    0  energy_score   joint      clayton  0.522
    1  energy_score   joint  independent  0.542
    2          crps    left      clayton  0.298
    3          crps    left  independent  0.298
    4          crps   right      clayton  0.378
    5          crps   right  independent  0.378
    """

    names: JointNames = field(kw_only=True)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes that scores may be of: all times jointly, each time, each joint event."""
        return [JOINT, *self.names.times, *self.names.events]

    @property
    def ranked(self) -> list[str]:
        """The event times, which have concordance and AUC."""
        return list(self.names.times)

    @property
    def _single_events(self) -> list[str]:
        """Joint events that are about a single time: the earliest, or the last."""
        return [name for name, event in self.names.events.items() if isinstance(event, str)]

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        event = to_numpy(self.outcome.event)
        if self._case.mask is not None:
            event = event & self._case.mask
        found = super().settings | {"events": int(event.sum())}
        found["event times"] = list(self.names.times)
        found["events by event time"] = event.sum(axis=0).tolist()
        if self._case.mask is not None:
            found["subjects followed for each"] = self._case.mask.sum(axis=0).tolist()
        shared = self.resolved_censoring.distribution.k == 1
        found["censoring"] = "one C shared by all event times" if shared else "one C per event time"
        if self._terminal is not None:
            found["terminal event"] = self._terminal
        return found

    @property
    def _terminal(self) -> str | None:
        """The event that prevents the others."""
        return None if self.names.terminal is None else self.names.times[self.names.terminal]

    def _default_outcome(self, kind: str) -> str:
        """The terminal event where the picture is of follow-up, or of a time that is never infinite."""
        of_end = kind in ("censoring", "d-calibration")
        return self._terminal if of_end and self._terminal is not None else super()._default_outcome(kind)

    def _of(self, outcome: str) -> Comparison:
        shared = self.resolved_censoring.distribution.k == 1
        event = self.names.events.get(outcome)
        if isinstance(event, str) and shared:
            return self._of_event(event, outcome)
        if outcome not in self.names.times:
            able = [*self.names.times, *(self._single_events if shared else [])]
            raise InvalidInputError(f"outcome: got {outcome!r}, expected one of {', '.join(able)}.")
        j, mask = self.names.times.index(outcome), self._case.mask
        cases = {model: case.marginal(j) for model, case in self.cases.items()}
        resolved = of_censoring_time(self.resolved_censoring, 0 if shared else j)
        return self._part(outcome, cases, None if mask is None else mask[:, j], resolved)

    def _of_event(self, event: str, outcome: str = "") -> Comparison:
        """Of the earliest or the last event time, under one C that all share."""
        mask = self._case.mask
        cases = {model: _event_case(case, event) for model, case in self.cases.items()}
        counted = None if mask is None else np.all(mask, axis=1)
        return self._part(outcome, cases, counted, self.resolved_censoring)

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data; of one outcome, by default the first event time.

        Parameters
        ----------
        kind : str
            As in :meth:`Comparison.plot`; "differences" shows all outcomes.
        **options
            ``outcome=`` names an event time, "either" or "both"; others are those of the plot.

        Returns
        -------
        Chart
            Panels with curves, bars and intervals in the coordinates of the data.
        """
        shared = self.resolved_censoring.distribution.k == 1
        if kind == "censoring" and "outcome" not in options and shared and self._terminal is None:
            return self._of_event("all").chart(kind, **options)
        if kind == "d-calibration" and self._terminal not in (None, options.get("outcome") or self._terminal):
            raise InvalidInputError(
                f"plot('d-calibration'): got outcome={options['outcome']!r}, expected {self._terminal!r}: an "
                "event that another one prevents may never happen, so that S(T) is not uniform. "
                "plot('calibration') shows it."
            )
        return super().chart(kind, **options)

    def pictured(self, kind: str) -> list[dict[str, Any]]:
        """One picture per event time, and of "either" and "both" where they are scored."""
        shared = self.resolved_censoring.distribution.k == 1
        if kind == "differences" or (kind == "censoring" and shared):
            return [{}]
        outcomes = list(self.names.times)
        if kind == "d-calibration" and self._terminal is not None:  # the times of the others may be never
            outcomes = [self._terminal]
        if kind == "brier" and shared:
            scored = {score.outcome for score in self.scores}
            outcomes += [outcome for outcome in self._single_events if outcome in scored]
        return [{"outcome": outcome} for outcome in outcomes]

    def _counted(self, score: CaseScore | MeasureOf) -> np.ndarray | None:
        if isinstance(score, CaseScore):
            return score.counted(self._case)
        mask = self._case.mask
        return None if mask is None else mask[:, self.names.times.index(score.outcome)]

    # ---- numbers -----------------------------------------------------------------------------------

    def events_of(self, score: CaseScore) -> tuple[RightCensored, Univariate]:
        """Of one event time where the score is of one; else of the first event of any."""
        y, C = self._case.y, self.resolved_censoring.distribution
        if score.outcome in self.names.times:
            j = self.names.times.index(score.outcome)
            return y.marginal(j), C.marginal(j if C.k > 1 else 0)
        time, event = to_numpy(y.time), to_numpy(y.event)
        first = np.argmin(np.where(event, time, np.inf), axis=1)[:, None]
        time, event = (np.take_along_axis(part, first, axis=1)[:, 0] for part in (time, event))
        return RightCensored(time, event)._with_entry(y.entry), C.marginal(0)

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        """How many events the mean of a score rests on, (q,); see :meth:`Comparison.effective_events`.

        A score of all event times rests on the subjects with an event before the horizon; the Brier score of
        a joint event on those who are known to have had it by t, or not, whichever are fewer.
        """
        if isinstance(score, OfCoordinate):
            return self.of(score.outcome).effective_events(score.base, s, times)
        if isinstance(score, MeasureOf):
            return self.of(score.outcome).effective_events(score.base, s, times)
        assert isinstance(score, CaseScore)
        case = self._case if times is None else replace(self._case, times=times)
        weight = shares_of(self.subsets[s].weight[:, None], score.counted(case))[:, 0]
        time, event = to_numpy(case.y.time), to_numpy(case.y.event)
        if isinstance(score, EventBrier):
            columns = []
            for t in case.times:
                known, happened = _known(score, case, float(t))
                columns.append(
                    min(
                        effective_number(np.where(known & (happened == value), weight, 0.0), self.groups)
                        for value in (True, False)
                    )
                )
            return np.array(columns)
        seen = event & (time <= self.horizon)
        if case.mask is not None:
            seen = seen & case.mask
        number = effective_number(np.where(seen.any(axis=1), weight, 0.0), self.groups)
        return np.full(len(score.at(case)), number)

    @cached_property
    def censoring(self) -> Any:
        """How far the censoring distribution can be trusted; one diagnostic for every censoring time."""
        case, C = self._case, self.resolved_censoring.distribution
        if C.k == 1:
            return self._diagnostic(decided_outcome(case.y, "all"), C)
        parts = {
            name: self._diagnostic(case.y.marginal(j), C.marginal(j))
            for j, name in enumerate(self.names.times)
        }
        return JointCensoringDiagnostic(parts)

    def _diagnostic(self, y: RightCensored, C: Distribution) -> CensoringDiagnostic:
        found = censoring_diagnostic(
            y,
            C,
            self.X,
            horizon=self.horizon,
            sample_weight=self.subsets[0].weight,
            groups=self.groups,
            by=labels_of(self.subsets),
            seed=self.seed,
        )
        return replace(found, conditional=given_covariates(self.resolved_censoring.distribution))


@dataclass(frozen=True)
class JointCensoringDiagnostic:
    """One :class:`CensoringDiagnostic` for every event time, where each has its censoring time."""

    parts: dict[str, CensoringDiagnostic]

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the scores, with the event time that they concern."""
        return [f"{name}: {warning}" for name, part in self.parts.items() for warning in part.warnings]

    @property
    def weights(self) -> dict[str, float]:
        """The largest median, 90 % quantile and maximum of the weights over the event times."""
        found = [part.weights for part in self.parts.values()]
        return {key: float(np.max([weights[key] for weights in found])) for key in found[0]}

    def to_dict(self) -> dict[str, Any]:
        """All numbers and warnings by event time."""
        return {name: part.to_dict() for name, part in self.parts.items()}

    def lines(self) -> list[tuple[str, str]]:
        """What and how much, for tables."""
        found = ((name, *line) for name, part in self.parts.items() for line in part.lines())
        return [(f"{name}: {what}" if what else "", value) for name, what, value in found]

    def __repr__(self) -> str:
        return "\n\n".join(f"{one_line(name)}\n{part!r}" for name, part in self.parts.items())


def _event_case(case: Case, event: str) -> Case:
    """The case of the earliest, or of the last, of the event times, under one C that all share."""
    y = case.y.first() if event == "either" else case.y.last()
    part = case.of_forecasts(lambda F: F.first() if event == "either" else _last(F, case))
    return replace(part, y=y, mask=None, coordinate=None)


def _last(F: Distribution, case: Case) -> Ensemble:
    """The distribution of the last event time: that of the members, or of draws."""
    if isinstance(F, Ensemble):
        return Ensemble(to_numpy(F.samples).max(axis=2), F.weights)
    keys = keys_of([np.zeros(1)], case.seed) if len(F) == 1 else subject_keys(case.y, seed=case.seed)
    return Ensemble(to_numpy(F.sample(MEMBERS, SubjectDraws(keys))).max(axis=2))


def _known(score: EventBrier, case: Case, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Who is known to have had the joint event by t or not, and who has had it, (n,) each."""
    time, event = to_numpy(case.y.time), to_numpy(case.y.event)
    happened = event_rule(score.event)(np.where(event & (time <= t), time, np.inf))
    return to_numpy(joint_weights(case.y, case.C, np.array([[t]]), score.event))[:, 0] > 0, happened


def of_censoring_time(resolved: ResolvedCensoring, j: int) -> ResolvedCensoring:
    """The censoring distribution of event time j alone, where every event time has one."""
    C = resolved.distribution
    if C.k == 1:
        return resolved
    parts = [part for part in resolved.parts if part.coordinate == j]
    refit: Any = None if resolved.refit is None else RefitOf(resolved.refit, j)
    return replace(resolved, distribution=C.marginal(j), parts=parts, refit=refit)


@dataclass(frozen=True)
class RefitOf:
    """Refits of the censoring distributions of all event times, of which one is wanted."""

    refit: Refit
    j: int

    def __call__(self, train: Subjects, X: Any) -> Distribution:
        """The distribution of subjects with covariates X that these training subjects lead to."""
        return self.refit(train, X).marginal(self.j)
