"""Interval-censored outcomes: the event lies between two examinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    Frame,
    as_float,
    common_rows,
    is_torch,
    namespace,
    one_namespace,
    to_numpy,
)
from censcore._numerics import previous_float
from censcore._validation import as_list, check_flag, check_kind, check_method, check_positive, name_subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingVisitsError
from censcore.outcomes.detection_times import DetectionTimes
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.parts import check_entry, one_each, read_columns
from censcore.outcomes.right_censored import RightCensored
from censcore.outcomes.visits import (
    REMEDY,
    as_visits,
    check_detection_times,
    check_visits,
    first_missed,
    last_visit,
    missing_visits,
    visits_after,
    visits_after_detection,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class IntervalCensored(Outcome):
    r"""Interval-censored event times of n subjects: all that is known is :math:`T\in(L,U]`.

    Parameters
    ----------
    lower, upper : array, (n,)
        L and U, with 0 <= L <= U. U is infinite where the event was not found (right censoring at L).
        L = 0 says that the event was found at the first examination (left censoring): T <= U. L = U is an
        event time that is known exactly.
    visits : array (K,) or (n, K), or list of n lists, optional
        Examination times: one schedule for all subjects, or one per subject, padded by NaN or infinity. They
        include the visits that would have taken place after the event was found, and those that a subject
        who dropped out did not attend. Finite ends of intervals are visits, and no visit lies inside an
        interval with a finite U. The log score does not need them; other scores judge the detection time,
        the first visit at or after T, and do.
    entry : array or number, (n,), optional
        Delayed entry (left truncation): the subject is in the data only because T > entry. Below ``upper``.

    Notes
    -----
    Scores assume that the visits are independent of T given the covariates. This holds for planned visits,
    and fails where symptoms of the event bring subjects to the doctor.

    See Also
    --------
    current_status : One examination per subject.
    from_frame : From columns of a data frame.
    RightCensored : Events that are seen when they happen.

    References
    ----------
    .. [1] J. Sun (2006). The Statistical Analysis of Interval-censored Failure Time Data. Springer, New York.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> y = cs.IntervalCensored([0.0, 2.0, 6.0], [2.0, 4.0, np.inf], visits=[2.0, 4.0, 6.0])
    >>> y
    IntervalCensored(n=3, found=2 (66.7 %), 1 by the first visit, visits known, times 2 to 6)
    >>> cs.log_score(y, cs.Exponential(0.5)).round(4)
    array([0.4587, 1.4587, 3.    ])
    >>> cs.crps(y, cs.Exponential(0.5)).round(4)
    array([0.3073, 0.8358, 2.2944])
    """

    part_names: ClassVar[tuple[str, ...]] = ("lower", "upper", "visits", "entry")

    lower: Array
    upper: Array
    visits: Array
    entry: Array

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        visits: ArrayLike | list[Any] | None = None,
        *,
        entry: ArrayLike | None = None,
    ) -> None:
        one_namespace(lower=lower, upper=upper, entry=entry)
        known = upper if is_torch(upper) else lower
        lower = as_float(lower, "lower", like=as_float(known, "upper"))
        upper = as_float(upper, "upper", like=lower)
        _check_intervals(lower, upper)
        visits = None if visits is None else as_visits(visits, lower)
        if entry is not None:
            entry = one_each(entry, lower, "entry")
            check_entry(entry, upper, "upper")
        if visits is not None:
            check_visits(visits, lower, upper)
        self._set({"lower": lower, "upper": upper, "visits": visits, "entry": entry})

    # ---- constructors --------------------------------------------------------------------------

    @classmethod
    def current_status(
        cls, time: ArrayLike, found: ArrayLike, *, entry: ArrayLike | None = None
    ) -> IntervalCensored:
        """One examination per subject, at a positive time, which ``found`` that the event had happened.

        The result has ``visits`` of shape (n, 1).

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.IntervalCensored.current_status([2.0, 3.0], [1, 0])
        >>> y.lower, y.upper
        (array([0., 3.]), array([ 2., inf]))
        >>> cs.brier_score(y, cs.Exponential(0.5), times=3.0).round(3)
        array([0.135, 0.604])
        """
        both = RightCensored(time, found)
        xp, t = namespace(both.time), both.time
        check_positive(t, "time")
        lower = xp.where(both.event, xp.zeros_like(t), t)
        return cls(lower, xp.where(both.event, t, xp.full_like(t, np.inf)), t[:, None], entry=entry)

    @classmethod
    def from_right_censored(cls, y: RightCensored) -> IntervalCensored:
        """The same data as intervals: exact event times, and T > time where it is censored.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.IntervalCensored.from_right_censored(cs.RightCensored([2.0, 3.0], [1, 0])).upper
        array([ 2., inf])
        """
        check_kind(y, "y", RightCensored, "a RightCensored outcome")
        xp = namespace(y.time)
        upper = xp.where(y.event, y.time, xp.full_like(y.time, np.inf))
        return cls(y.time, upper).with_entry(y.entry)

    @classmethod
    def from_structured(cls, y: np.ndarray) -> IntervalCensored:
        """From a structured array with the numeric fields ``lower`` and ``upper``, and perhaps ``entry``.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = np.array([(0.0, 2.0), (2.0, np.inf)], dtype=[("lower", float), ("upper", float)])
        >>> len(cs.IntervalCensored.from_structured(y))
        2
        """
        fields = y.dtype.names or ()
        if not {"lower", "upper"} <= set(fields):
            raise InvalidTypeError(
                f"A structured outcome of intervals has the fields 'lower' and 'upper'; got {list(fields)}."
            )
        return cls(y["lower"], y["upper"], entry=y["entry"] if "entry" in fields else None)

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        lower: str = "lower",
        upper: str = "upper",
        visits: list[str] | None = None,
        entry: str | None = None,
    ) -> IntervalCensored:
        """From named columns of a pandas or polars frame; a missing ``upper`` is infinity.

        ``visits`` are the columns of the examination times, missing where a subject has fewer.

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> frame = pd.DataFrame({"left": [0.0, 6.0], "right": [6.0, None]})
        >>> cs.IntervalCensored.from_frame(frame, lower="left", upper="right").upper
        array([ 6., inf])
        """
        named = None if visits is None else as_list(visits, "visits", "names of columns") or None
        low, high, visited, a = read_columns(frame, "lower=..., upper=...", lower, upper, named, entry)
        high = as_float(high, "upper")
        return cls(low, np.where(np.isnan(high), np.inf, high), visited, entry=a)

    # ---- what is known -------------------------------------------------------------------------

    @property
    def found(self) -> Array:
        """Whether the event was found: U is finite."""
        return namespace(self.upper).isfinite(self.upper)

    @property
    def exact(self) -> Array:
        """Whether T is known exactly: L = U."""
        return self.lower == self.upper

    def _planned(self, name: str) -> Array:
        """The visits, or an error which says that ``name`` needs them."""
        if self.visits is None:
            raise missing_visits(name)
        return self.visits

    @property
    def last_visit(self) -> Array:
        """The last visit of each subject, planned ones included, (n,)."""
        last = last_visit(self._planned("last_visit"))
        return namespace(self.lower).broadcast_to(last, self.lower.shape)

    @property
    def reference(self) -> Array:
        """The lower ends, which tell library, dtype and device."""
        return self.lower

    def censor_at(self, tau: ArrayLike) -> IntervalCensored:
        """Visits after ``tau`` left out: what was found later is not found, T > the last visit up to ``tau``.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.IntervalCensored([2.0, 4.0], [4.0, 6.0], visits=[2.0, 4.0, 6.0]).censor_at(5.0)
        >>> y.lower, y.upper
        (array([2., 4.]), array([ 4., inf]))
        """
        xp, end_of = namespace(self.lower), one_each(tau, self.lower, "tau")
        check_positive(end_of, "tau", zero=True, infinite=True)
        late, beyond, exact = self.upper > end_of, self.lower > end_of, self.exact
        end = end_of
        if bool((beyond & ~exact).any()):
            planned = self._planned("A horizon before the end of follow-up")
            end = xp.where(exact, end, last_visit(planned, until=end_of[:, None]))
        lower, endless = xp.where(beyond, end, self.lower), xp.full_like(self.upper, np.inf)
        visits = self.visits
        if visits is not None:
            visits = xp.where(visits <= end_of[:, None], visits, xp.full_like(visits, np.inf))
        return self._changed(lower=lower, upper=xp.where(late, endless, self.upper), visits=visits)

    # ---- the detection time --------------------------------------------------------------------

    @property
    def _known_free(self) -> Array:
        """Until when each subject is known to be free of the event: L, or the entry."""
        return self.lower if self.entry is None else namespace(self.lower).maximum(self.lower, self.entry)

    def dropped_out(self, until: ArrayLike = np.inf) -> Array:
        """Who dropped out: nothing was found, and a planned visit up to ``until`` was not attended, (n,).

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = cs.IntervalCensored([0.0, 2.0, 4.0], [2.0, np.inf, np.inf], visits=[2.0, 4.0])
        >>> y.dropped_out()
        array([False,  True, False])
        """
        until = as_float(until, "until", like=self.lower)
        missed = first_missed(self._planned("dropped_out"), self._known_free)
        return ~self.found & (missed <= until) & (missed < np.inf)

    def detection(self, until: ArrayLike | None = None, *, dropout: bool = False) -> RightCensored:
        """The detection time, the first visit at or after T, as a right-censored outcome.

        With the visits (``DetectionTimes``), ``Censoring(KaplanMeier())`` estimates from it how subjects drop
        out.

        Parameters
        ----------
        until : number or array (n,), optional
            Say that all planned visits up to this time took place, so that a subject in which nothing was
            found is known to have no detection time up to it. Without it such a subject is censored at its
            last visit with a result, L.
        dropout : bool
            Say that this holds only for subjects who attended all planned visits up to ``until`` (by default
            up to their last one). Who dropped out is censored just before the first visit that it missed:
            until then its last result stands.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = cs.IntervalCensored([0.0, 2.0, 4.0], [2.0, 4.0, np.inf], visits=[2.0, 4.0])
        >>> y.detection().time, y.detection().event
        (array([2., 4., 4.]), array([ True,  True, False]))
        >>> y.detection(until=5.0).time
        array([2., 4., 5.])
        >>> gone = cs.IntervalCensored([0.0, 2.0, 4.0], [2.0, np.inf, np.inf], visits=[2.0, 4.0])
        >>> gone.detection(until=5.0, dropout=True).time.round(6)
        array([2., 4., 5.])
        """
        check_flag(dropout, "dropout")
        check_detection_times(self.visits, self.lower, self.upper)
        xp, detected = namespace(self.lower), self.found
        recorded = xp.where(detected, self.upper, self.lower)
        if dropout:
            return self._with_dropout(recorded, self.last_visit if until is None else until)
        if until is None:
            outcome = RightCensored(recorded, detected)
            if self.visits is not None:
                outcome = DetectionTimes._made(outcome, visits=self.visits_after_entry)
        else:
            until = one_each(until, self.lower, "until")
            check_positive(until, "until", zero=True, infinite=True)
            gone = (
                np.zeros(0, int) if self.visits is None else np.nonzero(to_numpy(self.dropped_out(until)))[0]
            )
            if gone.size:
                raise MissingVisitsError(
                    f"Nothing was found in {name_subjects(gone)}, whose visits end before the planned ones "
                    f"do (after {float(self._known_free[gone[0]]):g}). If they dropped out, pass how: "
                    "censoring=Censoring(KaplanMeier()).fit(X, y).predict_distribution(X); compare and "
                    "cross-validation estimate it by themselves. If no later visit was planned, leave it out "
                    "of visits."
                )
            end = xp.maximum(recorded, until)
            # nothing is scored after ``until``, so that later ends may be those of the events
            outcome = RightCensored(xp.where(detected, recorded, end), detected)._changed(censoring_time=end)
        return outcome if self.entry is None else outcome.with_entry(xp.minimum(self.entry, outcome.time))

    def _with_dropout(self, recorded: Array, until: Array) -> DetectionTimes:
        """Without entries: visits are counted from the entry on, and who entered may drop out at once."""
        xp, visits = namespace(recorded), self.visits_after_entry
        missed = previous_float(first_missed(visits, self._known_free))
        end = xp.minimum(missed, xp.maximum(recorded, as_float(until, "until", like=recorded)))
        outcome = RightCensored(xp.where(self.found, recorded, end), self.found)
        return DetectionTimes._made(outcome, visits=visits)

    @property
    def visits_after_entry(self) -> Array:
        """The planned visits, those after the entry where subjects enter late, (1 or n, K)."""
        visits = self._planned("The distribution of the last visit that subjects attend")
        return visits_after(visits, self.entry) if self.has_delayed_entry else visits

    def check_planned_visits(self, name: str) -> None:
        """An error where ``name`` needs the visits after detection and none are given."""
        check_detection_times(self.visits, self.lower, self.upper)
        if self.visits is None:
            return
        detected, last = to_numpy(self.found), to_numpy(self.last_visit)
        stop = detected & (last == to_numpy(self.upper))
        several = np.isfinite(to_numpy(self.visits)).sum(axis=1).max() > 1
        if several and detected.any() and stop[detected].all() and last.max() > last[detected].min():
            raise MissingVisitsError(
                f"{name} needs the visits that would have followed the detection, and the visits of all "
                f"{int(detected.sum())} subjects with an event end at it. {REMEDY}"
            )

    def continue_visits(
        self, gaps: Any, until: float, seed: int = 0, *, dropped_out: ArrayLike | None = None
    ) -> IntervalCensored:
        """Draw the visits that would have followed the detection, from a distribution of the gaps.

        Only visits are drawn, never event times, and no forecast is involved, so that scores stay proper if
        the gaps are right: each gap is independent of T and of the gaps before it given the covariates.

        Parameters
        ----------
        gaps : Distribution
            Of the time between two visits, one per subject or one for all; for instance ``Ensemble`` of the
            gaps that were seen.
        until : float
            Visits are drawn up to this time, the horizon of the scores.
        seed : int
            Seed of the draws.
        dropped_out : array of bool, (n,), optional
            Subjects whose visits ended because they dropped out; the visits that they missed are drawn too.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = cs.IntervalCensored([0.9, 2.1], [2.2, np.inf], visits=[[0.9, 2.2], [1.2, 2.1]])
        >>> y.continue_visits(cs.PointMass(1.0), until=5.0).visits
        array([[0.9, 2.2, 3.2, 4.2],
               [1.2, 2.1, inf, inf]])
        """
        visits = self._planned("continue_visits")
        expected = "a distribution of the time between visits"
        check_method(gaps, "gaps", "icdf", expected)
        if gaps.k != 1:
            raise InvalidInputError(f"gaps: got {gaps.k} times per subject, expected {expected}.")
        common_rows(gaps=len(gaps), outcome=len(self))
        ended = to_numpy(self.found)
        if dropped_out is not None:
            ended = ended | to_numpy(RightCensored(self.lower, dropped_out).event)
        later = visits_after_detection(visits, self.last_visit, ended, gaps, until, seed)
        return self._changed(visits=as_visits(later, self.lower))

    def __repr__(self) -> str:
        detected, exact = to_numpy(self.found), int(to_numpy(self.exact).sum())
        left = int((detected & (to_numpy(self.lower) == 0)).sum())
        ends = np.concatenate([to_numpy(self.lower), to_numpy(self.upper)])
        ends = ends[np.isfinite(ends) & (ends > 0)]
        parts = [f"n={len(self)}", f"found={int(detected.sum())} ({detected.mean():.1%})".replace("%", " %")]
        parts += [f"{left} by the first visit"] if left else []
        parts += [f"{exact} exact"] if exact else []
        parts += [] if self.visits is None else ["visits known"]
        parts += [f"times {ends.min():g} to {ends.max():g}"] if ends.size else []
        if self.has_delayed_entry:
            parts.append(f"delayed entry in {int((to_numpy(self.entry) > 0).sum())}")
        return f"IntervalCensored({', '.join(parts)})"


def _check_intervals(lower: Array, upper: Array) -> None:
    shape, other = tuple(lower.shape), tuple(upper.shape)
    if len(shape) != 1 or shape != other or not shape[0]:
        raise InvalidInputError(
            f"lower and upper must have one value per subject, (n,); got shapes {shape} and {other}."
        )
    check_positive(lower, "lower", zero=True)
    check_positive(upper, "upper", zero=True, infinite=True)
    turned = np.nonzero(to_numpy(lower > upper))[0]
    if turned.size:
        i = int(turned[0])
        raise InvalidInputError(
            f"lower must not exceed upper; it does in {name_subjects(turned)} (got "
            f"({float(lower[i]):g}, {float(upper[i]):g}])."
        )
