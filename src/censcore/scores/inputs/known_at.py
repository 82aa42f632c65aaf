r"""What is known of a subject at a time t: that the event has happened, that it has not, or nothing.

A subject seen from its entry a until C has the weights

.. math::
    \text{event by }t:\quad\delta\,\mathbb 1\{y\le t\}\frac{G(t)}{G(y-)},\qquad
    \text{no event by }t:\quad\mathbb 1\{y>t\}+\nu\,\mathbb 1\{y\le t\}\frac{G(t)}{G(y-)}

on the localized scale, with :math:`G(t)=P(C>t)`, :math:`G(t-)=P(C\ge t)` and :math:`\nu=1` after an event of
another cause at y, which says that this one never comes. They are the probabilities of "seen at t, with the
event" and "seen at t, without it" given the observation. On the ipcw scale both are divided by
:math:`P(C>t\mid C>a)=G(t)/G(a)`, so that their means are those of uncensored data. A subject that is censored
by t, or that enters at or after t, has neither weight.

Scores at times, AUC, concordance, calibration, net benefit and all that counts weights read this module;
scores that are integrals over time are made of the same :math:`\delta/G(y-)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import Array, namespace, to_numpy
from censcore.distributions import Distribution, PointMass, Univariate
from censcore.distributions.joint.joint import Independent
from censcore.exceptions import MissingCensoringError
from censcore.outcomes import RightCensored
from censcore.scores.inputs.support import check_unreached

if TYPE_CHECKING:
    from censcore.scores.inputs.scoring_inputs import ScoringInputs


def over_reached(observed: Array, reached: Array) -> Array:
    r""":math:`\delta/G(y-)` of the observed subjects, from P(C >= y); zero for the others."""
    return observed / (reached + ~observed)


def inverse_probability_weights(inputs: ScoringInputs) -> Array:
    r""":math:`\delta/G(y-)`, (n, 1): the inverse-probability weight of an event, zero for censored times.

    Events of competing causes have it too.
    """
    reached = inputs.C.sf_left(inputs.y.time) if inputs.reached is None else inputs.reached
    return over_reached(~inputs.y.censored, reached)[:, None]


def followed_to_entry(y: RightCensored, C: Univariate) -> Array | None:
    """P(C > entry), (n,), by which weights on the ipcw scale are multiplied; None without entries.

    A subject that enters at a is seen because C > a, so that its weights are 1 / P(C > t | C > a).
    """
    return None if y.entry is None else C.sf(known_to_exceed(y.entry))


def weights_of_events(y: RightCensored, C: Univariate, until: float = np.inf) -> np.ndarray:
    """P(C > entry) / P(C >= y) of the events by a time, (n,): how many subjects each stands for.

    Zero for all others, and infinite where C gives an event no chance to be seen.
    """
    event = to_numpy(y.event) & (to_numpy(y.time) <= until)
    reached = np.broadcast_to(to_numpy(C.sf_left(y.time)), event.shape)
    with np.errstate(divide="ignore"):
        weight = over_reached(event, reached)
    at_entry = followed_to_entry(y, C)
    return weight if at_entry is None else np.where(event, weight * to_numpy(at_entry), 0.0)


def seen_beyond(C: Univariate, t: float) -> np.ndarray | None:
    """Who is followed beyond t, where C is known for every subject, (n,) or (1,); None where it is not.

    The status at t of these subjects is known, and of no others, so that their plain mean is that of
    uncensored data if C is independent of T.
    """
    c = to_numpy(C.known_time())
    return None if np.isnan(c).any() else c > t


@dataclass(frozen=True, eq=False)
class KnownAt:
    """The weights of what is known at times t, and the factors that they are products of; see the module.

    Parameters
    ----------
    y : RightCensored
        The outcome of n subjects, one event time or one cause.
    C : Univariate
        The censoring distribution, of n subjects or one for all.
    t : array, (1 or n, q)
        The times.
    scale : {"localized", "ipcw"}
        Which of the two scales.
    seen : array, (n,)
        For events of any cause :math:`1/G(y-)`, on the ipcw scale :math:`G(a)/G(y-)`; zero if censored.
    at_entry : array, (n,), optional
        With entries a: :math:`G(a)` on the ipcw scale, else one.
    before : bool
        What is known just before t, that T < t or T >= t, with P(C >= t) in place of P(C > t).
    """

    y: RightCensored
    C: Univariate
    t: Array
    scale: str
    seen: Array
    at_entry: Array | None
    before: bool = False

    def _G(self, C: Univariate, t: Array) -> Array:
        return C.sf_left_at(t) if self.before else C.sf_at(t)

    @cached_property
    def _shared(self) -> Array | None:
        """P(C > t) where all subjects have the same."""
        return self._G(self.C, self.t) if len(self.C) == 1 and self.t.shape[0] == 1 else None

    def factors(self, rows: Any = slice(None)) -> tuple[Array, Array, Array]:
        """Times t of some subjects, the weights while y > t, and what ``seen`` is multiplied by after y."""
        t = self.t if self.t.shape[0] == 1 else self.t[rows]
        G = self._shared
        if G is None:
            G = self._G(self.C.take(rows), t)
        xp = namespace(G)
        one = xp.ones_like(G)
        living, dead = (1 / G, one) if self.scale == "ipcw" else (one, G)
        if self.at_entry is not None:
            entered = known_to_exceed(self.y.entry[rows])[:, None] < t
            living = xp.where(entered, self.at_entry[rows][:, None] * living, xp.zeros_like(living))
        return t, living, dead

    def status(self, rows: Any = slice(None)) -> tuple[Array, Array]:
        """Who is followed beyond t, and the weight of what is known of each, (n, q) both."""
        t, living, dead = self.factors(rows)
        y, seen = self.y.time[rows][:, None], self.seen[rows][:, None]
        alive = (y >= t) if self.before else (y > t)
        if type(seen) is not np.ndarray:
            return alive, namespace(seen).where(alive, living, seen * dead)
        weight = seen.repeat(t.shape[1], axis=1) if self.scale == "ipcw" else seen * dead
        np.copyto(weight, living, where=alive)
        return alive, weight

    def weights(self, rows: Any = slice(None)) -> tuple[Array, Array]:
        """The weights of "event by t" and of "no event by t" of some subjects, (n, q) each."""
        alive, weight = self.status(rows)
        xp = namespace(weight)
        free, none = alive | self.y.never[rows][:, None], xp.zeros_like(weight)
        return xp.where(free, none, weight), xp.where(free, weight, none)


def known_at(
    y: RightCensored,
    C: Univariate,
    t: Array,
    scale: str = "localized",
    *,
    reached: Array | None = None,
    before: bool = False,
    remedy: str = "",
) -> KnownAt:
    """What is known at times t (1 or n, q) of subjects seen until C, in one array library and precision.

    On the ipcw scale a time at which any subject has P(C > t) = 0 is a PositivityError, which ends with
    ``remedy``. ``reached`` is P(C >= y) where the caller has it.
    """
    if scale == "ipcw":
        check_unreached(len(y), C, t, before=before, remedy=remedy)
    if reached is None:  # what happens after the last of the times does not matter
        last = namespace(t).max(t, axis=1)
        reached = C.sf_left_at(namespace(t).where(y.time > last, last, y.time)[:, None])[:, 0]
    event_weight = over_reached(~y.censored, reached)
    at_entry = None
    if y.entry is not None:
        at_entry = namespace(event_weight).ones_like(event_weight)
        if scale == "ipcw":
            at_entry = followed_to_entry(y, C)
            event_weight = event_weight * at_entry
    return KnownAt(y, C, t, scale, event_weight, at_entry, before)


def known_to_exceed(entry: Array) -> Array:
    """What T, and C, are known to exceed: the entry, and nothing (-1) for subjects seen from the start."""
    xp = namespace(entry)
    return xp.where(entry > 0, entry, -1.0)


def known_censoring(y: RightCensored) -> Distribution | None:
    """The censoring distribution that needs no estimate: known times, or none where nothing is censored."""
    c = y.censoring_time
    if c is not None:
        return PointMass(c) if c.ndim == 1 else Independent([PointMass(c[:, j]) for j in range(y.k)])
    return None if bool(y.censored.any()) else PointMass(np.inf)


def known_or_raise(y: RightCensored) -> Distribution:
    """The same, or an error that says how to give a censoring distribution."""
    distribution = known_censoring(y)
    if distribution is None:
        censored = to_numpy(y.censored)
        raise MissingCensoringError(
            f"{int(censored.sum())} of {censored.size} times are censored and no censoring distribution was "
            "given. Pass censoring=... : PointMass(c) if the censoring times are known (or give them to "
            "RightCensored as censoring_time), a known distribution such as Uniform(0, 5), or an estimate: "
            "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )
    return distribution
