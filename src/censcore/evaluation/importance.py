"""What matters: the rise of a proper score when a covariate is permuted, and risk against a covariate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import Array, to_numpy
from censcore._validation import as_confidence, as_count, as_frame, as_number, as_numbers, as_seed, check_kind
from censcore.distributions import Univariate
from censcore.estimators import Adapted, as_forecast
from censcore.estimators.covariates import column_of, count_rows, take_rows
from censcore.estimators.libraries.pipelines import fit_weighted, last_estimator, last_step
from censcore.evaluation.compare import compare
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.cross_validate import Folds, cross_validate
from censcore.evaluation.inference.adjustment import adjust
from censcore.evaluation.inference.estimates import UNITS, Estimate, beside, shares
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AS_IT_IS = "as it is"
POINTS = 20  # of a curve of risk against a number
LEVELS = 30  # distinct values up to which each is one point


@dataclass(frozen=True, repr=False, eq=False)
class Importance:
    """What :func:`importance` found.

    Attributes
    ----------
    score : str
        The score whose rise is reported.
    loss : float
        Its mean with the covariates as they are.
    table : DataFrame
        What ``frame()`` copies.
    estimate : Estimate
        The rises with their influences, in the order of the columns that were asked for.
    model, X, weight
        The fitted model, or None of a cross-validation; the covariates and the weights of the subjects.
    time : float or None
        The time of :meth:`dependence` where none is given.
    confidence : float
        Of all intervals.
    notes : list of str
        Those of the comparison.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> T, C = rng.exponential(np.exp(-X[:, 0] - 0.5 * X[:, 1])), rng.uniform(0.5, 4.0, 400)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.CoxRegression().fit(X[:200], y[:200])
    >>> found = cs.importance(model, X[200:], y[200:], cs.Censoring(cs.KaplanMeier()))
    >>> found.frame().column.tolist()
    ['column 0', 'column 1', 'column 2']
    """

    score: str
    loss: float
    table: pd.DataFrame
    estimate: Estimate
    model: Any
    X: Any
    weight: np.ndarray
    time: float | None
    confidence: float
    notes: list[str] = field(default_factory=list)

    def frame(self) -> pd.DataFrame:
        """One line per column or group of columns, the most important first.

        Columns: ``column``, ``importance`` (the rise of the mean score), ``standard_error``, ``low`` and
        ``high`` (which hold for all lines together), ``p_value`` and ``p_adjusted`` of "it does not matter",
        ``share`` (of the score as it is) and ``permutation_error`` (the part of the error that more
        permutations would remove).
        """
        return self.table.copy()

    def plot(self) -> Figure:
        """Draw the rises with their simultaneous intervals."""
        from censcore.evaluation.report.style import FAINT, TEAL, new_figure, styled

        lines = self.table.iloc[::-1]
        with styled():
            figure = new_figure(6.5, 1.2 + 0.32 * len(lines))
            axis = figure.subplots()
            places = np.arange(len(lines))
            axis.hlines(places, lines.low, lines.high, color=TEAL)
            axis.plot(lines.importance, places, "o", color=TEAL)
            axis.axvline(0.0, color=FAINT, zorder=0)
            axis.set_ylim(-0.5, len(lines) - 0.5)
            axis.set_yticks(places, lines.column)
            axis.set_xlabel(f"rise of {self.score} when permuted")
        return figure

    def dependence(self, column: str | int, time: float | None = None, values: Any = None) -> pd.DataFrame:
        r"""Compute the mean risk by a time if all subjects had the same value of a covariate.

        .. math:: \frac1n\sum_iF(t\mid x_{ij}=v,\,x_{i,-j})

        It averages over the subjects as they are, so that combinations may be among them that do not occur.

        Parameters
        ----------
        column : str or int
            Name of a column of X, or its number in an array.
        time : float, optional
            By default the time of the score, if it has one.
        values : array, optional
            Of the covariate; by default its quantiles, or its levels.

        Returns
        -------
        DataFrame
            ``value`` and ``risk`` with ``low`` and ``high``, which count the subjects that are averaged over.
        """
        import pandas as pd
        from scipy.stats import norm

        if self.model is None:
            raise InvalidInputError(
                "dependence: got models of folds, expected one fitted model. Call importance(model, X, y) "
                "with a fitted model and without cv."
            )
        t = self.time if time is None else as_number(time, "time", above=0.0)
        if t is None:
            raise InvalidInputError(f"time: got None, expected a time, since {self.score} has none.")
        check_kind(column, "column", (str, int), "the name of a column, or its number")
        raw = column_of(self.X, column)
        chosen = _values_of(raw) if values is None else _chosen(values, raw)
        z, lines = norm.ppf((1 + self.confidence) / 2), []
        for value in chosen:
            F = as_forecast(self.model, X=replaced(self.X, [column], partial(_constant, value)))
            if not isinstance(F, Univariate):
                raise InvalidTypeError(
                    f"dependence: got {type(F).__name__}, expected forecasts of one event time."
                )
            risk = np.broadcast_to(to_numpy(F.cdf(t)), (len(raw),))
            mean = float(self.weight @ risk)
            error = z * float(np.sqrt(np.sum((self.weight * (risk - mean)) ** 2)))
            lines.append({"value": value, "risk": mean, "low": mean - error, "high": mean + error})
        return pd.DataFrame(lines)

    def plot_dependence(self, column: str | int, time: float | None = None, values: Any = None) -> Figure:
        """Draw :meth:`dependence`.

        Parameters
        ----------
        column, time, values
            As in :meth:`dependence`.
        """
        from censcore.evaluation.report.style import TEAL, new_figure, styled

        table = self.dependence(column, time, values)
        name = column if isinstance(column, str) else f"column {column}"
        with styled():
            figure = new_figure(5.5, 3.4)
            axis = figure.subplots()
            if all(isinstance(value, str) for value in table.value):
                axis.errorbar(table.value, table.risk, yerr=(table.high - table.low) / 2, fmt="o", color=TEAL)
            else:
                axis.plot(table.value, table.risk, color=TEAL)
                axis.fill_between(
                    table.value.astype(float), table.low, table.high, alpha=0.2, color=TEAL, linewidth=0
                )
            axis.set(xlabel=name, ylabel="mean risk", ylim=(0.0, None))
        return figure

    def __repr__(self) -> str:
        """Print the table."""
        shown = self.table[["column", "importance", "standard_error", "low", "high", "p_adjusted", "share"]]
        head = f"Rise of {self.score} ({self.loss:.4g} with the covariates as they are)"
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([head, "", shown.round(4).to_string(index=False), *notes])


def importance(
    model: Any,
    X: Array,
    y: Any,
    censoring: Any = None,
    *,
    score: str = "crps",
    columns: Mapping[str, Any] | list[Any] | None = None,
    permutations: int = 20,
    cv: Any = None,
    train: Any = None,
    times: Any = None,
    horizon: float | str = "auto",
    sample_weight: Array | None = None,
    groups: Array | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Importance:
    r"""Measure how much a proper score rises when a covariate, or a group of columns, is permuted.

    .. math:: \frac1{nB}\sum_b\sum_i\bigl\{\ell(y_i,F(x_{\pi_b(i),j},x_{i,-j}))-\ell(y_i,F(x_i))\bigr\}

    over B random permutations :math:`\pi_b` of the subjects [1]_ [2]_. The censoring distribution keeps the
    covariates as they were. Errors count the subjects, whose outcomes are scored and whose values are given
    to others; the permutations; clusters; and the estimation of the censoring distribution. The model is
    fixed, except with ``cv``.

    Parameters
    ----------
    model : fitted model, or with ``cv`` a model to fit
        Anything that :func:`compare` takes with X, or :func:`cross_validate` fits.
    X : array or frame, (n, p)
        Covariates of the scored subjects.
    y, censoring, train, times, horizon, sample_weight, groups
        As in :func:`compare`, or :func:`cross_validate`.
    score : str
        A score with one mean, such as "crps"; of a score of times, give one in ``times``.
    columns : dict or list, optional
        Which columns: name of a group -> columns, or a list of columns. By default each column.
    permutations : int
        B, at least two.
    cv : int, splitter or Folds, optional
        Fit the model in folds, and permute the covariates of the subjects that each fold left out.
    confidence : float
        Of the intervals, which hold for all columns together.
    seed : int
        Of the permutations and the folds.

    Returns
    -------
    Importance
        ``frame()``, ``plot()``, ``dependence(column)`` and ``plot_dependence(column)``.

    Notes
    -----
    With the mean rise :math:`d_{ik}` of subject i that is given the values of subject k, the influence of a
    subject is that of its row and of its column of d: the first-order term of a U-statistic. It is estimated
    from B permutations, which adds their noise: the error is conservative, by a share of about 1/(2B).

    Correlated covariates stand in for each other: permuted one at a time both seem to matter little. Name
    them as one group. A permuted covariate may also meet values that never occur with it.

    References
    ----------
    .. [1] L. Breiman (2001). Random forests. Machine Learning 45, 5-32.
    .. [2] A. Fisher, C. Rudin and F. Dominici (2019). All models are wrong, but many are useful: learning a
       variable's importance by studying an entire class of prediction models simultaneously. Journal of
       Machine Learning Research 20(177).

    See Also
    --------
    compare : What makes the scores and their errors.
    Importance.dependence : Risk against one covariate.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> T, C = rng.exponential(np.exp(-X[:, 0])), rng.uniform(0.5, 4.0, 300)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> found = cs.importance(
    ...     cs.CoxRegression(), X, y, cv=3, columns={"the first": 0, "the others": [1, 2]}, permutations=5,
    ... )
    >>> found.frame().column.tolist()
    ['the first', 'the others']
    """
    B, seed = as_count(permutations, "permutations", least=2, most=1000), as_seed(seed)
    confidence = as_confidence(confidence)
    named, sample = _named(columns, X), Sample.scored(y, X, sample_weight, groups)
    runs = _Runs(model, sample, B, cv, seed, {
        "scores": score, "times": times, "horizon": horizon, "reference": None, "discrimination": False,
        "censoring": censoring, "seed": seed, "progress": False,
    } | ({} if train is None else {"train": train}))  # fmt: skip
    rises, noise = zip(*(runs.rise(j, group) for j, group in enumerate(named.values())), strict=True)
    together = beside(rises)
    adjusted = adjust([together], "max-t", confidence, seed)
    low, high = together.interval(adjusted.confidence)
    import pandas as pd

    table = pd.DataFrame({
        "column": list(named), "importance": together.value, "standard_error": together.standard_error,
        "low": low, "high": high, "p_value": together.p_value, "p_adjusted": adjusted.p_value,
        "share": together.value / (runs.loss or np.nan), "permutation_error": noise,
    })  # fmt: skip
    table = table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)
    return Importance(
        runs.score, runs.loss, table, together, None if cv is not None else model, X,
        shares(sample.weight, runs.n), runs.time, confidence, runs.notes,
    )  # fmt: skip


class _Runs:
    """Comparisons of the model as it is with its forecasts from permuted covariates."""

    def __init__(
        self, model: Any, sample: Sample, B: int, cv: Any, seed: int, options: dict[str, Any]
    ) -> None:
        self.model, self.sample, self.B, self.cv, self.seed = model, sample, B, cv, seed
        self.options = options | {"sample_weight": sample.weight, "groups": sample.groups}
        self.n = count_rows(sample.X)
        self.weight = None if sample.weight is None else shares(sample.weight, self.n)
        self.score, self.loss = "", np.nan
        self.time: float | None = None
        self.donors = np.zeros((B, self.n), dtype=np.intp)
        self.fitted: dict[bytes, Any] = {}
        self.notes: list[str] = []
        if isinstance(cv, Folds) and cv.repeats > 1:
            raise InvalidInputError("cv: got repeats, expected one draw of the folds, Folds(cv=5).")
        if cv is not None and "train" in options:
            raise InvalidInputError("train: got it together with cv, whose folds are the training subjects.")

    def rise(self, j: int, group: list[Any]) -> tuple[Estimate, float]:
        """The mean rise over the permutations with its influence, and the error of the permutations."""
        comparison = self._folds(j, group) if self.cv is not None else self._fixed(j, group)
        score, units = comparison.scores[0], comparison.decided.scope.units
        names = [AS_IT_IS, *map(str, range(self.B))]
        base, *rises = [comparison.estimate(name, score.name) for name in names]
        if base is None or len(base.value) != 1 or not np.isfinite(base.value[0]):
            raise InvalidInputError(
                f"score: got {score.name!r}, expected a score with one finite mean: of a score of times give "
                f"one, times=[t]. {' '.join(comparison.notes) if base is None else ''}"
            )
        if any(rise is None or not np.isfinite(rise.value[0]) for rise in rises):
            raise InvalidInputError(
                f"{score.name}: got an infinite loss of {group} when permuted, expected finite ones. Use a "
                "bounded score such as 'crps' or 'brier_score'."
            )
        share = comparison.subsets[0].weight
        if len(share) != self.n:
            raise InvalidInputError(
                f"cv: got folds that test {len(share)} of {self.n} subjects, expected all of them, once each."
            )
        self.notes, self.score, self.loss = list(comparison.notes), score.name, float(base.value[0])
        self.time = float(score.at(comparison.cases[AS_IT_IS])[0]) if score.axis == "time" else None
        known = [rise for rise in rises if rise is not None]
        value = np.mean([rise.value for rise in known], axis=0) - base.value
        influence = np.mean([rise.influence for rise in known], axis=0) - base.influence
        first, *others = (comparison.losses.values[name, score.name][:, 0] for name in names)
        d = np.stack(others) - first
        given = np.bincount(self.donors.ravel(), (share * (d - value)).ravel(), minlength=self.n) / self.B
        by_unit = np.bincount(units.scored, given, minlength=units.count)  # what values do to others
        influence[: len(base.rows[UNITS]), 0] += by_unit[base.rows[UNITS]]
        noise = float(np.sqrt(_interaction(d, self.donors) * np.sum(share**2) / self.B))
        return Estimate(value, influence, rows=base.rows), noise

    def _fixed(self, j: int, group: list[Any]) -> Comparison:
        X = self.sample.X
        for b in range(self.B):
            self.donors[b] = self._draw(np.arange(self.n), [self.seed, j, b])
        forecasts = {AS_IT_IS: (self.model, X)} | {
            str(b): (self.model, permuted(X, group, self.donors[b])) for b in range(self.B)
        }
        return compare(forecasts, self.sample.y, X=X, **self.options)

    def _folds(self, j: int, group: list[Any]) -> Comparison:
        rows = np.arange(self.n)[:, None]
        models = {AS_IT_IS: (self._forecast(j, None, group), rows)} | {
            str(b): (self._forecast(j, b, group), rows) for b in range(self.B)
        }
        return cross_validate(models, self.sample.X, self.sample.y, cv=self.cv, **self.options)

    def _draw(self, rows: np.ndarray, seed: list[int]) -> np.ndarray:
        """Whose values each of some subjects is given: a permutation, or draws by weight."""
        rng = np.random.default_rng(seed)
        if self.weight is None:
            return rng.permutation(rows)
        return rng.choice(rows, len(rows), p=self.weight[rows] / self.weight[rows].sum())

    def _forecast(self, j: int, b: int | None, group: list[Any]) -> Callable[..., Any]:
        """A forecast of numbered subjects by the model of their fold, which is fitted once."""

        def forecast(train: Any, y: Any, test: Any, sample_weight: Any = None, groups: Any = None) -> Any:
            train, test = train[:, 0], test[:, 0]
            if (key := train.tobytes()) not in self.fitted:
                ours = hasattr(last_estimator(self.model), "predict_distribution")
                model = clone(self.model, safe=False) if ours else Adapted(self.model)
                self.fitted[key] = fit_weighted(
                    model, take_rows(self.sample.X, train), y, sample_weight, groups
                )
            X = take_rows(self.sample.X, test)
            if b is not None:
                donors = self._draw(test, [self.seed, j, b, int(test[0])])
                self.donors[b, test] = donors
                X = permuted(X, group, np.arange(len(test)), take_rows(self.sample.X, donors))
            last, X = last_step(self.fitted[key], X)
            ours = hasattr(last, "predict_distribution")
            return last.predict_distribution(X) if ours else as_forecast(last, X=X)

        return forecast


def _interaction(d: np.ndarray, donors: np.ndarray) -> float:
    """The variance of d that is neither of its row nor of its column: what permutations leave to chance."""
    count, total, squares = (np.bincount(donors.ravel(), v.ravel()) for v in (np.ones_like(d), d, d**2))
    several = count > 1
    spread = squares[several] - total[several] ** 2 / count[several]
    of_donor = float(np.mean(spread / (count[several] - 1)))
    return max(float(d.var(axis=0, ddof=1).mean()) + of_donor - float(d.var()), 0.0)


# ---- columns ---------------------------------------------------------------------------------------


def _named(columns: Any, X: Any) -> dict[str, list[Any]]:
    """Groups of columns by name."""
    if X is None:
        raise InvalidInputError("X: got None, expected covariates, of which some matter.")
    known: list[Any] = list(as_frame(X, name="X").columns) if hasattr(X, "columns") else _numbers(X)
    if columns is None:
        columns = known
    if not isinstance(columns, Mapping):
        check_kind(columns, "columns", (list, tuple), "a dict of groups, or a list of columns")
        columns = {c if isinstance(c, str) else f"column {c}": c for c in columns}
    named = {
        str(name): list(group) if isinstance(group, list | tuple) else [group]
        for name, group in columns.items()
    }
    for name, group in named.items():
        unknown = [column for column in group if column not in known]
        if unknown or not group:
            raise InvalidInputError(f"columns: got {unknown} for {name!r}, expected some of {known[:20]}.")
    if not named:
        raise InvalidInputError("columns: got none, expected at least one.")
    return named


def _numbers(X: Any) -> list[int]:
    shape = getattr(X, "shape", np.asarray(X).shape)
    if len(shape) != 2:
        raise InvalidInputError(f"X: got shape {tuple(shape)}, expected (n, p).")
    return list(range(shape[1]))


def permuted(X: Any, group: list[Any], order: np.ndarray, source: Any = None) -> Any:
    """The covariates with some columns taken from other subjects, those of ``source`` in an order."""
    other = take_rows(X if source is None else source, order)
    return replaced(X, group, None, other)


def replaced(X: Any, group: list[Any], change: Callable[[Any], Any] | None, other: Any = None) -> Any:
    """The covariates with some columns changed, or taken from another table of the same kind."""
    if hasattr(X, "columns"):
        frame = as_frame(X, name="X")
        if change is None:
            source = as_frame(other, name="X")
            changed = [_like(frame.get_column(c), source.get_column(c)) for c in group]
        else:
            changed = [change(frame.get_column(c)) for c in group]
        return frame.with_columns(changed).to_native()
    values = np.array(to_numpy(X, "X"))
    values = values.astype(np.float64) if change is not None and values.dtype.kind in "biu" else values
    for c in group:
        values[:, c] = change(values[:, c]) if change is not None else to_numpy(other, "X")[:, c]
    return values


def _like(column: Any, values: Any) -> Any:
    """The values of one column in the place of another, whatever the labels of the rows are."""
    return column.scatter(np.arange(len(column)).tolist(), values.to_list())


def _constant(value: Any, old: Any) -> Any:
    """A column of one value."""
    if isinstance(old, np.ndarray):
        return np.full(len(old), value)
    import narwhals as nw

    new = nw.new_series(old.name, [value] * len(old), backend=old.implementation)
    return new if old.dtype.is_numeric() else new.cast(old.dtype)


def _chosen(values: Any, raw: np.ndarray) -> list[Any]:
    """Values that were asked for: numbers, or levels as text."""
    if raw.dtype.kind in "biuf":
        return as_numbers(values, "values").tolist()
    check_kind(values, "values", (list, tuple, np.ndarray), "a list of levels")
    return [str(value) for value in values]


def _values_of(raw: np.ndarray) -> list[Any]:
    """Values to compute risks at: all levels, or quantiles of a number."""
    known = [value for value in raw.tolist() if value is not None and value == value]
    distinct = sorted(set(known), key=lambda value: (isinstance(value, str), value))
    if len(distinct) <= LEVELS or isinstance(distinct[-1], str):
        return distinct[:LEVELS]
    return np.unique(np.quantile(np.array(known, dtype=np.float64), np.linspace(0.02, 0.98, POINTS))).tolist()
