"""The distribution of the time and the cause of an event: the base of all forecasts, and samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from censcore._arrays import Array, ArrayLike, as_float, convert, is_neutral, possibly, to_numpy
from censcore._numerics import chunked_rows
from censcore._validation import as_cause_codes, check_not_nan, name_subjects
from censcore.distributions.distribution import Distribution, Seed
from censcore.distributions.joint.ensemble import Ensemble
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError
from censcore.outcomes.parts import as_cause_names, cause_number
from censcore.plain_text import some_of


class TimesAndCauses(NamedTuple):
    """Draws of a time and a cause.

    Attributes
    ----------
    time : array, (n, m)
        Infinite where the event never happens.
    cause : array of int, (n, m)
        1 and up; 0 where the event never happens.

    Examples
    --------
    >>> import censcore as cs
    >>> F = cs.CauseSpecificHazards([cs.Exponential(1.0), cs.Exponential(3.0)])
    >>> draws = F.sample(1000, seed=1)
    >>> float((draws.cause == 2).mean().round(1))
    0.8
    """

    time: Array
    cause: Array


class TimeAndCause(Distribution):
    r"""The distribution of the time T of the first event and of its cause D, one per subject.

    It is known by the cumulative incidences :math:`F_j(t)=P(T\le t,\,D=j)`. The time of cause j is
    :math:`T_j=T` if :math:`D=j`, else infinite: its distribution :meth:`cause` has mass at infinity, and
    every score takes it together with ``y.cause(j)``.

    Notes
    -----
    A subclass writes ``of_cause(number)`` and ``of_any_cause()``, both :class:`Univariate`, and calls
    ``_name(names, m)`` for its m causes; the rest follows.

    See Also
    --------
    censcore.CumulativeIncidence : From matrices of cumulative incidence.
    censcore.CauseSpecificHazards : From one hazard per cause.
    censcore.CauseEnsemble : From samples.
    censcore.CompetingRisks : The outcome.
    """

    _is_joint = True

    #: Names of the causes.
    names: tuple[str, ...] = ()

    @property
    def n_causes(self) -> int:
        """The number m of causes."""
        return len(self.names)

    @abstractmethod
    def of_cause(self, number: int) -> Univariate:
        """The distribution of the time of cause ``number``, from 1 to m."""

    @abstractmethod
    def of_any_cause(self) -> Univariate:
        """The distribution of T."""

    def _name(self, names: Sequence[str] | None, m: int) -> None:
        """Keep the names of m causes, or make some."""
        self.names = as_cause_names(names, m, m)

    @property
    def k(self) -> int:
        """The number of causes: as a joint distribution it is that of T_1, ..., T_m."""
        return self.n_causes

    def cause(self, j: int | str) -> Univariate:
        r"""The distribution of :math:`T_j`: T if the cause is j, else never.

        Parameters
        ----------
        j : int or str
            Number of the cause, from 1 to m, or its name.

        Returns
        -------
        Univariate
            With :math:`P(T_j\le t)=F_j(t)`, and the rest of the mass at infinity.

        Examples
        --------
        >>> import censcore as cs
        >>> F = cs.CumulativeIncidence([1.0, 2.0], [[[0.2, 0.5], [0.1, 0.3]]])
        >>> F.cause(1).cdf(2.0), F.cause(1).mass_at_infinity()
        (array([0.5]), array([0.5]))
        """
        return self.of_cause(cause_number(j, self.names))

    def any_cause(self) -> Univariate:
        """The distribution of T, the time of the first event of any cause."""
        return self.of_any_cause()

    def marginal(self, j: int) -> Univariate:
        """The distribution of the time of cause ``j + 1``: coordinates are counted from zero."""
        return self.of_cause(cause_number(j + 1 if j >= 0 else self.n_causes + j + 1, self.names))

    def first(self) -> Univariate:
        """The distribution of the first of the event times, as :meth:`any_cause`."""
        return self.any_cause()

    def cif(self, t: ArrayLike) -> Array:
        r"""The cumulative incidences :math:`F_j(t)=P(T\le t,\,D=j)` of all causes.

        Parameters
        ----------
        t : number or array, (q,) or (n, q)
            Times; (q,) for the same times for every subject.

        Returns
        -------
        array, (n, m, q), or (n, m) for a single number

        Examples
        --------
        >>> import censcore as cs
        >>> F = cs.CumulativeIncidence([1.0, 2.0], [[[0.2, 0.5], [0.1, 0.3]]])
        >>> F.cif([0.5, 1.0, 9.0])
        array([[[0. , 0.2, 0.5],
                [0. , 0.1, 0.3]]])
        """
        at, single = self._times(t)
        n, m = max(len(self), at.shape[0]), self.n_causes

        def part(rows: slice) -> Array:
            F, times = self.take(rows), at if at.shape[0] == 1 else at[rows]
            return self.xp.stack([F.of_cause(j).cdf(times) for j in range(1, m + 1)], axis=1)

        values = chunked_rows(part, n, m * (at.shape[1] + 500), like=self.reference)
        return values[:, :, 0] if single else values

    def sf(self, t: ArrayLike) -> Array:
        """P(T > t), one less the sum of the cumulative incidences: (n, q), or (n,) for a single number."""
        at, single = self._times(t)
        values = self.any_cause().sf(at)
        return values[:, 0] if single else values

    def _times(self, t: Array) -> tuple[Array, bool]:
        """Times as (1 or n, q), and whether a number was given."""
        at = as_float(t, "t", like=self.reference)
        if at.ndim > 2:
            raise InvalidInputError(f"t must be a number, (q,) or (n, q); got shape {tuple(at.shape)}.")
        check_not_nan(at, "t")
        return (at if at.ndim == 2 else at.reshape(1, -1)), at.ndim == 0

    def log_likelihood(self, time: ArrayLike, event: ArrayLike) -> Array:
        """Log density of the time and cause of an event, log survival where the cause is 0, (n,).

        ``event`` holds the causes, 0 to m.
        """
        xp = self.xp
        time = as_float(time, "time", like=self.reference)
        cause = np.asarray(event) if is_neutral(event) else event
        alive = convert(cause == 0, self.reference)
        total = self.any_cause().logsf(xp.where(alive, time, 0.0))
        for j in range(1, self.n_causes + 1):
            here = convert(cause == j, self.reference)
            if possibly(here.any()):
                density = self.of_cause(j).logpdf(xp.where(here, time, 1.0))
                total = xp.where(here, density, total)
        return total

    @abstractmethod
    def given_survival(self, a: ArrayLike) -> TimeAndCause:
        r"""The distribution of time and cause given T > a: :math:`F_j(t\mid T>a)=\{F_j(t)-F_j(a)\}/P(T>a)`.

        Parameters
        ----------
        a : number or array, (n,)
            The time to which a subject is known to be free of any event; finite. If negative, no condition.

        Returns
        -------
        TimeAndCause
            Not the same as ``cause(j).given_survival(a)``, which ignores the other causes.

        Raises
        ------
        ImpossibleForecastError
            Where P(T > a) = 0.

        Examples
        --------
        >>> import censcore as cs
        >>> F = cs.CumulativeIncidence([1.0, 2.0], [[[0.2, 0.5], [0.3, 0.4]]])
        >>> F.given_survival(1.0).cif(2.0).round(3)
        array([[0.6, 0.2]])
        """

    def _alive(self, a: Array) -> tuple[Array, Array]:
        """The times a, and P(T > a), as columns (1 or n, 1); an error where it is zero."""
        any_cause, column = self.any_cause()._with_start(a)
        any_cause.given_survival(column[:, 0])
        alive = any_cause.sf(column)
        return column, alive

    def sample(self, m: int, seed: Seed = None) -> TimesAndCauses:
        """Random draws of time and cause.

        Parameters
        ----------
        m : int
            Draws per subject.
        seed : int, sequence of int, numpy.random.Generator or None
            As in :func:`numpy.random.default_rng`.

        Returns
        -------
        TimesAndCauses
            ``time`` and ``cause``, both (n, m); infinity and 0 where the event never happens.

        Examples
        --------
        >>> import censcore as cs
        >>> F = cs.CumulativeIncidence([1.0, 2.0], [[[0.2, 0.5], [0.1, 0.3]]])
        >>> F.sample(4, seed=0)
        TimesAndCauses(time=array([[2., 2., 2., 2.]]), cause=array([[2, 1, 1, 1]]))
        """
        return super().sample(m, seed)

    def draw(self, m: int, rng: Draws) -> TimesAndCauses:
        """The cause by its probability, then its time given that it happens."""
        xp, n = self.xp, len(self)
        parts = [self.of_cause(j) for j in range(1, self.n_causes + 1)]
        finite = [1 - part.mass_at_infinity()[:, None] for part in parts]
        u, level = self._uniforms((n, m), rng), self._uniforms((n, m), rng)
        time, below = xp.full_like(u, np.inf), xp.zeros_like(u)
        cause = xp.zeros_like(u, dtype=xp.int64)
        for j, (part, share) in enumerate(zip(parts, finite, strict=True), start=1):
            here = (u >= below) & (u < below + share)
            time = xp.where(here, part.icdf_at(level * share), time)
            cause = xp.where(here, xp.full_like(cause, j), cause)
            below = below + share
        return TimesAndCauses(time, cause)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, causes: {some_of(self.names)})"


class CauseEnsemble(TimeAndCause):
    r"""The empirical distribution of samples of the time and the cause of an event.

    .. math:: F_j(t)=\frac1M\sum_{i=1}^M\mathbb 1\{t_i\le t,\,d_i=j\}

    Parameters
    ----------
    times : array, (n, M)
        Non-negative; infinity means that the event never comes. n = 1 serves all subjects.
    causes : array of whole numbers, (n, M)
        From 1 to m; 0 exactly where the time is infinite.
    names : sequence of str, optional
        Names of the causes 1 to m.
    n_causes : int, optional
        m. By default the number of names, or the largest cause.

    See Also
    --------
    CumulativeIncidence : From matrices.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> F = cs.CauseEnsemble([[1.0, 2.0, 3.0, np.inf]], [[1, 2, 1, 0]])
    >>> F.cif([2.0, 5.0])
    array([[[0.25, 0.5 ],
            [0.25, 0.25]]])
    """

    part_names: ClassVar[tuple[str, ...]] = ("_members",)
    array_names: ClassVar[tuple[str, ...]] = ("_causes",)

    def __init__(
        self,
        times: ArrayLike,
        causes: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        n_causes: int | None = None,
    ) -> None:
        self._members = [Ensemble(times)]
        samples = self._members[0].samples
        codes = to_numpy(as_float(causes, "causes"))
        if samples.ndim != 2 or codes.shape != tuple(samples.shape):
            raise InvalidInputError(
                f"times and causes must both have shape (n, M); got {tuple(samples.shape)} and {codes.shape}."
            )
        codes = as_cause_codes(codes, "causes", "never")
        odd = (codes == 0) != np.isinf(to_numpy(samples))
        if odd.any():
            raise InvalidInputError(
                "A cause must be 0 exactly where the time is infinite; it is not in "
                f"{name_subjects(np.unique(np.nonzero(odd)[0]))}."
            )
        self._causes = convert(codes, samples)
        self.names = as_cause_names(names, n_causes, max(1, int(codes.max())))

    @property
    def reference(self) -> Array:
        return self._members[0].samples

    @property
    def samples(self) -> TimesAndCauses:
        """The members, in the order given."""
        return TimesAndCauses(self._members[0].samples, self._causes)

    @property
    def weights(self) -> Array | None:
        """Weights of the members, summing to one; None where all are equal."""
        return self._members[0].weights

    def of_cause(self, number: int) -> Ensemble:
        times = self._members[0].samples
        never = self.xp.full_like(times, np.inf)
        return self._members[0].with_samples(self.xp.where(self._causes == number, times, never))

    def given_survival(self, a: ArrayLike) -> CauseEnsemble:
        """The members with T > a, for every subject."""
        self._alive(a)
        return self.replaced(_members=[self._members[0].given_survival(a)])

    def of_any_cause(self) -> Ensemble:
        return self._members[0]
