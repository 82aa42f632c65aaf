"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_number, check_flag, check_kind, check_option
from censcore.distributions import Univariate
from censcore.evaluation.calibration import CalibrationCurve, calibration_curve
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.decision_curve import decision_lines
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.discrimination import Discrimination, Measure, discriminate
from censcore.evaluation.effective_events import effective_events, weighted_events
from censcore.evaluation.inference import Estimate
from censcore.evaluation.losses import Losses, Means, Subset, estimate_means, score_all
from censcore.evaluation.readings import readings_of
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.tables import Line, data_frame, difference_lines, mean_lines
from censcore.evaluation.verdict import Verdict, verdicts_of
from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore.outcomes import RightCensored, as_followed

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    from matplotlib.figure import Figure

    from censcore.evaluation.charts import Chart

__all__ = ["Comparison"]


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(KeepsValues):
    """What :func:`compare` found.

    Attributes
    ----------
    horizon : float
        End of the comparison.
    settings : dict
        Everything that was decided: horizon, times, levels, the censoring distribution, the errors.
    notes : list of str
        What a reader should know: scores that are not available, infinite losses, missing parts.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> fast, slow = cs.Exponential(1.0), cs.Exponential(0.3)
    >>> comparison = cs.compare({"fast": fast, "slow": slow}, y, cs.Uniform(0.0, 5.0), scores="crps")
    >>> comparison.differences(discrimination=False)[["model", "versus", "difference"]].round(3)
      model versus  difference
    0  fast   slow       0.749
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
        return cls(
            scores=scores,
            losses=losses,
            means=means,
            cases=cases,
            subsets=subsets,
            resolved_censoring=resolved,
            notes=[*notes, *resolved.notes, *losses.notes, *means.notes],
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
            seed=self.seed,
        )

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """In words, for each outcome: the best forecast, what is tied with it, and what is clearly worse."""
        return verdicts_of(self)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the first outcome, which is the only one of a single event time."""
        return self.verdicts[0]

    # ---- numbers -----------------------------------------------------------------------------------

    def events_of(self, score: CaseScore) -> tuple[np.ndarray, np.ndarray, Univariate]:
        """Observed times, which of them are events that a score is about, and the distribution of their C."""
        y, C = self._case.y, self.resolved_censoring.distribution
        return to_numpy(y.time), to_numpy(y.event), C.marginal(0)

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
        return self.means.values.get((subset, model, score))

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

    def frame(self, discrimination: bool = True) -> pd.DataFrame:
        """One line per subset, score, time or level, and model.

        Columns: ``by`` and ``group`` (the subset), ``score``, ``at`` (time or level), ``model``, ``mean``,
        ``standard_error``, ``low``, ``high``, ``rank``, ``skill`` with ``skill_standard_error``,
        ``skill_low`` and ``skill_high``, ``events`` (the effective number that the line rests on),
        ``infinite`` (how many losses are), ``proper`` (False for concordance and AUC, which are descriptive
        and of which more is better; their intervals are within [0, 1]) and ``note``.

        Where a line rests on fewer than five effective events, the note says "cannot tell", and there is no
        standard error, interval or rank: see :meth:`effective_events`.
        """
        check_flag(discrimination, "discrimination")
        return data_frame(self.shown(mean_lines(self, discrimination)))

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
        return data_frame(self.shown(difference_lines(self, adjustment, discrimination)))

    def shown(self, lines: list[Line]) -> list[Line]:
        """Lines of a table as ``frame()`` shows them."""
        return lines

    def one_time(self, time: float | None = None) -> float:
        """A time between 0 and the horizon, the middle one of the evaluation times by default."""
        times = self._case.times
        t = as_number(times[len(times) // 2] if time is None else time, "time", infinite=True)
        if not 0 < t < self.horizon:
            raise InvalidInputError(f"time must lie between 0 and the horizon, {self.horizon:g}; got {t:g}.")
        return t

    def calibration(
        self, model: str, time: float | None = None, bins: int | None = None, span: float = 0.75
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

        Returns
        -------
        CalibrationCurve
            Binned and smoothed curve with intervals, and the distances ICI, E50 and E90 from the diagonal.
            The intervals cover the estimation of the censoring distribution, and clusters.
        """
        key = f"calibration of {model!r} at {time}, {bins}, {span}"
        if key not in self.made:
            self.made[key] = calibration_curve(self, model, time, bins, span)
        found: CalibrationCurve = self.made[key]
        return found

    def net_benefit(self, time: float | None = None, thresholds: Any = None) -> pd.DataFrame:
        """Decision curves: the net benefit of treating those whose risk by a time exceeds a threshold.

        Parameters
        ----------
        time : float, optional
            By default the middle one of the evaluation times.
        thresholds : array, optional
            Risks in (0, 1); by default 50 up to the largest that some forecast gives to many subjects.

        Returns
        -------
        DataFrame
            ``model`` (also "treat all" and "treat none"), ``threshold``, ``net_benefit`` with
            ``standard_error``, ``low`` and ``high``, and ``gain``: the lead over the better one of treating
            all and treating none, with ``gain_low`` and ``gain_high`` (paired).
        """
        return data_frame(decision_lines(self, time, thresholds))

    # ---- pictures and pages ------------------------------------------------------------------------

    def pictured(self, kind: str) -> list[dict[str, Any]]:
        """Options of the pictures of a kind that a page shows, one entry per picture."""
        return [{}]

    def plot(self, kind: str = "brier", **options: Any) -> Figure:
        """A picture, by matplotlib.

        Parameters
        ----------
        kind : str
            ``"brier"``: Brier score over time with pointwise bands (``scale="ipcw"`` or ``"localized"``);
            ``"differences"``: paired differences from the reference with simultaneous intervals;
            ``"calibration"``: observed against forecast risk at a time, smoothed and binned (``time=``,
            ``bins=``, ``span=``); ``"d-calibration"``: shares of subjects by S(T); ``"decision"``: net
            benefit over thresholds (``time=``); ``"murphy"``: elementary scores over thresholds (``time=``);
            ``"pinball"``: pinball score over levels; ``"censoring"``: the censoring distribution and the
            weights of the events.
        **options
            Of the plot, such as ``scale="localized"`` or ``time=2.0``.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig(path)`` writes it.
        """
        from censcore.evaluation.draw import figure_of

        return figure_of(self.chart(kind, **options))

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data.

        Parameters
        ----------
        kind : str
            As in :meth:`plot`.
        **options
            As in :meth:`plot`.

        Returns
        -------
        Chart
            Panels with curves, bars and intervals in the coordinates of the data.
        """
        from censcore.evaluation.plots import CHARTS

        if kind not in CHARTS:
            raise InvalidInputError(f"There is no plot called {kind!r}; there are {', '.join(CHARTS)}.")
        return CHARTS[kind](self, **options)

    def to_html(self, path: str | PathLike[str] | None = None, title: str = "Comparison of forecasts") -> str:
        """One self-contained page: tables, pictures, the censoring diagnostic and the exact settings.

        Parameters
        ----------
        path : path, optional
            Where to write it.
        title : str
            Of the page.

        Returns
        -------
        str
            The page.
        """
        from censcore.evaluation.report import page

        return _written(page(self, title), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Verdict, settings, means, differences and notes as JSON.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str
            The document. Missing numbers are null, infinite ones the string "inf".
        """
        from censcore.evaluation.export import comparison_json

        text = comparison_json(self)
        _written(text + "\n", path)
        return text

    def to_latex(self, path: str | PathLike[str] | None = None) -> str:
        """The tables for LaTeX with the package booktabs; the caption of the first holds the verdict.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str
            One ``table`` environment per table.
        """
        from censcore.evaluation.export import comparison_latex

        return _written(comparison_latex(self), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """The verdict and the tables as Markdown.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str
            Text with pipe tables.
        """
        from censcore.evaluation.export import comparison_markdown

        return _written(comparison_markdown(self), path)

    def __repr__(self) -> str:
        from censcore.evaluation.text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from censcore.evaluation.report import notebook

        return notebook(self)


CURVE_REFITS = 25  # of the censoring distribution for the bands of a curve, where it needs them


def _written(text: str, path: str | PathLike[str] | None) -> str:
    """The text, which is also written where a path is given."""
    if path is not None:
        write_atomically(path, text)
    return text
