"""Intervals over folds whose training sets overlap."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from censcore_studies.neutral_benchmark.data import FOLDS

__all__ = ["corrected_interval"]


def corrected_interval(differences: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    r"""Mean of paired differences over J folds, and its interval corrected for overlapping training sets.

    .. math:: \bar d\pm t_{J-1}\sqrt{\Bigl(\frac1J+\frac{n_{\text{test}}}{n_{\text{train}}}\Bigr)s_d^2},
        \qquad \frac{n_{\text{test}}}{n_{\text{train}}}=\frac1{K-1},

    with K = 3 folds per repetition. Without the second term the variance is that of independent folds and
    much too small, since each pair of training sets shares subjects. The correction assumes that the
    correlation of two folds is the share of test subjects; it is an approximation, and an interval with three
    folds is wide.

    Parameters
    ----------
    differences : array, (J,)
        One per fold.
    confidence : float
        Of the interval.

    Returns
    -------
    mean, low, high : float
        The interval is NaN with fewer than two folds.

    References
    ----------
    Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. *Machine Learning* 52, 239-281.

    Bouckaert, R. R. and Frank, E. (2004). Evaluating the replicability of significance tests for comparing
    learning algorithms. *Advances in Knowledge Discovery and Data Mining*, 3-12.

    Examples
    --------
    >>> from censcore_studies.neutral_benchmark.inference import corrected_interval
    >>> [round(value, 3) for value in corrected_interval([0.01, 0.03, 0.02])]
    [0.02, -0.019, 0.059]
    """
    d = np.asarray(differences, dtype=float)
    J = len(d)
    if J < 2:
        return float(d.mean()), float("nan"), float("nan")
    error = np.sqrt((1 / J + 1 / (FOLDS - 1)) * d.var(ddof=1))
    width = float(student.ppf(0.5 + confidence / 2, J - 1) * error)
    return float(d.mean()), float(d.mean()) - width, float(d.mean()) + width
