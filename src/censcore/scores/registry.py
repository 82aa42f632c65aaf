"""The scores by name, and what is known of each: the one list that everything else reads.

Comparisons, scorers, the command line, the documentation and studies take names, titles, order and properties
from here; nothing is read from the spelling of a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from censcore._arrays import Array
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.scores.binomial_log import binomial_log_score
from censcore.scores.brier import brier_score
from censcore.scores.crps import crps
from censcore.scores.energy import energy_score
from censcore.scores.integrated_brier import integrated_brier_score
from censcore.scores.joint_brier import joint_brier_score
from censcore.scores.log import log_score
from censcore.scores.pinball import pinball_score

__all__ = ["SCORES", "Axis", "Scale", "ScoreInfo", "score_info"]

Axis = Literal["time", "level", ""]
Scale = Literal["localized", "ipcw"]


@dataclass(frozen=True)
class ScoreInfo:
    r"""What is known of a score.

    Parameters
    ----------
    name : str
        By which it is asked for, ``"crps"`` or ``"brier_score:ipcw"``.
    function : callable
        ``function(y, forecast, censoring, ..., horizon=...)``, one loss per subject.
    title : str
        For tables and axes.
    formula : str
        The loss in TeX; :math:`\delta` is the event indicator, :math:`G(t)=P(C>t)`.
    reference : str
        Where the score comes from.
    axis : {"time", "level", ""}
        What the columns of its losses are: evaluation times, quantile levels, or nothing for (n,) losses.
    scale : {"localized", "ipcw"}
        Whether losses are those of min(T, C), or divided by P(C > t).
    needs_density : bool
        Whether the forecast must have a density.
    has_skill : bool
        Whether 1 - loss / reference loss has a meaning: the loss has a zero that does not depend on the unit
        of time.
    joint : bool
        Whether it takes several event times per subject.
    univariate : bool
        Whether it takes one event time per subject and any forecast of it, as comparisons do.
    over_causes : bool
        Whether it takes competing risks as a whole, ``score(y, forecast)`` with all causes. Every score takes
        one cause, ``score(y.cause(j), forecast.cause(j))``.
    options : tuple of pairs
        Further arguments of ``function`` that belong to the name.
    unit : str
        In which the loss is measured.
    range : str
        Of the loss of one subject.
    proper : str
        For what the score is proper and where, if C is independent of T given the covariates and its
        distribution is right.
    pitfalls : tuple of str
        What goes wrong most often, in full sentences.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.scores.registry import SCORES
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> info = SCORES["brier_score:ipcw"]
    >>> info.needs_times, info.scale
    (True, 'ipcw')
    >>> info(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5], horizon=4.0).shape
    (3, 1)
    """

    name: str
    function: Callable[..., Array]
    title: str
    formula: str
    reference: str
    axis: Axis = ""
    scale: Scale = "localized"
    needs_density: bool = False
    has_skill: bool = True
    joint: bool = False
    univariate: bool = True
    over_causes: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    unit: str = ""
    range: str = ""
    proper: str = ""
    pitfalls: tuple[str, ...] = ()

    @property
    def needs_times(self) -> bool:
        """Whether evaluation times must be given."""
        return self.axis == "time"

    @property
    def needs_levels(self) -> bool:
        """Whether quantile levels must be given."""
        return self.axis == "level"

    def __call__(
        self,
        y: OutcomeLike,
        forecast: Distribution,
        censoring: Distribution | None = None,
        *,
        times: Array = None,
        levels: Array = None,
        horizon: Array = None,
    ) -> Array:
        """The losses, (n,) or (n, q); times and levels are passed on where the score has such an axis."""
        axis = {"times": times} if self.needs_times else {"levels": levels} if self.needs_levels else {}
        return self.function(y, forecast, censoring, horizon=horizon, **axis, **dict(self.options))


_GRAF = (
    "Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of prognostic "
    "classification schemes for survival data. Statistics in Medicine 18, 2529-2545."
)
_GNEITING = (
    "Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and estimation. "
    "Journal of the American Statistical Association 102, 359-378."
)

#: All scores in the order in which they are shown.
SCORES: dict[str, ScoreInfo] = {
    info.name: info
    for info in (
        ScoreInfo(
            "log_score",
            log_score,
            "log score",
            r"-\delta\log f(y)-(1-\delta)\log\{1-F(y)\}",
            "Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.",
            needs_density=True,
            has_skill=False,
            joint=True,
            unit="nats; another unit of time adds a constant for each event",
            range="any number; infinite if the forecast rules out what was seen",
            proper="Strictly proper for F where P(C >= t) > 0. It needs no censoring distribution.",
            pitfalls=(
                "A forecast without a density (a step curve, an ensemble) has no log score.",
                "One confident error dominates the mean: an impossible event costs infinity.",
                "The value depends on the unit of time, so only differences have a meaning.",
            ),
        ),
        ScoreInfo(
            "crps",
            crps,
            "CRPS",
            r"\int_0^y F(s)^2\,ds+\delta\int_y^\infty\frac{G(s)}{G(y-)}\{1-F(s)\}^2\,ds",
            _GNEITING,
            unit="the unit of time",
            range="0 to the horizon",
            proper="Strictly proper for F where P(C > t) > 0, with a horizon on [0, horizon).",
            pitfalls=(
                "Late times count for less, by the share of subjects still followed. Two studies with "
                "different follow-up have different values for the same forecast.",
                "Leaving out the factor G(s)/G(y-) after an event makes the score improper.",
            ),
        ),
        ScoreInfo(
            "brier_score",
            brier_score,
            "Brier score",
            r"1\{y>t\}F(t)^2+\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}\{1-F(t)\}^2",
            "Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly "
            "Weather Review 78, 1-3.",
            axis="time",
            unit="none (a squared probability)",
            range="0 to 1",
            proper="Strictly proper for the probability F(t), if P(C > t) > 0.",
            pitfalls=(
                "It falls to zero at the end of follow-up, where almost nobody is left. Compare forecasts "
                "by it, and do not read its height as accuracy.",
                "Its size depends on how common the event is. Report it beside that of a Kaplan-Meier curve.",
            ),
        ),
        ScoreInfo(
            "brier_score:ipcw",
            brier_score,
            "Brier score, ipcw",
            r"\frac{1\{y>t\}}{G(t)}F(t)^2+\frac{\delta\,1\{y\le t\}}{G(y-)}\{1-F(t)\}^2",
            _GRAF,
            axis="time",
            scale="ipcw",
            options=(("scale", "ipcw"),),
            unit="none (a squared probability)",
            range="0 to 1/G(t)",
            proper="Strictly proper for the probability F(t), if P(C > t) > 0 for every subject.",
            pitfalls=(
                "Weights grow as G(t) falls, and a handful of subjects decide the score. Check the largest "
                "weight, and choose a horizon.",
                "At tied times an event must be divided by G(y-) = P(C >= y). Libraries that divide by G(y) "
                "give another number.",
                "Its size depends on how common the event is. Report it beside that of a Kaplan-Meier curve.",
            ),
        ),
        ScoreInfo(
            "integrated_brier_score:ipcw",
            integrated_brier_score,
            "integrated Brier score, ipcw",
            r"\frac1h\int_0^h\frac{1\{y>t\}}{G(t)}F(t)^2+\frac{\delta\,1\{y\le t\}}{G(y-)}\{1-F(t)\}^2\,dt",
            _GRAF,
            scale="ipcw",
            options=(("scale", "ipcw"), ("normalize", True)),
            unit="none (a squared probability, averaged over [0, h])",
            range="0 to the largest weight, 1/G(h-)",
            proper="Strictly proper for F on [0, h), if P(C >= h) > 0 for every subject.",
            pitfalls=(
                "It has no value without its horizon h. Numbers with different horizons cannot be compared.",
                "Sums over a grid of times are another number than the integral, and depend on the grid.",
            ),
        ),
        ScoreInfo(
            "binomial_log_score",
            binomial_log_score,
            "binomial log score",
            r"-1\{y>t\}\log\{1-F(t)\}-\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}\log F(t)",
            _GRAF,
            axis="time",
            unit="nats",
            range="0 to infinity",
            proper="Strictly proper for the probability F(t), if P(C > t) > 0.",
            pitfalls=(
                "A forecast of exactly 0 or 1 that is wrong costs infinity. Step curves and small ensembles "
                "often have such forecasts.",
                "It is localized: as for the Brier score, its height falls as follow-up ends.",
            ),
        ),
        ScoreInfo(
            "pinball_score",
            pinball_score,
            "pinball score",
            r"\alpha(y-q_\alpha)_++\delta\frac{1-\alpha}{G(y-)}\int_y^{q_\alpha\vee y}G(s)\,ds",
            "Koenker, R. and Bassett, G. (1978). Regression quantiles. Econometrica 46, 33-50.",
            axis="level",
            over_causes=False,
            unit="the unit of time",
            range="0 or more",
            proper="Consistent for the quantile q, if P(C > q) > 0.",
            pitfalls=(
                "A quantile beyond follow-up cannot be judged: with 30 % events there is no median to score.",
                "It judges one quantile. A forecast with a good median may have useless tails.",
            ),
        ),
        ScoreInfo(
            "energy_score",
            energy_score,
            "energy score",
            r"E\|\psi_C(Z)-y\|-\tfrac12E\|\psi_C(Z)-\psi_C(Z')\|,\quad\psi_c(z)=\min(z,c)",
            _GNEITING,
            joint=True,
            univariate=False,
            unit="the unit of time",
            range="0 or more",
            proper="Strictly proper for the joint distribution at times t with P(C > t) > 0.",
            pitfalls=(
                "The coordinate with the longest times dominates. Scale the times if all should count.",
                "It is less sensitive to wrong dependence than to wrong margins. Add a joint Brier score.",
                "A small ensemble is scored as the empirical distribution that it is, and loses by its size. "
                "For a sample from a model take the fair version.",
            ),
        ),
        ScoreInfo(
            "energy_score:fair",
            energy_score,
            "energy score, fair",
            r"E\|\psi_C(Z)-y\|-\tfrac12E_{Z\ne Z'}\|\psi_C(Z)-\psi_C(Z')\|,\quad\psi_c(z)=\min(z,c)",
            "Ferro, C. A. T. (2014). Fair scores for ensemble forecasts. Quarterly Journal of the Royal "
            "Meteorological Society 140, 1917-1923.",
            joint=True,
            univariate=False,
            options=(("fair", True),),
            unit="the unit of time",
            range="may be slightly negative for a small ensemble",
            proper="Strictly proper for the joint distribution from which the members are drawn.",
            pitfalls=("Members must be independent draws. For selected members take the other version.",),
        ),
        ScoreInfo(
            "joint_brier_score",
            joint_brier_score,
            "Brier score",
            r"W(t)\{B(t)-p(t)\}^2,\quad W(t)=1\{y>t\}+\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}",
            _GRAF,
            axis="time",
            joint=True,
            univariate=False,
            unit="none (a squared probability)",
            range="0 to 1; slightly below 0 is possible where the probability is estimated from draws",
            proper="Strictly proper for the probability p(t) of the joint event, if P(C > t) > 0.",
            pitfalls=(
                'It is decided later than a single event: "both by t" is known only when the second is seen.',
                "It judges one joint event at one time. The energy score judges the whole distribution.",
            ),
        ),
    )
}


def score_info(name: str) -> ScoreInfo:
    """What is known of the score called ``name``.

    Parameters
    ----------
    name : str
        A key of ``SCORES``.

    Returns
    -------
    ScoreInfo

    Examples
    --------
    >>> from censcore.scores.registry import score_info
    >>> score_info("pinball_score").axis
    'level'
    """
    if not isinstance(name, str) or name not in SCORES:
        raise InvalidInputError(f"There is no score called {name!r}; there are {', '.join(SCORES)}.")
    return SCORES[name]
