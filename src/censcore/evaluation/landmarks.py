"""Comparisons at landmarks: forecasts of what comes next, for those at risk at a time s.

A landmark s is an entry that all subjects share: :meth:`censcore.RightCensored.after` keeps those at risk
at s, and forecasts are judged given T > s. :func:`compare_landmarks` makes one comparison per landmark.
:func:`at_landmark` finds the subjects at risk, their covariates at s and their outcome in a table with one
row per interval of constant covariates (start, stop].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators import as_forecast
from censcore.estimators.covariates import check_rows, take_rows
from censcore.evaluation.compare import compare
from censcore.evaluation.comparison import Comparison
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored, as_outcome

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["LandmarkComparison", "at_landmark", "compare_landmarks"]

#: Options of ``compare`` with one value per subject.
PER_SUBJECT = ("sample_weight", "groups")


@dataclass(frozen=True, eq=False)
class LandmarkComparison:
    """One comparison per landmark.

    Attributes
    ----------
    landmarks : array, (L,)
        The landmarks, ascending.
    comparisons : list of Comparison
        The comparison of the subjects at risk at each of them.

    See Also
    --------
    compare_landmarks : Makes it.
    censcore.evaluation.Comparison : What each landmark has.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> T = np.random.default_rng(0).exponential(1.0, 200)
    >>> y = cs.RightCensored(T, np.ones(200))
    >>> cs.compare_landmarks({"exponential": cs.Exponential(1.0)}, y, landmarks=[0.5, 1.0], scores="crps")
    Comparisons at landmarks 0.5 (139 at risk), 1 (83 at risk)
    """

    landmarks: np.ndarray
    comparisons: list[Comparison]

    def __getitem__(self, i: int) -> Comparison:
        return self.comparisons[i]

    def __len__(self) -> int:
        return len(self.comparisons)

    def frame(self) -> pd.DataFrame:
        """Mean losses as in :meth:`Comparison.frame`, with the landmark and the number at risk first."""
        return self._stacked(lambda found: found.frame(discrimination=False))

    def differences(self, adjustment: str = "max-t") -> pd.DataFrame:
        """Paired differences at every landmark; p-values are adjusted within a landmark, not across them."""
        return self._stacked(lambda found: found.differences(adjustment, discrimination=False))

    def _stacked(self, table: Callable[[Comparison], pd.DataFrame]) -> pd.DataFrame:
        import pandas as pd

        parts = []
        for s, found in zip(self.landmarks, self.comparisons, strict=True):
            part = table(found)
            part.insert(0, "landmark", s)
            part.insert(1, "at_risk", len(found.outcome))
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def plot(self, score: str = "brier_score") -> Figure:
        """Mean losses over the landmarks, with their intervals; of scores with an axis at its last place.

        Parameters
        ----------
        score : str
            The name of a score of the comparisons.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from censcore.evaluation.plots import COLOURS
        from censcore.evaluation.style import new_figure, styled

        table = self.frame()
        table = table[table["score"] == score]
        if not len(table):
            raise InvalidInputError(f"score: got {score!r}, expected one of the scores that were compared.")
        last = table.groupby(["landmark", "model"], sort=False).tail(1)
        with styled(grid=True):
            figure = new_figure(7.0, 3.6)
            axes = figure.subplots()
            for i, (model, lines) in enumerate(last.groupby("model", sort=False)):
                error = np.abs(lines[["low", "high"]].to_numpy().T - lines["mean"].to_numpy())
                axes.errorbar(
                    lines["landmark"], lines["mean"], error, marker="o", capsize=3, lw=1.8,
                    color=COLOURS[i % len(COLOURS)], label=str(model),
                )  # fmt: skip
            axes.set(xlabel="landmark", ylabel="mean loss, lower is better", ylim=(0, None))
            axes.legend(frameon=False)
            title = next(kind.title for kind in self.comparisons[0].scores if kind.name == score)
            axes.set_title(f"{title} of subjects at risk at the landmark", fontsize=10)
        return figure

    def __repr__(self) -> str:
        count = ", ".join(
            f"{s:g} ({len(found.outcome)} at risk)"
            for s, found in zip(self.landmarks, self.comparisons, strict=True)
        )
        return f"Comparisons at landmarks {count}"


def compare_landmarks(
    forecasts: Mapping[str, Any],
    y: OutcomeLike,
    censoring: Any = None,
    *,
    landmarks: Iterable[float],
    window: float | None = None,
    X: Any = None,
    **options: Any,
) -> LandmarkComparison:
    r"""Compare forecasts at landmarks: given survival to s, of the subjects at risk at s.

    At each landmark s the outcome is ``y.after(s)`` and forecasts are judged as T given T > s. Proper where
    the scores are: C is independent of T given the covariates (with delayed entry, the pair of entry and C).

    Parameters
    ----------
    forecasts : mapping of str to forecasts
        Distributions of all subjects of y, fitted models, or what else ``as_forecast`` takes. A function
        ``f(s, subjects)`` gives the distributions of the subjects (an array of their numbers) at risk at s,
        on the same scale of time: predictions that are made anew at the landmark.
    y : RightCensored, structured array or frame
        The outcome of n subjects.
    censoring : Distribution or estimator, optional
        As in :func:`censcore.compare`.
    landmarks : numbers
        The landmarks.
    window : float, optional
        Scores of times are taken at s + window; at quartiles of the event times if omitted.
    X : array or frame, (n, p), optional
        Covariates.
    **options
        Of :func:`censcore.compare`: ``train``, ``scores``, ``horizon``, ``sample_weight``, ``groups``, ...

    Returns
    -------
    LandmarkComparison
        A table of means and of differences, a plot, and the comparison of each landmark.

    See Also
    --------
    at_landmark : Subjects, covariates and outcome at a landmark, from a table of intervals.
    censcore.compare : One comparison.

    References
    ----------
    .. [1] van Houwelingen, H. C. and Putter, H. (2012). Dynamic Prediction in Clinical Survival Analysis.
       CRC Press.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 1))
    >>> T, C = 2 * np.exp(0.5 * x[:, 0]) * rng.weibull(1.5, 400), rng.uniform(0, 6, 400)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> models = {"scale": cs.Weibull(1.5, 2 * np.exp(0.5 * x[:, 0])), "flat": cs.Weibull(1.5, 2.0)}
    >>> found = cs.compare_landmarks(
    ...     models, y, cs.Censoring(cs.KaplanMeier()), landmarks=[0.5, 1.5], window=1.0, scores="brier_score",
    ... )
    >>> found.frame()[["landmark", "at_risk", "model", "mean"]].round(3)
       landmark  at_risk  model   mean
    0       0.5      310  scale  0.164
    1       0.5      310   flat  0.200
    2       1.5      152  scale  0.167
    3       1.5      152   flat  0.198
    """
    y = as_outcome(y)
    check_rows(X, len(y))
    places = np.unique(np.asarray(list(landmarks), dtype=np.float64))
    if not places.size:
        raise InvalidInputError("landmarks must name at least one time; got none.")
    if window is not None and "times" in options:
        raise InvalidInputError(
            "got times and window, expected one of them: window is a time after each landmark."
        )
    comparisons = []
    for s in places:
        subjects = np.nonzero(to_numpy(y.at_risk(float(s))))[0]
        here = dict(options) if window is None else {**options, "times": [float(s) + window]}
        for name in PER_SUBJECT:
            if here.get(name) is not None:
                here[name] = to_numpy(here[name])[subjects]
        chosen = {str(name): _at(F, float(s), subjects, X, len(y)) for name, F in forecasts.items()}
        here |= {"discrimination": False, "X": take_rows(X, subjects)}
        comparisons.append(compare(chosen, y.after(float(s)), _of_subjects(censoring, subjects), **here))
    return LandmarkComparison(places, comparisons)


def _at(forecast: Any, s: float, subjects: np.ndarray, X: Any, n: int) -> Distribution:
    """The forecast for the subjects at risk at s."""
    is_function = callable(forecast) and not isinstance(forecast, Distribution)
    if is_function and not hasattr(forecast, "predict_distribution"):
        return as_forecast(forecast(s, subjects), n=len(subjects))
    return _of_subjects(as_forecast(forecast, X, n=n), subjects)


def _of_subjects(distribution: Any, subjects: np.ndarray) -> Any:
    some = isinstance(distribution, Distribution) and len(distribution) > 1
    return distribution.take(subjects) if some else distribution


def at_landmark(
    frame: pd.DataFrame,
    s: float,
    *,
    id: str = "id",
    start: str = "start",
    stop: str = "stop",
    event: str = "event",
) -> tuple[pd.DataFrame, RightCensored]:
    """Rows and outcome of the subjects at risk at a landmark, from a table of intervals (start, stop].

    The table has one row per subject and interval in which its covariates are constant (the long format of
    lifelines and of R's survival). The row that holds s, start <= s < stop, has what is known at s. The
    outcome is that of the whole subject: its last stop, and whether its last row ends with the event.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    s : float
        The landmark.
    id, start, stop, event : str
        Columns: the subject, the ends of the interval, and 1 where the interval ends with the event.

    Returns
    -------
    rows : pandas.DataFrame
        One row per subject at risk, with the covariates at s.
    y : RightCensored
        Their outcome, with the entry s.

    Examples
    --------
    >>> import pandas as pd
    >>> import censcore as cs
    >>> table = pd.DataFrame(
    ...     [[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [2, 0, 1, 0, 3], [3, 1, 4, 0, 4]],
    ...     columns=["id", "start", "stop", "event", "x"],
    ... )
    >>> rows, y = cs.at_landmark(table, 3.0)
    >>> rows["x"].tolist(), y.time, y.event, y.entry
    ([9, 4], array([5., 4.]), array([ True, False]), array([3., 3.]))
    """
    missing = [name for name in (id, start, stop, event) if name not in frame.columns]
    if missing:
        raise InvalidInputError(
            f"Columns {missing} are not in the table, which has {list(frame.columns)[:20]}."
        )
    ordered = frame.sort_values([id, start, stop], kind="stable")
    same = ordered[id].to_numpy()[1:] == ordered[id].to_numpy()[:-1]
    begins, ends = (ordered[name].to_numpy(dtype=np.float64) for name in (start, stop))
    wrong = np.append(same & ((begins[1:] < ends[:-1]) | (ordered[event].to_numpy()[:-1] != 0)), False)
    wrong |= ~(begins < ends)
    if wrong.any():
        subjects = ordered[id].to_numpy()[wrong]
        raise InvalidInputError(
            "Intervals must have start < stop, must not overlap, and only the last one of a subject may end "
            f"with the event; that is not so for {len(set(subjects.tolist()))} subjects ({id} = "
            f"{subjects[0]}, ...)."
        )
    rows = ordered[(begins <= s) & (s < ends)]
    if not len(rows):
        raise InvalidInputError(f"No subject is at risk at {s:g}: got intervals up to {ends.max():g}.")
    last = ordered.groupby(id).tail(1).set_index(id).loc[rows[id]]
    y = RightCensored(last[stop].to_numpy(dtype=np.float64), last[event].to_numpy(), entry=float(s))
    return rows, y
