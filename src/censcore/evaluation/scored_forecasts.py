"""Forecasts that were scored: losses, means with influences, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_index, as_number, check_kind, check_option
from censcore.distributions import Univariate
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.discrimination import Discrimination, Measure, discriminate
from censcore.evaluation.effective_events import effective_events, weighted_events
from censcore.evaluation.inference import Estimate
from censcore.evaluation.losses import Losses, Means, Subset, estimate_means, score_all
from censcore.evaluation.readings import readings_of
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.subsets import labels_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored, as_followed

__all__ = ["ScoredForecasts"]

CURVE_REFITS = 25  # of the censoring distribution for the bands of a curve, where it needs them


@dataclass(frozen=True, repr=False, eq=False)
class ScoredForecasts(KeepsValues):
    """The numbers of a :class:`~censcore.evaluation.Comparison`, which shows them.

    Attributes
    ----------
    scores : list of CaseScore
        What the forecasts were scored by.
    losses, means : Losses, Means
        Losses of all subjects, and their means with influences, by model and score.
    cases : dict of Case
        Name of the forecast -> forecast, outcome and censoring distribution.
    subsets : list of Subset
        All subjects first, then subgroups.
    """

    scores: list[CaseScore]
    losses: Losses
    means: Means
    cases: dict[str, Case]
    subsets: list[Subset]
    resolved_censoring: ResolvedCensoring
    X: Any
    groups: np.ndarray | None
    train_groups: np.ndarray | None
    refits: int
    reference: str | None
    confidence: float
    discrimination: bool
    seed: int
    notes: list[str] = field(default_factory=list)
    time_unit: str = ""
    made: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of_cases(
        cls,
        cases: dict[str, Case],
        scores: list[CaseScore],
        subsets: list[Subset],
        resolved: ResolvedCensoring,
        notes: list[str],
        *,
        progress: bool,
        **settings: Any,
    ) -> Self:
        """Score all cases and estimate the means; ``settings`` are the other attributes."""
        losses = score_all(cases, scores)
        groups, train_groups = settings["groups"], settings["train_groups"]
        refits, seed = settings["refits"], settings["seed"]
        means = estimate_means(losses, cases, subsets, resolved, groups, train_groups, refits, seed, progress)
        about_C = [*resolved.notes, *(resolved.notes_on_ties if train_groups is None else [])]
        return cls(
            scores=scores,
            losses=losses,
            means=means,
            cases=cases,
            subsets=subsets,
            resolved_censoring=resolved,
            notes=[*notes, *about_C, *losses.notes, *means.notes],
            **settings,
        )

    @property
    def models(self) -> list[str]:
        """Names of the forecasts, the reference last where it was added."""
        return list(self.cases)

    @property
    def _case(self) -> Case:
        return next(iter(self.cases.values()))

    @property
    def outcome(self) -> RightCensored:
        """What happened."""
        return self._case.y

    @property
    def horizon(self) -> float:
        """End of the comparison."""
        return self._case.horizon

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        from importlib.metadata import version

        case = self._case
        return {
            "subjects": len(case.y),
            "events": int(to_numpy(case.y.event).sum()),
            "horizon": self.horizon,
            "time unit": self.time_unit or None,
            "times": case.times.tolist(),
            "levels": case.levels.tolist(),
            **({"survival matrices": readings} if (readings := readings_of(self.cases)) else {}),
            "scores": [score.name for score in self.scores],
            "censoring distribution": self.resolved_censoring.description,
            "standard errors": self.means.method,
            "groups": None if self.groups is None else int(self.groups.max()) + 1,
            "reference": self.reference,
            "confidence": self.confidence,
            "seed": self.seed,
            "censcore": version("censcore"),
        }

    @cached_property
    def censoring(self) -> CensoringDiagnostic:
        """How far the censoring distribution can be trusted."""
        return censoring_diagnostic(
            as_followed(self._case.y),
            self.resolved_censoring.distribution,
            self.X,
            horizon=self.horizon,
            sample_weight=self.subsets[0].weight,
            groups=self.groups,
            by=labels_of(self.subsets),
            seed=self.seed,
        )

    def events_of(self, score: CaseScore) -> tuple[RightCensored, Univariate]:
        """The events that a score is about, as an outcome (n,), and the distribution of their C."""
        return self._case.y, self.resolved_censoring.distribution.marginal(0)

    def weighted_events(self, score: CaseScore) -> tuple[int, float]:
        """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
        return weighted_events(*self.events_of(score), self.horizon, self.subsets[0].weight, self.groups)

    def infinite_losses(self, model: str, score: str, j: int, s: int = 0) -> int:
        """How many losses of a column of a score are infinite, among the subjects of a subset."""
        counted = self.subsets[s].weight > 0
        return int(np.isinf(self.losses.values[model, score][counted, j]).sum())

    def estimate(self, model: str, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence, None where the score is not available."""
        check_option(model, "model", self.models)
        check_kind(score, "score", str, "the name of a score")
        return self.means.values.get((as_index(subset, "subset"), model, score))

    def curve(
        self, score: CaseScore, *, times: np.ndarray | None = None, levels: np.ndarray | None = None
    ) -> dict[str, Estimate]:
        """Means of a score at other times or levels, over all subjects, by model; where it is available."""
        cases = {
            model: replace(
                case,
                times=case.times if times is None else times,
                levels=case.levels if levels is None else levels,
            )
            for model, case in self.cases.items()
        }
        return self._means_of(score, cases)

    def mean_of(self, score: CaseScore, model: str) -> Estimate:
        """The mean of a score that is made for one of the models, over all subjects."""
        return self._means_of(score, {model: self.cases[model]})[model]

    def _means_of(self, score: CaseScore, cases: dict[str, Case]) -> dict[str, Estimate]:
        means = estimate_means(
            score_all(cases, [score]),
            cases,
            self.subsets[:1],
            self.resolved_censoring,
            self.groups,
            self.train_groups,
            refits=min(self.refits, CURVE_REFITS),
            seed=self.seed,
        )
        found = {model: means.values.get((0, model, score.name)) for model in cases}
        return {model: estimate for model, estimate in found.items() if estimate is not None}

    def places(self, score: CaseScore) -> np.ndarray:
        """The times or levels that a score is taken at; NaN for one without any."""
        return score.at(self._case)

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        r"""How many events the mean of a score rests on, for each of its times or levels, (q,).

        A score of a time t rests on the events by t and on the subjects followed beyond t (or with an event
        of another cause), whichever are fewer; a pinball score on the events before the largest of the
        forecast quantiles; any other score on the events before the horizon. They are counted by Kish's
        effective number :math:`(\sum w)^2/\sum w^2`, over clusters by their total weights where there are
        ``groups``.

        Without events all forecasts of a small risk look alike and certain: the losses hardly vary, whatever
        the risk is. So below five effective events a comparison says "cannot tell".

        Parameters
        ----------
        score : CaseScore
            One of ``self.scores``.
        s : int
            Number of the subset, 0 for all subjects.
        times : array, optional
            Other times, for a score of times.

        Returns
        -------
        array, (q,)
        """
        case = self._case if times is None else replace(self._case, times=times)
        quantiles = [of.quantiles for of in self.cases.values()] if score.axis == "level" else []
        return effective_events(score, case, quantiles, self.subsets[s].weight, self.groups)

    @cached_property
    def pair_measures(self) -> Discrimination:
        """Concordance and AUC of every forecast, with their influences."""
        return discriminate(
            self.cases,
            self.subsets,
            self.resolved_censoring,
            self.groups,
            self.train_groups,
            self.refits,
            self.seed,
        )

    def one_time(self, time: float | None = None) -> float:
        """A time between 0 and the horizon, the middle one of the evaluation times by default."""
        times = self._case.times
        t = as_number(times[len(times) // 2] if time is None else time, "time", infinite=True)
        if not 0 < t < self.horizon:
            raise InvalidInputError(f"time must lie between 0 and the horizon, {self.horizon:g}; got {t:g}.")
        return t
