"""One event time per subject, or the event of one cause, judged alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.distributions.univariate.survival_matrix import settled, up_to
from censcore.estimators import AalenJohansen
from censcore.evaluation.decisions.asked import Asked, check_one_time
from censcore.evaluation.decisions.forecasts import AALEN_JOHANSEN
from censcore.evaluation.decisions.horizon import default_levels
from censcore.evaluation.kinds.kind import Kind, Named
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore, raise_no_case_score
from censcore.evaluation.measures.joint_scores import of_one_cause
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.outcomes import CompetingRisks, EventOfCause
from censcore.scores import registry


class OneTime(Kind):
    """One event time, (n,), right-censored."""

    described: ClassVar[str] = "an outcome"

    @classmethod
    def settle(cls, asked: Asked) -> tuple[Self, Asked]:
        """The outcome as it is."""
        check_one_time(asked, "names", "events")
        return cls(cls.read_outcome(asked.sample.y)), asked

    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """The score with this name."""
        score = CASE_SCORES.get(base)
        return [] if score is None else [score]

    def raise_no_score(self, name: str) -> NoReturn:
        """Raise an error that says which scores there are of one event time."""
        info = registry.SCORES.get(name)
        if info is not None and not info.univariate:
            raise InvalidInputError(
                f"{name}: got {self.described} of one event time, expected several of them, (n, k). Its "
                "energy score is the CRPS: use 'crps', or scorer('crps')."
            )
        raise_no_case_score(name)

    def settled(self, forecasts: Named, train: Sample | None, horizon: float, notes: list[str]) -> Named:
        """Survival matrices are read by the event times of the training or else the scored subjects.

        Up to the horizon an exponential tail is replaced by lines, see :func:`up_to`.
        """
        y, whose = (self.y, "scored events") if train is None else (train.y, "training events")
        followed = self.events_of(y)
        events = to_numpy(followed.time)[to_numpy(followed.event)]
        return {name: up_to(settled(F, events, whose), horizon) for name, F in forecasts.items()}


class OneCause(OneTime):
    """The time of the event of one cause, ``y.cause(j)``, which never comes after one of another cause.

    Forecasts are distributions of it with mass at infinity. Those of the other causes are not needed, so that
    sums over causes may exceed one: that is the forecaster's business where one cause is judged.
    """

    reference: ClassVar[str] = AALEN_JOHANSEN
    described: ClassVar[str] = "an outcome of one cause"

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """The event of one cause."""
        if not isinstance(y, EventOfCause):
            raise InvalidTypeError(
                f"got {type(y).__name__}, expected the outcome of one cause, y.cause(j), as that of the "
                "scored subjects."
            )
        return in_numpy(y)

    def parts(self, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Times, and whether the event was of the cause, of another one, or none."""
        return [(to_numpy(y.time), _causes(y))]

    def of_parts(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], entry: Any) -> Any:
        """The event of one cause."""
        ((time, cause),) = parts
        return CompetingRisks(time, cause, entry=entry, n_causes=2).cause(1)

    def given_entry(self, name: str, F: Any, horizon: float) -> Any:
        """Not known from one cause alone."""
        raise UnsupportedOutcomeError(
            "Delayed entry: the risk of one cause given survival to the entry depends on all causes. Compare "
            "forecasts of all of them, compare(forecasts, y, censoring) with CompetingRisks."
        )

    def reference_model(self, train: Any) -> Any:
        """The Aalen-Johansen estimate."""
        return cumulative_incidence

    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """The score of this cause; its log score averages over C after an event of another one."""
        return [of_one_cause(score) for score in super().possible_scores(base, named)]

    def levels(self, sample: Sample, horizon: float) -> np.ndarray | None:
        """Levels that the cumulative incidence reaches by the horizon."""
        curve = cumulative_incidence(None, sample.y, None, sample.weight).marginal(0)
        return default_levels(float(to_numpy(curve.cdf(np.nextafter(horizon, 0.0)))[0]))


def _causes(y: EventOfCause) -> np.ndarray:
    return np.where(to_numpy(y.event), 1, np.where(to_numpy(y.never), 2, 0))


def cumulative_incidence(X: Any, y: EventOfCause, X_test: Any, sample_weight: Any = None) -> Distribution:
    """The Aalen-Johansen estimate of the cumulative incidence of the cause, the same for all subjects."""
    entry = None if y.entry is None else to_numpy(y.entry)
    risks = CompetingRisks(to_numpy(y.time), _causes(y), n_causes=2, entry=entry)
    return AalenJohansen().fit(None, risks, sample_weight).predict_distribution().cause(1)
