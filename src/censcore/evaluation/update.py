"""Update a model to new subjects: a ladder of changes, and how far up it the data lead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_number, check_flag
from censcore.distributions import Distribution
from censcore.estimators import SurvivalEstimator, one_event_time
from censcore.estimators.regression.closed_test import closed_test
from censcore.estimators.regression.recalibrated import RUNGS, Recalibrated
from censcore.evaluation.cross_validate import cross_validate
from censcore.exceptions import CenscoreError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05  # of the closed test


@dataclass(frozen=True, repr=False, eq=False)
class Update:
    """The ladder of :func:`update`: every rung fitted, and the one that the data support.

    Attributes
    ----------
    rungs : dict
        Name -> fitted model, from "as it is" to "refit".
    chosen : str
        The simplest rung whose score is within one standard error of the best.
    time, score : float, str
        The time whose risk is updated, and the score of the choice.
    table : DataFrame
        What ``frame()`` copies.
    closed_test : DataFrame or None
        ``rung``, ``statistic``, ``degrees_of_freedom`` and ``p_value``; the answer is ``attrs["answer"]``.
    nested : DataFrame or None
        Scores ``as_it_is`` and ``updated`` with their paired ``difference`` and its ``standard_error``, where
        the choice is repeated in every fold.
    notes : list of str
        What a reader should know.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> T, C = rng.exponential(np.exp(-X[:, 0])), rng.uniform(0.5, 3.0, 400)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> published = cs.PublishedCox({0: 1.0}, baseline={1.0: 0.6})  # its baseline survival is too high
    >>> updated = cs.update(published, X, y, time=1.0, nested=False)
    >>> updated.chosen
    'intercept'
    >>> print(updated.model)
    intercept: P(T > t | x) = S0(t)^exp(L), S0(1) = 0.3658, L = 1 column 0
    """

    rungs: dict[str, Recalibrated]
    chosen: str
    time: float
    score: str
    table: pd.DataFrame
    closed_test: pd.DataFrame | None
    nested: pd.DataFrame | None
    notes: list[str] = field(default_factory=list)

    @property
    def model(self) -> Recalibrated:
        """The chosen rung, which has ``predict_distribution(X)`` and prints its equation."""
        return self.rungs[self.chosen]

    def frame(self) -> pd.DataFrame:
        """One line per rung.

        Columns: ``rung``, ``changes`` (what is estimated), ``score`` (mean, cross-validated, lower is better)
        with ``standard_error``, ``difference`` to the best rung with its paired
        ``difference_standard_error``, and ``chosen``.
        """
        return self.table.copy()

    def __repr__(self) -> str:
        """Print the ladder, the choice and its equation."""
        table = self.table.drop(columns="changes").round(4).to_string(index=False)
        lines = [f"Update at time {self.time:g}: {self.chosen}", "", table]
        if self.nested is not None:
            line = self.nested.iloc[0]
            lines += [
                "",
                f"{self.score} of the whole procedure, nested: {line.updated:.4f}; of the model as it is: "
                f"{line.as_it_is:.4f}",
                f"difference {line.difference:+.4f} (standard error {line.standard_error:.4f})",
            ]
        if self.closed_test is not None:
            table = self.closed_test.round(4).to_string(index=False)
            lines += ["", f"Closed test (Wald): {self.closed_test.attrs['answer']}", "", table]
        lines += ["", self.model.equation, *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines)


def update(
    model: Any,
    X: Array | None,
    y: Any,
    *,
    time: float,
    score: str = "binomial_log_score",
    cv: Any = 10,
    censoring: Any = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    standard_errors: float = 1.0,
    nested: bool = True,
    seed: int = 0,
) -> Update:
    r"""Update a fitted or published model to new subjects, by no more than the data support.

    The ladder has five rungs: the model as it is; one intercept; the baseline hazard again; baseline and
    slope; all coefficients, shrunken towards those of the model (see
    :class:`~censcore.estimators.regression.recalibrated.Recalibrated`). The rung is the simplest whose
    cross-validated score is within one standard error of the best, the error being that of the paired
    difference.

    Parameters
    ----------
    model : fitted model
        A :class:`PublishedCox`, or anything that :func:`as_forecast` takes with X.
    X : array or frame, (n, p)
        Covariates of the new subjects.
    y : RightCensored, structured array or frame
        Their outcome.
    time : number
        The time whose risk is updated; follow-up is cut there.
    score : str
        A proper score of one time, as in :func:`compare`.
    cv, censoring, sample_weight, groups
        As in :func:`cross_validate`.
    standard_errors : number
        How far from the best score the chosen rung may be. With one, as the default, little data leave the
        model as it is; with less, the update is bolder.
    nested : bool
        Cross-validate the whole procedure too, the choice included. The score of the chosen rung is
        optimistic, since it was chosen for it; the nested one is not.
    seed : int
        Of the folds.

    Returns
    -------
    Update
        ``rungs``, ``chosen``, ``model``, ``frame()``, ``nested`` and ``closed_test``.

    Notes
    -----
    The closed test of Vergouwe et al. [1]_ is printed beside, in its Wald form: the refitted model, without
    shrinkage, is tested against the model as it is, against one intercept, and against baseline and slope,
    with robust errors, and the first that is not rejected is its answer.

    Censoring is assumed independent of the event time given the covariates; for "intercept", independent of
    both.

    References
    ----------
    .. [1] Y. Vergouwe, D. Nieboer, R. Oostenbrink, T. P. A. Debray, G. D. Murray, M. W. Kattan, H.
       Koffijberg, K. G. M. Moons and E. W. Steyerberg (2017). A closed testing procedure to select an
       appropriate method for updating prediction models. Statistics in Medicine 36, 4529-4539.
    .. [2] E. W. Steyerberg, G. J. J. M. Borsboom, H. C. van Houwelingen, M. J. C. Eijkemans and J. D. F.
       Habbema (2004). Validation and updating of predictive logistic regression models: a study on sample
       size and shrinkage. Statistics in Medicine 23, 2567-2586.

    See Also
    --------
    PublishedCox : A model from a paper.
    cross_validate : Compare the rungs with models of your own.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 2))
    >>> T, C = rng.exponential(np.exp(-X[:, 0])), rng.uniform(0.5, 3.0, 300)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> right = cs.PublishedCox({0: 1.0}, baseline=cs.Exponential(1.0))
    >>> cs.update(right, X, y, time=1.0, nested=False).chosen
    'as it is'
    """
    check_flag(nested, "nested")
    within = as_number(standard_errors, "standard_errors", least=0.0)
    ladder = Ladder(model, time, score, cv, censoring, within, seed)
    ladder.fit(X, y, sample_weight, groups=groups)
    return Update(
        ladder.rungs_, ladder.chosen_, float(time), score, ladder.table_,
        _closed(model, X, y, time, sample_weight, groups, ladder.notes_),
        _nested(ladder, X, y, sample_weight, groups) if nested else None, ladder.notes_,
    )  # fmt: skip


class Ladder(SurvivalEstimator):
    """The choice of a rung as an estimator: ``fit`` chooses and fits, so that it can be cross-validated."""

    def __init__(
        self,
        model: Any,
        time: float,
        score: str,
        cv: Any = 10,
        censoring: Any = None,
        standard_errors: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.time = time
        self.score = score
        self.cv = cv
        self.censoring = censoring
        self.standard_errors = standard_errors
        self.seed = seed

    def __sklearn_clone__(self) -> Ladder:
        """Make a copy around the same fitted model."""
        return type(self)(
            self.model, self.time, self.score, self.cv, self.censoring, self.standard_errors, self.seed
        )

    def fit(
        self, X: Array | None, y: Any, sample_weight: Array | None = None, *, groups: Array | None = None
    ) -> Self:
        """Score every rung by cross-validation, choose one, and fit them all to all subjects."""
        import pandas as pd

        y = one_event_time(y, "update")
        time = as_number(self.time, "time", above=0.0)
        rungs = {name: Recalibrated(self.model, time, name) for name in RUNGS}
        self.notes_: list[str] = []
        self.rungs_ = {}
        for name, rung in rungs.items():
            try:
                self.rungs_[name] = rung.fit(X, y, sample_weight)
            except CenscoreError as error:
                if name in ("as it is", "intercept", "baseline"):
                    raise
                self.notes_.append(f"The rung {name!r} is not available: {error}")
        comparison = _scored(self, self.rungs_, X, y, sample_weight, groups)
        means = comparison.frame(discrimination=False).set_index("model")
        if len(means) != len(self.rungs_) or means["mean"].isna().any():
            raise InvalidInputError(
                f"score: got {self.score!r}, expected a proper score of one time, such as "
                "'brier_score:ipcw' or 'binomial_log_score'."
            )
        pairs = comparison.differences("none", discrimination=False)
        errors = {frozenset(pair): e for *pair, e in pairs[["model", "versus", "standard_error"]].to_numpy()}
        best = str(means["mean"].idxmin())
        lines = [
            {
                "rung": name,
                "changes": RUNGS[name],
                "score": means["mean"][name],
                "standard_error": means.standard_error[name],
                "difference": means["mean"][name] - means["mean"][best],
                "difference_standard_error": errors.get(frozenset((name, best)), 0.0),
            }
            for name in self.rungs_
        ]
        table = pd.DataFrame(lines)
        self.chosen_ = simplest(table, self.standard_errors)
        self.table_ = table.assign(chosen=table.rung == self.chosen_)
        return self

    def predict_distribution(self, X: Array | None = None) -> Distribution:
        """Predict by the chosen rung."""
        self.check_fitted()
        return self.rungs_[self.chosen_].predict_distribution(X)


def simplest(table: pd.DataFrame, standard_errors: float) -> str:
    """Name the first rung whose score is within so many standard errors of the best, or has no error.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"rung": ["as it is", "slope"], "difference": [0.2, 0.0]})
    >>> simplest(table.assign(difference_standard_error=[0.3, 0.0]), 1.0)
    'as it is'
    """
    near = ~(table.difference > standard_errors * table.difference_standard_error)
    return str(table.rung[near].iloc[0])


def _scored(ladder: Ladder, models: dict[str, Any], X: Any, y: Any, weight: Any, groups: Any) -> Any:
    """Models, cross-validated by the score at the time."""
    return cross_validate(
        models, X, y, cv=ladder.cv, censoring=ladder.censoring, scores=ladder.score,
        times=[float(ladder.time)], horizon=float(ladder.time), reference=None, sample_weight=weight,
        groups=groups, discrimination=False, seed=ladder.seed, progress=False,
    )  # fmt: skip


def _nested(ladder: Ladder, X: Any, y: Any, weight: Any, groups: Any) -> pd.DataFrame:
    """The score of the whole procedure, the choice included, beside that of the model as it is."""
    import pandas as pd

    models = {"as it is": Recalibrated(ladder.model, ladder.time, "as it is"), "updated": ladder}
    comparison = _scored(ladder, models, X, y, weight, groups)
    means = comparison.frame(discrimination=False).set_index("model")
    pair = comparison.differences("none", discrimination=False).iloc[0]
    sign = 1.0 if pair.model == "updated" else -1.0
    line = {"as_it_is": means["mean"]["as it is"], "updated": means["mean"]["updated"]}
    line |= {"difference": sign * pair.difference, "standard_error": pair.standard_error}
    return pd.DataFrame([line])


def _closed(model: Any, X: Any, y: Any, time: float, weight: Any, groups: Any, notes: list[str]) -> Any:
    """The closed test as a table with its answer, or a note on why there is none."""
    import pandas as pd

    try:
        table = pd.DataFrame(closed_test(model, X, y, time, weight, groups))
    except (CenscoreError, np.linalg.LinAlgError) as error:
        notes.append(f"The closed test is not available: {error}")
        return None
    kept = table.rung[table.p_value >= LEVEL]
    answer = str(kept.iloc[0]) if len(kept) else "refit"
    table.attrs["answer"] = answer
    return table
