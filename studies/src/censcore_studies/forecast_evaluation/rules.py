"""Every scoring rule of the study, called the same way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore.distributions import PointMass, Univariate
from censcore.scores import brier_score, crps, log_score, pinball_score
from censcore_studies.forecast_evaluation.candidates import Candidate
from censcore_studies.forecast_evaluation.completed import (
    completed_brier,
    completed_log,
    completed_multiclass_brier,
    completed_pinball,
    completed_rps,
)
from censcore_studies.forecast_evaluation.scenario import Scenario

__all__ = ["RULES", "family"]

Rule = Callable[[Scenario, Candidate], np.ndarray]

_NEVER = PointMass(np.array([np.inf]))


def _mean_over_thresholds(scenario: Scenario, losses: np.ndarray) -> np.ndarray:
    return np.asarray(losses).sum(axis=1) / scenario.threshold_count


def _latent_crps(scenario: Scenario, f: Candidate) -> np.ndarray:
    F: Univariate = f.stepped if scenario.latent_form == "stepped" else f.continuous
    return crps(scenario.data.latent, F, _NEVER)


def _plug_in(f: Candidate, scenario: Scenario) -> None:
    return None


def _oracle(f: Candidate, scenario: Scenario) -> Univariate:
    return scenario.candidates["F0"].binned


def _yanagisawa(weights: Callable[[Candidate, Scenario], Univariate | None]) -> dict[str, Rule]:
    """The five rules under one choice of the distribution that weights censored subjects."""

    def on_grid(score: Callable[..., np.ndarray]) -> Rule:
        return lambda a, f: score(a.y, f.binned, grid=a.grid.edges, weights=weights(f, a))

    def brier(a: Scenario, f: Candidate) -> np.ndarray:
        losses = completed_brier(a.y, f.binned, times=a.thresholds, weights=weights(f, a))
        return _mean_over_thresholds(a, losses)

    def pinball(a: Scenario, f: Candidate) -> np.ndarray:
        losses = completed_pinball(a.y, f.binned, levels=a.levels, z_inf=a.late, weights=weights(f, a))
        return losses.mean(axis=1)

    return {
        "NLL": on_grid(completed_log),
        "Brier MC": on_grid(completed_multiclass_brier),
        "Brier": brier,
        "Pinball": pinball,
        "RPS": on_grid(completed_rps),
    }


def _named(prefix: str, rules: dict[str, Rule]) -> dict[str, Rule]:
    return {f"{name}, {prefix}": rule for name, rule in rules.items()}


RULES: dict[str, Rule] = {
    "CRPS, latent": _latent_crps,
    "Pinball, latent": lambda a, f: np.asarray(
        pinball_score(a.data.latent, f.continuous, _NEVER, a.levels)
    ).mean(axis=1),
    "Brier, latent": lambda a, f: _mean_over_thresholds(
        a, brier_score(a.data.latent, f.continuous, _NEVER, a.thresholds)
    ),
    "NLL, latent": lambda a, f: log_score(a.data.latent, f.continuous, _NEVER),
    **_named("Yanagisawa plug-in", _yanagisawa(_plug_in)),
    **_named("Yanagisawa oracle", _yanagisawa(_oracle)),
    "Censored NLL": lambda a, f: log_score(a.y, f.continuous, a.C),
    "CRPS, ours": lambda a, f: crps(a.y, f.continuous, a.C),
    "Pinball, ours": lambda a, f: np.asarray(pinball_score(a.y, f.continuous, a.C, a.levels)).mean(axis=1),
    "Brier, ours": lambda a, f: _mean_over_thresholds(a, brier_score(a.y, f.continuous, a.C, a.thresholds)),
}


def family(rule: str) -> str:
    """The kind of a rule: latent, plug-in, oracle weights or ours."""
    for word, kind in (("latent", "latent"), ("plug-in", "plug-in"), ("oracle", "oracle weights")):
        if word in rule:
            return kind
    return "ours"
