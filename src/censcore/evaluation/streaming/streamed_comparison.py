"""The result of a comparison whose subjects stayed in their table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.diagnostic import SAFE_SHARE, CensoringDiagnostic
from censcore.evaluation.discrimination import Measure
from censcore.evaluation.losses import Subset
from censcore.evaluation.streaming.counts import Counts
from censcore.evaluation.streaming.plan import Plan
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.known_at import weights_of_events

if TYPE_CHECKING:
    from censcore.evaluation.charts import Chart

__all__ = ["CountedSubset", "StreamedComparison", "Weights"]

PICTURES = ("differences",)


@dataclass(frozen=True, eq=False)
class CountedSubset(Subset):
    """Subjects that are averaged over, of which only the number is known."""

    subjects: int = 0
    weights_given: bool = False

    @property
    def count(self) -> int:
        """How many subjects there are."""
        return self.subjects

    @property
    def weighted(self) -> bool:
        """Whether a column of weights was named."""
        return self.weights_given


class Weights(NamedTuple):
    """Distinct weights of events, to three digits, and how many events have them.

    ``beyond`` events have P(C >= y) = 0; ``support`` and ``safe`` are the last times at which P(C >= t) is
    positive, and at least 0.1, for all subjects.
    """

    weight: np.ndarray
    events: np.ndarray
    beyond: int
    support: float
    safe: float


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class StreamedComparison(Comparison):
    """What :func:`compare` found of an :class:`~censcore.OutcomeTable`.

    It has the tables, tests, verdict, page and exports of a :class:`~censcore.evaluation.Comparison`. What
    needs all subjects at once is missing: concordance and AUC, which are over all pairs of subjects, and
    calibration, decision and other curves. For these compare a sample in memory.

    Attributes
    ----------
    plan : Plan
        What was decided.
    counts : Counts
        Distinct outcomes and their numbers.
    effective : array, (subsets, columns)
        Effective numbers of events.
    weighted : pair
        Events up to the horizon, and their effective number under inverse-probability weights.
    infinite : dict
        Numbers of infinite losses, (subsets, q), by model and score.
    n_groups : int, optional
        Number of groups.
    weights : Weights, optional
        Of events, under censoring distributions given covariates.
    """

    plan: Plan
    counts: Counts
    effective: np.ndarray
    weighted: tuple[int, float]
    infinite: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    n_groups: int | None = None
    weights: Weights | None = None

    @property
    def models(self) -> list[str]:
        """Names of the forecasts."""
        return list(self.plan.forecasts)

    @property
    def horizon(self) -> float:
        """End of the comparison."""
        return self.plan.horizon

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        from importlib.metadata import version

        counts = self.counts
        return {
            "subjects": counts.n,
            "events": int(counts.rows[counts.event].sum()),
            "horizon": self.horizon,
            "time unit": self.time_unit or None,
            "times": self.plan.times.tolist(),
            "levels": self.plan.levels.tolist(),
            "scores": [score.name for score in self.scores],
            "censoring distribution": self.resolved_censoring.description,
            "standard errors": self.means.method,
            "groups": self.n_groups,
            "reference": self.reference,
            "confidence": self.confidence,
            "seed": self.seed,
            "read in batches of": self.plan.rows,
            "censcore": version("censcore"),
        }

    @cached_property
    def censoring(self) -> CensoringDiagnostic:
        """How far the censoring distribution can be trusted."""
        counts, end, weights = self.counts, self.horizon, self.weights or self._weights_of_curves()
        weight, count = weights.weight, weights.events
        return CensoringDiagnostic(
            subjects=counts.n,
            events=int(counts.rows[counts.event].sum()),
            censored=int(counts.rows[~counts.event].sum()),
            horizon=end,
            support=weights.support,
            safe_horizon=float(min(end, weights.safe)),
            beyond=weights.beyond,
            cut=int(counts.rows[counts.time > end].sum()),
            weights=_quantiles(weight, count),
            effective=float((weight @ count) ** 2 / (weight**2 @ count)) if count.sum() else 0.0,
            events_in=int(count.sum()),
            conditional=len(self.plan.curves) > 1 or self.weights is not None,
            covariates=None,
            not_tested="covariates stay in the table",
        )

    def _weights_of_curves(self) -> Weights:
        """From the counts, under the same censoring distribution for all, or one per stratum."""
        counts, end = self.counts, self.horizon
        y = RightCensored(counts.time, counts.event)._with_entry(counts.entry)
        weight = counts.event.astype(np.float64)
        support = safe = np.inf
        curves: list[Any] = [curve.distribution for curve in self.plan.curves] or [self.plan.given]
        numbers = self._strata()
        for i, C in enumerate(curves):
            if C is not None:
                here = np.flatnonzero(numbers == i) if self.plan.curves else np.arange(len(weight))
                G = C.marginal(0)
                weight[here] = weights_of_events(y.take(here), G)
                support = min(support, float(np.min(to_numpy(G.isf(0.0)))))
                safe = min(safe, float(np.min(to_numpy(G.isf(SAFE_SHARE)))))
        seen = (weight > 0) & np.isfinite(weight) & (counts.time <= end)
        beyond = int(counts.rows[np.isinf(weight)].sum())
        return Weights(weight[seen], counts.rows[seen], beyond, support, safe)

    def _strata(self) -> np.ndarray:
        if len(self.plan.curves) < 2:
            return np.zeros(len(self.counts.time), dtype=np.intp)
        return np.searchsorted(self.plan.strata, self.counts.stratum)

    @property
    def outcome(self) -> RightCensored:
        """Not in memory."""
        _needs_subjects("the outcome")

    def weighted_events(self, score: CaseScore) -> tuple[int, float]:
        """Events up to the horizon, and their effective number."""
        return self.weighted

    def infinite_losses(self, model: str, score: str, j: int, s: int = 0) -> int:
        """How many losses of a column of a score are infinite."""
        return int(self.infinite[model, score][s, j])

    def places(self, score: CaseScore) -> np.ndarray:
        """The times or levels that a score is taken at; NaN for one without any."""
        return {"time": self.plan.times, "level": self.plan.levels}.get(score.axis, np.array([np.nan]))

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        """How many events the mean of a score rests on, for each of its times or levels, (q,)."""
        if times is not None:
            _needs_subjects("other times")
        found, q = self.effective[s], len(self.plan.times)
        if score.axis == "time":
            return np.minimum(found[1 : 1 + q], found[1 + q : 1 + 2 * q])
        return found[-len(self.plan.levels) :] if score.axis == "level" else found[:1]

    def pictured(self, kind: str) -> list[dict[str, Any]]:
        """Options of the pictures of a kind that a page shows."""
        return [{}] if kind in PICTURES else []

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data: differences."""
        if kind not in PICTURES:
            _needs_subjects(f"the plot {kind!r}")
        return super().chart(kind, **options)

    def calibration(self, *args: Any, **options: Any) -> NoReturn:
        """Needs all subjects at once."""
        _needs_subjects("a calibration curve")

    def net_benefit(self, *args: Any, **options: Any) -> NoReturn:
        """Needs all subjects at once."""
        _needs_subjects("a decision curve")

    def curve(self, *args: Any, **options: Any) -> NoReturn:
        """Needs the subjects again."""
        _needs_subjects("a curve")

    def mean_of(self, *args: Any, **options: Any) -> NoReturn:
        """Needs the subjects again."""
        _needs_subjects("a mean of another score")


def _needs_subjects(what: str) -> NoReturn:
    raise InvalidInputError(
        f"{what} needs the subjects in memory, which stayed in their table. Compare a sample in memory."
    )


def _quantiles(weight: np.ndarray, count: np.ndarray) -> dict[str, float]:
    if not count.sum():
        return {"median": np.nan, "90 %": np.nan, "largest": np.nan}
    order = np.argsort(weight)
    share = np.cumsum(count[order]) / count.sum()
    middle, high = weight[order][np.minimum(np.searchsorted(share, [0.5, 0.9]), len(order) - 1)]
    return {"median": float(middle), "90 %": float(high), "largest": float(weight.max())}
