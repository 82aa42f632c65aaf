"""Regimes A to D, and those like real studies: data, distributions and conventions from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from censcore.distributions import Distribution, PointMass, Univariate, Weibull
from censcore.estimators.censoring.censoring_choice import censoring_estimator
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.simulation import SimulatedData, TargetedScenario, WeibullScenario
from censcore_studies.forecast_evaluation.candidates import (
    Candidate,
    GridSettings,
    exploit_candidates,
    perturbed,
    weibull_candidates,
)
from censcore_studies.forecast_evaluation.data_regimes import DATA_REGIMES, data_scenario

__all__ = ["LEVELS", "REGIMES", "Scenario", "StudySettings", "build_scenario", "estimated_censoring"]

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

REGIMES = {"A": "administrative", "B": "uniform", "C": "conditional", "D": "targeted"}


@dataclass(frozen=True)
class StudySettings:
    """The choices that the publication leaves open, with the values that its numbers suggest.

    Attributes
    ----------
    administrative : {"median", "fixed"}
        Regime A ends follow-up at the sample median of T (an event rate of exactly one half), or at 0.9833.
    percentiles : tuple of int
        Brier thresholds in regimes A to C, as percentiles of the sample of T.
    severity : float
        Divides the censoring times: above 1 censoring is heavier. Regime D has none.
    grid : GridSettings
        Grid and perturbations.
    """

    administrative: str = "median"
    percentiles: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    severity: float = 1.0
    grid: GridSettings = field(default_factory=GridSettings)


@dataclass(frozen=True)
class Scenario:
    """Data, the censoring distribution, the candidates and the conventions that the rules need.

    Attributes
    ----------
    thresholds : array
        Times of the binary Brier scores.
    threshold_count : int
        What the sum over thresholds is divided by; thresholds at which every forecast scores zero need not
        be listed.
    latent_form : {"continuous", "stepped"}
        The form of the forecast that CRPS against the latent times uses.
    flat_quantile : {"lower", "upper"}
        Which end of a flat part of the CDF is the quantile.
    z_inf : float, optional
        Stand-in for late events in the Portnoy pinball score: the largest observed time by default, which is
        what the published values point to.
    """

    data: SimulatedData
    y: RightCensored
    C: Distribution
    candidates: dict[str, Candidate]
    grid: GridSettings
    thresholds: np.ndarray
    threshold_count: int
    latent_form: str = "continuous"
    flat_quantile: str = "lower"
    z_inf: float | None = None

    @property
    def late(self) -> float:
        """The time that stands in for infinity."""
        return float(self.y.time.max()) if self.z_inf is None else self.z_inf

    @property
    def levels(self) -> np.ndarray:
        """Quantile levels, nudged past flat parts where their upper end counts."""
        nudge = 1e-9 if self.flat_quantile == "upper" else 0.0
        return np.asarray(LEVELS) + nudge


def build_scenario(
    regime: str, n: int, seed: int, settings: StudySettings | None = None, estimator: str | None = None
) -> Scenario:
    """Everything that the rules of one regime need.

    Parameters
    ----------
    regime : {"A", "B", "C", "D"} or a key of DATA_REGIMES
        Administrative, uniform, covariate-dependent or targeted censoring, or a scenario like a real study.
    n, seed : int
        Number of subjects, and seed.
    settings : StudySettings, optional
        Conventions.
    estimator : str, optional
        Replace the true censoring distribution by an estimate; see :func:`estimated_censoring`.
    """
    settings = settings or StudySettings()
    if regime == "D":
        return _targeted_scenario(n, seed, settings)
    if regime in DATA_REGIMES:
        return _data_scenario(regime, n, seed, settings)
    if regime not in REGIMES:
        raise InvalidInputError(f"regime must be one of {[*REGIMES, *DATA_REGIMES]}; got {regime!r}.")
    process = WeibullScenario(REGIMES[regime], severity=settings.severity)
    data = process.sample(n, seed)
    C: Distribution = process.censoring_distribution(data.X)
    if regime == "A" and settings.administrative == "median":
        c = np.median(data.T) / settings.severity
        data, C = SimulatedData(data.X, data.T, np.full(n, c)), PointMass(np.array([c]))
    thresholds = np.percentile(data.T, settings.percentiles)
    candidates = weibull_candidates(data.X, settings.grid)
    scenario = Scenario(data, data.y, C, candidates, settings.grid, thresholds, len(thresholds))
    return scenario if estimator is None else _supported(scenario, estimated_censoring(estimator, data, seed))


def _supported(scenario: Scenario, C: Univariate) -> Scenario:
    """An estimate, and data cut where it ends: a curve fitted to other folds may end before a time."""
    end = float(np.min(C.isf(0.0)))
    tau = np.nextafter(end, 0.0)
    beyond = (scenario.y.time > end) | (scenario.y.event & (scenario.y.time > tau))
    if not beyond.any():
        return replace(scenario, C=C)
    return replace(scenario, y=scenario.y.censor_at(tau), C=C.censor_at(tau))


def _data_scenario(name: str, n: int, seed: int, settings: StudySettings) -> Scenario:
    """The grid ends with follow-up, as it would in an analysis; the perturbations are those of A to C."""
    process = replace(data_scenario(name), severity=settings.severity)
    data = process.sample(n, seed)
    grid = replace(settings.grid, z_max=process.end / settings.severity)
    thresholds = np.percentile(data.T, settings.percentiles)
    F = process.event_distribution(data.X)
    assert isinstance(F, Weibull)
    C = process.censoring_distribution(data.X)
    return Scenario(data, data.y, C, perturbed(F, grid), grid, thresholds, len(thresholds))


def _targeted_scenario(n: int, seed: int, settings: StudySettings) -> Scenario:
    """Regime D is judged at the right end of the interior bin; at other thresholds all forecasts agree."""
    grid = settings.grid
    process = TargetedScenario(grid.z_max, grid.bins)
    data = process.sample(n, seed)
    return Scenario(
        data,
        data.y,
        process.censoring_distribution(data.X),
        exploit_candidates(process, grid),
        grid,
        thresholds=grid.edges[[grid.bins // 2]],
        threshold_count=len(settings.percentiles),
        latent_form="stepped",
        flat_quantile="upper",
    )


#: Name in this study: the library's name, and whether the estimator uses the covariates.
_ESTIMATORS = {
    "kaplan-meier": ("kaplan-meier", False),
    "weibull": ("weibull", False),
    "cox": ("cox", True),
    "weibull-x": ("weibull", True),
}


def estimated_censoring(name: str, data: SimulatedData, seed: int = 0) -> Univariate:
    """The censoring distribution estimated from the data themselves.

    Parameters
    ----------
    name : str
        ``"kaplan-meier"`` and ``"weibull"`` pool all subjects; ``"cox"`` and ``"weibull-x"`` use the
        covariates; a suffix ``"-cv"`` fits the distribution of each subject on the other folds.
    data : SimulatedData
        Covariates and outcome.
    seed : int
        Seed of the folds.
    """
    base = name.removesuffix("-cv")
    if base not in _ESTIMATORS:
        raise InvalidInputError(
            f"estimator must be one of {list(_ESTIMATORS)}, with or without '-cv'; got {name!r}."
        )
    of_the_library, conditional = _ESTIMATORS[base]
    X = data.X if conditional else None
    if name.endswith("-cv"):
        model = censoring_estimator(of_the_library, cv=5, random_state=seed)
        return model.fit_predict_distribution(X, data.y).marginal(0)
    model = censoring_estimator(of_the_library)
    return model.fit(X, data.y).predict_distribution(X).marginal(0)
