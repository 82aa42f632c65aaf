"""Integrals of squared distribution and survival functions: what integrated Brier scores are summed from."""

from __future__ import annotations

from censcore._arrays import Array, namespace
from censcore._quadrature import Function, antiderivative
from censcore.distributions import Step, Univariate
from censcore.scores.integration.augmentation import panel_edges
from censcore.scores.integration.cdf_integrals import nodes_for_square


def squared_cdf_area(F: Univariate, t: Array) -> Array:
    r""":math:`\int_0^tF(s)^2\,ds` at finite times t, (n, q): what living subjects pay.

    >>> import numpy as np, censcore as cs
    >>> squared_cdf_area(cs.Uniform(0.0, 1.0), np.array([[0.5, 1.0]])).round(6)
    array([[0.041667, 0.333333]])
    """
    if F.form == "steps":
        times, sf = F.steps()
        largest_of_two = Step.trusted(times, 1 - (1 - sf) ** 2, falls=True)
        return t - largest_of_two.integrated_sf(0.0, t)
    return _by_antiderivative(lambda s: F.cdf_at(s) ** 2, F, t)


def squared_sf_area(F: Univariate, t: Array) -> Array:
    r""":math:`\int_0^tP(T>s)^2\,ds` at finite times t, (n, q): what subjects pay after their event."""
    if F.form == "steps":
        times, sf = F.steps()
        return Step.trusted(times, sf**2, falls=True).integrated_sf(0.0, t)
    return _by_antiderivative(lambda s: F.sf_at(s) ** 2, F, t)


def _by_antiderivative(f: Function, F: Univariate, t: Array) -> Array:
    xp = namespace(t)
    end = xp.max(t, axis=1, keepdims=True)
    edges = panel_edges([F], xp.zeros_like(end), end)
    return antiderivative(f, edges, nodes_for_square(F), t)
