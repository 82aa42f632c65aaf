"""The table of paired differences: censored engression against its closest feasible competitor."""

from __future__ import annotations

from math import isnan

import pandas as pd
from scipy.special import stdtrit

from censcore.scores import mean_loss
from censcore_studies.kit.tables import StudyTable
from censcore_studies.multivariate.finished import BLOCK
from censcore_studies.multivariate.methods import FEASIBLE

__all__ = ["paired_differences", "paired_view", "report_paired"]

OURS = "Censored engression"


def report_paired(paired: pd.DataFrame) -> StudyTable:
    """The table of :func:`paired_differences`."""
    caption = (
        "Censored engression minus its closest feasible competitor on the same subjects, in per cent of the "
        "score of the true distribution, with a 95 % interval over repetitions."
    )
    return StudyTable("paired", paired, paired_view(paired), caption)


def paired_differences(cells: pd.DataFrame) -> pd.DataFrame:
    """Censored engression minus every other feasible method, paired by repetition, in per cent of the truth.

    Negative means that censored engression is better. The interval is Student's 95 % interval over
    repetitions. Each repetition contributes a difference of means over many subjects, close to normal, so
    that the correction for skewness of :class:`censcore.evaluation.inference.estimates.Estimate`, which five
    values determine poorly, is left out.
    """
    rows = []
    for block, part in cells.groupby(BLOCK, sort=False):
        scores = part.pivot_table(index="repetition", columns="method", values="censored")
        truth = part.groupby("repetition")["censored_truth"].mean()
        for other in FEASIBLE:
            if other == OURS or other not in scores or OURS not in scores:
                continue
            gap = (100 * (scores[OURS] - scores[other]) / truth).dropna()
            if gap.empty:
                continue
            mean, error = mean_loss(gap.to_numpy(dtype=float))
            half = error * stdtrit(max(len(gap) - 1, 1), 0.975)
            rows.append(
                dict(zip(BLOCK, block, strict=True))
                | {
                    "versus": other,
                    "difference %": mean,
                    "low": mean - half,
                    "high": mean + half,
                    "repetitions": len(gap),
                }
            )
    return pd.DataFrame(rows)


def paired_view(paired: pd.DataFrame) -> pd.DataFrame:
    """Per block the closest competitor, and the paired difference from it with its interval."""
    rows = []
    for block, part in paired.groupby(BLOCK, sort=False):
        closest = part.loc[part["difference %"].idxmax()]
        rows.append(
            dict(zip(BLOCK, map(str, block), strict=True))
            | {
                "closest competitor": closest["versus"],
                "difference": f"{closest['difference %']:+.2f} %",
                "95 % interval": _interval(closest["low"], closest["high"]),
                "reps": str(closest["repetitions"]),
            }
        )
    return pd.DataFrame(rows)


def _interval(low: float, high: float) -> str:
    """One repetition has no interval."""
    return "" if isnan(low) else f"{low:+.2f} to {high:+.2f}"
