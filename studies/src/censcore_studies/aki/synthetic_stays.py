"""ICU stays whose endpoint times are known because the charted values are made to meet them.

Each stay draws latent times T1 (creatinine) and T2 (urine) from covariates, a severity and a shared
frailty, and an ICU exit. Creatinine stays well below twice the patient's level before T1 and is drawn, above
it, exactly at T1. Urine is charted at a fixed pace; it falls from a plateau to near nothing a fixed number of
records before T2, so that the 12-hour rate crosses 0.5 mL/kg/h exactly at T2 and at no record earlier,
whatever the bounded noise. Most T lie after the exit: they are the censored ones, and for creatinine they
show in later ward labs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AT_ONCE", "CREATININE_NOISE", "DRIFT_RECORDS", "GAP_HOURS", "LEAST_ABOVE", "LEAST_RATE", "PACES",
    "PLATEAU_RECORDS", "RISE_HOURS", "SKIPPED", "SPREAD", "URINE_FACTOR", "URINE_NOISE", "Pace", "Patient",
    "Stay", "creatinine_median", "draw_patient", "peak", "rise", "urine_median", "usual_rate",
]  # fmt: skip

Values = NDArray[np.float64]

SPREAD = {"creatinine": 0.7, "urine": 0.6}  # standard deviations of the logarithms of the latent times
AT_ONCE = (0.03, 0.5)  # this share has the creatinine event within so many hours of admission
CREATININE_NOISE = 0.06  # bound on the relative noise
LEAST_ABOVE = 0.98  # the noise of values after the onset is cut below
RISE_HOURS = 36.0
GAP_HOURS = (5.0, 24.0)  # between two draws of creatinine
URINE_NOISE = 0.04  # bound on the relative noise of plateau and fall; the margins of PACES allow for it
URINE_FACTOR = (0.25, 0.8, 3.0)  # log-normal factor before the plateau: its spread, and where it is cut
PLATEAU_RECORDS, DRIFT_RECORDS = 14, 24  # records on the plateau before the fall, and on the way to it
LEAST_RATE = 0.6  # mL/kg/h before the fall
SKIPPED = 0.08  # share of odd records left out before the plateau


@dataclass(frozen=True)
class Pace:
    """Charting every ``hours``: the plateau and the fall in mL/kg/h, and when the criterion is met.

    ``delay`` records after the first low one the 12-hour rate is below 0.5 for the first time. With 13
    hourly records in a window: (6 * 1.05 + 7 * 0.1) / 13 = 0.54, then (5 * 1.05 + 8 * 0.1) / 13 = 0.47. With
    7 two-hourly ones: (3 * 1.2 + 4 * 0.1) / 7 = 0.57, then (2 * 1.2 + 5 * 0.1) / 7 = 0.41. ``earliest`` is
    the first record that can be low with a full window at the crossing and no crossing in a shorter one.
    """

    hours: int
    plateau: float
    low: float
    delay: int
    earliest: int


PACES = (Pace(1, 1.05, 0.10, 7, 6), Pace(2, 1.20, 0.10, 4, 4))


@dataclass(frozen=True)
class Stay:
    """One ICU stay; all times are hours since its admission, exact to the minute (the exit to the second).

    ``hazard``, ``level``, ``weight``, ``pace`` and ``first_urine`` are what both latent times and the charted
    values are drawn from.
    """

    hazard: float
    level: float
    weight: float
    pace: Pace
    first_urine: float
    exit_hours: float
    hospital_hours: float
    dies: bool
    creatinine_onset: float
    urine_onset: float
    creatinine_times: Values
    creatinine_values: Values
    urine_times: Values
    urine_volumes: Values
    irrigated: bool
    weight_times: Values
    weight_values: Values


@dataclass(frozen=True)
class Patient:
    """One patient with the stays in order."""

    male: bool
    age: int
    chronic: bool
    year_group: int
    stays: tuple[Stay, ...]


def draw_patient(rng: np.random.Generator, year_groups: int) -> Patient:
    """One patient."""
    male = bool(rng.random() < 0.56)
    age = int(np.clip(rng.normal(64, 15), 18, 89))
    chronic = bool(rng.random() < 0.05 + 0.2 * (age > 60))
    level = float(rng.uniform(1.5, 2.6) if chronic else rng.uniform(0.6, 1.2) * (1.1 if male else 0.9))
    weight = float(np.clip(rng.normal(86 if male else 73, 15), 45, 160))
    group = int(rng.integers(year_groups))
    count = int(rng.choice([1, 2, 3], p=[0.8, 0.15, 0.05]))
    risk = 0.3 * (age - 64) / 15 + 0.5 * chronic
    return Patient(
        male, age, chronic, group, tuple(_draw_stay(rng, risk, level, weight) for _ in range(count))
    )


def creatinine_median(hazard: float) -> float:
    """Median hours to the creatinine event, for those who do not have it at once."""
    return float(400 * np.exp(-0.9 * hazard))


def urine_median(hazard: float, weight: float) -> float:
    """Median hours to the urine event, before it is moved to a record."""
    return float(130 * np.exp(-0.7 * hazard - 0.2 * (weight - 80) / 15))


def usual_rate(hazard: float) -> float:
    """Urine in mL/kg/h long before the event."""
    return float(np.clip(1.7 * np.exp(-0.25 * hazard), 0.75, 4))


def rise(hours_before: Values) -> Values:
    """Creatinine in multiples of the level, so many hours before the onset."""
    return np.asarray(1 + 0.4 * np.clip(1 - hours_before / RISE_HOURS, 0, 1))


def peak(hours_after: Values) -> Values:
    """Creatinine in multiples of the level, so many hours after the onset."""
    return np.asarray(2.3 + 0.9 * np.exp(-((hours_after - 40) ** 2) / 900))


def _draw_stay(rng: np.random.Generator, risk: float, level: float, weight: float) -> Stay:
    severity, frailty = rng.normal(size=2)
    hazard = risk + 0.8 * severity + 0.4 * frailty
    exit_hours = (
        round(float(np.clip(50 * np.exp(0.25 * severity + 0.8 * rng.normal()), 4, 600)) * 3600) / 3600
    )
    dies = bool(rng.random() < 0.12 / (1 + np.exp(-severity)))
    hospital_hours = exit_hours + (0.0 if dies else float(rng.uniform(1, 96)))
    at_once = rng.random() < AT_ONCE[0]
    creatinine_onset = _minute(
        rng.uniform(0, AT_ONCE[1])
        if at_once
        else creatinine_median(hazard) * np.exp(SPREAD["creatinine"] * rng.normal())
    )
    pace = PACES[int(rng.random() < 0.2)]
    wanted = urine_median(hazard, weight) * np.exp(SPREAD["urine"] * rng.normal())
    first_urine = _minute(rng.uniform(0.2, 1.2))
    urine_times, urine_rates, urine_hours, urine_onset = _urine(
        rng, pace, wanted, first_urine, exit_hours, usual_rate(hazard)
    )
    creatinine_times, creatinine_values = _creatinine(rng, level, creatinine_onset, hospital_hours)
    weight_times, weight_values = _weights(rng, weight, exit_hours)
    return Stay(
        hazard=float(hazard),
        level=level,
        weight=weight,
        pace=pace,
        first_urine=first_urine,
        exit_hours=exit_hours,
        hospital_hours=hospital_hours,
        dies=dies,
        creatinine_onset=creatinine_onset,
        urine_onset=urine_onset,
        creatinine_times=creatinine_times,
        creatinine_values=creatinine_values,
        urine_times=urine_times,
        urine_volumes=np.round(urine_rates * urine_hours * weight),
        irrigated=bool(rng.random() < 0.03),
        weight_times=weight_times,
        weight_values=weight_values,
    )


def _minute(hours: float) -> float:
    return round(float(hours) * 60) / 60


def _creatinine(rng: np.random.Generator, level: float, onset: float, end: float) -> tuple[Values, Values]:
    """The level with 6 % noise, rising to 1.4 times in the 36 h before the onset, 2.2 times or more after."""
    ward = [-rng.uniform(48, 72), -rng.uniform(12, 36), -rng.uniform(1, 8)]
    gaps = rng.uniform(*GAP_HOURS, size=int(end / GAP_HOURS[0]) + 2)
    draws = rng.uniform(0.3, 3) + np.concatenate([[0.0], np.cumsum(gaps)])
    times = np.concatenate([ward, draws[draws <= end], [onset] if onset <= end else []])
    times = np.unique(np.round(times * 60)) / 60
    noise = rng.uniform(1 - CREATININE_NOISE, 1 + CREATININE_NOISE, size=len(times))
    above = peak(times - onset) * np.clip(noise, LEAST_ABOVE, None)
    return times, np.round(level * np.where(times < onset, rise(onset - times) * noise, above), 2)


def _urine(
    rng: np.random.Generator, pace: Pace, wanted: float, first: float, exit_hours: float, usual: float
) -> tuple[Values, Values, Values, float]:
    """Times, rates and hours covered of the charted records, and the onset on the charting grid."""
    fall = max(round((wanted - first) / pace.hours) - pace.delay, pace.earliest)
    onset = first + (fall + pace.delay) * pace.hours
    index = np.arange(int((exit_hours - first) / pace.hours) + 1 if exit_hours >= first else 0)
    noise = rng.uniform(1 - URINE_NOISE, 1 + URINE_NOISE, size=len(index))
    until = fall - PLATEAU_RECORDS
    drift = np.clip((until - index) / DRIFT_RECORDS, 0, 1)  # from the usual rate to the plateau
    before = (pace.plateau + (usual - pace.plateau) * drift) * noise
    spread, lowest, highest = URINE_FACTOR
    factor = np.clip(rng.lognormal(0, spread, size=len(index)), lowest, highest)
    before *= np.where(index < until, factor, 1)
    recovered = index >= fall + pace.delay + rng.integers(6, 60)
    rates = np.where(index < fall, np.maximum(before, LEAST_RATE), pace.low * noise)
    rates = np.where(recovered, rng.uniform(0.8, 1.6, size=len(index)), rates)
    hours = np.full(len(index), float(pace.hours))
    hours[:1] = 1.0
    times, rates, hours = _merge_some(
        rng, (first + index * pace.hours).astype(np.float64), rates, hours, until
    )
    return times, rates, hours, onset


def _merge_some(
    rng: np.random.Generator, times: Values, rates: Values, hours: Values, until: int
) -> tuple[Values, Values, Values]:
    """Leave out some records, never two in a row; the next one stands for both times and both volumes."""
    index = np.arange(len(times))
    skipped = (
        (rng.random(len(times)) < SKIPPED) & (index % 2 == 1) & (index < until - 1) & (index + 1 < len(times))
    )
    volume = rates * hours
    after = np.roll(skipped, 1)
    volume[after] += volume[skipped]
    covered = hours.copy()
    covered[after] += hours[skipped]
    return times[~skipped], (volume / covered)[~skipped], covered[~skipped]


def _weights(rng: np.random.Generator, weight: float, exit_hours: float) -> tuple[Values, Values]:
    """An admission weight within two hours, then daily ones within 1 %; some stays have none."""
    if rng.random() < 0.015:
        return np.empty(0), np.empty(0)
    daily = np.arange(18.0, exit_hours, 24.0)
    times = np.concatenate([[_minute(rng.uniform(0, min(2, exit_hours)))], daily])
    return times, np.round(weight * rng.uniform(0.995, 1.005, size=len(times)), 1)
