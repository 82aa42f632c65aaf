"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from censcore._validation import check_flag
from censcore.evaluation.calibration import CalibrationCurve, calibration_curve
from censcore.evaluation.decision_curve import decision_lines
from censcore.evaluation.scored_forecasts import ScoredForecasts
from censcore.evaluation.tables import Line, data_frame, difference_lines, mean_lines
from censcore.evaluation.verdict import Verdict, verdicts_of
from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from censcore.evaluation.charts import Chart

__all__ = ["Comparison"]


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(ScoredForecasts):
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
        ``skill_low`` and ``skill_high``, ``events`` (the effective number that the line rests on),
        ``infinite`` (how many losses are), ``proper`` (False for concordance and AUC, which are descriptive
        and of which more is better; their intervals are within [0, 1]) and ``note``.

        Where a line rests on fewer than five effective events, the note says "cannot tell", and there is no
        standard error, interval or rank: see :meth:`effective_events`.
        """
        check_flag(discrimination, "discrimination")
        return data_frame(self.shown(mean_lines(self, discrimination)))

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

        Raises
        ------
        PositivityError
            If a subject has P(C > t) = 0, and C is not known for all. Where it is, the observed risk is that
            of the subjects followed beyond t.
        """
        key = f"calibration of {model!r} at {time}, {bins}, {span}"
        if key not in self.made:
            self.made[key] = calibration_curve(self, model, time, bins, span)
        found: CalibrationCurve = self.made[key]
        return found

    @property
    def calibration_note(self) -> str:
        """How p-values of calibration are to be read; empty where they are what they seem."""
        return ""

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
            all and treating none, with ``gain_low`` and ``gain_high`` (paired). Where C is known for every
            subject, they are those of the subjects followed beyond the time.

        Raises
        ------
        PositivityError
            If a subject has P(C > t) = 0, and C is not known for all.
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
            benefit over thresholds (``time=``); ``"murphy"``: elementary scores over thresholds (``time=``,
            ``scale=``);
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
            Where to write it; ``"-"`` is standard output.
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
            Where to write it; ``"-"`` is standard output.

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
            Where to write it; ``"-"`` is standard output.

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
            Where to write it; ``"-"`` is standard output.

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


def _written(text: str, path: str | PathLike[str] | None) -> str:
    """The text, which is also written where a path is given."""
    if path is not None:
        write_atomically(path, text)
    return text
