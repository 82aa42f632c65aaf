r"""The true distribution of both remaining times in a synthetic stay, given all that was charted so far.

A stay is drawn from its hazard, creatinine level, weight and pace of charting, all of them known here. The
two onsets are independent given these, and the charted values follow from one onset each:

.. math::

    P(T_1 = s \mid \text{charts until } t) \propto 1\{s > t\} \, p(s)
        \prod_{i : t_i \le t} P(\text{creatinine}_i \mid s),

and likewise for :math:`T_2` with the urine records. Both posteriors are exact sums over the onsets that are
possible, minutes for creatinine and records for urine: the noise is uniform, so that a rounded value has the
probability of an interval, and an onset that is far enough away has no influence on what was charted, so that
the rest of the prior is one term. Whoever knows the features of a row knows less than this; no forecast that
is made of them has a smaller expected score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from censcore_studies.aki.settings import EndpointSettings
from censcore_studies.aki.synthetic_stays import (
    AT_ONCE,
    CREATININE_NOISE,
    DRIFT_RECORDS,
    GAP_HOURS,
    LEAST_ABOVE,
    LEAST_RATE,
    PLATEAU_RECORDS,
    RISE_HOURS,
    SKIPPED,
    SPREAD,
    URINE_FACTOR,
    URINE_NOISE,
    Pace,
    creatinine_median,
    peak,
    rise,
    urine_median,
    usual_rate,
)

__all__ = ["ChartedStay", "draw_remaining"]

Values = NDArray[np.float64]

_FAR = PLATEAU_RECORDS + DRIFT_RECORDS  # records: a fall this far ahead does not show
_NODES = 256  # of the quadrature over the first of two merged volumes
_CRITERIA = EndpointSettings()


@dataclass(frozen=True)
class ChartedStay:
    """What a stay was drawn from, its onsets, and what was charted, in the order of time.

    Times are hours since admission; the other fields are those of
    :class:`~censcore_studies.aki.synthetic_stays.Stay`.
    """

    hazard: float
    level: float
    weight: float
    pace: Pace
    first_urine: float
    exit_hours: float
    creatinine_onset: float
    urine_onset: float
    creatinine_times: Values
    creatinine_values: Values
    urine_times: Values
    urine_volumes: Values


def draw_remaining(stay: ChartedStay, at: Values, members: int, rng: np.random.Generator) -> Values:
    """Draws of the hours that remain to either endpoint at the times ``at``, (len(at), members, 2).

    Infinite where the endpoint will not be met again before the exit.

    Parameters
    ----------
    stay : ChartedStay
        One stay.
    at : array
        Times of prediction, increasing.
    members : int
        Draws.
    rng : Generator
        Source of randomness.
    """
    draws = np.full((len(at), members, 2), np.inf)
    before = at < stay.creatinine_onset - 1e-6
    draws[before, :, 0] = _creatinine_onset(stay, at[before], members, rng)
    for row in np.flatnonzero(~before):
        draws[row, :, 0] = _creatinine_again(stay, float(at[row]), members, rng)
    before = at < stay.urine_onset - 1e-6  # urine that has recovered does not fall again
    draws[before, :, 1] = _urine_onset(stay, at[before], members, rng)
    return draws


# ---- creatinine ---------------------------------------------------------------------------------


def _creatinine_onset(stay: ChartedStay, at: Values, members: int, rng: np.random.Generator) -> Values:
    """Hours to the first onset, at times before it."""
    if not len(at):
        return np.empty((0, members))
    minute = np.floor(at * 60 + 1e-6).astype(np.intp)
    possible = np.arange(int(minute[-1] + RISE_HOURS * 60) + 2) / 60  # and one more: all later onsets
    prior = np.append(*_creatinine_prior(stay.hazard, possible))
    known = np.searchsorted(stay.creatinine_times, at + 1e-6)  # values charted by then
    likelihood, used = np.ones(len(prior)), 0
    hours = np.empty((len(at), members))
    for count in np.unique(known):
        for i in range(used, count):
            likelihood *= _creatinine_likelihood(
                stay, stay.creatinine_times[i], stay.creatinine_values[i], possible
            )
        likelihood, used = likelihood / likelihood.max(), count
        mass = np.cumsum(prior * likelihood)
        rows = np.flatnonzero(known == count)
        passed = mass[minute[rows]][:, None]
        level = passed + rng.random((len(rows), members)) * (mass[-1] - passed)
        place = np.searchsorted(mass, np.minimum(level, np.nextafter(mass[-1], 0)), side="right")
        onset = np.append(possible, np.inf)[place]
        later = np.isinf(onset)
        onset[later] = _later_creatinine(stay.hazard, possible[-1], int(later.sum()), rng)
        hours[rows] = onset - at[rows, None]
    return hours


def _creatinine_prior(hazard: float, possible: Values) -> tuple[Values, float]:
    """P(T1 = s) of every minute, and of all later ones together."""
    share, within = AT_ONCE
    edges = np.append(possible, possible[-1] + 1 / 60) - 0.5 / 60
    with np.errstate(divide="ignore"):
        z = np.log(np.maximum(edges, 0) / creatinine_median(hazard)) / SPREAD["creatinine"]
    cdf = share * np.clip(edges / within, 0, 1) + (1 - share) * ndtr(z)
    return np.diff(cdf), float((1 - share) * ndtr(-z[-1]))


def _later_creatinine(hazard: float, last: float, count: int, rng: np.random.Generator) -> Values:
    """Onsets after the minute ``last``, from the tail of the log-normal distribution."""
    median, spread = creatinine_median(hazard), SPREAD["creatinine"]
    tail = ndtr(-np.log((last + 0.5 / 60) / median) / spread)
    hours = median * np.exp(-spread * ndtri(tail * (1 - rng.random(count))))
    return np.asarray(np.round(hours * 60) / 60)


def _creatinine_likelihood(stay: ChartedStay, time: float, value: float, possible: Values) -> Values:
    """P(value | T1), rounded to hundredths, for every possible onset, and for all later ones."""
    middle = stay.level * np.append(rise(possible - time), 1.0)
    found = _uniform(value - 0.005, value + 0.005, middle, CREATININE_NOISE)
    return np.where(np.append(possible, np.inf) > time + 1e-6, found, 0.0)


def _uniform(low: Values | float, high: Values | float, middle: Values, noise: float) -> Values:
    """P(low < middle * U < high) with U uniform on 1 ± noise."""
    inside = np.minimum(high, middle * (1 + noise)) - np.maximum(low, middle * (1 - noise))
    return np.asarray(np.maximum(inside, 0) / (2 * noise * middle))


def _creatinine_again(stay: ChartedStay, at: float, members: int, rng: np.random.Generator) -> Values:
    """Hours to the next onset after one that has ended, by drawing the values to come until the exit.

    Seven days after the onset the baseline is high as well and the criterion of twice the baseline is no
    longer met; noise can meet that of stage 3 (4 mg/dL and a rise by 0.3) again.
    """
    known = stay.creatinine_times <= at + 1e-6
    times = np.tile(stay.creatinine_times[known], (members, 1))
    values = np.tile(stay.creatinine_values[known], (members, 1))
    regular = stay.creatinine_times[known & (np.abs(stay.creatinine_times - stay.creatinine_onset) > 1e-6)]
    shortest, longest = GAP_HOURS
    clock = rng.uniform(max(regular[-1] + shortest, at), max(regular[-1] + longest, at), members)
    hours = np.full(members, np.inf)
    while (clock <= stay.exit_hours).any():
        time = np.round(clock * 60) / 60
        noise = np.maximum(rng.uniform(1 - CREATININE_NOISE, 1 + CREATININE_NOISE, members), LEAST_ABOVE)
        value = np.round(stay.level * peak(time - stay.creatinine_onset) * noise, 2)
        met = _meets_again(time, value, times, values) & (clock <= stay.exit_hours)
        hours = np.minimum(hours, np.where(met, time - at, np.inf))
        times, values = np.column_stack([times, time]), np.column_stack([values, value])
        clock = clock + rng.uniform(shortest, longest, members)
    return hours


def _meets_again(time: Values, value: Values, times: Values, values: Values) -> NDArray[np.bool_]:
    """Whether a value after those before it meets the criterion of creatinine."""
    ago = time[:, None] - times
    baseline = np.where(ago <= _CRITERIA.baseline_hours + 1e-6, values, np.inf).min(axis=1)
    two_days = np.where(ago <= 48 + 1e-6, values, np.inf).min(axis=1)
    ratio = np.round(value / baseline, 6)
    acute = (np.round(value - two_days, 6) >= _CRITERIA.acute_rise) | (ratio >= 1.5)
    return (ratio >= _CRITERIA.creatinine_ratio) | ((value >= _CRITERIA.stage_3_creatinine) & acute)


# ---- urine --------------------------------------------------------------------------------------


def _urine_onset(stay: ChartedStay, at: Values, members: int, rng: np.random.Generator) -> Values:
    """Hours to the onset, at times before it: it follows ``delay`` records after the fall."""
    if not len(at):
        return np.empty((0, members))
    pace, first = stay.pace, stay.first_urine
    last = np.floor((at - first) / pace.hours + 1e-6).astype(np.intp)  # -1: no record yet
    fall = round((stay.urine_onset - first) / pace.hours) - pace.delay
    draws = np.full((len(at), members), fall)
    open_ = last < fall  # the first low record shows the fall
    draws[open_] = _fall(stay, last[open_], members, rng)
    return first + (draws + pace.delay) * pace.hours - at[:, None]


def _fall(stay: ChartedStay, last: NDArray[np.intp], members: int, rng: np.random.Generator) -> Values:
    """Draws of the first low record, when no record until ``last`` was low."""
    if not len(last):
        return np.empty((0, members))
    # lines: after 0, 1, ... records; columns: the fall 1, 2, ... records ahead, and all that are further
    likelihood = np.ones((last[-1] + 2, _FAR))
    for i, factor in enumerate(_urine_likelihood(stay, last[-1] + 1)):
        found = np.append(likelihood[i, 1:], likelihood[i, -1]) * factor
        likelihood[i + 1] = found / found.max()
    prior, beyond = _fall_prior(stay, last[-1] + _FAR)
    ahead = last[:, None] + np.arange(1, _FAR)
    weights = likelihood[last + 1] * np.column_stack([prior[ahead], beyond[last + _FAR]])
    mass = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    level = rng.random((len(last), members))
    place = (level[:, :, None] >= mass[:, None, :-1]).sum(axis=2)
    draws = (last[:, None] + 1 + place).astype(np.float64)
    row, member = np.nonzero(place == _FAR - 1)
    draws[row, member] = _later_fall(stay, last[row] + _FAR, rng)
    return draws


def _wanted(stay: ChartedStay, fall: Values | NDArray[np.intp]) -> Values:
    """The logarithm of the time at whose rounding a fall begins to be ``fall``, standardized."""
    pace = stay.pace
    hours = stay.first_urine + (np.asarray(fall) + pace.delay - 0.5) * pace.hours
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(hours, 0) / urine_median(stay.hazard, stay.weight)) / SPREAD["urine"]


def _fall_prior(stay: ChartedStay, most: int) -> tuple[Values, Values]:
    """P(fall = f) and P(fall >= f) for f = 0, ..., most; nothing falls before the earliest record."""
    f = np.arange(most + 2)
    beyond = np.where(f <= stay.pace.earliest, 1.0, ndtr(-_wanted(stay, f)))
    return beyond[:-1] - beyond[1:], beyond[:-1]


def _later_fall(stay: ChartedStay, fewest: NDArray[np.intp], rng: np.random.Generator) -> Values:
    """Falls at or after the records ``fewest``, from the tail of the log-normal distribution."""
    tail = ndtr(-_wanted(stay, fewest))
    z = -ndtri(tail * (1 - rng.random(len(fewest))))
    hours = urine_median(stay.hazard, stay.weight) * np.exp(SPREAD["urine"] * z)
    found = np.round((hours - stay.first_urine) / stay.pace.hours) - stay.pace.delay
    return np.asarray(np.maximum(found, fewest))


def _urine_likelihood(stay: ChartedStay, records: int) -> Values:
    """P(record i | fall d records after it), d = 1, ..., far: (records, far).

    A record is charted alone, is left out, or stands for itself and the one before that was left out.
    """
    pace, index = stay.pace, np.arange(records)
    place = np.round((stay.urine_times - stay.first_urine) / pace.hours).astype(np.intp)
    charted = np.isin(index, place)
    volume = np.zeros(records)
    volume[place[place < records]] = stay.urine_volumes[place < records]
    merged = np.append(False, ~charted[:-1]) & charted
    d = np.arange(1, _FAR + 1)
    ahead = pace.plateau + (usual_rate(stay.hazard) - pace.plateau) * np.clip(
        (np.append(d, _FAR) - PLATEAU_RECORDS) / DRIFT_RECORDS, 0, 1
    )
    hours = np.where(index == 0, 1.0, pace.hours)[:, None]
    low, high = ((volume[:, None] + half) / stay.weight / hours for half in (-0.5, 0.5))
    found = np.where(
        d <= PLATEAU_RECORDS,
        _uniform(low, high, np.asarray(pace.plateau), URINE_NOISE),
        _rate_cdf(high, ahead[:-1]) - _rate_cdf(low, ahead[:-1]),
    )
    earlier = np.maximum(ahead[1:, None] * _FACTOR_QUANTILES, LEAST_RATE)  # of the one left out, one further
    for i in np.flatnonzero(merged):
        both = [_rate_cdf(edge - earlier, ahead[:-1, None]) for edge in (low[i, 0], high[i, 0])]
        found[i] = (both[1] - both[0]).mean(axis=1)
    # A record may be left out if it is odd, not the last, and the plateau is more than a record away.
    until_exit = int((stay.exit_hours - stay.first_urine) / pace.hours + 1e-9)
    may_go = ((index % 2 == 1) & (index < until_exit))[:, None] & (d > PLATEAU_RECORDS + 1)
    return np.where(charted[:, None], found * np.where(may_go, 1 - SKIPPED, 1), np.where(may_go, SKIPPED, 0))


def _rate_cdf(rate: Values, middle: Values) -> Values:
    """P(max(middle U L, least rate) <= rate), U the uniform noise and L the factor of :func:`_factor_cdf`."""
    return np.where(rate >= LEAST_RATE, _factor_cdf(rate / middle), 0.0)


def _factor_cdf(x: Values) -> Values:
    r"""P(U L <= x), U uniform on [a, b] = 1 ± noise and L log-normal, cut to [lowest, highest].

    .. math:: \frac{1}{b - a} \int_a^b P(L \le x / u) \, du, \qquad
        \int \Phi\Big(\frac{\log(x / u)}{\sigma}\Big) du
        = u \, \Phi\Big(\frac{\log(x / u)}{\sigma}\Big)
        + x e^{\sigma^2 / 2} \, \Phi\Big(\frac{\log(u / x) - \sigma^2}{\sigma}\Big).
    """
    spread, lowest, highest = URINE_FACTOR
    a, b = 1 - URINE_NOISE, 1 + URINE_NOISE
    x = np.maximum(x, 1e-9)

    def integral(u: Values) -> Values:
        z = np.log(x / u) / spread
        return np.asarray(u * ndtr(z) + x * np.exp(spread**2 / 2) * ndtr(-z - spread))

    certain, possible = np.clip(x / highest, a, b), np.clip(x / lowest, a, b)
    return np.asarray((certain - a + integral(possible) - integral(certain)) / (b - a))


def _factor_quantiles(nodes: int) -> Values:
    """Midpoint quantiles of U L, by interpolation of its distribution function."""
    _, lowest, highest = URINE_FACTOR
    x = np.linspace(lowest * (1 - URINE_NOISE), highest * (1 + URINE_NOISE), 20_001)
    return np.interp((np.arange(nodes) + 0.5) / nodes, _factor_cdf(x), x)


_FACTOR_QUANTILES = _factor_quantiles(_NODES)
