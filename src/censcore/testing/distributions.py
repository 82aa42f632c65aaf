"""The contract of distributions."""

from __future__ import annotations

from censcore.distributions import Distribution, Univariate
from censcore.testing import _everywhere, _joint, _univariate
from censcore.testing._contract import expect_kept
from censcore.testing._subject import Rule, Subject

__all__ = ["check_distribution"]


def check_distribution(distribution: Distribution, *, rtol: float | None = None, seed: int = 0) -> None:
    r"""Check that a distribution, of one event time or of several, keeps the contract that every score relies on.

    For a distribution of one time: shapes and broadcasting; :math:`F+\bar F=1`, monotone, right-continuous; left
    limits at atoms; quantiles as generalized inverses, :math:`F(Q(p))\ge p` and :math:`Q(F(t))\le t`; the
    integral of the survival function against quadrature, the route of the base class and simulation; the
    density against the slope of F; conditional quantiles against their definition; mass at infinity;
    censoring. For a joint distribution: coordinates, the first event and the likelihood against simulation and
    against differences of the survival function. For both: rows, copies, seeds, the same numbers and
    finite gradients in torch (where it is installed), and refusals of bad input.

    Parameters
    ----------
    distribution : Distribution
        The distribution to check; a few rows suffice, and parameters of everyday size.
    rtol : float, optional
        Agreement asked of two routes to one number; 1e-6 by default (3e-3 in single precision).
    seed : int
        Of the simulations, which compare within six standard errors.

    Raises
    ------
    AssertionError
        Every broken rule, with what was found.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.testing import check_distribution
    >>> check_distribution(cs.Weibull(shape=[0.8, 2.0], scale=3.0))
    """
    if not isinstance(distribution, Distribution):
        raise AssertionError(f"A Distribution was expected; got {type(distribution).__name__}.")
    subject = Subject(distribution, rtol, seed)
    own = _univariate.RULES if isinstance(distribution, Univariate) and distribution.k == 1 else _joint.RULES
    rules: tuple[Rule, ...] = (*own, *_everywhere.RULES)
    expect_kept(rules, subject, repr(distribution), "distributions")
