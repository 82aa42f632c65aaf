"""The candidate forecasts: the truth, and perturbations of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore.distributions import PiecewiseLinear, Step, Univariate, Weibull
from censcore.exceptions import InvalidInputError
from censcore.simulation import TargetedScenario, WeibullScenario

__all__ = ["Candidate", "GridSettings", "exploit_candidates", "perturbed", "weibull_candidates"]


@dataclass(frozen=True)
class GridSettings:
    """The grid and every convention that a discretised forecast needs.

    Attributes
    ----------
    z_max, bins : float, int
        Edges 0, z_max/bins, ..., z_max.
    overflow : {"last", "renormalise"}
        Where the mass beyond z_max goes: into the last bin, or over all bins.
    kernel : tuple of float
        Symmetric smoothing weights of the overdispersed forecast.
    shift : int
        Bins by which the over- and underdispersed forecasts are moved to the right; mass moved past the last
        bin stays in it, and smoothing past the first bin is put there.
    peak_width, peak_weight : float
        Standard deviation in bins and mixing weight of the narrow peak.
    tilt : float
        Exponent of the upper-tail-heavy forecast over the whole grid.
    floor : float
        Probability left in every bin of the exploit forecasts.
    """

    z_max: float = 20.5471
    bins: int = 50
    overflow: str = "last"
    kernel: tuple[float, ...] = (1.0, 2.0, 3.0, 2.0, 1.0)
    shift: int = 2
    peak_width: float = 1.25
    peak_weight: float = 0.70
    tilt: float = 1.0
    floor: float = 1e-12

    @property
    def edges(self) -> np.ndarray:
        """zeta_0, ..., zeta_B."""
        return np.linspace(0.0, self.z_max, self.bins + 1)


@dataclass(frozen=True)
class Candidate:
    """One forecast in the two forms that scores use.

    Attributes
    ----------
    continuous : Distribution
        The distribution itself where it is continuous, otherwise linear inside the bins.
    binned : Distribution
        The CDF at the grid points, linear in between: what scores on a grid see.
    stepped : Distribution
        Each bin's mass at its right end.
    """

    continuous: Univariate
    binned: PiecewiseLinear
    stepped: Step

    def take(self, subjects: slice) -> Candidate:
        """The forecasts of some subjects."""
        return Candidate(
            self.continuous.take(subjects), self.binned.take(subjects), self.stepped.take(subjects)
        )


def weibull_candidates(X: np.ndarray, grid: GridSettings) -> dict[str, Candidate]:
    """F0 oracle, F1 shifted, F2 over- and F3 underdispersed and shifted, F4 heavy in the upper tail.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore_studies.forecast_evaluation import GridSettings, weibull_candidates
    >>> candidates = weibull_candidates(np.zeros((1, 3)), GridSettings())
    >>> {name: round(float(c.binned.icdf(0.5)[0]), 2) for name, c in candidates.items()}
    {'F0': 1.07, 'F1': 1.37, 'F2': 1.93, 'F3': 1.71, 'F4': 1.1}
    """
    return perturbed(WeibullScenario().event_distribution(X), grid)


def perturbed(oracle: Weibull, grid: GridSettings) -> dict[str, Candidate]:
    """F0 to F4 for any Weibull truth."""
    shape, scale = oracle.parameters["shape"], oracle.parameters["scale"]
    shifted = Weibull(shape, np.exp(0.25) * scale)
    p = bin_masses(oracle, grid)
    return {
        "F0": _candidate(p, grid, oracle),
        "F1": _candidate(bin_masses(shifted, grid), grid, shifted),
        "F2": _candidate(_moved(_smoothed(p, grid), grid), grid),
        "F3": _candidate(_peaked(p, grid), grid),
        "F4": _candidate(_tilted(p, grid), grid),
    }


def bin_masses(F: Univariate, grid: GridSettings) -> np.ndarray:
    """p_i = F(zeta_i) - F(zeta_{i-1}), (n, B), with the mass beyond the grid put where the settings say."""
    cdf = np.asarray(F.cdf(grid.edges[None, :]))
    p = np.diff(cdf, axis=1)
    if grid.overflow == "last":
        p[:, -1] += 1 - cdf[:, -1]
        return p
    if grid.overflow == "renormalise":
        return p / p.sum(axis=1, keepdims=True)
    raise InvalidInputError(f"overflow must be 'last' or 'renormalise'; got {grid.overflow!r}.")


def _candidate(p: np.ndarray, grid: GridSettings, F: Univariate | None = None) -> Candidate:
    cdf = np.minimum(np.cumsum(p, axis=1), 1.0)
    cdf[:, -1] = 1.0
    binned = PiecewiseLinear(grid.edges[1:], cdf=cdf)
    return Candidate(binned if F is None else F, binned, Step(grid.edges[1:], cdf=cdf))


def _smoothed(p: np.ndarray, grid: GridSettings) -> np.ndarray:
    kernel = np.asarray(grid.kernel) / np.sum(grid.kernel)
    half = len(kernel) // 2
    return sum(weight * _shifted(p, i - half) for i, weight in enumerate(kernel))


def _moved(p: np.ndarray, grid: GridSettings) -> np.ndarray:
    return _shifted(p, grid.shift)


def _shifted(p: np.ndarray, bins: int) -> np.ndarray:
    """Mass moved by some bins; what would leave the grid stays in its first or last bin."""
    target = np.clip(np.arange(p.shape[1]) + bins, 0, p.shape[1] - 1)
    return p @ np.eye(p.shape[1])[target]


def _peaked(p: np.ndarray, grid: GridSettings) -> np.ndarray:
    median = (np.cumsum(p, axis=1) < 0.5).sum(axis=1, keepdims=True)
    distance = np.arange(grid.bins) - (median + grid.shift)
    peak = np.exp(-0.5 * (distance / grid.peak_width) ** 2)
    return (1 - grid.peak_weight) * p + grid.peak_weight * peak / peak.sum(axis=1, keepdims=True)


def _tilted(p: np.ndarray, grid: GridSettings) -> np.ndarray:
    heavy = p * np.exp(grid.tilt * np.arange(grid.bins) / grid.bins)
    return heavy / heavy.sum(axis=1, keepdims=True)


def exploit_candidates(process: TargetedScenario, grid: GridSettings) -> dict[str, Candidate]:
    """The truth of the targeted scenario, and forecasts with almost no mass in the interior bin."""
    masses = {"F0": 0.5} | {f"F5({eps:g})": eps for eps in (1e-3, 5e-3, 1e-2, 5e-2)}
    return {name: _two_blocks(process, mass, grid) for name, mass in masses.items()}


def _two_blocks(process: TargetedScenario, interior_mass: float, grid: GridSettings) -> Candidate:
    p = np.full((1, grid.bins), grid.floor if interior_mass != 0.5 else 0.0)
    p[:, grid.bins // 2 - 1] += interior_mass
    p[:, -1] += 1 - interior_mass
    return _candidate(p / p.sum(), grid, process.two_blocks(interior_mass))
