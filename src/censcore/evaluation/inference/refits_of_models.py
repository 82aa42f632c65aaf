"""What it adds to the error of cross-validation that subjects train each other's models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore.evaluation.inference.units import sums_within


def refit_influence(
    losses: np.ndarray, weight: np.ndarray, groups: np.ndarray | None, sizes: Sequence[Sequence[int]]
) -> np.ndarray:
    r"""Influences (m, q) of the refits on a mean of losses (B, n, q), none without repeats.

    ``weight`` (n,) has the sum one; ``groups`` (n,) are subjects that stay together in all folds; ``sizes``
    are those of the folds of each repeat.

    A loss depends on its subject i and, a little, on every training subject j of its fold. With the expected
    loss :math:`R_k` of the model :math:`\hat F_k` that was fitted to :math:`D_k`, up to the second order

    .. math:: \ell_i-R_{k(i)}=g_i+\frac1{|D|}\sum_{j\in D_{k(i)}}\varphi_{ij},\qquad
        \mathrm E(\varphi_{ij}\mid i)=\mathrm E(\varphi_{ij}\mid j)=0.

    Two subjects of different folds train each other's model, so that the error of the mean,
    :math:`\bar\ell-R`, holds :math:`\varphi_{ij}+\varphi_{ji}`. The spread of the losses over subjects holds
    the squares :math:`\varphi_{ij}^2`, not the products :math:`\varphi_{ij}\varphi_{ji}`. These do not matter
    where :math:`g_i` varies, as in means and in differences of unlike models. The losses of two models that
    estimate the same thing differ by :math:`\varphi` alone. Where a model is fitted by a criterion like the
    score, :math:`\varphi` is symmetric, and the spread misses half of the variance.

    In B repeats with other folds, subject i has other training subjects: with the share p of pairs in
    different folds,

    .. math:: W=\frac1{n^2}\sum_i\widehat{\mathrm{var}}_b(\ell_i^{(b)})
        \quad\text{estimates}\quad\frac{p(1-p)}{n^2|D|^2}\sum_{i\ne j}\varphi_{ij}^2,

    and by Cauchy and Schwarz what is missing is at most :math:`\{p/(1-p)+1/B\}\,W`, which is what it is for a
    symmetric :math:`\varphi`. The influences below have this sum of squares. They are linear in the losses,
    so that differences and skills of models have theirs.

    References
    ----------
    .. [1] Bayle, P., Bayle, A., Janson, L. and Mackey, L. (2020). Cross-validation confidence intervals for
       test error. Advances in Neural Information Processing Systems 33.
    .. [2] Efron, B. and Stein, C. (1981). The jackknife estimate of variance. Annals of Statistics 9,
       586-596.
    """
    B, _, q = losses.shape
    together = _in_one_fold(sizes)
    if B == 1 or together == 0:  # the training subjects are the same in all repeats
        return np.zeros((0, q))
    change = np.einsum("cb,bnq->cnq", _contrasts(B), losses) * weight[:, None]
    if groups is not None:
        change = np.stack([sums_within(each, groups, int(groups.max()) + 1) for each in change])
    factor = (1 - together) / together + 1 / B  # p / (1 - p) + 1 / B
    return np.sqrt(factor / (B - 1)) * change.reshape(-1, q)


def _in_one_fold(sizes: Sequence[Sequence[int]]) -> float:
    """The share of pairs of subjects that are in one fold, 1 - p."""
    size = [np.array(of_repeat) for of_repeat in sizes]
    return float(np.mean([(m * (m - 1)).sum() / (m.sum() * max(m.sum() - 1, 1)) for m in size]))


def _contrasts(B: int) -> np.ndarray:
    """Orthonormal contrasts of B repeats, (B - 1, B): their squares sum to those of the deviations."""
    i = np.arange(1, B)[:, None]
    j = np.arange(B)[None, :]
    return np.where(j < i, 1.0, np.where(j == i, -i, 0.0)) / np.sqrt(i * (i + 1))
