"""Stage-2 onsets worked out by hand. The weight is 80 kg unless said, so 0.5 mL/kg/h is 40 mL per hour."""

import pytest

from censcore_studies.aki import (
    AkiSettings,
    CohortSettings,
    EndpointSettings,
    Resources,
    SourceSettings,
    build,
)
from censcore_studies.aki.cohort import choose_cohort, find_endpoints
from censcore_studies.aki.engine import Engine
from censcore_studies.aki.extract import extract
from censcore_studies.aki.source import open_source


@pytest.fixture
def onsets(tiny, tmp_path, query):
    """Stage the tiny database; first onsets of a stay in hours since admission, by endpoint."""

    def find(settings: AkiSettings | None = None, stay: int = 1) -> dict[str, float]:
        chosen, out = settings or AkiSettings(), tmp_path / "out"
        out.mkdir(exist_ok=True)
        source = open_source(tiny.write(), chosen.source, out / "source.json")
        with Engine(Resources(threads=1), out / "spill", print) as engine:
            tables = extract(engine, source, out, chosen.source, print)
            cohort = choose_cohort(engine, tables, out, chosen, print)
            file = find_endpoints(engine, tables, cohort, out, chosen, print).folder / "episodes.parquet"
        found = query(
            f"SELECT endpoint, min(onset_s) / 3600 FROM '{file}' WHERE stay_id = {stay} GROUP BY endpoint"
        )
        return dict(found)

    return find


def endpoints(**values) -> AkiSettings:
    return AkiSettings(endpoints=EndpointSettings(**values))


# Creatinine


def test_twice_the_lowest_earlier_value_is_the_onset(tiny, onsets):
    tiny.stay()
    for hour, value in [(-20, 1.0), (10, 1.9), (20, 2.0), (30, 3.5)]:
        tiny.creatinine(hour, value)
    tiny.hourly_urine(100, 1, 60)
    assert onsets() == {"creatinine": 20}


@pytest.mark.parametrize(("hour", "expected"), [(168, {"creatinine": 168}), (169, {})])
def test_baseline_reaches_back_seven_days_inclusive(tiny, onsets, hour, expected):
    tiny.stay(hours=240)
    tiny.creatinine(0, 1.0)
    for day in range(1, 7):
        tiny.creatinine(24 * day, 1.6)
    tiny.creatinine(hour, 2.0)
    assert onsets() == expected


def test_a_value_is_not_its_own_baseline(tiny, onsets):
    tiny.stay()
    tiny.creatinine(5, 9.0)
    assert onsets() == {}


def test_repeated_draws_at_one_time_are_averaged(tiny, onsets):
    tiny.stay()
    tiny.creatinine(-20, 1.0)
    tiny.creatinine(20, 1.6)
    tiny.creatinine(20, 2.2)  # the mean is 1.9
    tiny.creatinine(25, 1.7)
    tiny.creatinine(25, 2.3)  # the mean is 2.0
    assert onsets() == {"creatinine": 25}


def test_four_milligrams_count_with_an_acute_rise(tiny, onsets):
    tiny.stay()
    tiny.creatinine(0, 3.7)
    tiny.creatinine(24, 4.0)  # 0.3 above, 1.08 times
    assert onsets() == {"creatinine": 24}
    assert onsets(endpoints(count_stage_3=False)) == {}


def test_four_milligrams_without_a_rise_count_only_as_printed(tiny, onsets):
    tiny.stay()
    tiny.creatinine(0, 4.5)
    tiny.creatinine(24, 4.7)
    assert onsets() == {}
    assert onsets(AkiSettings.as_printed()) == {"creatinine": 0}


def test_fixed_baseline_before_the_icu(tiny, onsets):
    tiny.stay(hours=240)
    tiny.creatinine(-100, 1.0)
    tiny.creatinine(100, 1.7)
    tiny.creatinine(200, 2.0)  # seven days back the lowest is 1.7
    assert onsets() == {}
    assert onsets(endpoints(creatinine_baseline="before_icu")) == {"creatinine": 200}


def test_fixed_baseline_falls_back_on_the_first_value_of_the_stay(tiny, onsets):
    tiny.stay()
    for hour, value in [(2, 1.0), (10, 0.8), (20, 1.7), (30, 2.0)]:
        tiny.creatinine(hour, value)
    assert onsets() == {"creatinine": 20}
    assert onsets(endpoints(creatinine_baseline="before_icu")) == {"creatinine": 30}


def test_onset_before_admission_counts_from_admission_or_from_the_lookback(tiny, onsets):
    tiny.stay()
    tiny.creatinine(-20, 1.0)
    tiny.creatinine(-5, 2.0)
    tiny.creatinine(6, 2.1)
    assert onsets() == {"creatinine": 6}
    assert onsets(endpoints(onset_lookback_hours=24)) == {"creatinine": -5}


def test_nothing_after_the_exit_counts(tiny, onsets):
    tiny.stay(hours=30)
    tiny.creatinine(-20, 1.0)
    tiny.creatinine(30.001, 2.5)
    assert onsets() == {}
    tiny.creatinine(30, 2.0)  # at the exit itself: T <= C
    assert onsets() == {"creatinine": 30}


def test_death_ends_the_stay(tiny, onsets):
    tiny.stay(hours=72, death=30)
    tiny.creatinine(-20, 1.0)
    tiny.creatinine(31, 2.5)
    assert onsets() == {}
    assert onsets(AkiSettings(cohort=CohortSettings(death_ends_stay=False))) == {"creatinine": 31}


def test_second_stay_of_a_patient_has_its_own_onset_and_the_patients_baseline(tiny, onsets):
    tiny.stay(1, hours=48)
    tiny.stay(2, hours=48, start=100, subject_id=1)
    tiny.creatinine(0, 1.0)
    tiny.creatinine(40, 2.0)
    tiny.creatinine(101, 2.2)  # the lowest in seven days is still 1.0
    tiny.hourly_urine(10, 1, 20, stay_id=1)
    assert onsets(stay=1) == {"creatinine": 40, "urine": 12}
    assert onsets(stay=2) == {"creatinine": 1}


# Urine


def test_urine_average_over_twelve_hours_falls_below_half(tiny, onsets):
    tiny.stay()
    tiny.hourly_urine(100, 1, 12)
    tiny.hourly_urine(30, 13, 60)
    # 13 records in the closed window; (1300 - 70 j) / 80 / 13 < 0.5 first holds for j = 12 low records.
    assert onsets() == {"urine": 24}


def test_both_endpoints(tiny, onsets):
    tiny.stay()
    tiny.creatinine(-10, 0.8)
    tiny.creatinine(33, 1.6)
    tiny.hourly_urine(100, 1, 12)
    tiny.hourly_urine(30, 13, 60)
    assert onsets() == {"creatinine": 33, "urine": 24}


def test_exactly_half_a_millilitre_depends_on_strictness(tiny, onsets):
    tiny.stay()
    tiny.hourly_urine(40, 1, 60)
    assert onsets() == {}
    assert onsets(endpoints(urine_strict=False)) == {"urine": 12}


def test_twelve_hours_must_be_covered(tiny, onsets):
    tiny.stay()
    tiny.hourly_urine(10, 3, 60)  # the first record stands for one hour
    assert onsets() == {"urine": 14}


def test_stage_3_alone_counts_when_asked(tiny, onsets):
    tiny.stay()
    # A stage 2 out of reach leaves 0.3 mL/kg/h over 24 h: first covered by 24 records of 20 mL.
    tiny.hourly_urine(20, 1, 60)
    assert onsets(endpoints(urine_rate=0.01)) == {"urine": 24}
    assert onsets(endpoints(urine_rate=0.01, count_stage_3=False)) == {}


def test_no_urine_stage_in_the_first_six_hours(tiny, onsets):
    tiny.stay()
    tiny.hourly_urine(10, 1, 30)
    lenient = {"first_urine_hours": 12.0, "urine_needs_short_window": False}
    assert onsets(endpoints(**lenient)) == {"urine": 6}
    assert onsets(endpoints(**lenient, urine_grace_hours=0.0)) == {"urine": 1}


def test_sparse_charting_is_unstaged_by_default(tiny, onsets):
    tiny.stay()
    for hour in range(6, 61, 6):
        tiny.urine(hour, 60)
    # The closed 6-hour window holds two records that cover 12 h.
    assert onsets() == {}
    # 1 + 6 + 6 h covered by the records at 6, 12, 18.
    assert onsets(endpoints(urine_needs_short_window=False)) == {"urine": 18}


def test_four_hourly_charting_is_staged(tiny, onsets):
    tiny.stay()
    for hour in range(4, 61, 4):
        tiny.urine(hour, 60)
    # 6-hour window: 4 + 4 = 8 h. 12-hour window at 16: records at 4, 8, 12, 16 cover 1 + 4 + 4 + 4 = 13 h.
    assert onsets() == {"urine": 16}


def test_irrigant_is_subtracted_with_either_sign(tiny, onsets):
    tiny.stay()
    for hour in range(1, 31):
        tiny.urine(hour, 1010, item=227489)
        tiny.urine(hour, 1000 if hour % 2 else -1000, item=227488)
    assert onsets() == {"urine": 12}


def test_irrigant_charted_before_its_return_makes_a_negative_volume(tiny, onsets):
    tiny.stay()
    for hour in range(1, 60, 2):
        tiny.urine(hour, 500, item=227488)
        tiny.urine(hour + 1, 700, item=227489)  # 200 mL in two hours: 1.25 mL/kg/h over pairs
    # A window of 13 records that begins and ends on irrigation nets 6 * 200 - 500 = 700 mL: 0.67 mL/kg/h.
    assert onsets() == {}


def test_items_at_one_time_are_summed(tiny, onsets):
    tiny.stay()
    for hour in range(1, 31):
        tiny.urine(hour, 25)
        tiny.urine(hour, 25, item=226560)
    assert onsets() == {}


def test_exact_copies_of_a_record_count_once(tiny, onsets):
    tiny.stay()
    for hour in range(1, 31):
        tiny.urine(hour, 25)
        tiny.urine(hour, 25)
    assert onsets() == {"urine": 12}


# Weight


def test_without_a_weight_the_rule_decides(tiny, onsets, query, tmp_path):
    tiny.stay(weight=None)
    tiny.hourly_urine(10, 1, 30)
    tiny.creatinine(-5, 1.0)
    tiny.creatinine(5, 2.0)
    assert onsets() == {}
    cohort = tmp_path / "out" / "cohort" / "cohort.parquet"
    assert query(f"SELECT count(*) FROM '{cohort}' WHERE stay_id = 1") == [(0,)]
    rule = CohortSettings(missing_weight="no_urine_event")
    assert onsets(AkiSettings(cohort=rule)) == {"creatinine": 5}
    rule = CohortSettings(missing_weight="assume", assumed_weight=75)
    assert onsets(AkiSettings(cohort=rule)) == {"creatinine": 5, "urine": 12}


def test_impossible_weights_are_left_out(tiny, onsets):
    tiny.stay(weight=8.0)  # a slip for 80: 35 mL would be 4.4 mL/kg/h
    tiny.weight(20, 80.0, item=224639)
    tiny.hourly_urine(35, 1, 30)
    assert onsets() == {"urine": 12}
    lenient = AkiSettings(source=SourceSettings(lowest_weight=1))
    assert onsets(lenient) == {"urine": 20}


def test_the_weight_in_force_is_used(tiny, onsets):
    tiny.stay(weight=80)
    tiny.weight(5, 60.0, item=224639)
    tiny.hourly_urine(35, 1, 30)  # 0.44 mL/kg/h at 80 kg, 0.58 at 60 kg
    assert onsets() == {}


def test_a_later_first_weight_is_used_before_it_was_taken(tiny, onsets):
    tiny.stay(weight=None)
    tiny.weight(30, 80.0, item=224639)
    tiny.hourly_urine(35, 1, 30)
    assert onsets() == {"urine": 12}


def test_pounds_are_converted_and_kilograms_preferred(tiny, onsets):
    tiny.stay(weight=None)
    tiny.weight(0, 176.37, item=226531)  # 80.0 kg
    tiny.hourly_urine(35, 1, 30)
    assert onsets() == {"urine": 12}
    tiny.weight(0, 60.0)
    assert onsets() == {}


# Recurrence


def test_events_end_and_come_back(tiny, tmp_path, query):
    tiny.stay()
    for hour, value in [(-10, 1.0), (5, 2.0), (20, 1.2), (40, 2.4), (50, 2.5)]:
        tiny.creatinine(hour, value)
    result = build(tiny.write(), tmp_path / "out")
    episodes = result.out / "endpoints" / "episodes.parquet"
    found = query(f"SELECT onset_s / 3600, end_s / 3600 FROM '{episodes}' WHERE stay_id = 1 ORDER BY 1")
    assert found == [(5, 20), (40, None)]
    rows = query(
        f"SELECT elapsed_hours, creatinine_present, creatinine_event, creatinine_time "
        f"FROM '{result.out}/rows/*/rows.parquet' WHERE stay_id = 1 ORDER BY 1"
    )
    assert rows == [(5, True, True, 0), (20, False, True, 20), (40, True, True, 0), (50, True, True, 0)]
