"""Weibull event times under four censoring regimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore._validation import as_number, check_option
from censcore.distributions import Distribution, PointMass, Uniform, Weibull
from censcore.simulation.scenario import Scenario

__all__ = ["WeibullScenario"]

Z_MAX = 20.5471
SHAPE = 1.5


@dataclass(frozen=True)
class WeibullScenario(Scenario):
    r"""Weibull event times with three covariates, under a choice of censoring.

    .. math:: T\mid x\sim\text{Weibull}(1.5,\lambda(x)),\quad
              \log\lambda(x)=0.3+0.8x_1-0.5x_2+0.3x_3,\quad X\sim N(0,I_3).

    Parameters
    ----------
    censoring : {"administrative", "uniform", "conditional", "none"}
        C fixed at ``c_admin``; C uniform on [0, ``c_max``]; C Weibull with shape 1.5 and
        :math:`\log\mu_C(x)=0.2-0.3x_1+0.4x_3`; no censoring.
    c_admin : float
        The administrative end of follow-up; 0.9833 is close to the median of T.
    c_max : float
        Upper end of uniform censoring, 0.4 times ``z_max`` by default.
    severity : float
        Divides every censoring time: above 1 censoring is heavier, below 1 lighter.

    Examples
    --------
    >>> from censcore.simulation import WeibullScenario
    >>> data = WeibullScenario("conditional").sample(2000, seed=1)
    >>> round(float(data.y.event.mean()), 2)
    0.47
    """

    censoring: str = "uniform"
    c_admin: float = 0.9833
    c_max: float = 0.4 * Z_MAX
    severity: float = 1.0

    n_covariates = 3

    def __post_init__(self) -> None:
        kinds = ("administrative", "uniform", "conditional", "none")
        check_option(self.censoring, "censoring", kinds)
        for name in ("c_admin", "c_max", "severity"):
            as_number(getattr(self, name), name, above=0)

    def scale(self, X: np.ndarray) -> np.ndarray:
        """lambda(x)."""
        return np.exp(0.3 + X @ np.array([0.8, -0.5, 0.3]))

    def event_distribution(self, X: np.ndarray) -> Weibull:
        """Weibull(1.5, lambda(x))."""
        return Weibull(SHAPE, self.scale(X))

    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The censoring distribution given x in the chosen regime."""
        if self.censoring == "administrative":
            return PointMass(np.array([self.c_admin / self.severity]))
        if self.censoring == "uniform":
            return Uniform(np.array([0.0]), np.array([self.c_max / self.severity]))
        if self.censoring == "conditional":
            return Weibull(SHAPE, np.exp(0.2 + X @ np.array([-0.3, 0.0, 0.4])) / self.severity)
        return PointMass(np.array([np.inf]))
