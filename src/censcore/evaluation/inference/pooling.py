"""Estimates of parts of a sample as one: the rule of averages, for repeats, folds, landmarks and .632+."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore.evaluation.inference.estimates import Estimate, Rows
from censcore.evaluation.inference.units import sums_within


def average(estimates: Sequence[Estimate], shares: Sequence[float | np.ndarray]) -> Estimate:
    r"""Add up estimates, each times its share: :math:`\sum_pc_p\hat\theta_p`.

    Contributions are added by unit within each block, so that the sum of squares is the variance of the
    result, however the estimates depend on each other. Small-sample factors are in them already.

    Parameters
    ----------
    estimates : sequence of Estimate
        With the numbers of their units, which all of them share.
    shares : sequence of number or array (q,)
        Weights :math:`c_p`, which count as fixed.
    """
    rows: Rows = {}
    influence = []
    blocks = [estimate.blocks for estimate in estimates]
    with np.errstate(invalid="ignore"):
        value = sum(share * each.value for each, share in zip(estimates, shares, strict=True))
        for name in dict.fromkeys(name for each in estimates for name in each.rows):
            of = [each.rows.get(name, NOBODY) for each in estimates]
            rows[name] = number = np.unique(np.concatenate(of))
            influence.append(
                sum(
                    sums_within(share * block[name], np.searchsorted(number, own), len(number))
                    for block, share, own in zip(blocks, shares, of, strict=True)
                    if name in block
                )
            )
    return Estimate(np.asarray(value), np.concatenate(influence), rows=rows)


NOBODY = np.zeros(0, dtype=np.intp)
