"""Examples of every exported distribution, for contracts to run on. A new distribution is added here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.stats

from censcore.distributions import (
    CauseEnsemble,
    CauseSpecificHazards,
    CompactStep,
    Copula,
    CumulativeIncidence,
    Distribution,
    Ensemble,
    Exponential,
    Gamma,
    Gompertz,
    Grouped,
    GroupedCauses,
    Independent,
    JointGrid,
    JointMixture,
    LogLogistic,
    LogNormal,
    Mixture,
    PiecewiseExponential,
    PiecewiseLinear,
    PiecewiseWeibull,
    PointMass,
    ProportionalHazards,
    Quantiles,
    ScipyDistribution,
    Step,
    Uniform,
    Weibull,
)

RNG = np.random.default_rng(5)
INF = float("inf")
SAMPLES = RNG.weibull(1.3, (3, 40)).round(2)
JOINT_SAMPLES = RNG.weibull(1.3, (2, 50, 3))
CELLS = RNG.dirichlet(np.ones(16), 2).reshape(2, 4, 4)

#: Distributions of one event time, by the name of their class and what is special about them.
UNIVARIATE: dict[str, Callable[[], Distribution]] = {
    "Weibull": lambda: Weibull([0.7, 1.0, 2.5], [1.0, 2.0, 3.0]),
    "Weibull, shared": lambda: Weibull(1.5, 2.0),
    "Weibull, float32": lambda: Weibull(np.float32([0.7, 1.5]), np.float32([1.0, 2.0])),
    "Exponential": lambda: Exponential([0.5, 2.0]),
    "LogNormal": lambda: LogNormal([0.0, 1.0, -1.0], [0.3, 1.0, 2.0]),
    "LogLogistic": lambda: LogLogistic([0.8, 1.0, 1.5, 4.0], [1.0, 2.0, 3.0, 1.0]),
    "Gamma": lambda: Gamma([0.5, 1.0, 3.0, 40.0], [1.0, 2.0, 0.1, 3.0]),
    "Gompertz": lambda: Gompertz([0.1, 2.0], [0.01, 0.5]),
    "Uniform": lambda: Uniform([0.0, 1.0], [4.0, 3.0]),
    "PointMass": lambda: PointMass([2.0, 0.5]),
    "PointMass, some infinite": lambda: PointMass([2.0, INF]),
    "PointMass, infinite": lambda: PointMass(INF),
    "PiecewiseExponential": lambda: PiecewiseExponential([1.0, 3.0], [[0.5, 0.1, 1.0], [0.0, 0.2, 0.3]]),
    "PiecewiseExponential, cured": lambda: PiecewiseExponential([[1.0, 3.0], [2.0, 4.0]], [0.5, 0.0, 0.0]),
    "PiecewiseExponential, one piece": lambda: PiecewiseExponential([], [0.3]),
    "Mixture": lambda: Mixture([Weibull(1.5, [1.0, 2.0]), Exponential(0.1)], [[0.2, 0.8], [1.0, 0.0]]),
    "Mixture, cured": lambda: Mixture([LogNormal(0.0, 1.0), PointMass(INF)], [0.6, 0.4]),
    "Mixture, atoms": lambda: Mixture(
        [LogNormal(0.0, 1.0), PointMass(2.0), Uniform(1.0, 3.0)], [0.5, 0.2, 0.3]
    ),
    "Mixture, piecewise linear": lambda: Mixture([Uniform(0.0, 4.0), Uniform(1.0, 2.0)], [0.5, 0.5]),
    "ScipyDistribution": lambda: ScipyDistribution(scipy.stats.burr12(2.0, 1.5, scale=[1.0, 3.0])),
    "Censored": lambda: Weibull(1.5, [1.0, 2.0]).censor_at([0.8, INF]),
    "Censored, mixture": lambda: Mixture([Exponential(1.0), PointMass(INF)], [0.5, 0.5]).censor_at(3.0),
    "GivenSurvival": lambda: Weibull([0.7, 2.5], [1.0, 2.0]).given_survival([0.4, 1.0]),
    "PiecewiseWeibull": lambda: PiecewiseWeibull([1.0, 3.0], [[0.5, 0.1, 1.0], [0.0, 0.2, 0.3]], [1.5, 0.8]),
    "GivenSurvival, cured": lambda: PiecewiseExponential([1.0, 3.0], [0.5, 0.1, 0.0]).given_survival(0.7),
    "GivenSurvival, quantiles": lambda: Quantiles([0.1, 0.5, 0.9], [1.0, 2.0, 5.0]).given_survival(
        [0.0, 1.5]
    ),
    "GivenSurvival, piecewise linear": lambda: PiecewiseLinear(
        [1.0, 2.0, 4.0], sf=[[0.8, 0.5, 0.5], [0.9, 0.6, 0.0]]
    ).given_survival(1.5),
    "GivenSurvival, steps": lambda: Step([0.5, 1.0, 2.5, 7.0], sf=[0.8, 0.6, 0.3, 0.1]).given_survival(
        [0.5, 0.7]
    ),
    "GivenSurvival, Cox": lambda: ProportionalHazards(
        [0.5, 1.0, 2.0, 4.0], [0.1, 0.5, 0.8, 2.0], risk=[0.5, 1.0, 3.0]
    ).given_survival([0.0, 0.5, 1.2]),
    "GivenSurvival, mixture": lambda: Mixture(
        [LogNormal(0.0, 1.0), PointMass(0.3), PointMass(INF)], [0.5, 0.2, 0.3]
    ).given_survival([0.1, 0.3]),
    "GivenSurvival, grouped": lambda: Grouped(
        [Exponential(1.0), Weibull(2.0, [3.0, 6.0])], group=[1, 0, 1, 0]
    ).given_survival(0.8),
    "GivenSurvival, scipy": lambda: ScipyDistribution(
        scipy.stats.burr12(2.0, 1.5, scale=[1.0, 3.0])
    ).given_survival(0.5),
    "GivenSurvival, ensemble": lambda: Ensemble(SAMPLES).given_survival([0.2, 0.5, 1.0]),
    "Step": lambda: Step([1.0, 2.0, 4.0], sf=[[0.8, 0.5, 0.5], [0.9, 0.6, 0.0]]),
    "CompactStep": lambda: CompactStep([1.0, 2.0, 4.0], [[0.75, 0.5, 0.5], [0.875, 0.625, 0.0]]),
    "Step, shared": lambda: Step([0.5, 1.0, 2.5, 7.0], cdf=[0.125, 0.25, 0.75, 1.0]),
    "PiecewiseLinear": lambda: PiecewiseLinear([1.0, 2.0, 4.0], sf=[[0.8, 0.5, 0.5], [0.9, 0.6, 0.0]]),
    "PiecewiseLinear, exponential tail": lambda: PiecewiseLinear(
        [1.0, 2.0, 4.0], sf=[[0.8, 0.5, 0.5], [0.9, 0.6, 0.0], [0.9, 0.6, 0.2]], tail="exponential"
    ),
    "PiecewiseLinear, atoms": lambda: PiecewiseLinear(
        [0.0, 2.0, 4.0], cdf=[[0.2, 0.5, 0.5], [0.0, 0.6, 0.9]], tail="last"
    ),
    "Quantiles": lambda: Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 5.0], [2.0, 3.0, 4.0]]),
    "Quantiles, rest at infinity": lambda: Quantiles([0.1, 0.5, 0.9], [1.0, 2.0, 5.0], tail="infinity"),
    "Quantiles, rest at the last": lambda: Quantiles([0.1, 0.5, 0.9], [1.0, 2.0, 5.0], tail="last"),
    "Ensemble": lambda: Ensemble(SAMPLES),
    "Ensemble, weighted": lambda: Ensemble([[1.0, 3.0, 2.0, INF]], weights=[0.1, 0.4, 0.3, 0.2]),
    "Grouped": lambda: Grouped([Exponential(1.0), Weibull(2.0, [3.0, 6.0])], group=[1, 0, 1, 0]),
    "ProportionalHazards": lambda: ProportionalHazards(
        [0.5, 1.0, 2.0, 4.0], [0.1, 0.5, 0.8, 2.0], risk=[0.5, 1.0, 3.0]
    ),
    "ProportionalHazards, nobody survives": lambda: ProportionalHazards(
        [0.5, 1.0, 2.0, 4.0], [0.1, 0.5, 0.8, np.inf], risk=[0.5, 1.0, 3.0]
    ),
}

#: Distributions of several event times.
JOINT: dict[str, Callable[[], Distribution]] = {
    "Independent": lambda: Independent([Weibull(1.5, [1.0, 2.0]), LogNormal(0.0, 0.8)]),
    "Independent, atoms": lambda: Independent([PointMass([1.0, INF]), Exponential(1.0), Uniform(0.0, 2.0)]),
    "Copula, Clayton": lambda: Copula(
        "clayton", [Weibull(1.2, 2.0), Exponential([1.0, 2.0]), LogNormal(0.0, 1.0)], theta=[0.5, 3.0]
    ),
    "Copula, Gumbel": lambda: Copula("gumbel", [Weibull(1.2, 2.0), Exponential([1.0, 2.0])], theta=1.7),
    "JointMixture": lambda: JointMixture(
        [
            Independent([Exponential(2.0), Weibull(1.5, 1.0)]),
            Independent([Exponential(0.5), Weibull(2.0, [2.0, 3.0])]),
        ],
        [[0.3, 0.7], [0.6, 0.4]],
    ),
    "JointGrid": lambda: JointGrid([0.0, 1.0, 2.0, 4.0], CELLS, tail=0.5),
    "JointGrid, censored": lambda: JointGrid([0.0, 1.0, 2.0, 4.0], CELLS, tail=0.5).censor_at([3.0, INF]),
    "JointGrid, cured": lambda: JointGrid([0.0, 1.0, 2.0, 4.0], CELLS, tail="infinity"),
    "Ensemble, joint": lambda: Ensemble(JOINT_SAMPLES),
    "GivenJointSurvival": lambda: Copula(
        "clayton", [Weibull(1.2, 2.0), Exponential([1.0, 2.0])], theta=[0.5, 3.0]
    ).given_survival([0.2, 0.5]),
    "GivenJointSurvival, grid": lambda: JointGrid([0.0, 1.0, 2.0, 4.0], CELLS, tail=0.5).given_survival(0.6),
    "Ensemble, joint, given survival": lambda: Ensemble(JOINT_SAMPLES).given_survival([0.1, 0.2]),
}

CIF = np.array([[[0.1, 0.3, 0.4], [0.2, 0.2, 0.5]], [[0.0, 0.1, 0.1], [0.3, 0.3, 0.35]]])
SAMPLED_CAUSES = RNG.integers(1, 3, (3, 40))

#: Distributions of time and cause.
TIME_AND_CAUSE: dict[str, Callable[[], Distribution]] = {
    "CumulativeIncidence": lambda: CumulativeIncidence([1.0, 2.0, 4.0], CIF),
    "GroupedCauses": lambda: GroupedCauses(
        [CumulativeIncidence([1.0, 2.0, 4.0], CIF[:1]), CumulativeIncidence([3.0], CIF[:1, :, :1])], [0, 1, 0]
    ),
    "CumulativeIncidence, linear": lambda: CumulativeIncidence([1.0, 2.0, 4.0], CIF, interpolation="linear"),
    "CumulativeIncidence, float32": lambda: CumulativeIncidence(
        np.float32([1.0, 2.0, 4.0]), CIF.astype(np.float32)
    ),
    "CauseSpecificHazards": lambda: CauseSpecificHazards(
        [Weibull([0.7, 2.0], 2.0), LogNormal(0.5, [0.6, 1.2]), Exponential(0.2)]
    ),
    "CauseSpecificHazards, steps": lambda: CauseSpecificHazards(
        [ProportionalHazards([1.0, 2.0], [0.3, 0.9], [1.0, 2.0]), Step([2.0, 3.0], sf=[0.9, 0.2])]
    ),
    "CauseEnsemble": lambda: CauseEnsemble(
        np.where(SAMPLES > 2, INF, SAMPLES), np.where(SAMPLES > 2, 0, SAMPLED_CAUSES)
    ),
}

DISTRIBUTIONS = UNIVARIATE | JOINT | TIME_AND_CAUSE
