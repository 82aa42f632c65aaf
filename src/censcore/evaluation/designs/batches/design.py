"""Batches of a table: a design in which the subjects stay where they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from censcore.evaluation.designs.batches.counts import Counted, Counts
from censcore.evaluation.designs.batches.table_plan import Plan
from censcore.evaluation.designs.fixed import Design, plain
from censcore.evaluation.kinds.one_time import OneTime
from censcore.evaluation.kinds.views import View
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.discrimination import Measure
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["Batches", "Weights"]


class Weights(NamedTuple):
    """Weights of events under the estimated censoring distribution."""

    weight: np.ndarray  #: distinct ones, to three digits
    events: np.ndarray  #: how many have each
    beyond: int  #: how many have P(C >= y) = 0
    support: float  #: the last time at which P(C >= t) is positive for all subjects
    safe: float  #: and at least 0.1


@dataclass(frozen=True, eq=False)
class Batches(Design):
    """Losses of subjects that stayed in their table: sums over its batches are all that is known.

    There are tables, tests, verdict, page and exports. What needs all subjects at once is missing:
    concordance and AUC, which are over all pairs of subjects, and calibration, decision and other curves. For
    these compare a sample in memory.
    """

    plan: Plan
    counted: Counted
    #: Effective numbers of events, (subsets, columns), by outcome and axis of the scores.
    effective: dict[tuple[str, str], np.ndarray]
    #: Events up to the horizon, and their effective number under inverse-probability weights, by outcome.
    weighted: dict[str, tuple[int, float]]
    #: How many losses are infinite, (subsets, columns), by model and score.
    infinite: dict[tuple[str, str], np.ndarray]
    n_groups: int | None
    weights: Weights  #: of events

    @property
    def counts(self) -> Counts:
        """How long subjects were followed."""
        return self.counted.follow_up

    def can_draw(self, picture: str) -> bool:
        """Differences alone."""
        return picture == "differences"

    def refuse(self, what: str) -> NoReturn:
        """An error: the subjects are not in memory."""
        raise InvalidInputError(
            f"{what} needs the subjects in memory, which stayed in their table. Compare a sample in memory."
        )

    def case(self, of: Comparison) -> NoReturn:
        """Not in memory."""
        self.refuse("the outcome, or a curve,")

    def models(self, of: Comparison) -> list[str]:
        """Names of the forecasts."""
        return list(self.plan.forecasts)

    def horizon(self, of: Comparison) -> float:
        """End of the comparison."""
        return self.plan.horizon

    def last_time(self, of: Comparison) -> float:
        """End of follow-up."""
        return float(self.counts.time.max())

    def places(self, of: Comparison, score: CaseScore) -> np.ndarray:
        """The times or levels that a score is taken at; NaN for one without any."""
        return {"time": self.plan.times, "level": self.plan.levels}.get(score.axis, np.array([np.nan]))

    def settings(self, of: Comparison) -> dict[str, Any]:
        """Everything that was decided."""
        counts = {"subjects": self.counts.n, "events": self.counts.n_events}
        told = self.told(of, counts, self.plan.times, self.plan.levels, self.n_groups, {})
        told |= {"read in batches of": self.plan.rows, "censcore": told.pop("censcore")}
        return told | ({} if of.kind.y is None else of.kind.settings(self.counted.rows))

    def censoring(self, of: Comparison) -> CensoringDiagnostic:
        """How far the censoring distribution can be trusted."""
        counts, end, weights = self.counts, self.plan.horizon, self.weights
        weight, count = weights.weight, weights.events
        return CensoringDiagnostic(
            subjects=counts.n,
            events=counts.n_events,
            censored=counts.n - counts.n_events,
            horizon=end,
            support=weights.support,
            safe_horizon=float(min(end, weights.safe)),
            beyond=weights.beyond,
            cut=int(counts.rows[counts.time > end].sum()),
            weights=_quantiles(weight, count),
            effective=float((weight @ count) ** 2 / (weight**2 @ count)) if count.sum() else 0.0,
            events_in=int(count.sum()),
            conditional=not self.plan.censoring.pooled or len(self.plan.by_curve) > 1,
            covariates=None,
            not_tested="covariates stay in the table",
        )

    def weighted_events(self, of: Comparison, score: CaseScore) -> tuple[int, float]:
        """Events up to the horizon, and their effective number."""
        return self.weighted[score.outcome]

    def infinite_losses(self, of: Comparison, model: str, score: str, j: int, s: int = 0) -> int:
        """How many losses of a column of a score are infinite."""
        return int(self.infinite[model, score][s, j])

    def effective_events(
        self, of: Comparison, score: CaseScore | Measure, s: int, times: np.ndarray | None
    ) -> np.ndarray:
        """How many events the mean of a score is based on, for each of its times or levels, (q,)."""
        if times is not None:
            self.case(of)
        return self.effective[score.outcome, score.axis][s]

    def counted_in(self, of: Comparison, score: CaseScore | Measure) -> None:
        """All subjects: there are no masks."""

    def part(self, of: Comparison, view: View) -> Comparison:
        """The tables of one view."""
        scores = [score for score in of.scores if score.outcome == view.name]
        effective = {("", axis): n for (outcome, axis), n in self.effective.items() if outcome == view.name}
        names = {score.name: plain(score).name for score in scores}
        design = replace(
            self,
            effective=effective,
            weighted={"": self.weighted[view.name]} if effective else {},
            infinite={(m, names[s]): n for (m, s), n in self.infinite.items() if s in names},
        )
        return replace(self.renamed(of, view), kind=OneTime(None), design=design)

    def curve(
        self, of: Comparison, score: CaseScore, times: np.ndarray | None, levels: np.ndarray | None
    ) -> NoReturn:
        """Needs the subjects again."""
        self.case(of)


def _quantiles(weight: np.ndarray, count: np.ndarray) -> dict[str, float]:
    if not count.sum():
        return {"median": np.nan, "90 %": np.nan, "largest": np.nan}
    order = np.argsort(weight)
    share = np.cumsum(count[order]) / count.sum()
    middle, high = weight[order][np.minimum(np.searchsorted(share, [0.5, 0.9]), len(order) - 1)]
    return {"median": float(middle), "90 %": float(high), "largest": float(weight.max())}
