"""Distributions of event times and of censoring times: one vocabulary for both."""

from censcore.distributions._base import Distribution, Univariate
from censcore.distributions.censored import Censored
from censcore.distributions.copula import Copula
from censcore.distributions.ensemble import Ensemble
from censcore.distributions.exponential import Exponential
from censcore.distributions.gamma import Gamma
from censcore.distributions.gompertz import Gompertz
from censcore.distributions.grid import JointGrid
from censcore.distributions.grouped import Grouped
from censcore.distributions.independent import Independent
from censcore.distributions.loglogistic import LogLogistic
from censcore.distributions.lognormal import LogNormal
from censcore.distributions.mixture import Mixture
from censcore.distributions.piecewise_exponential import PiecewiseExponential
from censcore.distributions.piecewise_linear import PiecewiseLinear
from censcore.distributions.point_mass import PointMass
from censcore.distributions.proportional_hazards import ProportionalHazards
from censcore.distributions.quantiles import Quantiles
from censcore.distributions.scipy_distribution import ScipyDistribution
from censcore.distributions.step import Step
from censcore.distributions.uniform import Uniform
from censcore.distributions.weibull import Weibull

__all__ = [
    "Censored",
    "Copula",
    "Distribution",
    "Ensemble",
    "Exponential",
    "Gamma",
    "Gompertz",
    "Grouped",
    "Independent",
    "JointGrid",
    "LogLogistic",
    "LogNormal",
    "Mixture",
    "PiecewiseExponential",
    "PiecewiseLinear",
    "PointMass",
    "Quantiles",
    "ProportionalHazards",
    "ScipyDistribution",
    "Step",
    "Uniform",
    "Univariate",
    "Weibull",
]
