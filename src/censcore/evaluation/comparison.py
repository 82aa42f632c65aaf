"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._kept_values import KeepsValues
from censcore._validation import as_index, as_number, check_flag, check_kind, check_option
from censcore.evaluation.designs.fixed import Design
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Losses, Means, Scope, Subset
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.inference.units import Units
from censcore.evaluation.kinds import Kind
from censcore.evaluation.lines import data_frame
from censcore.evaluation.measures import classification, net_benefit
from censcore.evaluation.measures.calibration_curve import CalibrationCurve, calibration_curve
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.discrimination import Discrimination, Measure
from censcore.evaluation.measures.joint_scores import view_called
from censcore.evaluation.report.outputs import Outputs
from censcore.evaluation.report.table_lines import difference_lines, mean_lines, shown_lines
from censcore.evaluation.report.verdict import Verdict, verdicts_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Outputs, KeepsValues):
    """What :func:`compare` and :func:`cross_validate` found.

    Where there are several event times or causes, ``frame()`` and ``differences()`` have a column
    ``outcome``: "joint" or "all causes" for scores of all together, or the name of an event time, of a cause
    or of a joint event. :meth:`of` gives the comparison of one outcome, with all its tables and plots.

    Attributes
    ----------
    kind : Kind
        Of the outcome, and what it can be asked for.
    design : Design
        Where the losses come from: fixed forecasts, folds, or batches of a table.
    models : list of str
        Names of the forecasts, the reference last where it was added.
    scores : list of CaseScore
        What the forecasts were scored by.
    losses, means : Losses, Means
        Losses of all subjects, and their means with influences, by model and score.
    cases : dict of Case
        Name of the forecast -> forecast, outcome and censoring distribution.
    subsets : list of Subset
        All subjects first, then subgroups.
    notes : list of str
        What a reader should know: scores that are not available, infinite losses, missing parts.
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

    kind: Kind
    design: Design
    models: list[str]
    scores: list[CaseScore]
    losses: Losses
    means: Means
    cases: dict[str, Case]
    subsets: list[Subset]
    resolved_censoring: ResolvedCensoring
    reference: str | None
    confidence: float
    discrimination: bool
    seed: int
    X: Any = None
    groups: np.ndarray | None = None
    units: Units | None = None
    notes: list[str] = field(default_factory=list)
    time_unit: str = ""
    compared: dict[str, Any] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict, init=False)

    # ---- what was compared -------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """What means are taken over, and what their errors account for."""
        assert self.units is not None  # all subjects are in memory
        return Scope(self.subsets, self.resolved_censoring, self.units, self.seed)

    @property
    def outcome(self) -> RightCensored:
        """What happened; of competing risks, the time of the first event of any cause."""
        return self.design.case(self).y

    @property
    def horizon(self) -> float:
        """End of the comparison."""
        return self.design.any_case(self).horizon

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        return self.design.settings(self)

    @cached_property
    def censoring(self) -> Any:
        """How far the censoring distribution can be trusted."""
        return self.design.censoring(self)

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
        return self.once(view, lambda: self.design.part(self, view))

    def estimate(self, model: str, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence, None where the score is not available."""
        check_option(model, "model", self.models)
        check_kind(score, "score", str, "the name of a score")
        return self.means.values.get((as_index(subset, "subset"), model, score))

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
        if times is not None:
            return self.design.effective_events(self, score, s, times)
        key = "effective events", score.name, score.outcome, getattr(score, "at_time", None), s
        return self.once(key, lambda: self.design.effective_events(self, score, s, None))

    def curve(
        self, score: CaseScore, *, times: np.ndarray | None = None, levels: np.ndarray | None = None
    ) -> dict[str, Estimate]:
        """Means of a score at other times or levels, over all subjects, by model; where it is available."""
        return self.design.curve(self, score, times, levels)

    @cached_property
    def pair_measures(self) -> Discrimination:
        """Concordance and AUC of every forecast and outcome that has them, with their influences."""
        if not self.kind.views:
            return self.design.pair_measures(self)
        every = Discrimination([])
        for name in self.kind.ranked:
            part, first = self.of(name).pair_measures, len(every.measures)
            every.measures.extend(measure.of_outcome(name) for measure in part.measures)
            every.values.update({(s, m, first + k): e for (s, m, k), e in part.values.items()})
            every.unavailable.update({(s, m, first + k): e for (s, m, k), e in part.unavailable.items()})
        return every

    def one_time(self, time: float | None = None) -> float:
        """A time between 0 and the horizon, the middle one of the evaluation times by default."""
        times = self.design.case(self).times
        t = as_number(times[len(times) // 2] if time is None else time, "time", infinite=True)
        if not 0 < t < self.horizon:
            raise InvalidInputError(f"time must lie between 0 and the horizon, {self.horizon:g}; got {t:g}.")
        return t

    def at(self, time: float | None = None) -> tuple[Comparison, float]:
        """The comparison of the forecasts that are known at a time, and that time; see :meth:`one_time`."""
        t = self.one_time(time)
        cases = {model: case for model, case in self.cases.items() if case.knows(t)}
        if len(cases) in (0, len(self.cases)):
            return self, t
        return replace(self, cases=cases, models=[model for model in self.models if model in cases]), t

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
        lines = self.design.fold_lines(self)
        if not lines:
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
        one.design.case(one)  # an error where the subjects are not in memory
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
