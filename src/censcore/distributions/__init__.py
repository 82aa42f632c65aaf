"""Distributions of event times and of censoring times: one vocabulary for both.

A new distribution subclasses :class:`Univariate`, :class:`ByHazard`, :class:`Parametric`, :class:`Joint`,
:class:`FromMarginals` or :class:`TimeAndCause`. What it may write, and what scores call, is listed in
:mod:`censcore.distributions.contract`.
"""

from censcore.distributions.causes.cause_specific_hazards import CauseSpecificHazards
from censcore.distributions.causes.cumulative_incidence import CumulativeIncidence
from censcore.distributions.causes.time_and_cause import CauseEnsemble, TimeAndCause
from censcore.distributions.derived.censored import Censored, CensoredJoint
from censcore.distributions.derived.grouped import Grouped, GroupedCauses
from censcore.distributions.derived.mixture import JointMixture, Mixture
from censcore.distributions.derived.truncated import GivenJointSurvival, GivenSurvival
from censcore.distributions.distribution import Distribution
from censcore.distributions.joint.copula import Copula
from censcore.distributions.joint.ensemble import Ensemble
from censcore.distributions.joint.joint import FromMarginals, Independent, Joint
from censcore.distributions.joint.joint_grid import JointGrid
from censcore.distributions.univariate.hazard import ByHazard, Exponential, Gompertz, LogLogistic, Weibull
from censcore.distributions.univariate.parametric import Gamma, LogNormal, Parametric, Uniform
from censcore.distributions.univariate.piecewise_exponential import PiecewiseExponential
from censcore.distributions.univariate.piecewise_linear import PiecewiseLinear
from censcore.distributions.univariate.piecewise_weibull import PiecewiseWeibull
from censcore.distributions.univariate.point_mass import PointMass
from censcore.distributions.univariate.proportional_hazards import ProportionalHazards
from censcore.distributions.univariate.quantiles import Quantiles
from censcore.distributions.univariate.scipy_distribution import ScipyDistribution
from censcore.distributions.univariate.step import CompactStep, Step
from censcore.distributions.univariate.univariate import Univariate

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
