from __future__ import annotations

import censcore as cs


def margins(score, y, C, truth, alternatives):
    """By how many standard errors the truth beats each alternative in paired comparison."""
    at_truth = score(y, truth, C)
    won = {}
    for name, wrong in alternatives.items():
        mean, error = cs.mean_loss(score(y, wrong, C) - at_truth)
        won[name] = float(mean / error)
    return won
