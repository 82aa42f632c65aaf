"""Views of an outcome: one of several event times, one cause, one joint event, and scores of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from censcore.distributions import Univariate
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.outcomes import RightCensored

__all__ = ["OfView", "View"]


@dataclass(frozen=True)
class View(ABC):
    """A part of the outcome that is scored as if it were the only one.

    Parameters
    ----------
    name : str
        For tables, ``comparison.of(name)`` and names of scores, ``crps[name]``.
    """

    name: str

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


@dataclass(frozen=True)
class OfView(CaseScore):
    """A score of one view, over the subjects who count in it."""

    base: CaseScore
    view: View

    @classmethod
    def score(cls, base: CaseScore, view: View, title: str | None = None) -> OfView:
        """The score, with the view in its name and title."""
        title = base.info.title if title is None else title
        info = replace(base.info, name=f"{base.info.name}[{view.name}]", title=f"{title}, {view.name}")
        return cls(info, base, view, outcome=view.name)

    def counted(self, case: Case) -> np.ndarray | None:
        """Those of the view."""
        return self.view.counted(case)

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q); zero for subjects who do not count."""
        counted = self.counted(case)
        if counted is None:
            return self.base.losses(case.of(self.view))
        rows, losses = np.nonzero(counted)[0], np.zeros((len(case.y), len(self.at(case))))
        if len(rows):
            losses[rows] = self.base.losses(case.take(rows).of(self.view))
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
        return events if counted is None else tuple(who & counted[:, None] for who in events)
