"""Fixed forecasts of subjects in memory, the base of all designs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Losses, estimate_means, score_all, shares_of
from censcore.evaluation.kinds.one_time import OneTime
from censcore.evaluation.lines import Line
from censcore.evaluation.measures.case import Case, counted_events, effective_events, weighted_events
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore
from censcore.evaluation.measures.discrimination import Discrimination, Measure, discriminate
from censcore.evaluation.measures.joint_scores import OfView, View, view_called
from censcore.evaluation.plan.horizon import just_after
from censcore.evaluation.plan.readings import readings_of
from censcore.evaluation.plan.request import labels_of
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

CURVE_REFITS = 25  # of the censoring distribution for the bands of a curve, where it needs them


class Design:
    """Fixed forecasts of subjects in memory; other designs override what differs."""

    #: How p-values of calibration are to be read; empty where they are what they seem.
    calibration_note = ""
    in_memory = True  #: whether the subjects are, and not only sums over them

    def can_draw(self, picture: str) -> bool:
        """Whether there is a picture of this kind."""
        return self.in_memory or picture == "differences"

    def refuse(self, what: str) -> NoReturn:
        """Raise an error about something that sums over the subjects do not give."""
        raise InvalidInputError(
            f"{what} needs the subjects in memory, which stayed in their table. Compare a sample in memory."
        )

    def any_case(self, of: Comparison) -> Case:
        """One case with the horizon, times and levels, which all forecasts share."""
        return next(iter(of.cases.values()))

    def case(self, of: Comparison) -> Case:
        """One forecast with the outcome, which all forecasts share; an error where it is not in memory."""
        return self.any_case(of)

    def last_time(self, of: Comparison) -> float:
        """End of follow-up."""
        return float(to_numpy(self.any_case(of).y.time).max())

    def places(self, of: Comparison, score: CaseScore) -> np.ndarray:
        """The times or levels that a score is taken at; NaN for one without any."""
        return score.at(self.any_case(of))

    def sizes(self, of: Comparison) -> tuple[int, int, int | None]:
        """How many subjects, events and groups there are."""
        y, groups = self.case(of).y, of.groups
        return len(y), int(to_numpy(y.event).sum()), None if groups is None else int(groups.max()) + 1

    def settings(self, of: Comparison) -> dict[str, Any]:
        """Everything that was decided."""
        return self.common_settings(of) | of.kind.settings()

    def common_settings(self, of: Comparison) -> dict[str, Any]:
        """The settings that all kinds have, in their order."""
        from censcore import __version__

        subjects, events, groups = self.sizes(of)
        case, readings = self.any_case(of), readings_of(of.cases)
        last = float(case.times.max())  # which may be the horizon
        return {
            "subjects": subjects,
            "events": events,
            "horizon": last if just_after(last, case.y) == of.horizon else of.horizon,
            "time unit": of.time_unit or None,
            "times": case.times.tolist(),
            "levels": case.levels.tolist(),
            **({"survival matrices": readings} if readings else {}),
            "scores": [score.name for score in of.scores],
            "censoring distribution": of.resolved_censoring.description,
            "standard errors": of.means.method,
            "groups": groups,
            "reference": of.reference,
            "confidence": of.confidence,
            "seed": of.seed,
            "censcore": __version__,
        }

    # ---- numbers ---------------------------------------------------------------------------------------

    def censoring(self, of: Comparison) -> Any:
        """How far the censoring distribution can be trusted."""

        def diagnose(y: Any, C: Any) -> CensoringDiagnostic:
            return censoring_diagnostic(
                y,
                C,
                of.X,
                horizon=of.horizon,
                sample_weight=of.subsets[0].weight,
                groups=of.groups,
                by=labels_of(of.subsets),
                seed=of.seed,
            )

        return of.kind.diagnostic(self.case(of), of.resolved_censoring, diagnose)

    def weighted_events(self, of: Comparison, score: CaseScore) -> tuple[int, float]:
        """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
        return weighted_events(*score.events(self.case(of)), of.horizon, of.subsets[0].weight, of.groups)

    def infinite_losses(self, of: Comparison, model: str, score: str, j: int, s: int = 0) -> int:
        """How many losses of a column of a score are infinite, among the subjects of a subset."""
        counted = of.subsets[s].weight > 0
        return int(np.isinf(of.losses.values[model, score][counted, j]).sum())

    def effective_events(
        self, of: Comparison, score: CaseScore | Measure, s: int, times: np.ndarray | None
    ) -> np.ndarray:
        """See :meth:`Comparison.effective_events`."""
        cases = [case if times is None else replace(case, times=times) for case in of.cases.values()]
        weight = of.subsets[s].weight
        if not isinstance(score, Measure):
            return effective_events(score.counted_events(cases), weight, of.groups)
        if score.outcome:
            view = view_called(score.outcome, of.kind.views)
            weight = shares_of(weight[:, None], view.counted(cases[0]))[:, 0]
            cases = [case.of(view) for case in cases]
        return effective_events(counted_events(score, cases), weight, of.groups)

    def curve(
        self, of: Comparison, score: CaseScore, times: np.ndarray | None, levels: np.ndarray | None
    ) -> dict[str, Estimate]:
        """See :meth:`Comparison.curve`."""
        case = self.case(of)
        at = {
            "times": case.times if times is None else times,
            "levels": case.levels if levels is None else levels,
        }
        means = self._means(of, score, {m: replace(case, **at) for m, case in of.cases.items()})  # type: ignore[arg-type]
        return {model: mean for model, mean in means.items() if not np.isnan(mean.value).any()}

    def mean_of(self, of: Comparison, score: CaseScore, model: str) -> Estimate:
        """The mean of a score that is made for one of the models, over all subjects."""
        return self._means(of, score, {model: of.cases[model]})[model]

    @staticmethod
    def _means(of: Comparison, score: CaseScore, cases: dict[str, Case]) -> dict[str, Estimate]:
        few = of.resolved_censoring.with_refits(CURVE_REFITS)
        scope = replace(of.scope, subsets=of.subsets[:1], censoring=few)
        means = estimate_means(score_all(cases, [score]), cases, scope)
        return {
            model: mean for model in cases if (mean := means.values.get((0, model, score.name))) is not None
        }

    def pair_measures(self, of: Comparison) -> Discrimination:
        """Concordance and AUC of one outcome."""
        return discriminate(of.cases, of.scope)

    def ranked_at(self, of: Comparison, times: np.ndarray) -> Discrimination:
        """AUC at other times."""
        return discriminate(at_times(of, times).cases, of.scope, others=())

    # ---- views -----------------------------------------------------------------------------------------

    def part(self, of: Comparison, view: View) -> Comparison:
        """The results of one view, under the score names of a single event time."""
        counted = view.counted(self.case(of))
        cases = {model: case.of(view) for model, case in of.cases.items()}
        return replace(
            self.renamed(of, view),
            kind=OneTime(next(iter(cases.values())).y),
            cases=cases,
            resolved_censoring=view.censoring(of.resolved_censoring),
            subsets=[replace(s, weight=shares_of(s.weight[:, None], counted)[:, 0]) for s in of.subsets],
        )

    @staticmethod
    def renamed(of: Comparison, view: View) -> Comparison:
        """The losses and means of a view, by the names of its scores without it."""
        names = {score.name: plain(score) for score in of.scores if score.outcome == view.name}

        def renamed(values: dict[Any, Any]) -> dict[Any, Any]:
            known = ((key, value) for key, value in values.items() if key[-1] in names)
            return {(*key[:-1], names[key[-1]].name): value for key, value in known}

        scores = list(names.values())
        return replace(
            of,
            scores=scores,
            losses=Losses(renamed(of.losses.values), renamed(of.losses.unavailable), scores),
            means=replace(of.means, values=renamed(of.means.values)),
            discrimination=of.discrimination and view.name in of.kind.ranked,
        )

    def fold_lines(self, of: Comparison) -> list[Line]:
        """Means by fold; none where there are no folds."""
        return []


def at_times(of: Comparison, times: np.ndarray) -> Comparison:
    """The same subjects at other times."""
    return replace(of, cases={model: replace(case, times=times) for model, case in of.cases.items()})


def plain(score: CaseScore) -> CaseScore:
    """A score of one view without its name; the Brier score of a joint event is that of its time."""
    if isinstance(score, OfView):
        return score.base
    return CASE_SCORES.get(score.name.partition("[")[0], score)
