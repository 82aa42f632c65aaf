"""The scores by name, and what is known of each: the one list that everything else reads.

Comparisons, scorers, the command line, the documentation and studies take names, titles, order and properties
from here; nothing is read from the spelling of a name. The file of a score registers it; a custom score is
registered by :func:`~censcore.scores.score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from censcore._arrays import Array
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike

Axis = Literal["time", "level", ""]
Scale = Literal["localized", "ipcw"]
CensoringUse = Literal["none", "at times", "integrated", "area", ""]

# cited by several scores
GRAF = (
    "Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of prognostic "
    "classification schemes for survival data. Statistics in Medicine 18, 2529-2545."
)
GNEITING = (
    "Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and estimation. "
    "Journal of the American Statistical Association 102, 359-378."
)


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
    uses_censoring : {"none", "at times", "integrated", "area", ""}
        How the mean depends on the censoring distribution, from which the standard errors of comparisons
        follow: not at all; by the weights of what is known at the evaluation times, and in no other way; as
        in the Brier score integrated over time; by an area under P(C > t), as in the pinball score. If empty,
        the derivative is numerical: right for every score, and slower.
    needs_density : bool
        Whether the forecast must have a density.
    has_skill : bool
        Whether 1 - loss / reference loss has a meaning: the loss has a zero that does not depend on the unit
        of time.
    joint : bool
        Whether it takes several event times per subject.
    univariate : bool
        Whether it takes one event time per subject and any forecast of it, as comparisons do.
    causes : {"sum", "own", None}
        What the score of competing risks as a whole is, ``score(y, forecast)`` with all causes: half the sum
        of the scores of any cause and of each, a formula of its own, or an error. Every score takes one
        cause, ``score(y.cause(j), forecast.cause(j))``.
    losses : callable, optional
        ``losses(inputs, ...)``, those of checked
        :class:`~censcore.scores.inputs.scoring_inputs.ScoringInputs`, which several scores of one forecast
        share. Scores made by :func:`~censcore.scores.score` have it.
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
    uses_censoring: CensoringUse = ""
    needs_density: bool = False
    has_skill: bool = True
    joint: bool = False
    univariate: bool = True
    causes: Literal["sum", "own"] | None = "own"
    losses: Callable[..., Array] | None = None
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

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"losses": None}  # a formula has no name of its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        same = (info.losses for info in SCORES.values() if info.function is state["function"])
        vars(self).update(state | {"losses": next(same, None)})

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


#: All scores in the order in which they are shown: those of the library, then others as they are registered.
SCORES: dict[str, ScoreInfo] = {}


def register(info: ScoreInfo) -> ScoreInfo:
    """Add a score to ``SCORES``, for comparisons, scorers, the command line and the documentation.

    Parameters
    ----------
    info : ScoreInfo
        What is known of it. A name that is taken can be given again only to the same function, as when a cell
        of a notebook is run twice.

    Returns
    -------
    ScoreInfo
        The entry.

    See Also
    --------
    censcore.scores.score : Makes a score of a formula, and registers it.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.scores import SCORES, ScoreInfo, register
    >>> info = register(ScoreInfo("my_crps", cs.crps, "my CRPS", formula="", reference=""))
    >>> list(SCORES)[-1]
    'my_crps'
    """
    other = SCORES.get(info.name)
    if other is not None and _place(other.function) != _place(info.function):
        raise InvalidInputError(
            f"name: got {info.name!r}, the name of {'.'.join(_place(other.function))}; expected a new one."
        )
    SCORES[info.name] = info
    return info


def _place(function: Callable[..., Array]) -> tuple[str, str]:
    return function.__module__, getattr(function, "__qualname__", repr(function))


def no_such_score(name: object, known: Iterable[str]) -> str:
    """What an error says of an unknown name: the nearest known one, and all that there are."""
    names = list(known)
    near = get_close_matches(str(name), names, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return f"There is no score called {name!r}.{meant} There are {', '.join(names)}."


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
        raise InvalidInputError(no_such_score(name, SCORES))
    return SCORES[name]
