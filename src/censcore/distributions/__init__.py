"""Distributions of event times and of censoring times: one vocabulary for both.

A new distribution subclasses :class:`Univariate`, :class:`ByHazard`, :class:`Parametric`, :class:`Joint`,
:class:`FromMarginals` or :class:`TimeAndCause`. What it may write, and what scores and estimators call, is
the protocol below. Other attributes with an underscore belong to their class.

**Storage**, of every distribution. ``_store(name=array, ...)`` keeps arrays, the subjects first, as
``_name`` in one library and dtype. Then ``take``, ``like`` and copies work. ``_store_columns`` keeps numbers,
or one value per subject, as (n, 1) columns.

=======================  ======================================================================
``_arrays``              names of the attributes that hold arrays; ``_store`` sets them
``_distributions``       names of the attributes that hold another distribution, or a list of them
``_reference``, ``_xp``  one of the arrays, which tells dtype and device, and their namespace
``_is_neutral``          whether it was built from Python numbers alone and follows any library
``_parts()``             the distributions that it is made of
``_map(f)``              the same distribution with f applied to every array
``_replaced(name=...)``  the same with other attributes
``_rebuilt(f, g)``       the same with f applied to its arrays and g to its parts
``_bound()``             the same distribution, which belongs to the library of its arrays
``_remember(name, f)``   what f derives from the arrays, made once
``_is_estimate``         whether it was estimated, so that all mass at one time does not mean certainty
``_sample(m, rng)``      m draws per subject, (n, m) or (n, m, k)
=======================  ======================================================================

**One event time.** Formulas receive times t or levels p as (1 or n, q) arrays that were checked already, in
the library of the distribution. Parameters are (n, 1) columns, so that formulas read like the textbook. Only
``_sf`` must be written; the others are derived from it, numerically if need be. Times may be infinite.

==========================  ===================================================================
``_sf(t)``                  P(T > t)
``_sf_left(t)``             P(T >= t); to be written where the distribution has finite atoms
``_cdf(t)``, ``_logsf(t)``  P(T <= t) and log P(T > t), where 1 - P(T > t) would lose digits
``_logpdf(t)``              log density; where it is written, ``has_density`` is True (if its parts have one)
``_isf(p)``, ``_icdf(p)``   quantiles, inf{t: P(T > t) <= p} and inf{t: F(t) >= p}
``_icdf_beyond(y, p)``      quantiles given T >= y
``_isf_given(a, s, p)``     inf{t: P(T > t) <= p s} with s = P(T > a), where s may underflow
``_integrated_sf(a, b)``    the integral of P(T > t) from a to b
``_mass_at_infinity()``     P(T = inf), (1 or n,); zero unless written
``_breaks()``               times (1 or n, b) where the survival function jumps or bends
``_degree``                 0 for step functions, 1 for piecewise-linear ones, None otherwise
``_steps()``                of degree 0: the jumps and the survival after each, (1 or n, J)
``_area_before(t)``         of degrees 0 and 1: the integral of P(T > t) up to t, whole panels and the rest
``_panel_edges()``          times between which quadrature is accurate
``_dense_edges``            whether they suffice for integrals that begin anywhere
``_end()``                  the end of the support, (1 or n, 1)
``_excludes(t)``            whether the time cannot be t
==========================  ===================================================================

**Several event times** (:class:`Joint`), with times (n, q, k): ``_logsf(t, left)``,
``_log_likelihood(t, event)``, ``_mass_at_infinity()``. **Time and cause** (:class:`TimeAndCause`):
``_of_cause(j)``, ``_of_any_cause()``.

**Single classes**, whose arrays fast routes of scores read. Steps and lines have ``_times``, ``_levels``,
``_as_sf``, ``_as_cdf``, ``_padded``, ``_areas``, ``_integrated_square`` and, for the ends of lines,
``_start``, ``_last``, ``_left``, ``_rate``; ``Step._trusted(times, sf)`` and ``Ensemble._with(samples)`` skip
checks; ensembles and others give their steps by ``_step()``; proportional hazards have ``_hazard``; groups
have ``_group``, ``_groups()`` and ``_in_row_order(parts)``.
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
