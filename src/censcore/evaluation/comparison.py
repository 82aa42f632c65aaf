"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_number, check_flag, check_option
from censcore.evaluation.decisions.decide import Cases, Decided
from censcore.evaluation.decisions.horizon import just_after
from censcore.evaluation.decisions.matrix_interpretation import reading_notes, readings_of
from censcore.evaluation.decisions.subsets import labels_of
from censcore.evaluation.evaluation import Evaluation, Repeat, evaluate_all
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Means, Subset, notes_on_unavailable, shares_of
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.kinds import Kind
from censcore.evaluation.kinds.one_time import OneTime
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, data_frame
from censcore.evaluation.measures import classification, net_benefit
from censcore.evaluation.measures.availability import BATCHES, FIXED, check_available
from censcore.evaluation.measures.calibration_curve import CalibrationCurve, calibration_curve
from censcore.evaluation.measures.case import Case, counted_events, effective_events, weighted_events
from censcore.evaluation.measures.case_scores import CaseScore, OfRisk
from censcore.evaluation.measures.discrimination import CONCORDANCES, Discrimination, Measure, discriminate
from censcore.evaluation.measures.joint_scores import View, plain, view_called
from censcore.evaluation.report.outputs import Outputs
from censcore.evaluation.report.table_lines import difference_lines, mean_lines, notes_on_ranks, shown_lines
from censcore.evaluation.report.verdict import Verdict, verdicts_of
from censcore.evaluation.sensitivity.diagnostic import censoring_diagnostic
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

if TYPE_CHECKING:
    import pandas as pd

    from censcore.evaluation.parts.batches.compare_table import Summed
    from censcore.evaluation.parts.folded import Folded

CURVE_REFITS = 25  # of the censoring distribution for the bands of a curve, where it needs them


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses (n, q) by forecast and name of the score, and why others are not available."""

    values: dict[tuple[str, str], np.ndarray]
    unavailable: dict[tuple[str, str], str]


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Outputs, KeepsValues):
    """What :func:`compare` and :func:`cross_validate` found.

    Where there are several event times or causes, ``frame()`` and ``differences()`` have a column
    ``outcome``: "joint" or "all causes" for scores of all together, or the name of an event time, of a cause
    or of a joint event. :meth:`of` gives the comparison of one outcome, with all its tables and plots.

    Attributes
    ----------
    evaluations : dict of Evaluation
        Name of the forecast -> its mean losses with influences, in the order of the tables.
    decided : Decided
        Everything that all forecasts share: outcome, scores, censoring distribution, horizon, times, subsets.
    notes : list of str
        What a reader should know: scores that are not available, infinite losses, missing parts.
    folded : Folded, optional
        Folds or bootstrap samples that models were fitted without.
    summed : Summed, optional
        What sums over batches tell of subjects that stayed in their table.
    compared : dict
        The models with their parameters, the covariates, the call, versions and the date, for the page.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> fast, slow = cs.Exponential(1.0), cs.Exponential(0.3)
    >>> forecasts = {"fast": fast, "slow": slow}
    >>> comparison = cs.compare(forecasts, y, cs.Uniform(0.0, 5.0), scores="crps", reference=None)
    >>> comparison.differences(discrimination=False)[["model", "versus", "difference"]].round(3)
      model versus  difference
    0  fast   slow       0.749

    Of the time and the cause of an event:

    >>> import numpy as np
    >>> names = ["relapse", "death"]
    >>> truth = cs.CauseSpecificHazards([cs.Exponential(0.4), cs.Exponential(0.2)], names=names)
    >>> time, cause = (draws[0] for draws in truth.sample(400, seed=1))
    >>> c = np.random.default_rng(0).uniform(0, 6, 400)
    >>> y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    >>> swapped = cs.CauseSpecificHazards([cs.Exponential(0.2), cs.Exponential(0.4)], names=names)
    >>> comparison = cs.compare(
    ...     {"truth": truth, "swapped": swapped}, y, cs.Censoring(cs.KaplanMeier()), scores="crps",
    ...     discrimination=False, reference=None,
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

    evaluations: dict[str, Evaluation]
    decided: Decided
    notes: list[str] = field(default_factory=list)
    folded: Folded | None = None
    summed: Summed | None = None
    compared: dict[str, Any] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict, init=False)

    # ---- what was compared -------------------------------------------------------------------------

    @property
    def kind(self) -> Kind:
        """Of the outcome, and what it can be asked for."""
        return self.decided.kind

    @property
    def models(self) -> list[str]:
        """Names of the forecasts, the reference last where it was added."""
        return list(self.evaluations)

    @property
    def scores(self) -> list[CaseScore]:
        """What the forecasts were scored by."""
        return self.decided.scores

    @property
    def subsets(self) -> list[Subset]:
        """All subjects first, then subgroups."""
        return self.decided.subsets

    @property
    def reference(self) -> str | None:
        """Name of the forecast that skill is measured against."""
        return self.decided.reference

    @property
    def confidence(self) -> float:
        """Of intervals."""
        return self.decided.asked.confidence

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        return self.decided.asked.seed

    @property
    def time_unit(self) -> str:
        """Of all times; empty where it is not known."""
        return self.decided.asked.time_unit

    @property
    def discrimination(self) -> bool:
        """Whether concordance and AUC are reported."""
        return self.decided.asked.discrimination

    @property
    def groups(self) -> np.ndarray | None:
        """Numbers of the clusters of the scored subjects."""
        return self.decided.groups

    @property
    def horizon(self) -> float:
        """End of the comparison."""
        return self.decided.horizon

    @property
    def cases(self) -> Cases:
        """Name of the forecast -> forecast, outcome and censoring distribution, of the first repeat."""
        return {name: each.repeats[0].case for name, each in self.evaluations.items() if each.repeats}

    @property
    def resolved_censoring(self) -> ResolvedCensoring:
        """The censoring distribution, and how it was obtained, of the first repeat."""
        return self.decided.censoring

    @property
    def losses(self) -> Losses:
        """Losses of all subjects, by forecast and score."""
        values = {(m, s): v for m, each in self.evaluations.items() for s, v in each.losses.items()}
        missing = {(m, s): why for m, each in self.evaluations.items() for s, why in each.unavailable.items()}
        return Losses(values, missing)

    @property
    def means(self) -> Means:
        """Their means with influences, by number of the subset, forecast and score."""
        every = ((m, *key, mean) for m, each in self.evaluations.items() for key, mean in each.means.items())
        return {(s, m, name): mean for m, s, name, mean in every}

    @property
    def method(self) -> str:
        """How errors account for what was estimated."""
        return next(iter(self.evaluations.values())).method

    @property
    def repeats(self) -> list[Repeat]:
        """All cases with their C, by repeat; an error where they are not in memory."""
        check_available("the outcome, or a curve,", "observed risk", self.producer)
        each = zip(*(of.repeats for of in self.evaluations.values()), strict=True)
        cases = ({m: one.case for m, one in zip(self.models, taken, strict=True)} for taken in each)
        first = next(iter(self.evaluations.values())).repeats
        return [Repeat(*of_repeat) for of_repeat in zip(cases, (one.censoring for one in first), strict=True)]

    @property
    def outcome(self) -> RightCensored:
        """What happened; of competing risks, the time of the first event of any cause."""
        return self.case.y

    @property
    def case(self) -> Case:
        """One forecast with the outcome, which all forecasts share; an error where it is not in memory."""
        return next(iter(self.repeats[0].cases.values()))

    @property
    def seen(self) -> RightCensored:
        """Outcomes, also where they were only counted."""
        return self.outcome if self.summed is None else self.summed.y

    @property
    def producer(self) -> str:
        """Where the losses come from, in the words of the table of what is available."""
        if self.summed is not None:
            return BATCHES
        return FIXED if self.folded is None else self.folded.producer

    @property
    def fold_lines(self) -> list[Line]:
        """The lines of :meth:`folds`, without pandas; none where there are no folds."""
        return [] if self.folded is None else self.folded.lines(self)

    @property
    def calibration_note(self) -> str:
        """How p-values of calibration are to be read; empty where they are what they seem."""
        return "" if self.folded is None else self.folded.note

    @property
    def last_time(self) -> float:
        """End of follow-up."""
        return float(to_numpy(self.seen.time).max())

    def places(self, score: CaseScore) -> np.ndarray:
        """The times or levels that a score is taken at; NaN for one without any."""
        return score.at(self.decided)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        from censcore import __version__

        decided, readings = self.decided, readings_of(self.cases)
        last = float(decided.times.max())  # which may be the horizon
        settings = {
            "subjects": len(self.seen),
            "events": int(to_numpy(self.seen.event).sum()),
            "horizon": last if just_after(last, self.seen) == self.horizon else self.horizon,
            "time unit": self.time_unit or None,
            "times": decided.times.tolist(),
            "levels": decided.levels.tolist(),
            **({"survival matrices": readings} if readings else {}),
            "scores": [score.name for score in self.scores],
            "censoring distribution": self.resolved_censoring.description,
            "standard errors": self.method,
            "groups": None if self.groups is None else int(self.groups.max()) + 1,
            "reference": self.reference,
            "confidence": self.confidence,
            "seed": self.seed,
            "censcore": __version__,
        }
        if self.summed is not None:
            return self.summed.settings(self, settings)
        settings |= self.kind.settings()
        return settings if self.folded is None else self.folded.settings(self, settings)

    @cached_property
    def censoring(self) -> Any:
        """How far the censoring distribution can be trusted."""
        if self.summed is not None:
            return self.summed.diagnostic
        about: dict[str, Any] = {
            "horizon": self.horizon, "sample_weight": self.subsets[0].weight, "groups": self.groups,
            "by": labels_of(self.subsets), "seed": self.seed,
        }  # fmt: skip
        diagnose = partial(censoring_diagnostic, X=self.decided.asked.sample.X, **about)
        return self.kind.diagnostic(self.case, self.resolved_censoring, diagnose)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes that scores may be of; empty where there is one event time."""
        return self.kind.outcomes

    def of(self, outcome: str) -> Comparison:
        """The comparison of one outcome, as if it were the only one.

        Parameters
        ----------
        outcome : str
            One of :attr:`outcomes`; of joint events only "either" and "both" ("any", "all" for more than
            two), where all event times share their censoring time.

        Returns
        -------
        Comparison
            With the scores of this outcome, and all plots.
        """
        view = view_called(outcome, self.kind.views)
        return self.once(view, lambda: self._of(view))

    def _of(self, view: View) -> Comparison:
        names, decided = {s.name: plain(s) for s in self.scores if s.outcome == view.name}, self.decided
        ranked = self.discrimination and view.name in self.kind.ranked
        decided = replace(
            decided, scores=[*names.values()], asked=replace(decided.asked, discrimination=ranked)
        )
        if self.summed is None:
            counted, case = view.counted(self.case), self.case.of(view)
            subsets = [replace(s, weight=shares_of(s.weight[:, None], counted)[:, 0]) for s in self.subsets]
            C = view.censoring(decided.censoring)
            decided = replace(decided, kind=OneTime(case.y), censoring=C, subsets=subsets)
        else:
            decided = replace(decided, kind=OneTime(None))
        evaluations = {model: each.of(view, names, decided) for model, each in self.evaluations.items()}
        summed = None if self.summed is None else self.summed.of(view, names)
        return replace(self, evaluations=evaluations, decided=decided, summed=summed)

    def within(self, subset: int) -> Comparison:
        """The comparison within a subgroup, as if its subjects were all; C stays that of all."""
        decided = replace(self.decided, subsets=[self.subsets[subset]])

        def part(of: Evaluation) -> Evaluation:
            means = {(0, name): mean for (s, name), mean in of.means.items() if s == subset}
            return replace(of, decided=decided, means=means)

        return replace(
            self, decided=decided, evaluations={model: part(of) for model, of in self.evaluations.items()}
        )

    def estimate(self, model: str, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence, None where the score is not available."""
        check_option(model, "model", self.models)
        return self.evaluations[model].estimate(score, subset)

    def weighted_events(self, score: CaseScore) -> tuple[int, float]:
        """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
        if self.summed is not None:
            return self.summed.weighted[score.outcome]
        return weighted_events(*score.events(self.case), self.horizon, self.subsets[0].weight, self.groups)

    def infinite_losses(self, model: str, score: str, j: int, s: int = 0) -> int:
        """How many losses of a column of a score are infinite, among the subjects of a subset."""
        if self.summed is not None:
            return int(self.summed.infinite[model, score][s, j])
        counted = self.subsets[s].weight > 0
        return int(np.isinf(self.evaluations[model].losses[score][counted, j]).sum())

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        r"""How many events the mean of a score is based on, for each of its times or levels, (q,).

        A score of a time t is based on the events by t and on the subjects followed beyond t (or with an
        event of another cause), whichever are fewer; a pinball score on the events before the largest of the
        forecast quantiles; any other score on the events before the horizon. They are counted by Kish's
        effective number :math:`(\sum w)^2/\sum w^2` with sampling and inverse-probability weights, over
        clusters by their total weights where there are ``groups``.

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
        if self.summed is not None and times is None:
            return self.summed.effective[score.outcome, score.axis][s]
        key = "effective events", score.name, score.outcome, getattr(score, "at_time", None), s
        make = partial(self._effective_events, score, s, times)
        return self.once(key, make) if times is None else make()

    def _effective_events(self, score: CaseScore | Measure, s: int, times: np.ndarray | None) -> np.ndarray:
        (at, *_), weight = self.repeats, self.subsets[s].weight
        cases = [*(at if times is None else at.at(times=times)).cases.values()]
        if not isinstance(score, Measure):
            return effective_events(score.counted_events(cases), weight, self.groups)
        if score.outcome:
            view = view_called(score.outcome, self.kind.views)
            weight = shares_of(weight[:, None], view.counted(cases[0]))[:, 0]
            cases = [case.of(view) for case in cases]
        return effective_events(counted_events(score, cases), weight, self.groups)

    def curve(
        self, score: CaseScore, *, times: np.ndarray | None = None, levels: np.ndarray | None = None
    ) -> dict[str, Estimate]:
        """Means of a score at other times or levels, over all subjects, by model; where it is available."""
        if self.summed is not None and isinstance(score, OfRisk):
            return self.summed.of_means(score, dict)[0]
        at = {"times": times, "levels": levels}
        at = {name: places for name, places in at.items() if places is not None}
        means = self._again(score, [repeat.at(**at) if at else repeat for repeat in self.repeats])
        return {model: mean for model, mean in means.items() if not np.isnan(mean.value).any()}

    def of_means(
        self, score: OfRisk, function: Callable[[dict[str, Estimate]], dict[Any, Estimate]]
    ) -> tuple[dict[Any, Estimate], bool]:
        """Estimate smooth functions of the means of a score; also say whether there are enough events."""
        if self.summed is not None:
            found, events = self.summed.of_means(score, function)
            return found, events >= MINIMUM_EVENTS
        return function(self.curve(score)), net_benefit.enough_events(self, score.time)

    def mean_of(self, score: CaseScore, model: str) -> Estimate:
        """The mean of a score that is made for one of the models, over all subjects, in the first repeat."""
        first = self.repeats[0]
        return self._again(score, [first._replace(cases={model: first.cases[model]})])[model]

    def _again(self, score: CaseScore, repeats: list[Repeat]) -> dict[str, Estimate]:
        """Means of another score; C is fitted again less often where it is by bootstrap."""
        decided = replace(self.decided, scores=[score], subsets=self.subsets[:1])
        few = [repeat._replace(censoring=repeat.censoring.with_refits(CURVE_REFITS)) for repeat in repeats]
        means = {model: each.estimate(score.name) for model, each in evaluate_all(decided, few).items()}
        return {model: mean for model, mean in means.items() if mean is not None}

    @cached_property
    def pair_measures(self) -> Discrimination:
        """Concordance and AUC of every forecast and outcome that has them, with their influences."""
        if not self.kind.views:
            return self.ranked_at(None)
        every = Discrimination([])
        for name in self.kind.ranked:
            part, first = self.of(name).pair_measures, len(every.measures)
            every.measures.extend(measure.of_outcome(name) for measure in part.measures)
            every.values.update({(s, m, first + k): e for (s, m, k), e in part.values.items()})
            every.unavailable.update({(s, m, first + k): e for (s, m, k), e in part.unavailable.items()})
        return every

    def ranked_at(self, times: np.ndarray | None) -> Discrimination:
        """Concordance and AUC of one outcome, or the AUC at other times."""
        repeats = self.repeats if times is None else [repeat.at(times=times) for repeat in self.repeats]
        if self.folded is not None:
            return self.folded.pair_measures(self, repeats)
        others = CONCORDANCES if times is None else ()
        return discriminate(repeats[0].cases, self.decided.scope, others)

    def one_time(self, time: float | None = None) -> float:
        """A time between 0 and the horizon, the middle one of the evaluation times by default."""
        times = self.decided.times
        t = as_number(times[len(times) // 2] if time is None else time, "time", infinite=True)
        if not 0 < t < self.horizon:
            raise InvalidInputError(f"time must lie between 0 and the horizon, {self.horizon:g}; got {t:g}.")
        return t

    def at(self, time: float | None = None) -> tuple[Comparison, float]:
        """The comparison of the forecasts that are known at a time, and that time; see :meth:`one_time`."""
        t = self.one_time(time)
        known = {model: self.evaluations[model] for model, case in self.cases.items() if case.knows(t)}
        return (self if len(known) in (0, len(self.cases)) else replace(self, evaluations=known)), t

    def one(self, picture: str, outcome: str | None) -> Comparison:
        """The comparison of the outcome that a picture or a table of one event is about."""
        if outcome is None and not self.kind.views:
            return self
        outcome = self.kind.pictured(picture, set())[0] if outcome is None else outcome
        if why_not := self.kind.not_pictured(picture, outcome):
            raise InvalidInputError(why_not)
        return self.of(outcome)

    def folds(self) -> pd.DataFrame:
        """Of a cross-validation: one line per repeat, fold, score, time or level, and model.

        Columns: ``repeat`` and ``fold`` (from 1), ``train`` (training subjects), ``subjects`` and ``events``
        of the fold, ``score``, ``at``, ``model``, ``mean`` and ``seconds`` (to fit the model and forecast).

        The spread of the means over folds is no standard error of their mean: the folds share training
        subjects.
        """
        if not (lines := self.fold_lines):
            raise InvalidInputError("folds: got fixed forecasts; cross_validate(models, X, y) has folds.")
        return data_frame(lines)

    # ---- tables ------------------------------------------------------------------------------------

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """In words, for each outcome: the best forecast, what is tied with it, and what is clearly worse."""
        return verdicts_of(self)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the first outcome, which is the only one of a single event time."""
        return self.verdicts[0]

    def frame(self, discrimination: bool = True) -> pd.DataFrame:
        """One line per subset, score, time or level, and model.

        Columns: ``by`` and ``group`` (the subset), ``score``, ``at`` (time or level), ``model``, ``mean``,
        ``standard_error``, ``low``, ``high``, ``rank``, ``skill`` with ``skill_standard_error``,
        ``skill_low`` and ``skill_high``, ``events`` (the effective number that the line is based on),
        ``infinite`` (how many losses are), ``proper`` (False for concordance and AUC, which are descriptive
        and of which more is better; their intervals are within [0, 1]) and ``note``.

        Where a line is based on fewer than five effective events, the note says "cannot tell", and there is
        no standard error, interval or rank: see :meth:`effective_events`.
        """
        check_flag(discrimination, "discrimination")
        return data_frame(shown_lines(self, mean_lines(self, discrimination)))

    def differences(self, adjustment: str = "max-t", discrimination: bool = True) -> pd.DataFrame:
        """Paired differences between all forecasts, over the same subjects.

        Parameters
        ----------
        adjustment : {"max-t", "holm", "none"}
            How p-values and intervals are made to hold for all pairs of one line (one score at one time or
            level in one subset) together. ``"max-t"`` takes the joint distribution of the differences from
            their influences.
        discrimination : bool
            Also give the differences of concordance and AUC, where the comparison has them.

        Returns
        -------
        DataFrame
            ``difference`` is the value of ``model`` minus that of ``versus``. Where ``better`` is "lower"
            (all scores), a negative difference favours ``model``; where it is "higher" (concordance and AUC,
            which are descriptive and not ``proper``), a negative difference favours ``versus``.
            ``p_value`` is for each pair alone, ``p_adjusted``, ``low`` and ``high`` for all pairs together:
            an interval excludes zero if and only if the adjusted p-value is below 1 - confidence (up to the
            noise of the simulation behind "max-t"). p-values are resolved down to 1e-16; smaller ones are
            given as that. With fewer than five effective events they are NaN, and ``note`` says "cannot
            tell".
        """
        check_flag(discrimination, "discrimination")
        return data_frame(shown_lines(self, difference_lines(self, adjustment, discrimination)))

    def calibration(
        self,
        model: str,
        time: float | None = None,
        bins: int | None = None,
        span: float = 0.75,
        outcome: str | None = None,
    ) -> CalibrationCurve:
        """How the observed risk of the event by a time goes with the forecast risk.

        Parameters
        ----------
        model : str
            Name of the forecast.
        time : float, optional
            By default the middle one of the evaluation times.
        bins : int, optional
            Of equal numbers of subjects; by default ten, or one for every ten events where these are fewer.
        span : float
            Share of the subjects that each point of the smoothed curve is fitted to.
        outcome : str, optional
            One of :attr:`outcomes` that is a risk of one event, by default the first event time or cause.

        Returns
        -------
        CalibrationCurve
            Binned and smoothed curve with intervals, and the distances ICI, E50 and E90 from the diagonal.
            The intervals cover the estimation of the censoring distribution, and clusters.

        Raises
        ------
        PositivityError
            If a subject has P(C > t) = 0, and C is not known for all. Where it is, the observed risk is that
            of the subjects followed beyond t.
        """
        one = self.one("calibration", outcome)
        check_available("calibration", "calibration", self.producer)
        t = one.one_time(time)
        key = f"calibration of {model!r} at {t}, {bins}, {span}"
        return one.once(key, lambda: calibration_curve(one, model, t, bins, span))

    def net_benefit(
        self, time: float | None = None, thresholds: Any = None, outcome: str | None = None
    ) -> pd.DataFrame:
        """Decision curves: the net benefit of treating those whose risk by a time exceeds a threshold.

        Parameters
        ----------
        time, outcome
            As in :meth:`calibration`.
        thresholds : array, optional
            Risks in (0, 1); by default 50 up to the largest that some forecast gives to many subjects.

        Returns
        -------
        DataFrame
            ``model`` (also "treat all" and "treat none"), ``threshold``, ``net_benefit`` with
            ``standard_error``, ``low`` and ``high``, and ``gain``: the lead over the better one of treating
            all and treating none, with ``gain_low`` and ``gain_high`` (paired). Where C is known for every
            subject, they are those of the subjects followed beyond the time.

        Raises
        ------
        PositivityError
            If a subject has P(C > t) = 0, and C is not known for all.
        """
        return data_frame(net_benefit.decision_lines(self.one("decision", outcome), time, thresholds))

    def classification(
        self, time: float | None = None, thresholds: Any = None, outcome: str | None = None
    ) -> pd.DataFrame:
        """Sensitivity, specificity, PPV and NPV of calling those positive whose risk exceeds a threshold.

        Parameters
        ----------
        time, outcome
            As in :meth:`calibration`.
        thresholds : array, optional
            Risks in (0, 1), by default 0.1 to 0.5.

        Returns
        -------
        DataFrame
            ``model``, ``time``, ``threshold``, and each measure with ``_standard_error``, ``_low`` and
            ``_high``: see :mod:`censcore.evaluation.measures.classification`. PPV is NaN where nobody is
            above the threshold.
        """
        return data_frame(
            classification.classification_lines(self.one("decision", outcome), time, thresholds)
        )

    def roc(self, time: float | None = None, outcome: str | None = None) -> pd.DataFrame:
        """ROC curves at a time: sensitivity over 1 - specificity, for thresholds from the largest risk down.

        Parameters
        ----------
        time, outcome
            As in :meth:`classification`.

        Returns
        -------
        DataFrame
            ``model``, ``time``, ``threshold``, ``fpr``, and ``tpr`` with ``_standard_error``, ``_low`` and
            ``_high``. The area is that of the AUC, up to ties and 200 thresholds.
        """
        return data_frame(classification.roc_lines(self.one("decision", outcome), time))

    def auc(self, times: Any = None, outcome: str | None = None) -> pd.DataFrame:
        """AUC at other times than those of the table.

        Parameters
        ----------
        times : array, optional
            Before the horizon; by default the evaluation times.
        outcome : str, optional
            As in :meth:`calibration`.

        Returns
        -------
        DataFrame
            ``model``, ``time``, ``events`` (effective), ``auc`` with ``standard_error``, ``low`` and
            ``high``, which are pointwise.
        """
        return data_frame(classification.auc_lines(self.one("decision", outcome), times))

    def risks(self, time: float | None = None, outcome: str | None = None) -> pd.DataFrame:
        """How the forecast risks are distributed in those with and without the event by a time.

        Parameters
        ----------
        time, outcome
            As in :meth:`classification`.

        Returns
        -------
        DataFrame
            ``model``, ``time``, ``status``, ``share`` (of the subjects), ``mean`` and quantiles of the risk,
            with inverse-probability weights.
        """
        return data_frame(classification.risk_lines(self.one("decision", outcome), time))


def concluded(evaluations: dict[str, Evaluation], **about: Any) -> Comparison:
    """Set evaluations of the same subjects side by side, and write what a reader should know of them."""
    first = next(iter(evaluations.values()))
    found = Comparison(evaluations, first.decided, **about)
    notes = [*first.decided.notes, *notes_on_unavailable(found.losses.unavailable), *first.notes]
    found.notes.extend([*notes, *reading_notes(first.decided, found.cases, found.losses.values, found.means)])
    found.notes.extend(notes_on_ranks(found))
    return found
