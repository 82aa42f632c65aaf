"""Comparisons at landmarks: forecasts of what comes next, for those at risk at a time s.

A landmark s is an entry that all subjects share: :meth:`censcore.RightCensored.after` keeps those at risk
at s, and forecasts are judged given T > s. :func:`compare_landmarks` makes one comparison per landmark.
:func:`censcore.at_landmark` finds the subjects at risk and their covariates in a table of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_list, as_number, as_numbers, is_auto
from censcore.distributions import Distribution
from censcore.estimators.covariates import take_rows
from censcore.estimators.regression.landmark_cox import LandmarkCox
from censcore.estimators.subjects import NO_PAIRS
from censcore.evaluation.compare import compare_asked
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.decisions.asked import read
from censcore.evaluation.decisions.decide import Settled, settle
from censcore.evaluation.decisions.forecasts import KAPLAN_MEIER, as_distributions, check_forecasts
from censcore.evaluation.decisions.subsets import labels_by
from censcore.evaluation.inference.adjustment import adjust
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.units import Units, common_codes
from censcore.evaluation.kinds import Kind
from censcore.evaluation.landmark_rows import check_window, forecast_at, of_subjects, sample_at
from censcore.evaluation.lines import Line as TableLine
from censcore.evaluation.lines import data_frame
from censcore.evaluation.measures.availability import LANDMARKS, REFUSED, check_available, rule
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.outcome_table import check_in_memory
from censcore.evaluation.report.charts import Chart, Intervals, Line, Mark, Panel, look_of
from censcore.evaluation.report.draw import figure_of
from censcore.evaluation.sample import Sample
from censcore.exceptions import CenscoreError, HorizonError, InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import OutcomeLike, StartStop
from censcore.outcomes.start_stop import rows_in_force

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class LandmarkComparison:
    """One comparison per landmark.

    Attributes
    ----------
    landmarks : array, (L,)
        The landmarks, ascending.
    comparisons : list of Comparison
        The comparison of the subjects at risk at each of them.
    at_risk : list of array of int
        Numbers of these subjects.
    units : list of array of int
        For the units of each comparison, their numbers among those of all subjects.
    notes : list of str
        Landmarks that were left out, and why.

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
    at_risk: list[np.ndarray]
    units: list[np.ndarray]
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, i: int) -> Comparison:
        return self.comparisons[i]

    def __len__(self) -> int:
        return len(self.comparisons)

    def frame(self, discrimination: bool = True) -> pd.DataFrame:
        """Means as in :meth:`Comparison.frame`, with the landmark and the number at risk first."""
        return self._stacked(lambda comparison: comparison.frame(discrimination))

    def differences(self, adjustment: str = "max-t", discrimination: bool = True) -> pd.DataFrame:
        """Paired differences at every landmark; p-values are adjusted within a landmark, not across them."""
        return self._stacked(lambda comparison: comparison.differences(adjustment, discrimination))

    def average(self) -> pd.DataFrame:
        """Means over the landmarks, each with the same weight, of scores with one number at every landmark.

        Scores of times have one number with ``window=``. Subjects at risk at several landmarks make the means
        depend on each other; the standard errors account for it.
        """
        confidence = self.comparisons[0].confidence
        lines = [
            about | {"model": model, "mean": float(estimate.value[0])} | _spread(estimate, confidence)
            for about, estimates in self._averages()
            for model, estimate in estimates.items()
        ]
        return data_frame(lines)

    def average_differences(self, adjustment: str = "max-t") -> pd.DataFrame:
        """Paired differences of :meth:`average`; p-values and intervals hold for all pairs of a score."""
        first, lines = self.comparisons[0], list[TableLine]()
        for about, estimates in self._averages():
            if len(estimates) < 2:
                continue
            every = Estimate.differences(list(estimates.values()))
            together = adjust([every], adjustment, first.confidence, first.seed)
            for j, (a, b) in enumerate(combinations(estimates, 2)):
                estimate, p = every.column(j), together.p_value[j]
                difference = {"model": a, "versus": b, "difference": float(estimate.value[0])}
                tests = {"p_value": float(estimate.p_value[0]), "p_adjusted": float(p)}
                lines.append(about | difference | _spread(estimate, together.confidence, tests))
        return data_frame(lines)

    def _averages(self) -> Iterator[tuple[TableLine, dict[str, Estimate]]]:
        """What a line is about, and the averages of the models that have one number at every landmark."""
        refits = any(comparison.resolved_censoring.refit is not None for comparison in self.comparisons)
        check_available("A mean over landmarks", "mean over landmarks", LANDMARKS, refits=refits)
        first, L = self.comparisons[0], len(self.comparisons)
        for score in first.scores:
            known = {}
            for model in first.models:
                means = [comparison.estimate(model, score.name) for comparison in self.comparisons]
                pairs = zip(means, self.units, strict=True)
                single = [m.renumbered(unit) for m, unit in pairs if m is not None and len(m.value) == 1]
                if len(single) == L:
                    known[model] = average(single, [1 / L] * L)
            if known:
                yield {"score": score.name, "outcome": score.outcome, "landmarks": L}, known

    def _stacked(self, table: Callable[[Comparison], pd.DataFrame]) -> pd.DataFrame:
        import pandas as pd

        parts = []
        for s, comparison in zip(self.landmarks, self.comparisons, strict=True):
            part = table(comparison)
            part.insert(0, "landmark", s)
            part.insert(1, "at_risk", len(comparison.outcome))
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def plot(self, score: str = "brier_score", outcome: str | None = None) -> Figure:
        """Mean losses over the landmarks, with their intervals; of scores with an axis at its last place.

        Parameters
        ----------
        score : str
            The name of a score of the comparisons.
        outcome : str, optional
            Of competing risks or several event times: which outcome, by default the first that has the score.

        Returns
        -------
        matplotlib.figure.Figure
        """
        table = self.frame(discrimination=False)
        table = table[table["score"] == score]
        if not len(table):
            raise InvalidInputError(f"score: got {score!r}, expected one of the scores that were compared.")
        there = table["outcome"].unique().tolist() if "outcome" in table else [""]
        if outcome is not None and outcome not in there:
            expected = f"one of {', '.join(there)}" if there != [""] else "None: there is one event time"
            raise InvalidInputError(f"outcome: got {outcome!r}, expected {expected}.")
        outcome = outcome or there[0]
        table = table[table["outcome"] == outcome] if outcome else table
        last = table.groupby(["landmark", "model"], sort=False).tail(1)
        marks: list[Mark] = []
        for i, (model, lines) in enumerate(last.groupby("model", sort=False)):
            x, y, low, high = (lines[name].to_numpy() for name in ("landmark", "mean", "low", "high"))
            marks += [Line(str(model), x, y, look_of(i)), Intervals(str(model), x, y, low, high, look_of(i))]
        top = 1.05 * float(np.nanmax(last[["mean", "high"]].to_numpy()))
        panel = Panel(marks, "landmark", "mean loss, lower is better", ylim=(0.0, top))
        name = f"{score}[{outcome}]" if outcome else score
        title = next((each.title for each in self.comparisons[0].scores if each.name in (name, score)), score)
        of = ":" if outcome else " of"  # the title names the outcome
        legend = {mark.name: mark.look for mark in marks if isinstance(mark, Line)}
        return figure_of(Chart(f"{title}{of} subjects at risk at the landmark", [panel], legend))

    def __repr__(self) -> str:
        pairs = zip(self.landmarks, self.at_risk, strict=True)
        count = ", ".join(f"{s:g} ({len(subjects)} at risk)" for s, subjects in pairs)
        return "\n".join([f"Comparisons at landmarks {count}", *(f"note: {note}" for note in self.notes)])


def _spread(estimate: Estimate, confidence: float, tests: TableLine | None = None) -> TableLine:
    """The columns of an estimate that come last; tests are between its error and its interval."""
    low, high = (float(end[0]) for end in estimate.interval(confidence))
    return {"standard_error": float(estimate.standard_error[0])} | (tests or {}) | {"low": low, "high": high}


def compare_landmarks(
    forecasts: Mapping[str, Any],
    y: OutcomeLike | Sample,
    censoring: Any = None,
    *,
    landmarks: Iterable[float],
    window: float | None = None,
    X: Any = None,
    train: Any = None,
    scores: Any = DEFAULT_SCORES,
    times: Any = None,
    levels: Any = None,
    reference: Any = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    time_unit: str = "",
    seed: int = 0,
    progress: bool | None = None,
) -> LandmarkComparison:
    r"""Compare forecasts at landmarks: given survival to s, of the subjects at risk at s.

    At each landmark s the outcome is ``y.after(s)`` and forecasts are judged as T given T > s, of competing
    risks as :math:`\{F_j(t)-F_j(s)\}/P(T>s)` given that no event of any cause came before s. Proper where
    the scores are: C is independent of T given the covariates (with delayed entry, the pair of entry and C).

    Parameters
    ----------
    forecasts : mapping of str to forecasts
        Distributions of all subjects of y, fitted models, or what else :func:`censcore.compare` takes.
        Predictions that are made anew at each landmark are a mapping ``{s: forecast}``, or a function
        ``f(s, subjects)`` of the landmark and an array of the numbers of the subjects at risk: distributions
        of those subjects (or of all), or a model or pair (model, X_s) that predicts for them. They are on
        the same scale of time, and may or may not be conditioned on T > s.
    y : RightCensored, CompetingRisks, StartStop, structured array or frame
        The outcome of n subjects. Of :class:`~censcore.StartStop`, X, ``by``, weights and groups have one row
        per interval; at each landmark those in force there are taken, from ``train`` as well, and models
        forecast by them. Subjects, errors and notes are those of the ids.
    censoring : Distribution or estimator, optional
        As in :func:`censcore.compare`.
    landmarks : numbers
        The landmarks.
    window : float, optional
        Scores of times are taken at s + window; at quartiles of the event times if omitted. A landmark from
        which follow-up does not support s + window (``horizon="auto"``) is left out, as ``notes`` say; with a
        horizon of yours it is an error. Needed for :class:`~censcore.LandmarkCox`, with which all scores are
        those up to s + window.
    X : array or frame, (n, p), optional
        Covariates.
    train, scores, times, levels, reference, horizon, by, sample_weight, groups
        As in :func:`censcore.compare`.
    confidence, discrimination, seed, time_unit, progress
        As in :func:`censcore.compare`.

    Returns
    -------
    LandmarkComparison
        A table of means and of differences, a plot, and the comparison of each landmark.

    See Also
    --------
    at_landmark : Sample, covariates and outcome at a landmark, from a table of intervals.
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
    >>> comparisons = cs.compare_landmarks(
    ...     models, y, cs.Censoring(cs.KaplanMeier()), landmarks=[0.5, 1.5], window=1.0, scores="brier_score",
    ...     reference=None,
    ... )
    >>> comparisons.frame(discrimination=False)[["landmark", "at_risk", "model", "mean"]].round(3)
       landmark  at_risk  model   mean
    0       0.5      310  scale  0.164
    1       0.5      310   flat  0.200
    2       1.5      152  scale  0.167
    3       1.5      152   flat  0.198
    """
    rows = Sample.scored(y, X, sample_weight, groups)
    check_in_memory(rows.y, "landmarks")
    sample, rows_of_train = of_subjects(rows), None if train is None else Sample.of(train)
    train = None if rows_of_train is None else of_subjects(rows_of_train)
    window = None if window is None else as_number(window, "window", above=0)
    if window is not None and times is not None:
        raise InvalidInputError(
            "got times and window, expected one of them: window is a time after each landmark."
        )
    places = landmark_times(landmarks)
    options = {
        "scores": scores, "times": times, "levels": levels, "reference": reference, "horizon": horizon,
        "by": None if rows is not sample else by, "confidence": confidence,
        "discrimination": discrimination, "time_unit": time_unit, "seed": seed, "progress": progress,
    }  # fmt: skip
    asked = read(forecasts, sample, censoring, train, **options)
    given = settle(asked)  # an error where weights or groups are not those of the subjects
    kind = given.kind
    if rule("mean loss", LANDMARKS, kind.called).how == REFUSED:
        raise UnsupportedOutcomeError(
            f"landmarks: got {type(sample.y).__name__}, whose subjects are at risk of some events and not of "
            "others. Compare one event, y.marginal(j) with the forecasts of it, or all of them without "
            "landmarks."
        )
    rows = rows if isinstance(rows.y, StartStop) else replace(sample, y=kind.y)
    labels = labels_by(by, rows.X, len(rows.y))
    at = _predictions(kind, forecasts, rows, asked.train)
    limited = _has_window(forecasts, window) and is_auto(horizon)
    found: dict[float, tuple[Comparison, np.ndarray, np.ndarray | None]] = {}
    notes: list[str] = []
    for s in map(float, places):
        try:
            scored, subjects, in_force = sample_at(rows, s)
            trained, numbers = asked.train, None
            if rows_of_train is not None and isinstance(rows_of_train.y, StartStop):
                trained, numbers, _ = sample_at(rows_of_train, s)
            here = replace(
                asked,
                forecasts={name: predict(s, subjects) for name, predict in at.items()},
                sample=scored,
                train=trained,
                censoring=_of_subjects(censoring, subjects),
                by={name: values[in_force] for name, values in labels.items()} or None,
                times=times if window is None else [s + window],
                horizon=s + window if limited and window is not None else horizon,
            )
            found[s] = compare_asked(here), subjects, numbers
        except CenscoreError as error:
            error.args = (f"At the landmark {s:g}: {error}", *error.args[1:])
            last = s == places[-1] and not found
            if last or not (isinstance(error, HorizonError) and is_auto(horizon)):
                raise
            notes.append(f"{error} The landmark is left out.")
    comparisons, at_risk, trained_at = (list(part) for part in zip(*found.values(), strict=True))
    units = common_units(given, comparisons, at_risk, trained_at)
    return LandmarkComparison(np.array(list(found)), comparisons, at_risk, units, notes)


def common_units(
    given: Settled,
    comparisons: list[Comparison],
    at_risk: list[np.ndarray],
    trained_at: Sequence[np.ndarray | None],
) -> list[np.ndarray]:
    """Number the units of each landmark as those of all subjects, and of all training subjects.

    ``trained_at`` are the numbers of the training subjects at each landmark; None where all are there.
    """
    pairs, n_train = [NO_PAIRS], 0
    for comparison, subjects, trained in zip(comparisons, at_risk, trained_at, strict=True):
        C = comparison.resolved_censoring
        if not C.in_sample:
            own = C.shared.pairs[:, 1] if trained is None else trained[C.shared.pairs[:, 1]]
            pairs.append(np.column_stack([subjects[C.shared.pairs[:, 0]], own]))
            n_train = max(n_train, C.n_train if trained is None else int(trained.max()) + 1)
    asked = given.asked
    labels = None if asked.train is None or not n_train else asked.train.groups
    codes = common_codes(asked.sample.groups, labels, n_train)
    every = Units.of(len(given.kind.y), n_train, given.groups, codes, np.concatenate(pairs))
    numbers = []
    for comparison, subjects, trained in zip(comparisons, at_risk, trained_at, strict=True):
        units = comparison.decided.scope.units
        number = np.empty(units.count, dtype=np.intp)
        if not comparison.resolved_censoring.in_sample:
            number[units.trained] = every.trained[slice(len(units.trained)) if trained is None else trained]
        number[units.scored] = every.scored[subjects]
        numbers.append(number)
    return numbers


def landmark_times(landmarks: Any) -> np.ndarray:
    """The landmarks, ascending, each once."""
    landmarks = to_numpy(landmarks) if hasattr(landmarks, "dtype") else landmarks
    single = isinstance(landmarks, Real) or (isinstance(landmarks, np.ndarray) and landmarks.ndim == 0)
    times = [landmarks] if single else as_list(landmarks, "landmarks", "times, such as [1.0, 2.0]")
    if not times:
        raise InvalidInputError("landmarks must name at least one time; got none.")
    return np.unique(as_numbers(times, "landmarks"))


def _has_window(forecasts: Any, window: float | None) -> bool:
    """Whether any forecast ends at s + w, which ``window`` must not exceed."""
    models = dict(forecasts) if isinstance(forecasts, Mapping) else {}
    check_window(models, window)
    return any(isinstance(model, LandmarkCox) for model in models.values())


def _predictions(
    kind: Kind, forecasts: Any, rows: Sample, train: Sample | None
) -> dict[str, Callable[[float, np.ndarray], Any]]:
    """What each forecast says of the subjects at risk at a landmark, as a function of both.

    Models whose covariates change, or that are of landmarks, forecast anew at each of them.
    """
    if not isinstance(forecasts, Mapping):
        check_forecasts(forecasts)  # an error that says what is expected
    by_landmark = {
        name: {float(s): F for s, F in forecast.items()}
        for name, forecast in forecasts.items()
        if isinstance(forecast, Mapping) and all(isinstance(key, Real) for key in forecast)
    }
    functions = {name: F for name, F in forecasts.items() if _is_function(F)}
    anew = {name: F for name, F in forecasts.items() if _is_anew(F, rows.y)}
    fixed = {name: F for name, F in forecasts.items() if name not in by_landmark | functions | anew}
    read = None if train is None else kind.read_training(train, [])
    X = None if isinstance(rows.y, StartStop) else rows.X
    distributions = as_distributions(kind, fixed, X, read) if fixed or not forecasts else {}

    def predicted(name: Any, s: float, subjects: np.ndarray) -> Any:
        if name in fixed:
            return _of_subjects(distributions[str(name)], subjects)
        if name in anew:
            model, X = forecasts[name] if isinstance(forecasts[name], tuple) else (forecasts[name], rows.X)
            return forecast_at(model, take_rows(X, rows_in_force(rows.y, s)[0]), s)
        if name in functions:
            return _of_subjects(functions[name](s, subjects), subjects, len(kind.y))
        if s not in by_landmark[name]:
            raise InvalidInputError(
                f"Forecast {name!r} has none at the landmark {s:g}; got forecasts at "
                f"{sorted(by_landmark[name])}."
            )
        return _of_subjects(by_landmark[name][s], subjects, len(kind.y))

    return {str(name): partial(predicted, name) for name in forecasts}


def _is_anew(forecast: Any, y: Any) -> bool:
    """Whether a model, or a pair of it and covariates, forecasts by what is in force at each landmark."""
    model = forecast[0] if isinstance(forecast, tuple) and len(forecast) == 2 else forecast
    return isinstance(model, LandmarkCox) or (isinstance(y, StartStop) and _is_model(model))


def _is_model(forecast: Any) -> bool:
    methods = ("predict", "predict_distribution", "predict_survival_function", "predict_surv_df")
    named = any(hasattr(forecast, name) for name in (*methods, "predict_partial_hazard"))
    return named and not isinstance(forecast, Distribution)


def _is_function(forecast: Any) -> bool:
    return callable(forecast) and not isinstance(forecast, Distribution) and not _is_model(forecast)


def _of_subjects(forecast: Any, subjects: np.ndarray, n: int | None = None) -> Any:
    """A forecast of the subjects at risk: one of all n subjects is cut to them, one for all is as it is."""
    several = isinstance(forecast, Distribution) and (len(forecast) > 1 if n is None else len(forecast) == n)
    return forecast.take(subjects) if several else forecast
