"""Distributions inside distributions, of four subjects, each of which can also be built alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.distributions import (
    Copula,
    Distribution,
    Exponential,
    Grouped,
    Independent,
    Mixture,
    Step,
    Weibull,
)

N = 4
GROUP = np.array([1, 0, 1, 0])
WEIGHTS = np.array([[0.3, 0.7], [0.8, 0.2], [0.5, 0.5], [1.0, 0.0]])
TAU = np.array([2.5, 0.9, 1.7, 6.0])
THETA = np.array([0.5, 2.0, 1.0, 3.0])


@dataclass(frozen=True)
class Tree:
    """A distribution of four subjects by the parts it is made of: ``whole``, or subject ``i`` alone."""

    kind: str
    parts: tuple[Any, ...]

    def whole(self) -> Distribution:
        parts = [part.whole() if isinstance(part, Tree) else part for part in self.parts]
        if self.kind == "grouped":
            members = [part.take(np.nonzero(g == GROUP)[0]) for g, part in enumerate(parts)]
            return Grouped(members, GROUP)
        return self._of(parts, WEIGHTS, TAU, THETA)

    def alone(self, i: int) -> Distribution:
        if self.kind == "grouped":
            return _alone(self.parts[GROUP[i]], i)
        return self._of([_alone(part, i) for part in self.parts], WEIGHTS[i], float(TAU[i]), float(THETA[i]))

    def _of(self, parts: list[Any], weights: Any, tau: Any, theta: Any) -> Distribution:
        match self.kind:
            case "leaf":
                return parts[0]
            case "mixture":
                return Mixture(parts, weights)
            case "censored":
                return parts[0].censor_at(tau)
            case "independent":
                return Independent(parts)
            case "copula":
                return Copula("clayton", parts, theta)
            case "first":
                return parts[0].first()
        raise AssertionError(self.kind)


def _alone(part: Any, i: int) -> Distribution:
    return part.alone(i) if isinstance(part, Tree) else part if len(part) == 1 else part.take([i])


def leaf(distribution: Distribution) -> Tree:
    """A distribution of four subjects, or one that serves all."""
    return Tree(
        "leaf",
        (distribution if len(distribution) == 1 else distribution.take(np.arange(N) % len(distribution)),),
    )


SMOOTH = leaf(Weibull([0.8, 1.3, 2.0, 1.1], [1.0, 2.0, 1.5, 3.0]))
SHARED = leaf(Exponential(0.7))
CURVE = leaf(Step([0.5, 1.0, 2.0, 4.0], sf=[0.9, 0.6, 0.3, 0.0]))


def compositions(distribution: Distribution) -> dict[str, Tree]:
    """Every way to put ``distribution`` into another distribution, and those once more into others."""

    def made(kind: str, *parts: Tree) -> Tree:
        return Tree(kind, parts)

    inner = leaf(distribution)
    grouped = made("grouped", inner, CURVE)
    mixture = made("mixture", inner, SMOOTH)
    return {
        "Grouped": grouped,
        "Mixture": mixture,
        "Censored": made("censored", inner),
        "Mixture of Grouped": made("mixture", grouped, SHARED),
        "Grouped of Mixture": made("grouped", SMOOTH, mixture),
        "Censored of Grouped": made("censored", grouped),
        "Grouped of Censored": made("grouped", made("censored", inner), SHARED),
        "Grouped of Grouped": made("grouped", grouped, SMOOTH),
        "Censored of Mixture of Grouped": made("censored", made("mixture", SHARED, grouped)),
        "Grouped of first of Independent": made(
            "grouped", made("first", made("independent", SHARED, grouped)), inner
        ),
        "Independent of Grouped": made("independent", grouped, SMOOTH),
        "Independent of Grouped of Censored": made(
            "independent", SHARED, made("grouped", made("censored", inner), CURVE)
        ),
        "Copula of Grouped": made("copula", made("grouped", inner, SMOOTH), mixture),
        "Censored of Copula": made("censored", made("copula", made("grouped", inner, SMOOTH), SHARED)),
    }
