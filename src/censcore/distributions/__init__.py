"""Distributions of event times and of censoring times: one vocabulary for both.

A new distribution subclasses :class:`Univariate`, :class:`ByHazard`, :class:`Parametric`, :class:`Joint`,
:class:`FromMarginals` or :class:`TimeAndCause`. What it may write, and what scores call, is listed in
:mod:`censcore.distributions.contract`.
"""

from censcore.distributions.cause_specific_hazards import CauseSpecificHazards
from censcore.distributions.censored import Censored, CensoredJoint
from censcore.distributions.copula import Copula
from censcore.distributions.cumulative_incidence import CumulativeIncidence
from censcore.distributions.distribution import Distribution
from censcore.distributions.ensemble import Ensemble
from censcore.distributions.given_survival import GivenJointSurvival, GivenSurvival
from censcore.distributions.grid import JointGrid
from censcore.distributions.grouped import Grouped, GroupedCauses
from censcore.distributions.hazard import ByHazard, Exponential, Gompertz, LogLogistic, Weibull
from censcore.distributions.joint import FromMarginals, Independent, Joint
from censcore.distributions.mixture import JointMixture, Mixture
from censcore.distributions.other_libraries import ScipyDistribution
from censcore.distributions.parametric import Gamma, LogNormal, Parametric, Uniform
from censcore.distributions.piecewise_exponential import PiecewiseExponential
from censcore.distributions.piecewise_linear import PiecewiseLinear
from censcore.distributions.piecewise_weibull import PiecewiseWeibull
from censcore.distributions.point_mass import PointMass
from censcore.distributions.proportional_hazards import ProportionalHazards
from censcore.distributions.quantiles import Quantiles
from censcore.distributions.step import CompactStep, Step
from censcore.distributions.time_and_cause import CauseEnsemble, TimeAndCause
from censcore.distributions.univariate import Univariate

__all__ = [
    "ByHazard",
    "CauseEnsemble",
    "CauseSpecificHazards",
    "Censored",
    "CensoredJoint",
    "CompactStep",
    "Copula",
    "CumulativeIncidence",
    "Distribution",
    "Ensemble",
    "Exponential",
    "FromMarginals",
    "Gamma",
    "GivenJointSurvival",
    "GivenSurvival",
    "Gompertz",
    "Grouped",
    "GroupedCauses",
    "Independent",
    "Joint",
    "JointGrid",
    "JointMixture",
    "LogLogistic",
    "LogNormal",
    "Mixture",
    "Parametric",
    "PiecewiseExponential",
    "PiecewiseLinear",
    "PiecewiseWeibull",
    "PointMass",
    "ProportionalHazards",
    "Quantiles",
    "ScipyDistribution",
    "Step",
    "TimeAndCause",
    "Uniform",
    "Univariate",
    "Weibull",
]
