"""The true distribution of the synthetic stays: calibrated, never beaten, found beside the data."""

import json
import shutil
from dataclasses import fields

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest, kstest

from censcore.exceptions import InvalidInputError
from censcore_studies.aki import AkiSettings, EndpointSettings, build, open_build, write_synthetic_database
from censcore_studies.aki.evaluation import score_rows
from censcore_studies.aki.synthetic_stays import draw_patient
from censcore_studies.aki.synthetic_truth import (
    ChartedStay,
    _creatinine_again,
    _factor_cdf,
    _rate_cdf,
    _urine_likelihood,
    draw_remaining,
)
from censcore_studies.aki.truth import open_truth

MEMBERS = 99


def charted(stay) -> ChartedStay:
    """What the ICU study reads of a stay."""
    values = {field.name: getattr(stay, field.name) for field in fields(ChartedStay)}
    seen = stay.creatinine_times <= stay.exit_hours
    values |= {
        name: getattr(stay, name)[seen]
        for name in values
        if name in ("creatinine_times", "creatinine_values")
    }
    return ChartedStay(**values)


@pytest.fixture(scope="module")
def forecasts():
    """The first prediction time after a random one, in every stay: draws and the truth, of both endpoints."""
    rng = np.random.default_rng(3)
    draws, remaining = [], []
    while len(draws) < 700:
        for stay in draw_patient(rng, 5).stays:
            times = np.sort(np.concatenate([stay.creatinine_times, stay.urine_times]))
            times = times[(times >= rng.uniform(0, min(150, stay.exit_hours))) & (times < stay.exit_hours)]
            onsets = np.array([stay.creatinine_onset, stay.urine_onset])
            if len(times) and (onsets > times[0]).any():
                draws.append(draw_remaining(charted(stay), times[:1], MEMBERS, rng)[0])
                remaining.append(onsets - times[0])
    return np.array(draws), np.array(remaining)


@pytest.mark.parametrize("endpoint", [0, 1])
def test_the_truth_is_among_its_draws_like_one_of_them(forecasts, endpoint):
    draws, remaining = (part[..., endpoint] for part in forecasts)
    ahead = remaining > 1e-6
    draws, remaining = draws[ahead], remaining[ahead, None]
    rng = np.random.default_rng(0)
    ties = (np.abs(draws - remaining) < 1e-6).sum(axis=1)
    rank = (draws < remaining - 1e-6).sum(axis=1) + rng.integers(0, ties + 1)
    assert len(rank) > 550
    assert kstest((rank + rng.random(len(rank))) / (MEMBERS + 1), "uniform").pvalue > 0.01


@pytest.mark.parametrize(("endpoint", "low", "high"), [(0, 0.02, 0.5), (1, 0.02, 0.98)])
def test_risks_within_a_day_are_frequencies(forecasts, endpoint, low, high):
    draws, remaining = (part[..., endpoint] for part in forecasts)
    ahead = remaining > 1e-6
    risk = (draws[ahead] <= 24).mean(axis=1)
    chosen = (risk > low) & (risk < high)
    happened = (remaining[ahead][chosen] <= 24).sum()
    assert chosen.sum() > 20
    assert binomtest(int(happened), int(chosen.sum()), risk[chosen].mean()).pvalue > 0.005


def test_the_factor_of_urine_has_its_distribution():
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.96, 1.04, 400_000) * np.clip(rng.lognormal(0, 0.25, 400_000), 0.8, 3)
    for x in (0.7, 0.78, 0.8, 0.83, 1.0, 1.5, 2.98, 3.2):
        assert _factor_cdf(np.array(x)) == pytest.approx((drawn <= x).mean(), abs=3e-3)
    u = np.linspace(0.96, 1.04, 100_001)
    assert _factor_cdf(np.array(1.1)) == pytest.approx(ndtr(np.log(1.1 / u) / 0.25).mean(), abs=1e-6)
    assert _rate_cdf(np.array([0.59, 0.6]), np.array(0.75))[0] == 0  # the floor


def test_merged_records_have_the_probability_of_the_sum():
    rng = np.random.default_rng(1)
    stay = next(
        charted(stay)
        for _ in range(500)
        for stay in draw_patient(rng, 5).stays
        if len(stay.urine_times) > 50
        and stay.pace.hours == 1
        and np.diff(stay.urine_times[:6]).max() > 1.5
        and stay.urine_onset > 60
    )
    merged = int(np.flatnonzero(np.diff(stay.urine_times) > 1.5)[0]) + 1
    index = round(stay.urine_times[merged] - stay.first_urine)
    found = _urine_likelihood(stay, index + 1)
    usual = float(np.clip(1.7 * np.exp(-0.25 * stay.hazard), 0.75, 4))
    rates = (
        usual * rng.uniform(0.96, 1.04, (2, 400_000)) * np.clip(rng.lognormal(0, 0.25, (2, 400_000)), 0.8, 3)
    )
    volume = np.round(np.maximum(rates, 0.6).sum(axis=0) * stay.weight)
    share = (np.abs(volume - stay.urine_volumes[merged]) <= 5).mean() / 11  # a little smoothing
    assert found[index, -1] == pytest.approx(share, rel=0.15)
    assert found[index - 1, -1] == 0.08  # left out
    assert (found[index - 1, :15] == 0).all()  # never so near the plateau


def test_an_event_that_is_over_can_come_back_by_noise_only():
    rng = np.random.default_rng(0)
    times, onset = np.arange(-50.0, 300, 12), 22.0
    for level, comes_back in ((0.8, False), (1.9, True)):
        after = times >= onset
        stay = ChartedStay(
            0.0, level, 80.0, None, 0.5, 400.0, onset, 500.0, times, level * np.where(after, 2.3, 1.0),
            np.empty(0), np.empty(0),
        )  # fmt: skip
        hours = _creatinine_again(stay, float(times[-1]), 200, rng)
        assert (hours > 0).all()
        assert np.isfinite(hours).any() == comes_back


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    database = write_synthetic_database(tmp_path_factory.mktemp("database"), stays=250, seed=4)
    out = tmp_path_factory.mktemp("out")
    build(database, out)
    return database, out


def test_the_same_draws_in_whatever_order_stays_come(built):
    pytest.importorskip("torch")
    opened = open_build(built[1])
    truth, rows = open_truth(opened, print), opened.rows("test")
    whole = np.concatenate([part.numpy() for part in truth.sample(rows, 8, seed=0)])
    assert whole.shape == (len(rows), 8, 2)
    assert (whole.swapaxes(1, 2)[rows.at_risk] > 0).all()
    last = rows.stay_id == rows.stay_id[-1]
    alone = np.concatenate([part.numpy() for part in truth.sample(rows.take(last), 8, seed=0)])
    np.testing.assert_array_equal(alone, whole[last])


def test_the_truth_beats_what_knows_the_outcome_less(built):
    torch = pytest.importorskip("torch")
    opened = open_build(built[1])
    truth, rows = open_truth(opened, print), opened.rows("test", 1500)
    draws = torch.cat(list(truth.sample(rows, 64, seed=0)))
    best = score_rows(rows, draws)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(rows)))
    for other in (draws[order], draws * 3, draws * 0.3):
        worse = score_rows(rows, other)
        for what in ("joint", "creatinine", "urine", "brier_24"):
            assert np.nanmean(best[what]) < np.nanmean(worse[what])


def test_there_is_no_truth_without_its_file_or_under_other_criteria(built, tmp_path):
    database, out = built
    told = []
    shutil.copytree(out, tmp_path / "out")
    other = AkiSettings(endpoints=EndpointSettings(creatinine_ratio=2.1))
    build(database, tmp_path / "out", other)
    assert open_truth(open_build(tmp_path / "out"), told.append) is None
    assert "not the default" in told[0]
    shutil.copytree(database, tmp_path / "database")
    foreign = tmp_path / "database" / "truth.csv"
    foreign.write_text("stay_id,outcome\n1,2\n", encoding="utf-8")
    build(tmp_path / "database", tmp_path / "out")
    assert open_truth(open_build(tmp_path / "out"), told.append) is None


def test_a_truth_of_other_data_raises(built, tmp_path):
    pytest.importorskip("torch")
    database, out = built
    shutil.copytree(database, tmp_path / "database")
    text = (database / "truth.csv").read_text(encoding="utf-8").splitlines()
    moved = [line.split(",") for line in text]
    for line in moved[1:]:
        line[3] = str(float(line[3]) + 2)
    (tmp_path / "database" / "truth.csv").write_text(
        "\n".join(",".join(line) for line in moved), encoding="utf-8"
    )
    shutil.copytree(out, tmp_path / "out")
    build(tmp_path / "database", tmp_path / "out")
    opened = open_build(tmp_path / "out")
    with pytest.raises(InvalidInputError, match="other endpoints than the truth"):
        next(open_truth(opened, print).sample(opened.rows("test"), 4, seed=0))


def test_truth_columns_are_what_the_stays_were_drawn_from(built):
    header, first = (built[0] / "truth.csv").read_text(encoding="utf-8").splitlines()[:2]
    row = dict(zip(header.split(","), first.split(","), strict=True))
    patient = draw_patient(np.random.default_rng([4, 0]), 5)
    assert float(row["hazard"]) == patient.stays[0].hazard
    assert json.loads((built[0] / "truth.json").read_text(encoding="utf-8"))["stays"] >= 250
