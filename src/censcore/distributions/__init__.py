"""Laws of event times and of censoring times: one vocabulary for both."""

from censcore.distributions._base import Distribution, Univariate
from censcore.distributions.censored import Censored
from censcore.distributions.copula import Copula
from censcore.distributions.independent import Independent
from censcore.distributions.point_mass import PointMass
from censcore.distributions.weibull import Weibull

__all__ = ["Censored", "Copula", "Distribution", "Independent", "PointMass", "Univariate", "Weibull"]
