"""Data-generating processes: Weibull, joint log-normal, targeted censoring, and those that imitate data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from censcore._arrays import as_float
from censcore._validation import as_count, as_frame, as_number, check_flag, check_method, check_option
from censcore.distributions import (
    Distribution,
    Independent,
    Mixture,
    PiecewiseLinear,
    PointMass,
    Uniform,
    Univariate,
    Weibull,
)
from censcore.exceptions import InvalidInputError
from censcore.simulation.one_factor import OneFactorLogNormal
from censcore.simulation.scenario import Scenario

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
        _check_censoring(self, ("administrative", "uniform", "conditional", "none"))

    def scale(self, X: np.ndarray) -> np.ndarray:
        """lambda(x)."""
        return np.exp(0.3 + X @ np.array([0.8, -0.5, 0.3]))

    def event_distribution(self, X: np.ndarray) -> Weibull:
        """Weibull(1.5, lambda(x))."""
        return Weibull(SHAPE, self.scale(X))

    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The censoring distribution given x in the chosen regime."""
        if self.censoring == "conditional":
            return Weibull(SHAPE, np.exp(0.2 + X @ np.array([-0.3, 0.0, 0.4])) / self.severity)
        return _same_for_all(self)


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
        _check_censoring(self, ("administrative", "uniform", "conditional", "componentwise", "none"))
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
        if self.censoring == "conditional":
            share = 0.45 + 0.70 * expit(X @ np.array([0.45, -0.35, 0.20, 0.0]))
            return Uniform(np.zeros(len(X)), end * share)
        if self.censoring == "componentwise":
            return Independent([_uniform(end) for _ in range(self.k)])
        return _same_for_all(self)


def _uniform(end: float) -> Any:
    return Uniform(np.array([0.0]), np.array([end]))


def _check_censoring(scenario: WeibullScenario | LogNormalScenario, kinds: tuple[str, ...]) -> None:
    check_option(scenario.censoring, "censoring", kinds)
    for name in ("c_admin", "c_max", "severity"):
        as_number(getattr(scenario, name), name, above=0)


def _same_for_all(scenario: WeibullScenario | LogNormalScenario) -> Univariate:
    """The censoring distribution where it does not depend on x: administrative, uniform or none."""
    if scenario.censoring == "uniform":
        return _uniform(scenario.c_max / scenario.severity)
    end = scenario.c_admin / scenario.severity if scenario.censoring == "administrative" else np.inf
    return PointMass(np.array([end]))


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
        object.__setattr__(self, "bins", as_count(self.bins, "bins", least=4, most=10**6))
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
        early, never = Uniform(np.array([low]), np.array([quarter])), PointMass(np.array([np.inf]))
        return Mixture([early, never], np.array([[self.early, 1 - self.early]]))


@dataclass(frozen=True, eq=False)
class DataScenario(Scenario):
    """Covariates of a data set, drawn with replacement, with T and C from fitted models.

    The fitted models are the truth, so that theorems can be tested with the covariates, event rates and
    follow-up of real studies.

    Parameters
    ----------
    X : array, (n, d)
        Covariates of the data set.
    event_model, censoring_model : estimators
        Fitted; anything with ``predict_distribution(X)``. ``Censoring(CoxRegression())`` gives the second.
    end : float
        Follow-up never exceeds this time, such as the largest one in the data.
    severity : float
        Divides the end of follow-up: above 1 the study ends earlier.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import DataScenario, WeibullScenario
    >>> study = WeibullScenario("conditional").sample(300, seed=0)   # in place of real data
    >>> T = cs.WeibullRegression().fit(study.X, study.y)
    >>> C = cs.Censoring(cs.CoxRegression()).fit(study.X, study.y)
    >>> scenario = DataScenario(study.X, T, C, end=float(study.y.time.max()))
    >>> data = scenario.sample(1000, seed=1)
    >>> bool(abs(data.y.event.mean() - study.y.event.mean()) < 0.06)
    True
    """

    X: np.ndarray
    event_model: Any
    censoring_model: Any
    end: float = np.inf
    severity: float = 1.0

    def __post_init__(self) -> None:
        X = as_float(as_frame(self.X, name="X").to_numpy() if hasattr(self.X, "columns") else self.X, "X")
        if X.ndim != 2 or not len(X):
            raise InvalidInputError(f"X must be (n, d); got an array of shape {tuple(X.shape)}.")
        object.__setattr__(self, "X", X)
        for name in ("event_model", "censoring_model"):
            check_method(getattr(self, name), name, "predict_distribution", "a fitted estimator")
        object.__setattr__(self, "end", as_number(self.end, "end", above=0, infinite=True))
        object.__setattr__(self, "severity", as_number(self.severity, "severity", above=0))

    def covariates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Covariates of subjects of the data set, drawn with replacement."""
        return self.X[rng.integers(len(self.X), size=n)]

    def event_distribution(self, X: np.ndarray) -> Distribution:
        """The fitted distribution of T given x."""
        return self.event_model.predict_distribution(X)

    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The fitted distribution of C given x, censored at the end of follow-up."""
        distribution: Distribution = self.censoring_model.predict_distribution(X)
        return distribution if np.isinf(self.end) else distribution.censor_at(self.end / self.severity)
