"""How much of a forecast comes from the network, by the held-out energy score of mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["best_mixture", "mixture_terms", "weighed_mixture"]

# pairs of draws that are compared: i and i + lag
_LAGS = (1, 2, 3, 5, 8, 11, 13, 17, 19, 23, 29, 31, 37, 41, 47, 53)

# Of the priors for shares of networks: events at which they and simple models share equally, and the standard
# deviations, for simple models and between networks, of which neither is likely to be much better. Chosen on
# simulated data, and flat there: 100 to 250, 0.25 to 0.5 and 0.1 to 0.35 give nearly the same forecasts.
_EVENTS, _SPREAD, _NETWORK_SPREAD = 200.0, 0.35, 0.2


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


def weighed_mixture(
    a: np.ndarray, D: np.ndarray, weight: np.ndarray, events: float, density: float | None = None
) -> np.ndarray:
    r"""Weights of the network, which is the first component, of a density network, and of baselines.

    Two components share by what held-out subjects say, and by what is known beforehand: along the mixtures
    :math:`qF_1+(1-q)F_2` the mean score is a parabola, with its minimum at :math:`\hat q`, whose standard
    error e follows from the spread of its slope over the subjects. A normal prior for q has a mean
    :math:`q_0` and a standard deviation :math:`\tau`. The first gets the posterior mean
    :math:`(\hat q/e^2+q_0/\tau^2)/(1/e^2+1/\tau^2)`, cut to [0, 1].

    The network shares with the density network first, if there is one, with :math:`\tau=0.2`. What results
    shares with the best mixture of the baselines, with the prior mean :math:`E/(E+200)` for E events per
    event time and :math:`\tau=0.35`, since networks learn from many events what a simple model knows
    beforehand.

    Parameters
    ----------
    a, D : arrays, (n, J) and (n, J, J)
        The terms of :func:`mixture_terms`.
    weight : array, (n,)
        Weights of the subjects.
    events : float
        E.
    density : float, optional
        If the second component is a density network: the prior mean of its share.

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
    each = np.eye(a.shape[1])
    networks, count = each[0], 1
    if density is not None:
        networks, count = _shared(each[0], each[1], (1 - density, _NETWORK_SPREAD), a, D, share), 2
    if a.shape[1] == count:
        return networks
    simple = best_mixture(share @ a[:, count:], np.einsum("i,ijk->jk", share, D[:, count:, count:]))
    prior = (events / (events + _EVENTS), _SPREAD)
    return _shared(networks, np.append(np.zeros(count), simple), prior, a, D, share)


def _shared(
    first: np.ndarray,
    second: np.ndarray,
    prior: tuple[float, float],
    a: np.ndarray,
    D: np.ndarray,
    share: np.ndarray,
) -> np.ndarray:
    """The posterior mean of the mixture of two mixtures, given mean and deviation of the first's share."""
    expected, deviation = prior
    step = first - second
    # the energy distance between the two
    curvature = -float(step @ np.einsum("i,ijk->jk", share, D) @ step)
    if curvature <= 0:  # nothing beyond the noise of draws distinguishes them, so that no subject can tell
        return second + expected * step
    slope = a @ step - np.einsum("j,ijk,k->i", second, D, step)
    mean = float(share @ slope)
    alike = float(share @ share)  # one over the number of subjects
    error = float(share**2 @ (slope - mean) ** 2) / (1 - alike) / curvature**2 if alike < 1 else np.inf
    q = expected + (-mean / curvature - expected) * deviation**2 / (deviation**2 + error)
    return second + min(1.0, max(0.0, q)) * step


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
