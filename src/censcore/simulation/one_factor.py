"""Joint log-normal distributions with one common factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, logsumexp

from censcore._arrays import Array, as_float, to_numpy
from censcore._validation import as_coordinate, check_between, check_probabilities
from censcore.distributions import Joint, LogNormal, Mixture, Univariate
from censcore.distributions.random_draws import Draws
from censcore.exceptions import InvalidInputError

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())


class OneFactorLogNormal(Joint):
    r"""Mixture over regimes of log-normal event times that share a factor.

    In regime r :math:`\log T_j=\mu_{rj}+\sigma_{rj}(\sqrt{\rho_r}\,U+\sqrt{1-\rho_r}\,e_j)`.
    U and the e_j are independent standard normals, so the log-times of a regime have correlation
    :math:`\rho_r`. Given U the coordinates are independent, and every joint probability is a
    one-dimensional integral, done by 64 Gauss-Hermite nodes. NumPy only.

    Parameters
    ----------
    mu, sigma : array, (n, R, k)
        Location and scale per regime and coordinate.
    rho : sequence of R numbers
        Correlation within each regime, in [0, 1).
    probabilities : array, (n, R)
        Regime probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.simulation import OneFactorLogNormal
    >>> distribution = OneFactorLogNormal(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), [0.5], np.ones((1, 1)))
    >>> distribution.sf([[1.0, 1.0]]).round(4)  # P(both > median) = 1/4 + arcsin(1/2) / (2 pi)
    array([0.3333])
    """

    array_names: ClassVar[tuple[str, ...]] = ("_mu", "_sigma", "_pi")
    only_in = "NumPy"  # its marginals compute in torch, too

    def __init__(
        self, mu: np.ndarray, sigma: np.ndarray, rho: Sequence[float] | np.ndarray, probabilities: np.ndarray
    ) -> None:
        mu, sigma = to_numpy(as_float(mu, "mu")), to_numpy(as_float(sigma, "sigma"))
        probabilities = to_numpy(as_float(probabilities, "probabilities"))
        correlations = to_numpy(as_float(rho, "rho"))
        check_between(mu, "mu", -230.0, 230.0)
        check_between(sigma, "sigma", 1e-8, 100.0)
        check_probabilities(probabilities, "probabilities")
        check_probabilities(correlations, "rho")
        shapes = sigma.shape, probabilities.shape, correlations.shape
        if mu.ndim != 3 or shapes != (mu.shape, mu.shape[:2], mu.shape[1:2]):
            raise InvalidInputError(
                "mu and sigma must be (n, R, k), probabilities (n, R) and rho R numbers; "
                f"got {mu.shape}, {sigma.shape}, {probabilities.shape} and {correlations.shape}."
            )
        if (correlations >= 1).any() or (np.abs(probabilities.sum(axis=1) - 1) > 1e-6).any():
            raise InvalidInputError(
                f"rho must be below 1 and the probabilities of each subject must sum to 1; got rho up to "
                f"{correlations.max():g} and sums from {probabilities.sum(axis=1).min():g} to "
                f"{probabilities.sum(axis=1).max():g}."
            )
        self._mu, self._sigma, self._pi = mu, sigma, probabilities
        self._rho = correlations

    @property
    def k(self) -> int:
        """Number of event times."""
        return int(self._mu.shape[2])

    def marginal(self, j: int) -> Univariate:
        """A mixture of log-normals."""
        j = as_coordinate(j, self.k, "The distribution")
        regimes: list[Univariate] = [
            LogNormal(self._mu[:, r, j], self._sigma[:, r, j]) for r in range(len(self._rho))
        ]
        return Mixture(regimes, self._pi) if len(regimes) > 1 else regimes[0]

    def prob_never(self) -> Array:
        """Return zero: every event comes."""
        return np.zeros(1)

    def logsf_at(self, t: Array, left: bool = False) -> Array:
        """Return the log of P(T_j > t_j for all j)."""
        return self.log_likelihood_at(t, np.zeros(t.shape, dtype=bool))

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        """Integrate over the factor; axes are subjects, times, regimes, nodes, coordinates."""
        with np.errstate(divide="ignore"):
            log_t, log_pi = np.log(t)[:, :, None, None, :], np.log(self._pi)[:, None, :, None]
        mu, sigma = self._mu[:, None, :, None, :], self._sigma[:, None, :, None, :]
        rho = self._rho[:, None, None]
        residual = np.sqrt(1 - rho)
        z = ((log_t - mu) / sigma - np.sqrt(rho) * _NODES[:, None]) / residual
        happened = np.asarray(event)[:, :, None, None, :]
        density = (
            -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(sigma * residual) - np.where(happened, log_t, 0.0)
        )
        terms = np.where(happened, density, log_ndtr(-z)).sum(axis=4)
        return logsumexp(terms + _LOG_WEIGHTS + log_pi, axis=(2, 3))

    def draw(self, m: int, rng: Draws) -> Array:
        """Draw regimes and factors, then the times given these."""
        n, k = self.shape
        regime = (rng.random((n, m, 1)) > np.cumsum(self._pi, axis=1)[:, None, :-1]).sum(axis=2)
        rows, rho = np.arange(n)[:, None], self._rho[regime][..., None]
        factor, residual = rng.standard_normal((n, m, 1)), rng.standard_normal((n, m, k))
        z = np.sqrt(rho) * factor + np.sqrt(1 - rho) * residual
        return np.exp(self._mu[rows, regime] + self._sigma[rows, regime] * z)
