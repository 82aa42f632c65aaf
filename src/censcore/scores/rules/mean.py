"""Mean of losses, with its standard error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, ArrayLike, as_float, convert, is_torch, namespace, one_namespace, to_numpy
from censcore._validation import (
    as_labels,
    as_weights,
    check_probabilities,
    check_same_order,
    name_subjects,
)
from censcore.exceptions import InvalidInputError


class MeanLoss(NamedTuple):
    """A mean loss and its standard error: numbers, or one per column of the losses.

    Attributes
    ----------
    mean, standard_error : float or array, (q,)

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> round(float(cs.mean_loss(np.array([0.1, 0.3])).mean), 2)
    0.2
    """

    mean: Array
    standard_error: Array


def mean_loss(
    losses: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
) -> MeanLoss:
    r"""Weighted mean of losses and its standard error.

    .. math::
        \bar\ell=\sum_i w_i\ell_i,\qquad
        \mathrm{se}^2=\frac{g}{g-1}\sum_{j=1}^g\Bigl(\sum_{i\in j}w_i(\ell_i-\bar\ell)\Bigr)^2

    with weights that sum to one, over g groups or, without them, over g = n subjects: the delta-method error
    of a ratio of sums, which for equal weights is the usual :math:`s/\sqrt n`. Subjects of one group may
    depend on each other in any way; different groups must be independent. The error does not cover the
    estimation of the censoring distribution: :func:`compare` does.

    Parameters
    ----------
    losses : array, (n,) or (n, q)
        One loss per subject, or several columns of them. An infinite loss makes the mean and its error
        infinite; it is never left out.
    sample_weight : array, (n,), optional
        Non-negative weights of the subjects, at least one positive.
    groups : array, (n,), optional
        Labels of any kind, for instance the patient of each visit.

    Returns
    -------
    MeanLoss
        ``mean`` and ``standard_error``, numbers or (q,). The error is NaN for a single subject or group.

    See Also
    --------
    clustered_mean : The mean and the influence of every group, without checks.
    compare : Means of several forecasts, with the error of the censoring distribution.

    References
    ----------
    .. [1] Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models.
       Biometrika 73, 13-22.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> mean, error = cs.mean_loss(cs.crps(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0)))
    >>> round(float(mean), 4), round(float(error), 4)
    (0.7682, 0.2834)
    """
    check_same_order(losses=losses, sample_weight=sample_weight, groups=groups)
    values = as_float(losses, "losses")
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise InvalidInputError(
            f"losses must be (n,) or (n, q) with at least one subject; got {tuple(values.shape)}."
        )
    _check_nan(values)
    _check_size(values)
    mean, influence = clustered_mean(values, _shares(sample_weight, values), groups)
    if influence.shape[0] < 2:
        raise InvalidInputError(
            "A standard error needs at least two groups of subjects, or two subjects with a positive weight; "
            "got one. The mean alone is np.average(losses, weights=sample_weight, axis=0)."
        )
    xp = namespace(influence)
    error = xp.sqrt(xp.sum(influence**2, axis=0))
    return MeanLoss(mean, xp.where(xp.isfinite(mean), error, np.inf)[()])


def clustered_mean(
    losses: ArrayLike, weight: ArrayLike, groups: ArrayLike | None = None
) -> tuple[Array, Array]:
    r"""A weighted mean, and the influence of each group of subjects on it.

    .. math::
        \bar\ell=\sum_i w_i\ell_i,\qquad
        \psi_j=\sqrt{\frac g{g-1}}\sum_{i\in j}w_i(\ell_i-\bar\ell)

    The sum of the squares of :math:`\psi` over the g groups is the variance of the mean: the delta method for
    a ratio of sums, and for equal weights and no groups :math:`s^2/n`.

    Parameters
    ----------
    losses : array, (n,) or (n, q)
        One loss per subject, or several columns of them.
    weight : array, (n,)
        Weights that sum to one. Subjects of weight zero are left out, even where their loss is infinite.
    groups : array, (n,), optional
        Labels of any kind. Without them every subject is a group.

    Returns
    -------
    mean : number or (q,)
    influence : array, (g,) or (g, q)
        NaN for a single group, and where a loss is infinite.

    See Also
    --------
    mean_loss : The mean and its standard error, with checks.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.scores import clustered_mean
    >>> mean, influence = clustered_mean(np.array([1.0, 3.0, 2.0, 6.0]), np.full(4, 0.25), list("aabb"))
    >>> float(mean), influence.round(4)
    (3.0, array([-0.7071,  0.7071]))
    """
    x, w = as_float(losses, "losses"), as_float(weight, "weight")
    xp = one_namespace(losses=x, weight=w)
    if x.ndim not in (1, 2) or tuple(w.shape) != tuple(x.shape[:1]):
        raise InvalidInputError(
            f"losses must be (n,) or (n, q) and weight (n,); got {tuple(x.shape)} and {tuple(w.shape)}."
        )
    check_probabilities(w, "weight")
    used = w > 0
    everyone = bool(xp.all(used))
    with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity, and beyond all floats
        mean = w @ x if everyone else w[used] @ x[used]
        influence = w.reshape((-1,) + (1,) * (x.ndim - 1)) * (x - mean)
    if not everyone:
        influence = xp.where(used.reshape((-1,) + (1,) * (x.ndim - 1)), influence, 0.0)
    if groups is not None:
        influence = _sum_by_group(influence, groups, to_numpy(used))
    elif not everyone:
        influence = influence[used]
    g = influence.shape[0]
    with np.errstate(over="ignore"):
        return mean, influence * (np.sqrt(g / (g - 1)) if g > 1 else np.nan)


def _sum_by_group(values: Array, groups: Any, used: np.ndarray) -> Array:
    """Sums over the subjects of each group that has a subject in use."""
    labels = as_labels(groups, int(values.shape[0]))
    names, code = np.unique(labels, return_inverse=True)
    present = np.bincount(code, used) > 0
    if is_torch(values):
        sums = namespace(values).zeros_like(values[: len(names)]).index_add(0, convert(code, values), values)
        return sums[convert(present, values)]
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(names)))
    return np.add.reduceat(values[order], starts, axis=0)[present]


def _shares(sample_weight: Any, losses: Array) -> Array:
    """Weights that sum to one."""
    xp = namespace(losses)
    n = int(losses.shape[0])
    if sample_weight is None:
        return xp.full_like(losses if losses.ndim == 1 else losses[:, 0], 1 / n)
    w = convert(as_weights(sample_weight, n), losses)
    return w / xp.sum(w)


def _check_nan(losses: Array) -> None:
    missing = np.isnan(to_numpy(losses))
    if missing.any():
        raise InvalidInputError(
            "losses must be free of NaN, which no score returns; got it in "
            f"{name_subjects(np.unique(missing.nonzero()[0]))}. Leave out subjects that were not scored."
        )


def _check_size(losses: Array) -> None:
    size = np.abs(to_numpy(losses).astype(np.float64, copy=False))
    large = (size > 1e150) & (size < np.inf)
    if large.any():
        raise InvalidInputError(
            f"losses: got {size[large].max():g} in {name_subjects(np.unique(large.nonzero()[0]))}, expected "
            "at most 1e+150 in size, whose square a float can hold. Choose another unit of time."
        )
