"""Mean of losses, with its standard error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, convert, is_torch, namespace, to_numpy
from censcore._validation import check_positive, name_rows
from censcore.exceptions import InvalidInputError

__all__ = ["MeanLoss", "mean_loss"]


class MeanLoss(NamedTuple):
    """A mean loss and its standard error: numbers, or one per column of the losses."""

    mean: Array
    standard_error: Array


def mean_loss(losses: Array, sample_weight: Any = None, groups: Any = None) -> MeanLoss:
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
        One loss per subject, or several columns of them. An infinite loss makes the mean infinite and the
        error undefined (NaN); it is never left out.
    sample_weight : array, (n,), optional
        Non-negative weights of the subjects, at least one positive.
    groups : array, (n,), optional
        Labels of any kind, for instance the patient of each visit.

    Returns
    -------
    MeanLoss
        ``mean`` and ``standard_error``, numbers or (q,). The error is NaN for a single subject or group.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> mean, error = cs.mean_loss(cs.crps(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0)))
    >>> round(float(mean), 4), round(float(error), 4)
    (0.7682, 0.2834)
    """
    xp = namespace(losses)
    if losses.ndim not in (1, 2) or 0 in losses.shape:
        raise InvalidInputError(
            f"losses must be (n,) or (n, q) with at least one subject; got {tuple(losses.shape)}."
        )
    _check_nan(losses)
    w = _shares(sample_weight, losses)
    w = w if losses.ndim == 1 else w[:, None]
    # a subject of weight zero is left out, even where its loss is infinite
    mean = xp.sum(w * xp.where(w > 0, losses, xp.zeros_like(losses)), axis=0)
    return MeanLoss(mean, _standard_error(losses, mean, w, groups))


def _standard_error(losses: Array, mean: Array, w: Array, groups: Any) -> Array:
    xp = namespace(losses)
    spread = xp.where(xp.isfinite(losses), losses, xp.full_like(losses, np.nan)) - mean
    influence = w * xp.where(w > 0, spread, xp.zeros_like(spread))
    if groups is not None:
        influence = _sum_by_group(influence, groups)
    g = influence.shape[0]
    if g == 1:
        return xp.full_like(mean, np.nan)
    return xp.sqrt(xp.sum(influence**2, axis=0) * (g / (g - 1)))


def _sum_by_group(values: Array, groups: Any) -> Array:
    labels = np.asarray(to_numpy(groups) if hasattr(groups, "detach") else groups)
    if labels.shape != (values.shape[0],):
        raise InvalidInputError(
            f"groups must have one label per subject, ({values.shape[0]},); got {labels.shape}."
        )
    names, code = np.unique(labels, return_inverse=True)
    sums = namespace(values).zeros_like(values[: len(names)])
    if is_torch(values):
        return sums.index_add(0, convert(code, values), values)
    np.add.at(sums, code, values)
    return sums


def _shares(sample_weight: Any, losses: Array) -> Array:
    """Weights that sum to one."""
    xp = namespace(losses)
    n = int(losses.shape[0])
    if sample_weight is None:
        return xp.full_like(losses if losses.ndim == 1 else losses[:, 0], 1 / n)
    w = convert(np.asarray(to_numpy(sample_weight), dtype=float), losses)
    if tuple(w.shape) != (n,):
        raise InvalidInputError(
            f"sample_weight must have one weight per subject, ({n},); got {tuple(w.shape)}."
        )
    check_positive(w, "sample_weight", zero=True)
    if not bool(xp.any(w > 0)):
        raise InvalidInputError("sample_weight must hold at least one positive weight; all are zero.")
    return w / xp.sum(w)


def _check_nan(losses: Array) -> None:
    missing = np.isnan(to_numpy(losses))
    if missing.any():
        raise InvalidInputError(
            "losses must be free of NaN, which no score returns; got it in "
            f"{name_rows(np.unique(missing.nonzero()[0]))}. Leave out subjects that were not scored."
        )
