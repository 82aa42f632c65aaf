"""Every choice of the ICU study, explicit and frozen.

The paper leaves many of them open. Each field states what it decides, its default, and the source of the
default: "KDIGO" is the 2012 guideline, "MIMIC concepts" the community's derived tables for MIMIC-IV.
A measurement is dated by its ``charttime`` throughout; all internal times are whole seconds since ICU
admission, so that window edges are exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from censcore.exceptions import InvalidInputError

__all__ = [
    "AkiSettings",
    "CohortSettings",
    "EndpointSettings",
    "RowSettings",
    "SourceSettings",
    "SplitSettings",
]

WeightSource = Literal["kilograms", "pounds", "inputevents"]


class _Checked:
    """A section of the settings that checks its declared choices and ranges."""

    _positive: ClassVar[tuple[str, ...]] = ()
    _not_negative: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value, choices = getattr(self, name), get_args(kind)
            if choices and all(isinstance(c, str) for c in choices) and value not in choices:
                raise InvalidInputError(
                    f"{type(self).__name__}.{name} must be one of {choices}; got {value!r}."
                )
        for name in self._positive:
            self._demand(name, getattr(self, name) > 0, "above 0")
        for name in self._not_negative:
            self._demand(name, getattr(self, name) >= 0, "0 or more")

    def _demand(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise InvalidInputError(
                f"{type(self).__name__}.{name} must be {wanted}; got {getattr(self, name)!r}."
            )


@dataclasses.dataclass(frozen=True)
class SourceSettings(_Checked):
    """What is read from the database and which recorded values count as impossible.

    Parameters
    ----------
    creatinine_items : tuple of int
        ``labevents.itemid`` of serum creatinine (50912; MIMIC concepts).
    highest_creatinine : float
        mg/dL; a value above it, or not above 0, is impossible and left out (150; MIMIC concepts).
    urine_items, irrigant_items : tuple of int
        ``outputevents.itemid`` of urine, and of irrigant volume put in, which is subtracted whatever the
        sign it was charted with. All items of one stay and time are summed (MIMIC concepts).
    highest_urine : float
        mL in one record; above it, or negative for anything but an irrigant, a record is impossible and
        left out (10 000: above any single bladder emptying or bag).
    weight_sources : tuple of {"kilograms", "pounds", "inputevents"}
        Where body weight comes from, best first where two agree in time: charted kilograms (items 226512
        admission and 224639 daily), charted pounds (226531), ``inputevents.patientweight``. The default
        leaves ``inputevents`` out, so that table need not exist.
    lowest_weight, highest_weight : float
        Kilograms; outside them a weight is impossible and left out (30 and 350: adults).
    """

    creatinine_items: tuple[int, ...] = (50912,)
    highest_creatinine: float = 150.0
    urine_items: tuple[int, ...] = (
        226557, 226558, 226559, 226560, 226561, 226563, 226564, 226565, 226567, 226584, 227489,
    )  # fmt: skip
    irrigant_items: tuple[int, ...] = (227488,)
    highest_urine: float = 10_000.0
    weight_sources: tuple[WeightSource, ...] = ("kilograms", "pounds")
    lowest_weight: float = 30.0
    highest_weight: float = 350.0

    _positive = ("highest_creatinine", "highest_urine", "lowest_weight")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._demand("highest_weight", self.highest_weight > self.lowest_weight, "above lowest_weight")
        known = get_args(WeightSource)
        valid = self.weight_sources and all(source in known for source in self.weight_sources)
        self._demand("weight_sources", bool(valid), f"a tuple out of {known}, not empty")


@dataclasses.dataclass(frozen=True)
class CohortSettings(_Checked):
    """Which ICU stays are studied and when their observation ends.

    Parameters
    ----------
    minimum_age : int
        Years at hospital admission (18).
    minimum_stay_hours : float
        Shorter stays are left out (0: none).
    death_ends_stay : bool
        A death recorded inside the stay ends it at the time of death; otherwise only ``outtime`` does.
        Either way the exit is the shared censoring time (True: the main text says discharge or death).
    minimum_creatinine, minimum_urine : int
        Charted values a stay must have between admission and exit (0: a criterion that was not measured is
        an event that was not seen).
    missing_weight : {"exclude_stay", "no_urine_event", "assume"}
        What happens to a stay with no usable weight, where mL/kg/h has no meaning: it is left out, or it
        never meets the urine criterion (MIMIC concepts), or ``assumed_weight`` is used for the criterion.
    assumed_weight : float
        Kilograms, used with ``missing_weight="assume"`` only; never a feature.
    chronic_renal_failure : {"earlier_admissions", "this_admission_too"}
        Which ICD codes (9: 585*, 10: N18*) count. Codes are given at hospital discharge, so those of the
        current admission look ahead; the default uses admissions that ended before the ICU stay began.
    """

    minimum_age: int = 18
    minimum_stay_hours: float = 0.0
    death_ends_stay: bool = True
    minimum_creatinine: int = 0
    minimum_urine: int = 0
    missing_weight: Literal["exclude_stay", "no_urine_event", "assume"] = "exclude_stay"
    assumed_weight: float = 75.0
    chronic_renal_failure: Literal["earlier_admissions", "this_admission_too"] = "earlier_admissions"

    _positive = ("assumed_weight",)
    _not_negative = ("minimum_age", "minimum_stay_hours", "minimum_creatinine", "minimum_urine")


@dataclasses.dataclass(frozen=True)
class EndpointSettings(_Checked):
    """The KDIGO stage-2 criteria by creatinine and by urine output.

    Parameters
    ----------
    onset : {"recurrent", "first"}
        ``"recurrent"``: an event is present until a staged measurement no longer meets its criterion, and
        the next onset is awaited again. ``"first"``: the event is the first time a criterion of stage 2 or
        worse is met, and stays present ever after. The default is the paper's: it says that an event can be
        left at the next time point, and its counts of test rows imply that 16 % have a urine event present
        and 4 % both. On the open demo "recurrent" gives 21 % and 3 %, "first" 53 % and 15 %. Neither
        settles creatinine, 13 % in the paper: 9 % and 17 %.
    count_stage_3 : bool
        A measurement that meets a criterion of stage 3 only counts as well (True).
    creatinine_baseline : {"rolling_minimum", "before_icu"}
        The baseline of a value: the minimum over the ``baseline_hours`` strictly before it (MIMIC concepts),
        or the minimum over the ``baseline_hours`` up to ICU admission, else the first value of the stay.
    baseline_hours : float
        168 (seven days; KDIGO).
    creatinine_ratio : float
        Stage 2 at this multiple of the baseline or more (2; KDIGO).
    stage_3_creatinine : float
        mg/dL; stage 3 at or above it (4; KDIGO), given an acute rise when ``stage_3_needs_rise``.
    stage_3_needs_rise : bool
        The rise is ``acute_rise`` mg/dL over the minimum of the 48 hours before, or 1.5 times the baseline
        (True: KDIGO; the paper's table prints the level alone).
    acute_rise : float
        0.3 mg/dL (KDIGO).
    onset_lookback_hours : float
        A creatinine this long before ICU admission may already be the onset (0: onset is in the stay).
    urine_rate, urine_hours : float
        Stage 2 below ``urine_rate`` mL/kg/h over ``urine_hours`` (0.5 over 12; KDIGO).
    stage_3_urine_rate, stage_3_urine_hours : float
        Stage 3 below 0.3 over 24 h (KDIGO); no urine over 12 h is stage 3 too, but meets stage 2 anyway.
    urine_strict : bool
        True compares with ``<`` (KDIGO), False with ``<=`` (the paper's table).
    urine_rate_decimals : int
        Rates are rounded before they are compared, so that a rate of exactly 0.5 is one (4; MIMIC concepts).
    urine_short_hours : float
        The short window of ``urine_needs_short_window`` (6; KDIGO stage 1).
    urine_needs_short_window : bool
        A time is staged only where the records of the last ``urine_short_hours`` cover at least that long
        and less than ``urine_hours``; sparser charting is unstaged (True; MIMIC concepts).
    urine_grace_hours : float
        No urine stage this early in the stay (6; MIMIC concepts).
    first_urine_hours : float
        The time that the first record of a stay stands for; later ones stand for the time since the record
        before (1; MIMIC concepts).
    """

    onset: Literal["recurrent", "first"] = "recurrent"
    count_stage_3: bool = True
    creatinine_baseline: Literal["rolling_minimum", "before_icu"] = "rolling_minimum"
    baseline_hours: float = 168.0
    creatinine_ratio: float = 2.0
    stage_3_creatinine: float = 4.0
    stage_3_needs_rise: bool = True
    acute_rise: float = 0.3
    onset_lookback_hours: float = 0.0
    urine_rate: float = 0.5
    urine_hours: float = 12.0
    stage_3_urine_rate: float = 0.3
    stage_3_urine_hours: float = 24.0
    urine_strict: bool = True
    urine_rate_decimals: int = 4
    urine_short_hours: float = 6.0
    urine_needs_short_window: bool = True
    urine_grace_hours: float = 6.0
    first_urine_hours: float = 1.0

    _positive = (
        "baseline_hours", "creatinine_ratio", "stage_3_creatinine", "acute_rise", "urine_rate", "urine_hours",
        "stage_3_urine_rate", "stage_3_urine_hours", "urine_short_hours", "first_urine_hours",
    )  # fmt: skip
    _not_negative = ("onset_lookback_hours", "urine_rate_decimals", "urine_grace_hours")


@dataclasses.dataclass(frozen=True)
class RowSettings(_Checked):
    """Prediction times and features.

    Parameters
    ----------
    grid : {"measurements", "hourly"}
        One row at every time at which a creatinine or urine value of the stay becomes known, or one every
        ``step_hours`` from admission (the paper says "timestamp").
    step_hours : float
        The step of the hourly grid.
    horizon_hours : float
        Rows later than this after admission are left out (336: 14 days, as in the paper).
    window_hours : float
        The look-back of the summaries (72, as in the paper); both ends count.
    known_at : {"charttime", "storetime"}
        When a value may be used: when it was drawn, or when it was stored, if that is later. Stays and
        endpoints are dated by ``charttime`` either way.
    urine_unit : {"ml_per_kg_h", "ml_per_h", "ml"}
        What the urine summaries summarize: the charted volume, over the hours since the record before it,
        over the weight known at the prediction time.
    standardized_limit : float
        Standardized features are cut at this many standard deviations (10; the build counts how many). Two
        records a minute apart can give a slope of thousands, at which any network is absurd.
    stays_per_part : int
        Stays in one file of rows; bounds the memory of the build.
    """

    grid: Literal["measurements", "hourly"] = "measurements"
    step_hours: float = 1.0
    horizon_hours: float = 336.0
    window_hours: float = 72.0
    known_at: Literal["charttime", "storetime"] = "charttime"
    urine_unit: Literal["ml_per_kg_h", "ml_per_h", "ml"] = "ml_per_kg_h"
    standardized_limit: float = 10.0
    stays_per_part: int = 2048

    _positive = ("step_hours", "horizon_hours", "window_hours", "standardized_limit", "stays_per_part")


@dataclasses.dataclass(frozen=True)
class SplitSettings(_Checked):
    """Who trains, who validates, who tests; a patient is never on two sides.

    Parameters
    ----------
    rule : {"auto", "chronological", "random"}
        ``"chronological"``: anchor-year groups up to 2016 and ``shared_group_share`` of the stays of
        2017 - 2019 train, the rest of 2017 - 2019 validates, 2020 - 2022 tests. ``"random"``: patients at
        random. ``"auto"``: chronological where all three sides are there, else random, and it says so.
    shared_group_share : float
        One half, as in the paper; which patients is decided by a hash of the seed and the patient.
    random_shares : tuple of float
        Shares of stays that train, validate and test under ``"random"``.
    seed : int
        Feeds the hash.
    """

    rule: Literal["auto", "chronological", "random"] = "auto"
    shared_group_share: float = 0.5
    random_shares: tuple[float, float, float] = (0.7, 0.15, 0.15)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._demand("shared_group_share", 0 < self.shared_group_share < 1, "between 0 and 1")
        shares = self.random_shares
        valid = len(shares) == 3 and min(shares) > 0 and abs(sum(shares) - 1) < 1e-9
        self._demand("random_shares", valid, "three positive shares that add to 1")


@dataclasses.dataclass(frozen=True)
class AkiSettings:
    """All choices of the study's data part, in the order in which they act.

    Examples
    --------
    >>> from censcore_studies.aki import AkiSettings, RowSettings
    >>> settings = AkiSettings(rows=RowSettings(grid="hourly"))
    >>> AkiSettings.from_dict(settings.to_dict()) == settings
    True
    >>> AkiSettings.as_printed().endpoints.urine_strict
    False
    """

    source: SourceSettings = SourceSettings()
    cohort: CohortSettings = CohortSettings()
    endpoints: EndpointSettings = EndpointSettings()
    rows: RowSettings = RowSettings()
    split: SplitSettings = SplitSettings()

    @classmethod
    def as_printed(cls) -> AkiSettings:
        """The paper's table of stages to the letter: ``<=`` for urine, 4 mg/dL without an acute rise."""
        return cls(endpoints=EndpointSettings(urine_strict=False, stage_3_needs_rise=False))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Mapping[str, Any]]) -> AkiSettings:
        """The inverse of :meth:`to_dict`, also after a round trip through JSON; unknown names raise."""
        sections = get_type_hints(cls)
        _check_names("settings section", values, cls)
        return cls(**{name: _section(sections[name], given) for name, given in values.items()})


def _section(kind: type, values: Mapping[str, Any]) -> Any:
    _check_names(f"field of {kind.__name__}", values, kind)
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def _check_names(what: str, given: Mapping[str, Any], kind: type) -> None:
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InvalidInputError(f"Unknown {what}: {unknown}; known are {sorted(known)}.")
