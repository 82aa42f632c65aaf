"""Distributions of event times and of censoring times: one vocabulary for both.

A new distribution subclasses :class:`Univariate`, :class:`ByHazard`, :class:`Parametric`, :class:`Joint` or
:class:`FromMarginals`; the docstring of :class:`Univariate` says which formulas it writes.
"""

from censcore.distributions.base import Distribution
from censcore.distributions.cause_ensemble import CauseEnsemble
from censcore.distributions.cause_specific_hazards import CauseSpecificHazards
from censcore.distributions.censored import Censored, CensoredJoint
from censcore.distributions.compact_step import CompactStep
from censcore.distributions.competing_risks import TimeAndCause
from censcore.distributions.copula import Copula
from censcore.distributions.cumulative_incidence import CumulativeIncidence
from censcore.distributions.ensemble import Ensemble
from censcore.distributions.exponential import Exponential
from censcore.distributions.gamma import Gamma
from censcore.distributions.given_joint_survival import GivenJointSurvival
from censcore.distributions.given_survival import GivenSurvival
from censcore.distributions.gompertz import Gompertz
from censcore.distributions.grid import JointGrid
from censcore.distributions.grouped import Grouped
from censcore.distributions.grouped_causes import GroupedCauses
from censcore.distributions.hazard import ByHazard
from censcore.distributions.independent import Independent
from censcore.distributions.joint import FromMarginals, Joint
from censcore.distributions.joint_mixture import JointMixture
from censcore.distributions.loglogistic import LogLogistic
from censcore.distributions.lognormal import LogNormal
from censcore.distributions.mixture import Mixture
from censcore.distributions.parametric import Parametric
from censcore.distributions.piecewise_exponential import PiecewiseExponential
from censcore.distributions.piecewise_linear import PiecewiseLinear
from censcore.distributions.point_mass import PointMass
from censcore.distributions.proportional_hazards import ProportionalHazards
from censcore.distributions.quantiles import Quantiles
from censcore.distributions.scipy_distribution import ScipyDistribution
from censcore.distributions.step import Step
from censcore.distributions.uniform import Uniform
from censcore.distributions.univariate import Univariate
from censcore.distributions.weibull import Weibull

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
