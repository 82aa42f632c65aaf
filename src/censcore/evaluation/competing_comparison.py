"""The result of a comparison of forecasts of competing risks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Univariate
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.competing_scores import ALL_CAUSES, ANY_CAUSE, CompetingCase, OfCause
from censcore.evaluation.discrimination import Measure
from censcore.evaluation.several_outcomes import MeasureOf, SeveralOutcomes
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, RightCensored

if TYPE_CHECKING:
    from censcore.evaluation.charts import Chart

__all__ = ["CompetingRisksComparison"]

#: Pictures that there are of all causes together; the others show the risk of one event.
OF_ALL = ("brier", "differences", "censoring")


@dataclass(frozen=True, repr=False, eq=False)
class CompetingRisksComparison(SeveralOutcomes):
    """What :func:`compare` found for forecasts of the time and the cause of an event.

    Everything of :class:`Comparison` is here. ``frame()`` and ``differences()`` have a column ``outcome``:
    "all causes" for scores of time and cause together, the name of a cause, or "any cause" for the time of
    the first event. :meth:`of` gives the comparison of one outcome, with all its tables and plots.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> names = ["relapse", "death"]
    >>> truth = cs.CauseSpecificHazards([cs.Exponential(0.4), cs.Exponential(0.2)], names=names)
    >>> time, cause = (draws[0] for draws in truth.sample(400, seed=1))
    >>> c = np.random.default_rng(0).uniform(0, 6, 400)
    >>> y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    >>> swapped = cs.CauseSpecificHazards([cs.Exponential(0.2), cs.Exponential(0.4)], names=names)
    >>> comparison = cs.compare(
    ...     {"truth": truth, "swapped": swapped}, y, cs.Censoring(cs.KaplanMeier()), scores="crps",
    ...     discrimination=False,
    ... )
    >>> comparison.outcomes
    ['all causes', 'relapse', 'death', 'any cause']
    >>> comparison.frame()[["score", "outcome", "model", "mean"]].round(3)
      score     outcome    model   mean
    0  crps  all causes    truth  0.756
    1  crps  all causes  swapped  0.908
    2  crps     relapse    truth  0.594
    3  crps     relapse  swapped  0.731
    4  crps       death    truth  0.390
    5  crps       death  swapped  0.558
    6  crps   any cause    truth  0.527
    7  crps   any cause  swapped  0.527
    """

    names: tuple[str, ...] = field(kw_only=True)

    @property
    def outcomes(self) -> list[str]:
        """All causes together, each cause, and any cause."""
        return [ALL_CAUSES, *self.names, ANY_CAUSE]

    @property
    def ranked(self) -> list[str]:
        """The outcomes that have concordance and AUC: each cause, and the first event of any."""
        return [*self.names, ANY_CAUSE]

    @property
    def risks(self) -> CompetingRisks:
        """What happened, with causes; ``outcome`` is the time of the first event of any cause."""
        return self._competing(self._case).risks

    @staticmethod
    def _competing(case: Case) -> CompetingCase:
        assert isinstance(case, CompetingCase)
        return case

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        cause = to_numpy(self.risks.causes)
        counts = {name: int((cause == j).sum()) for j, name in enumerate(self.names, start=1)}
        return super().settings | {"events by cause": counts}

    def _of(self, outcome: str) -> Comparison:
        if outcome not in self.outcomes:
            raise InvalidInputError(f"outcome: got {outcome!r}, expected one of {', '.join(self.outcomes)}.")
        number = self._number(outcome)
        cases = {
            model: case if number is None else self._competing(case).cause(number)
            for model, case in self.cases.items()
        }
        return self._part(outcome, cases, None, self.resolved_censoring)

    def _number(self, outcome: str) -> int | None:
        """The number of a cause, 0 for any, None for all of them."""
        if outcome == ALL_CAUSES:
            return None
        return 0 if outcome == ANY_CAUSE else self.names.index(outcome) + 1

    def _default_outcome(self, kind: str) -> str:
        if kind in OF_ALL:
            return ALL_CAUSES
        return ANY_CAUSE if kind == "d-calibration" else self.names[0]

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data; of one outcome.

        Parameters
        ----------
        kind : str
            As in :meth:`Comparison.plot`; "differences" shows all outcomes. Of all causes together there are
            only "brier" and "differences".
        **options
            ``outcome=`` names a cause, "any cause" or "all causes"; others are those of the plot.

        Returns
        -------
        Chart
            Panels with curves, bars and intervals in the coordinates of the data.
        """
        outcome = options.get("outcome") or self._default_outcome(kind)
        if kind == "censoring":
            return self.of(ANY_CAUSE).chart(kind, **{k: v for k, v in options.items() if k != "outcome"})
        if kind not in OF_ALL and outcome == ALL_CAUSES:
            raise InvalidInputError(
                f"plot({kind!r}): got outcome={ALL_CAUSES!r}, expected a cause ({', '.join(self.names)}) or "
                f"{ANY_CAUSE!r}: it shows the risk of one event."
            )
        return super().chart(kind, **options)

    def pictured(self, kind: str) -> list[dict[str, Any]]:
        """One picture per cause, and of any and all causes where there are such."""
        if kind in ("differences", "censoring"):
            return [{}]
        outcomes = {"brier": self.outcomes, "d-calibration": self.ranked}.get(kind, list(self.names))
        return [{"outcome": outcome} for outcome in outcomes]

    # ---- numbers -----------------------------------------------------------------------------------

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        """How many events the mean of a score rests on, (q,); see :meth:`Comparison.effective_events`.

        A score of all causes rests on the events of any cause.
        """
        if isinstance(score, MeasureOf) or (isinstance(score, OfCause) and score.number is not None):
            return self.of(score.outcome).effective_events(score.base, s, times)
        return super().effective_events(score, s, times)

    def events_of(self, score: CaseScore) -> tuple[RightCensored, Univariate]:
        """Of the cause that the score is of; of any cause for a score of all of them."""
        if isinstance(score, OfCause) and score.number is not None:
            return self.of(score.outcome).events_of(score.base)
        return super().events_of(score)
