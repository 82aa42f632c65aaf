r"""Bootstrap cross-validation: models are fitted to bootstrap samples and scored on the subjects left out.

With the models :math:`\hat F_b` of B bootstrap samples, and the :math:`K_i` of them that leave out subject i,
the leave-one-out bootstrap estimate of the mean loss is

.. math:: \mathrm{Err}^{(1)}=\frac1n\sum_i\frac1{K_i}\sum_{b:\,i\notin b}\ell(y_i,\hat F_b(x_i),\hat G(x_i)).

It is the mean of a table with one row per subject and sample that leaves it out, with weights
:math:`1/K_i`, in which a subject is a cluster. So it is compared as such a table: influences, subgroups,
figures and all kinds of outcomes come with it. The censoring distribution is estimated from all subjects,
once. Errors are those of judging the B fitted models on new subjects, with the term of the refits
(:func:`refit_influence`).

A bootstrap sample holds 63.2 % of the subjects, so that :math:`\mathrm{Err}^{(1)}` is that of models fitted
to fewer subjects than there are. The .632+ estimate pulls it towards the apparent error
:math:`\overline{\mathrm{err}}` of models fitted to all, as far as these do not overfit: with the error
:math:`\gamma` of forecasts that are given to other subjects,

.. math:: \hat w\,\mathrm{Err}'+(1-\hat w)\,\overline{\mathrm{err}},\qquad
    \mathrm{Err}'=\min(\mathrm{Err}^{(1)},\gamma),\qquad
    \hat w=\frac{0.632}{1-0.368\hat R},\qquad
    \hat R=\frac{\mathrm{Err}'-\overline{\mathrm{err}}}{\gamma-\overline{\mathrm{err}}}\in[0,1].

The formula is that of ``pec`` in R [2]_, whose :math:`\mathrm{Err}^{(1)}` is averaged over samples instead of
subjects.

References
----------
.. [1] Efron, B. and Tibshirani, R. (1997). Improvements on cross-validation: the .632+ bootstrap method.
   Journal of the American Statistical Association 92, 548-560.
.. [2] Gerds, T. A. and Schumacher, M. (2007). Efron-type measures of prediction error for survival analysis.
   Biometrics 63, 1283-1287.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import to_numpy
from censcore._validation import as_count, as_seed, check_flag
from censcore.distributions import Distribution
from censcore.estimators.covariates import take_rows
from censcore.estimators.subjects import Shared
from censcore.evaluation.compare import decided
from censcore.evaluation.comparison import Comparison, concluded
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.decide import Settled, decide
from censcore.evaluation.decisions.subsets import labels_by
from censcore.evaluation.evaluation import Evaluation, Refits, Repeat, evaluate_all
from censcore.evaluation.inference.censoring_influence import has_influence, parts_of
from censcore.evaluation.inference.estimates import ROUNDING, Estimate
from censcore.evaluation.inference.mean_losses import shares_of
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.resolved_censoring import Refit, ResolvedCensoring, as_censoring, describe
from censcore.evaluation.inference.units import sums_within
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.availability import BOOTSTRAP
from censcore.evaluation.measures.case import in_time
from censcore.evaluation.measures.case_scores import losses_of
from censcore.evaluation.parts.folded import Folded
from censcore.evaluation.parts.folds import FoldRuns, Split, out_of_fold
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError

SHIFTS = 50  # of the forecasts among the subjects, at most, for the error without information;
ALL_SHIFTS = 500  # of scores at times, which are cheap, all of so many
OUT_OF_BAG = "for the models as fitted to the bootstrap samples, with the term of the refits"


Means = dict[tuple[int, str], Estimate]  # by number of the subset and name of the score


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap samples to train on, and the subjects that each leaves out to score: a splitter.

    Parameters
    ----------
    n_splits : int
        Number B of bootstrap samples.
    size : int, optional
        Subjects drawn for each; by default as many as there are. Where there are groups, groups are drawn.
    replace : bool
        Whether subjects are drawn with replacement; without it ``size`` must be smaller than their number.
    plus : bool
        Whether means of scores are the .632+ estimate in place of the leave-one-out bootstrap. Every model is
        then also fitted to all subjects.
    samples : array of int, (B, size), optional
        Samples that were drawn elsewhere, as numbers of subjects from 0; in place of all other options but
        ``plus``.
    random_state : int
        Seed of the draws.

    Examples
    --------
    >>> import censcore as cs
    >>> train, test = next(cs.Bootstrap(n_splits=20).split([[0.0]] * 6))
    >>> train, test
    (array([0, 2, 3, 3, 5, 5]), array([1, 4]))
    """

    n_splits: int = 100
    size: int | None = None
    replace: bool = True
    plus: bool = False
    samples: Any = field(default=None, repr=False)
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_splits", as_count(self.n_splits, "n_splits", least=2))
        check_flag(self.replace, "replace")
        check_flag(self.plus, "plus")
        object.__setattr__(self, "random_state", as_seed(self.random_state, "random_state"))
        if self.samples is None:
            return
        samples = to_numpy(self.samples, "samples")
        whole = samples.dtype.kind in "iuf" and bool((samples == np.floor(samples)).all())  # R has doubles
        if samples.ndim != 2 or len(samples) < 2 or not whole:
            raise InvalidInputError(
                f"samples: got an array of {samples.dtype} of shape {samples.shape}, expected whole numbers: "
                "one row of subject numbers for each of two or more bootstrap samples."
            )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of bootstrap samples."""
        return self.n_splits if self.samples is None else len(self.samples)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Training subjects, some of them several times, and those who are left out."""
        n = len(X)
        unit = np.arange(n) if groups is None else np.unique(to_numpy(groups), return_inverse=True)[1]
        for drawn in self._drawn(n, int(unit.max()) + 1, groups is not None):
            times = np.bincount(drawn, minlength=int(unit.max()) + 1)[unit]
            yield np.repeat(np.arange(n), times), np.nonzero(times == 0)[0]

    def _drawn(self, n: int, units: int, grouped: bool) -> Iterator[np.ndarray]:
        if self.samples is not None:
            numbers = to_numpy(self.samples).astype(np.intp)
            if grouped or numbers.min() < 0 or numbers.max() >= n:
                raise InvalidInputError(
                    f"samples: got subject numbers from {numbers.min()} to {numbers.max()}"
                    f"{' beside groups' if grouped else ''}, expected numbers from 0 to {n - 1}, and no "
                    "groups."
                )
            yield from numbers
            return
        size = units if self.size is None else as_count(self.size, "size", least=1)
        if not self.replace and size >= units:
            raise InvalidInputError(
                f"size: got {size} of {units} without replacement, expected fewer, so that some are left out."
            )
        rng = np.random.default_rng(np.random.SeedSequence(self.random_state, spawn_key=(2,)))
        for _ in range(self.n_splits):
            yield rng.choice(units, size, replace=self.replace)


def bootstrap_splits(cv: Bootstrap, n: int, groups: np.ndarray | None, repeats: int = 1) -> list[Split]:
    """The bootstrap samples, and for the .632+ estimate a last one of all subjects, who are tested too."""
    if repeats != 1:
        raise InvalidInputError(
            f"repeats: got {repeats} together with Bootstrap, expected more samples: Bootstrap(n_splits=...)."
        )
    pairs = list(cv.split(np.zeros((n, 1)), None, groups))
    splits = [Split(0, b, train, test) for b, (train, test) in enumerate(pairs) if len(test)]
    if not splits:
        raise InvalidInputError("cv: got samples that all include every subject, expected some without.")
    everyone = np.arange(n)
    return [*splits, Split(0, len(splits), everyone, everyone)] if cv.plus else splits


def compare_out_of_bag(
    given: Settled,
    asked: Asked,
    runs: FoldRuns,
    cv: Bootstrap,
    estimator: Any,
    notes: list[str],
    about: dict[str, Any],
) -> Comparison:
    """The comparison of all models by the leave-one-out bootstrap, or by the .632+ estimate."""
    kind, groups, sample = given.kind, given.groups, replace(asked.sample, y=given.kind.y)
    n, splits = len(sample), [split for split in runs.splits if split.test is not split.train]
    rows = np.concatenate([split.test for split in splits])
    order = np.argsort(rows, kind="stable")  # by subject, so that clusters have the order of the subjects
    ends = np.cumsum([0, *(len(split.test) for split in splits)])
    place = [np.argsort(order)[a:b] for a, b in pairwise(ends)]
    rows = rows[order]
    everyone, (tested, first, count) = np.arange(len(rows)), np.unique(rows, True, return_counts=True)
    if len(tested) < n:
        notes = [*notes, f"{n - len(tested)} of {n} subjects are in every bootstrap sample, and not scored."]
    clusters = np.arange(n) if groups is None else groups
    labels = labels_by(asked.by, sample.X, n)
    fitted = _fitted_censoring(kind, estimator, sample)

    def evaluated(
        asked: Asked, who: np.ndarray, weight: np.ndarray, at: list[np.ndarray], refits: Refits | None
    ) -> dict[str, Evaluation]:
        weights = np.ones(n) if sample.weight is None else to_numpy(sample.weight)
        subjects = replace(sample.take(who), weight=weights[who] * weight, groups=clusters[who])
        by = {key: values[who] for key, values in labels.items()} or None
        C = _censoring_of(kind, fitted, replace(sample, groups=groups), who, at)
        decisions, cases = decide(replace(asked, sample=subjects, by=by, censoring=C))
        return evaluate_all(decisions, [Repeat(cases, decisions.censoring)], refits)

    forecasts = {
        model: out_of_fold([(at, runs.forecasts[model, b]) for b, at in enumerate(place)], everyone)
        for model in runs.models
    }
    refits = _refits_of(rows, place, clusters, splits)
    asked = replace(asked, forecasts=forecasts)
    out = concluded(evaluated(asked, rows, 1 / np.repeat(count, count), place, refits))
    if cv.plus:
        last = {model: runs.forecasts[model, len(splits)].take(tested) for model in runs.models}
        asked = replace(asked, forecasts=last, **decided(out))
        apparent = evaluated(asked, tested, np.ones(len(tested)), [np.arange(len(tested))], None)
    subsets = [
        replace(subset, counted=(len(np.unique(rows[subset.weight > 0])), sample.weight is not None))
        for subset in out.subsets
    ]
    decisions, evaluations = replace(out.decided, subsets=subsets), {}
    for model, each in out.evaluations.items():
        means = _plus(each.means, apparent[model]) if cv.plus else each.means
        method = f"{each.method}; {OUT_OF_BAG}"
        evaluations[model] = replace(each, decided=decisions, means=means, method=method)
    estimate = ".632+ estimate" if cv.plus else "leave-one-out bootstrap"
    how = f"{len(splits)} bootstrap samples, {estimate}"
    folded = Folded(BOOTSTRAP, splits, place, runs, clusters, how, first=first)
    return Comparison(evaluations, decisions, [*notes, *out.notes], folded, compared=about)


# ---- the censoring distribution, of all subjects ---------------------------------------------------------


def _fitted_censoring(kind: Kind, censoring: Any, sample: Sample) -> Any:
    """An estimator fitted to all subjects; a distribution, or None where C is known."""
    if censoring is None or isinstance(censoring, Distribution):
        return censoring
    return replace(sample, y=kind.followed(kind.y)).fit(clone(as_censoring(censoring)).set_params(cv=None))


def _censoring_of(
    kind: Kind, fitted: Any, sample: Sample, who: np.ndarray, place: list[np.ndarray]
) -> ResolvedCensoring | Distribution | None:
    """The censoring distribution of the rows of subjects ``who``, in one part for each of the places."""
    if fitted is None:
        return None
    if isinstance(fitted, Distribution):
        return fitted if len(fitted) == 1 else fitted.take(who)
    y, X = kind.followed(kind.y), take_rows(sample.X, who)
    shared = Shared(np.column_stack([np.arange(len(who)), who]))
    common: dict[str, Any] = {"train": replace(sample, y=y), "n_train": len(sample), "shared": shared}
    C = in_time(fitted.predict_distribution(X), y.take(who))
    name = f"{describe(fitted)}, fitted to all subjects"
    if not has_influence(fitted):
        return ResolvedCensoring(C, name, True, refit=Refit(fitted), scored_X=X, **common)
    everyone = np.arange(len(sample))
    parts = [part for at in place for part in parts_of(fitted, take_rows(X, at), at, everyone)]
    return ResolvedCensoring(C, name, True, parts=parts, **common)


# ---- the term of the refits ------------------------------------------------------------------------------


def _refits_of(
    rows: np.ndarray, place: list[np.ndarray], clusters: np.ndarray, splits: list[Split]
) -> Refits:
    """The influences of the refits on one mean of the out-of-bag losses, as a function of these."""
    sample = np.empty(len(rows), dtype=np.intp)
    for b, at in enumerate(place):
        sample[at] = b
    first = np.unique(clusters, return_index=True)[1]
    drawn = np.stack([np.bincount(split.train, minlength=len(clusters))[first] for split in splits])
    return lambda losses, weight: refit_influence(losses[0], weight, clusters[rows], sample, drawn)


def refit_influence(
    losses: np.ndarray, weight: np.ndarray, cluster: np.ndarray, sample: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    r"""Influences (m, q) of the refits on a weighted mean of out-of-bag losses (N, q).

    Every row is a subject of a ``cluster`` (N,) under the model of a ``sample`` (N,), which has drawn its
    clusters ``drawn`` (B, clusters) times. With :math:`N_{bj}` for this number and the expected loss
    :math:`R_b` of the model,

    .. math:: \ell_i^{(b)}-R_b=g_i+\frac1m\sum_jN_{bj}\varphi_{ij},\qquad
        \mathrm E(\varphi_{ij}\mid i)=\mathrm E(\varphi_{ij}\mid j)=0.

    As in folds (:func:`~censcore.evaluation.inference.refits_of_models.refit_influence`), the spread over
    subjects of their mean losses holds the squares :math:`\varphi_{ij}^2`, not the products
    :math:`\varphi_{ij}\varphi_{ji}` of subjects who train each other's models, which by Cauchy and Schwarz
    are as large at most, and are so for models that are fitted by a criterion like the score. Less
    :math:`R_b`, the losses of one subject under all its models have the variance
    :math:`\mathrm{var}(N)\sum_j\varphi_{ij}^2/m^2`, so that what is missing is

    .. math:: \frac{(\mathrm EN)^2}{\mathrm{var}(N)}\sum_iw_i^2\,\widehat{\mathrm{var}}_b(\ell_i^{(b)}-R_b),

    the sum of squares of these influences.
    """
    used = weight > 0
    pair, number = np.unique(cluster[used] * len(drawn) + sample[used], return_inverse=True)
    share = np.bincount(number, weight[used])[:, None]
    sums = sums_within(weight[used, None] * losses[used], number, len(pair))
    unit, model = np.unique(pair // len(drawn), return_inverse=True)[1], pair % len(drawn)
    count = np.bincount(unit)
    deviation = sums - (sums_within(sums, unit, len(count)) / count[:, None])[unit]
    total = sums_within(np.hstack([deviation, share]), model, len(drawn))
    deviation -= share * (total[:, :-1] / np.where(total[:, -1:] > 0, total[:, -1:], 1.0))[model]
    scale = count / np.sqrt(np.maximum(count - 1, 1)) * drawn.mean() / drawn.std()
    return scale[unit, None] * deviation


# ---- the .632+ estimate ------------------------------------------------------------------------------------


def _plus(out: Means, apparent: Evaluation) -> Means:
    """The .632+ estimate of every mean; its weight counts as fixed in the influence."""
    estimates = {}
    for key, oob in out.items():
        inside, gamma = apparent.means[key], _without_information(apparent, *key)
        w = plus_weight(oob.value, inside.value, gamma)
        below = replace(oob, value=np.minimum(oob.value, gamma))
        estimates[key] = average([below, inside], [w, 1 - w])
    return estimates


def plus_weight(oob: np.ndarray, apparent: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """The weight of the out-of-bag error, 0.632 without overfitting and 1 where nothing is learned."""
    worse = np.minimum(oob, gamma) - apparent
    with np.errstate(divide="ignore", invalid="ignore"):
        # a forecast that is the same for all has both errors, up to rounding
        R = np.where(worse > ROUNDING * np.abs(apparent), worse / (gamma - apparent), 0.0)
    return 0.632 / (1 - 0.368 * R)


def _without_information(apparent: Evaluation, s: int, name: str) -> np.ndarray:
    """The mean loss of forecasts that are given to other subjects: all of them, or by up to 50 shifts."""
    decisions, case = apparent.decided, apparent.repeats[0].case
    score = next(score for score in decisions.scores if score.name == name)
    n = len(case.y)
    weight = shares_of(decisions.subsets[s].weight[:, None], score.counted(case))[:, 0]
    used = weight > 0
    count = n if score.axis == "time" and n <= ALL_SHIFTS else min(n, SHIFTS)
    shifts = np.unique(np.linspace(0, n - 1, count).astype(int))
    means = [weight[used] @ losses_of(score, _shifted(case, shift))[used] for shift in shifts]
    return np.mean(means, axis=0)


def _shifted(case: Any, shift: int) -> Any:
    n = len(case.y)
    return case if len(case.F) == 1 else replace(case, F=case.F.take(np.roll(np.arange(n), shift)))
