"""How much of a forecast comes from the network, by the held-out energy score of mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["best_mixture", "mixture_terms", "weighed_mixture"]

_LAGS = (1, 2, 3, 5, 8, 13, 21, 31)  # pairs of draws that are compared: i and i + lag

# Of the prior for the weight of the network: events at which its mean is one half, standard deviation. Chosen
# on simulated data, and flat there: 100 to 250 and 0.25 to 0.5 give nearly the same forecasts.
_EVENTS, _SPREAD = 200.0, 0.35


@torch.no_grad()
def mixture_terms(
    z: Tensor, y: Tensor, c: Tensor, mask: Tensor | None = None, beta: float = 1.0
) -> tuple[Tensor, Tensor]:
    r"""The terms of the censored energy score of any mixture of J components, per subject.

    The score of the mixture :math:`\sum_jw_jF_j` is :math:`a^\top w-\tfrac12w^\top Dw` with
    :math:`a_j=E\|\psi_C(Z_j)-\psi_C(y)\|^\beta` and :math:`D_{jl}=E\|\psi_C(Z_j)-\psi_C(Z'_l)\|^\beta`. It is
    convex in the weights, because the energy distance is not negative.

    Parameters
    ----------
    z : tensor, (n, J, m, k)
        Draws of every component.
    y : tensor, (n, k)
        Observed times; infinite for an event that never happens.
    c : tensor, (n, 1 or m, 1 or k)
        A censoring time that the observation allows for each draw.
    mask : tensor of bool, (n, k), optional
        False leaves a coordinate out.
    beta : float
        Exponent of the energy score.

    Returns
    -------
    a, D : tensors, (n, J) and (n, J, J)
    """
    if mask is not None:
        z, y = torch.where(mask[:, None, None], z, 0.0), torch.where(mask, y, 0.0)
    limit = c[:, None]
    seen = torch.minimum(y[:, None, None], limit)
    psi = torch.minimum(z, limit)
    a = _distance(psi, seen, beta).mean(dim=2)
    lags = [lag for lag in _LAGS if lag < z.shape[2]]
    D = torch.zeros(*a.shape, a.shape[1], dtype=a.dtype, device=a.device)
    for lag in lags:  # partners meet at the censoring time of the first of them
        other = torch.minimum(z.roll(-lag, dims=2), limit)
        D += _distance(psi[:, :, None], other[:, None], beta).mean(dim=3) / len(lags)
    return a, (D + D.mT) / 2


def _distance(p: Tensor, q: Tensor, beta: float) -> Tensor:
    squared = (p - q).square().sum(dim=-1)
    return squared.sqrt() if beta == 1 else squared ** (beta / 2)


def best_mixture(a: np.ndarray, D: np.ndarray) -> np.ndarray:
    r"""Weights w that minimise :math:`a^\top w-\tfrac12w^\top Dw`, not negative and with sum one.

    Every set of components with positive weights is tried; within it the minimum solves a linear system.

    Parameters
    ----------
    a : array, (J,)
        Mean distances to the outcome.
    D : array, (J, J)
        Mean distances between components.

    Returns
    -------
    array, (J,)
        The weights; whole ones of the best component where no mixture is better.

    Examples
    --------
    >>> best_mixture(np.array([1.0, 1.0]), np.array([[1.0, 1.2], [1.2, 1.0]]))
    array([0.5, 0.5])
    >>> best_mixture(np.array([1.0, 2.0]), np.array([[1.0, 1.2], [1.2, 1.0]]))
    array([1., 0.])
    """
    size = len(a)
    best, smallest = np.zeros(size), np.inf
    for count in range(1, size + 1):
        for chosen in combinations(range(size), count):
            weights = _stationary(a, D, chosen)
            if weights is None:
                continue
            loss = a @ weights - 0.5 * weights @ D @ weights
            if loss < smallest - 1e-12:
                best, smallest = weights, loss
    return best


def weighed_mixture(a: np.ndarray, D: np.ndarray, weight: np.ndarray, events: float) -> np.ndarray:
    r"""Weights of the network, which is the first component, and of baselines, the others.

    The baselines share what they get as their best mixture :math:`F_b` does. Along the mixtures
    :math:`qF_1+(1-q)F_b` the mean score is a parabola, with its minimum at :math:`\hat q`, whose standard
    error e follows from the spread of its slope over the subjects. A normal prior for q has the mean
    :math:`q_0=E/(E+200)` with the number E of events per event time, since a network learns from many
    events what a simple model knows beforehand, and the standard deviation :math:`\tau=0.35`. The weight of
    the network is the posterior mean :math:`(\hat q/e^2+q_0/\tau^2)/(1/e^2+1/\tau^2)`, cut to [0, 1].

    Parameters
    ----------
    a, D : arrays, (n, J) and (n, J, J)
        The terms of :func:`mixture_terms`.
    weight : array, (n,)
        Weights of the subjects.
    events : float
        E.

    Returns
    -------
    array, (J,)

    Examples
    --------
    >>> a, D = np.array([[1.0, 0.9], [1.0, 1.1]]), np.array([[1.0, 1.2], [1.2, 1.0]])
    >>> few, many = (weighed_mixture(a, np.stack([D, D]), np.ones(2), events) for events in (50, 5000))
    >>> few.round(2), many.round(2)
    (array([0.4, 0.6]), array([0.66, 0.34]))
    """
    share = weight / weight.sum()
    mean_a, mean_D = share @ a, np.einsum("i,ijk->jk", share, D)
    first = np.eye(a.shape[1])[0]
    if a.shape[1] == 1:
        return first
    others = np.append(0.0, best_mixture(mean_a[1:], mean_D[1:, 1:]))
    step = first - others
    curvature = -float(step @ mean_D @ step)  # the energy distance between network and baselines
    prior = events / (events + _EVENTS)
    if curvature <= 0:  # nothing beyond the noise of draws distinguishes them, so that no subject can tell
        return others + prior * step
    slope = a @ step - np.einsum("j,ijk,k->i", others, D, step)
    mean = float(share @ slope)
    alike = float(share @ share)  # one over the number of subjects
    error = float(share**2 @ (slope - mean) ** 2) / (1 - alike) / curvature**2 if alike < 1 else np.inf
    q = prior + (-mean / curvature - prior) * _SPREAD**2 / (_SPREAD**2 + error)
    return others + min(1.0, max(0.0, q)) * step


def _stationary(a: np.ndarray, D: np.ndarray, chosen: Sequence[int]) -> np.ndarray | None:
    """The weights of the chosen components where no shift between them changes the loss."""
    count, index = len(chosen), np.array(chosen)
    system: Any = np.ones((count + 1, count + 1))
    system[:count, :count], system[count, count] = -D[np.ix_(index, index)], 0.0
    try:
        solved = np.linalg.solve(system, np.append(-a[index], 1.0))[:count]
    except np.linalg.LinAlgError:
        return None
    if (solved < 0).any():
        return None
    weights = np.zeros(len(a))
    weights[index] = solved / solved.sum()
    return weights
