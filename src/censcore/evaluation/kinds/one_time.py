"""One event time per subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from censcore.evaluation.kinds.base import Kind, Named
from censcore.evaluation.kinds.views import View
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES, CaseScore, case_score
from censcore.evaluation.plan.readings import settle_readings
from censcore.evaluation.plan.reference import KAPLAN_MEIER
from censcore.evaluation.plan.request import Request
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import InvalidInputError
from censcore.outcomes import as_outcome
from censcore.scores import registry

__all__ = ["OneTime"]


class OneTime(Kind):
    """One event time, (n,), right-censored."""

    reference: ClassVar[str] = KAPLAN_MEIER
    default_scores: ClassVar[tuple[str, ...]] = DEFAULT_SCORES
    described: ClassVar[str] = "an outcome"

    @classmethod
    def settle(cls, asked: Request) -> tuple[Self, Request]:
        """The outcome as it is."""
        asked.refuse("names", "events", "mask")
        return cls(cls.read_outcome(asked.sample.y)), asked

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """A right-censored outcome."""
        return in_numpy(as_outcome(y))

    @property
    def views(self) -> Sequence[View]:
        """None: there is one event time."""
        return ()

    def named_score(self, name: str) -> list[CaseScore]:
        """The score with this name."""
        info = registry.SCORES.get(name)
        if info is not None and not info.univariate:
            raise InvalidInputError(
                f"{name}: got {self.described} of one event time, expected several of them, (n, k). Its "
                "energy score is the CRPS: use 'crps', or scorer('crps')."
            )
        return [case_score(name)]

    def settled(self, forecasts: Named, train: Sample | None, horizon: float, notes: list[str]) -> Named:
        """Survival matrices are read by the event times of the training or else the scored subjects."""
        events = None if train is None else self.events_of(train.y)
        return settle_readings(forecasts, self.scored, events, horizon)
