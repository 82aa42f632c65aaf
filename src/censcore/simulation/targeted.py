"""Early and late events, with censoring just before the early ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore._validation import as_count, as_number
from censcore.distributions import Mixture, PiecewiseLinear, PointMass, Uniform, Univariate
from censcore.simulation.scenario import Scenario
from censcore.simulation.weibull import Z_MAX

__all__ = ["TargetedScenario"]


@dataclass(frozen=True)
class TargetedScenario(Scenario):
    r"""A counterexample for scores whose weights depend on the forecast.

    Half of the events fall into the second half of one interior bin, half into the last bin. With
    probability 0.6 subjects are censored in the first quarter of that interior bin, just before the interior
    events, and otherwise never. A score whose weights depend on the forecast rewards one that moves its mass
    to the last bin. Covariates play no role.

    Parameters
    ----------
    z_max, bins : float, int
        The grid 0, z_max/bins, ..., z_max.
    early : float
        Probability of the early censoring.

    Examples
    --------
    >>> from censcore.simulation import TargetedScenario
    >>> data = TargetedScenario().sample(1000, seed=0)
    >>> round(float(data.y.event.mean()), 1)
    0.4
    """

    z_max: float = Z_MAX
    bins: int = 50
    early: float = 0.6

    n_covariates = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "z_max", as_number(self.z_max, "z_max", above=0))
        as_count(self.bins, "bins", least=4, most=10**6)
        as_number(self.early, "early", above=0, below=1)

    @property
    def grid(self) -> np.ndarray:
        """Bin edges, (bins + 1,)."""
        return np.linspace(0.0, self.z_max, self.bins + 1)

    @property
    def interior(self) -> tuple[float, float, float, float]:
        """Bin j = bins // 2: its edges and the points a quarter and half way through."""
        low, high = self.grid[self.bins // 2 - 1], self.grid[self.bins // 2]
        return low, low + 0.25 * (high - low), low + 0.5 * (high - low), high

    def two_blocks(self, interior_mass: float) -> PiecewiseLinear:
        """Probability ``interior_mass`` on the second half of bin j, and the rest on the last bin."""
        _, _, start, end = self.interior
        times = np.array([start, end, self.grid[-2], self.grid[-1]])
        return PiecewiseLinear(times, cdf=np.array([[0.0, interior_mass, interior_mass, 1.0]]))

    def event_distribution(self, X: np.ndarray) -> PiecewiseLinear:
        """Half the mass in the interior bin, half in the last one."""
        return self.two_blocks(0.5)

    def censoring_distribution(self, X: np.ndarray) -> Mixture:
        """Uniform on the first quarter of bin j with probability ``early``, otherwise never."""
        low, quarter, _, _ = self.interior
        early: list[Univariate] = [
            Uniform(np.array([low]), np.array([quarter])),
            PointMass(np.array([np.inf])),
        ]
        return Mixture(early, np.array([[self.early, 1 - self.early]]))
