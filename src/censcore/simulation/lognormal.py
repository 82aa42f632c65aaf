"""Several dependent log-normal event times, under shared or separate censoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from censcore._validation import as_count, as_number, check_flag, check_option
from censcore.distributions import Distribution, Independent, PointMass, Uniform
from censcore.simulation.one_factor import OneFactorLogNormal
from censcore.simulation.scenario import Scenario

__all__ = ["LogNormalScenario"]

_B = np.array([-0.6, -0.2, 0.2, 0.6])


@dataclass(frozen=True)
class LogNormalScenario(Scenario):
    r"""k dependent event times with four covariates.

    Locations :math:`\mu_j(x)=0.35+x^\top\beta_j` and scales
    :math:`\sigma_j(x)=0.35+0.15\,\text{sigmoid}(x^\top\gamma_j)` are smooth in x. In the *unimodal* scenario
    log-times are jointly normal with correlation 0.45. In the *mixture* scenario an early regime (shifted by
    :math:`-a_j`, scale 0.85, correlation 0.70) and a late one (shifted by :math:`+a_j`, scale 1.15,
    correlation 0.20) mix with probability :math:`\pi(x)` of the late one.

    Parameters
    ----------
    k : int
        Number of event times.
    mixture : bool
        Two regimes or one.
    censoring : {"administrative", "uniform", "conditional", "componentwise", "none"}
        One C for all coordinates: fixed at ``c_admin``, uniform on [0, ``c_max``], or uniform on
        [0, c_max(x)]; or one uniform C per coordinate, independent of each other.
    c_admin, c_max : float
        Ends of follow-up.
    severity : float
        Divides every censoring time: above 1 censoring is heavier.
    clip : float or None
        The event times are min(T, clip), with an atom at ``clip``. A value beyond follow-up changes the
        latent times alone. None for no limit.

    Examples
    --------
    >>> from censcore.simulation import LogNormalScenario
    >>> data = LogNormalScenario(k=3, censoring="uniform").sample(500, seed=0)
    >>> data.T.shape, data.C.shape
    ((500, 3), (500,))

    See Also
    --------
    OneFactorLogNormal : The joint distribution of T given x.
    """

    k: int = 2
    mixture: bool = True
    censoring: str = "uniform"
    c_admin: float = 3.0
    c_max: float = 5.0
    severity: float = 1.0
    clip: float | None = None

    n_covariates = 4

    def __post_init__(self) -> None:
        kinds = ("administrative", "uniform", "conditional", "componentwise", "none")
        check_option(self.censoring, "censoring", kinds)
        for name in ("c_admin", "c_max", "severity"):
            as_number(getattr(self, name), name, above=0)
        object.__setattr__(self, "k", as_count(self.k, "k", most=1000))
        check_flag(self.mixture, "mixture")
        if self.clip is not None:
            as_number(self.clip, "clip", above=0)

    def location(self, X: np.ndarray) -> np.ndarray:
        """mu_j(x), (n, k)."""
        j = np.arange(self.k)[:, None]
        beta = (0.35 + 0.08 * j) * np.cos(_B + 0.7 * j)
        return 0.35 + X @ beta.T

    def spread(self, X: np.ndarray) -> np.ndarray:
        """sigma_j(x), (n, k)."""
        j = np.arange(self.k)[:, None]
        gamma = 0.10 * np.sin(_B - 0.7 * j)
        return 0.35 + 0.15 * expit(X @ gamma.T)

    def late_probability(self, X: np.ndarray) -> np.ndarray:
        """pi(x), (n,)."""
        x1, x2, x3, x4 = X.T
        return expit(0.8 * x1 - 0.6 * x2 + 0.4 * np.sin(x3) + 0.25 * (x4**2 - 1))

    def event_distribution(self, X: np.ndarray) -> Distribution:
        """The joint distribution of T given x."""
        distribution = self._regimes(X)
        return distribution if self.clip is None else distribution.censor_at(self.clip)

    def _regimes(self, X: np.ndarray) -> OneFactorLogNormal:
        mu, sigma = self.location(X), self.spread(X)
        if not self.mixture:
            return OneFactorLogNormal(mu[:, None], sigma[:, None], [0.45], np.ones((len(X), 1)))
        shift = 1.15 * (np.linspace(0.85, 1.15, self.k) if self.k > 1 else np.ones(1))
        late = self.late_probability(X)
        return OneFactorLogNormal(
            np.stack([mu - shift, mu + shift], axis=1),
            np.stack([0.85 * sigma, 1.15 * sigma], axis=1),
            [0.70, 0.20],
            np.stack([1 - late, late], axis=1),
        )

    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The censoring distribution given x: univariate where one C is shared, Independent otherwise."""
        end = self.c_max / self.severity
        if self.censoring == "administrative":
            return PointMass(np.array([self.c_admin / self.severity]))
        if self.censoring == "uniform":
            return _uniform(end)
        if self.censoring == "conditional":
            share = 0.45 + 0.70 * expit(X @ np.array([0.45, -0.35, 0.20, 0.0]))
            return Uniform(np.zeros(len(X)), end * share)
        if self.censoring == "componentwise":
            return Independent([_uniform(end) for _ in range(self.k)])
        return PointMass(np.array([np.inf]))


def _uniform(end: float) -> Any:
    return Uniform(np.array([0.0]), np.array([end]))
