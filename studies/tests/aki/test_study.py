"""Training, evaluation and the page, on a small synthetic database."""

import json
import re
import shutil

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.learning.likelihood import leave_out_times
from censcore_studies.aki import (
    FEATURES,
    METHODS,
    AkiRows,
    AkiSettings,
    EndpointSettings,
    Preset,
    RowSettings,
    build,
    evaluate,
    evaluation,
    open_build,
    report,
    run_all,
    train,
    training,
    write_synthetic_database,
)
from censcore_studies.aki.evaluation import _mean, _top, score_rows
from censcore_studies.aki.methods import _scaled
from censcore_studies.aki.preprocessing import Preprocessing
from censcore_studies.aki.report import _Page

torch = pytest.importorskip("torch", reason="the study trains networks")

TINY = Preset(
    "tiny",
    training_rows=800,
    validation_rows=200,
    test_rows=600,
    rows_per_stay=20,
    engression={"width": 16, "depth": 2, "noise_dim": 4, "samples": 4, "epochs": 2, "validate_every": 1},
    likelihood={"epochs": 2, "solver": "adam"},
    hidden=(8,),
    bins=6,
    members=32,
)


def some_rows(n: int = 40, seed: int = 0) -> AkiRows:
    rng = np.random.default_rng(seed)
    censoring = rng.uniform(1, 80, n)
    latent = rng.exponential(30, (n, 2))
    present = rng.random((n, 2)) < 0.2
    time = np.where(present, 0.0, np.minimum(latent, censoring[:, None]))
    event = present | (latent <= censoring[:, None])
    stays = np.repeat(np.arange(n // 2), 2)
    X = rng.normal(size=(n, 22)).astype(np.float32)
    return AkiRows(X, time, event, present, censoring, stays, stays // 2, np.zeros(n))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The whole study on 250 stays, with every method."""
    database = write_synthetic_database(tmp_path_factory.mktemp("database"), stays=250, seed=2)
    out = tmp_path_factory.mktemp("study")
    page = run_all(database, out, TINY, settings=AkiSettings(rows=RowSettings(stays_per_part=100)))
    return database, out, page.read_text("utf-8")


# Scores


def test_scores_are_the_papers_formulas():
    rows = some_rows()
    samples = np.random.default_rng(1).exponential(25, (len(rows), 30, 2))
    samples[0, 0] = np.inf  # a draw that never happens
    found = score_rows(rows, torch.from_numpy(samples))
    for i in range(len(rows)):
        c, at_risk = rows.censoring[i], rows.at_risk[i]
        z, y = np.minimum(samples[i], c)[:, at_risk], rows.time[i][at_risk]
        if not at_risk.any():
            assert np.isnan(found["joint"][i])
            continue
        pairs = np.linalg.norm(z[:, None] - z[None], axis=2).sum() / (30 * 29)
        joint = np.linalg.norm(z - y, axis=1).mean() - pairs / 2
        assert found["joint"][i] == pytest.approx(joint, rel=1e-9)
        assert np.isnan(found["creatinine"][i]) == (not at_risk[0])
        for horizon in (6, 12, 24, 48):
            if not at_risk.all():
                assert np.isnan(found[f"brier_{horizon}"][i])
                continue
            risk = (samples[i].min(axis=1) <= horizon).mean()
            forecast = 1.0 if c <= horizon else risk
            seen = bool((rows.time[i] <= horizon).any())
            assert found[f"brier_{horizon}"][i] == pytest.approx((forecast - seen) ** 2, abs=1e-12)
            assert found[f"risk_{horizon}"][i] == risk
            happened = bool((rows.event[i] & (rows.time[i] <= horizon)).any())
            expected = happened if happened or c > horizon else np.nan
            np.testing.assert_equal(found[f"happened_{horizon}"][i], float(expected))


def test_means_and_paired_differences_are_those_of_a_comparison():
    """The study scores its rows in parts and keeps the losses; on few rows compare() gives the same."""
    rows, rng = some_rows(60), np.random.default_rng(1)
    samples = {name: rng.exponential(scale, (len(rows), 30, 2)) for name, scale in (("a", 25), ("b", 40))}
    columns = {name: score_rows(rows, torch.from_numpy(z)) for name, z in samples.items()}
    comparison = cs.compare(
        {name: cs.Ensemble(z) for name, z in samples.items()},
        cs.Sample(None, rows.outcome(), mask=rows.at_risk),
        groups=rows.subject_id,
        scores=["energy_score:fair", "brier_score[either]"],
        times=[6.0, 12.0, 24.0, 48.0],
        horizon=1000.0,
        discrimination=False,
        reference=None,
    )
    for name, j, what in (("energy_score:fair", 0, "joint"), ("brier_score[either]", 2, "brier_24")):
        a, b = (comparison.estimate(model, name) for model in ("a", "b"))
        expected = _mean(columns["a"], columns["a"][what])
        assert (a.value[j], a.standard_error[j]) == pytest.approx(
            (expected["mean"], expected["standard_error"])
        )
        expected = _mean(columns["a"], columns["a"][what] - columns["b"][what])
        assert ((a - b).value[j], (a - b).standard_error[j]) == pytest.approx(
            (expected["mean"], expected["standard_error"])
        )


# Rows as landmarks


@pytest.fixture(scope="module")
def hourly_rows(tmp_path_factory) -> AkiRows:
    """Rows at every sixth hour of 120 synthetic stays, with the time of the first onset."""
    database = write_synthetic_database(tmp_path_factory.mktemp("database"), stays=120, seed=3)
    settings = AkiSettings(
        rows=RowSettings(grid="hourly", step_hours=6.0), endpoints=EndpointSettings(onset="first")
    )
    out = tmp_path_factory.mktemp("hourly")
    build(database, out, settings)
    return open_build(out).rows("train")


def test_a_row_is_a_subject_at_risk_at_its_time(hourly_rows):
    """Hours since admission with the entry at the row: the scores of the remaining hours."""
    rows = hourly_rows
    samples = np.random.default_rng(1).exponential(25, (len(rows), 20, 2))
    found = score_rows(rows, torch.from_numpy(samples))
    a = rows.elapsed
    assert len(rows) > 500
    assert (a > 0).any()

    both = rows.at_risk.all(axis=1)
    s, C = a[both], a[both] + rows.censoring[both]
    y = cs.RightCensored(s[:, None] + rows.time[both], rows.event[both], C, entry=s)
    F = cs.Ensemble(s[:, None, None] + samples[both])
    energy = cs.energy_score(y, F, fair=True)
    np.testing.assert_allclose(energy, found["joint"][both], rtol=1e-9, atol=1e-12)
    horizons = s[:, None] + np.array([6.0, 12.0, 24.0, 48.0])
    brier = cs.brier_score(y.first(), F.first(), times=horizons)
    expected = np.column_stack([found[f"brier_{h}"][both] for h in (6, 12, 24, 48)])
    np.testing.assert_allclose(brier, expected, rtol=1e-9, atol=1e-12)
    for j, endpoint in enumerate(("creatinine", "urine")):
        at_risk = rows.at_risk[:, j]  # also where the other endpoint is present
        C = a[at_risk] + rows.censoring[at_risk]
        y = cs.RightCensored(a[at_risk] + rows.time[at_risk, j], rows.event[at_risk, j], C, entry=a[at_risk])
        F = cs.Ensemble(a[at_risk][:, None] + samples[at_risk, :, j])
        energy = cs.energy_score(y, F, fair=True)
        np.testing.assert_allclose(energy, found[endpoint][at_risk], rtol=1e-9, atol=1e-12)


def test_rows_of_one_hour_are_the_stays_at_risk_at_that_landmark(hourly_rows):
    """One outcome per stay, from its admission; compare(landmarks=) finds the study's rows and scores."""
    rows, hours = hourly_rows, np.array([6.0, 12.0, 24.0])
    rng = np.random.default_rng(1)
    samples = {name: rng.exponential(scale, (len(rows), 20, 2)) for name, scale in (("a", 25), ("b", 50))}
    columns = {name: score_rows(rows, torch.from_numpy(z)) for name, z in samples.items()}
    first = np.nonzero((rows.elapsed == 0) & rows.at_risk.all(axis=1))[0]
    stays, patients = rows.stay_id[first], rows.subject_id[first]
    y = cs.RightCensored(rows.time[first], rows.event[first], rows.censoring[first])
    at = {s: np.nonzero((rows.elapsed == s) & rows.at_risk.all(axis=1))[0] for s in hours}
    for s, here in at.items():
        assert 20 < len(here) < len(y)
        assert rows.event[here].any(axis=0).all()
        assert np.array_equal(rows.stay_id[here], stays[y.at_risk(s)])
        np.testing.assert_allclose(rows.time[here] + s, y.after(s).time, atol=1e-9)
        assert np.array_equal(rows.event[here], y.after(s).event)
    anew = {name: {s: cs.Ensemble(s + z[here]) for s, here in at.items()} for name, z in samples.items()}
    comparison = cs.compare_landmarks(
        anew,
        y,
        landmarks=hours,
        window=12.0,
        groups=patients,
        horizon=1000.0,
        reference=None,
        scores=["energy_score:fair", "brier_score[either]"],
    )
    for i, here in enumerate(at.values()):
        part = {name: {key: values[here] for key, values in c.items()} for name, c in columns.items()}
        for score, j, what in (("energy_score:fair", 0, "joint"), ("brier_score[either]", 0, "brier_12")):
            a, b = (comparison[i].estimate(name, score) for name in ("a", "b"))
            for found, losses in ((a, part["a"][what]), (a - b, part["a"][what] - part["b"][what])):
                expected = _mean(part["a"], losses)
                assert (found.value[j], found.standard_error[j]) == pytest.approx(
                    (expected["mean"], expected["standard_error"])
                )


def test_predictive_value_and_sensitivity_by_hand():
    columns = {
        "happened_24": np.array([1, 0, 1, 1, 0, 0, 0, 0, 0, np.nan]),
        "risk_24": np.array([0.9, 0.8, 0.7, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 1.0]),
        "subject_id": np.arange(10),
    }
    found = _top(columns, 24, 3 / 9)
    assert found["ppv"]["mean"] == pytest.approx(2 / 3)
    assert found["sensitivity"]["mean"] == pytest.approx(2 / 3)
    tied = _top(columns, 24, 4 / 9)  # the fourth place is shared by an event and a non-event
    assert tied["ppv"]["mean"] == pytest.approx(2.5 / 4)
    assert tied["sensitivity"]["mean"] == pytest.approx(2.5 / 3)


@pytest.mark.parametrize("name", ["clayton", "independent", "grid"])
def test_an_endpoint_that_is_present_leaves_the_marginal_likelihood_of_the_other(name):
    rows = some_rows(200, seed=3)
    steps = Preprocessing((), (), (), (), limit=10.0, time_scale=1.0)
    y = leave_out_times(_scaled(rows, steps), rows.at_risk)
    margins = [cs.Weibull(1.3, 2.0), cs.Weibull(0.8, 3.0)]
    edges = np.array([0.0, 1.0, 2.0, 5.0])
    weights = np.arange(1.0, 17.0).reshape(1, 4, 4)
    F = {
        "clayton": lambda: cs.Copula("clayton", margins, 1.5),
        "independent": lambda: cs.Independent(margins),
        "grid": lambda: cs.JointGrid(edges, weights / weights.sum(), tail=0.5),
    }[name]()
    one = rows.present.sum(axis=1) == 1
    assert one.sum() > 20
    found = np.asarray(F.log_likelihood(y.time, y.event))
    for j in (0, 1):
        only = one & rows.at_risk[:, j]
        margin = F.marginal(j)
        t, event = steps.scaled(rows.time[only, j]), rows.event[only, j]
        n = len(t)
        density = np.array([float(np.ravel(margin.logpdf(v))[0]) for v in t])
        survival = np.array([float(np.ravel(margin.logsf(v))[0]) for v in t])
        np.testing.assert_allclose(found[only], np.where(event, density, survival), rtol=1e-6, atol=1e-9)
        assert n == len(density)


# Stages


def test_every_method_is_trained_and_scored(finished):
    _, out, _ = finished
    results = json.loads((out / "evaluation" / "results" / "results.json").read_text(encoding="utf-8"))
    assert set(results["methods"]) == set(METHODS)
    assert set(results["differences"]) == set(METHODS) - {"censored"}
    rows = open_build(out).rows("test", TINY.test_rows, seed=TINY.seed)
    at_risk = rows.at_risk
    assert results["rows"]["joint"] == at_risk.any(axis=1).sum()
    assert results["rows"]["urine"] == at_risk[:, 1].sum()
    assert results["rows"]["brier_6"] == at_risk.all(axis=1).sum()
    for found in results["methods"].values():
        assert all(0 < found[what]["mean"] < 200 for what in ("joint", "creatinine", "urine"))
        assert all(0 <= found[f"brier_{h}"]["mean"] <= 1 for h in (6, 12, 24, 48))
        assert found["joint"]["patients"] == len(np.unique(rows.subject_id[at_risk.any(axis=1)]))


def test_no_method_beats_the_distribution_that_the_stays_were_drawn_from(finished):
    _, out, text = finished
    results = json.loads((out / "evaluation" / "results" / "results.json").read_text(encoding="utf-8"))
    assert set(results["excess"]) == set(METHODS)
    for name, found in results["excess"].items():
        for what in ("joint", "creatinine", "urine", "brier_6", "brier_12", "brier_24", "brier_48"):
            assert found[what]["mean"] > 0
            less = results["methods"][name][what]["mean"] - results["truth"][what]["mean"]
            assert found[what]["mean"] == pytest.approx(less)
    assert text.count(">Truth<") == 5
    assert "Losses less those of the true distribution" in text


def test_a_second_run_trains_nothing(finished):
    _, out, _ = finished
    lines: list[str] = []
    stages = train(out, TINY, say=lines.append)
    assert all(stage.skipped for stage in stages.values())
    evaluate(out, say=lines.append)
    assert not [line for line in lines if line.endswith("started")]
    assert not list((out / "checkpoints").iterdir())


def test_results_of_another_kind_of_device_are_not_reused(finished, tmp_path, monkeypatch):
    _, out, _ = finished
    again = shutil.copytree(out, tmp_path / "again")
    assert train(again, TINY, ["weibull"])["weibull"].skipped
    monkeypatch.setattr(training, "device_kind", lambda device: "cuda")
    stage = train(again, TINY, ["weibull"], device="cpu")["weibull"]
    assert not stage.skipped
    assert stage.summary["device"] == "cuda"
    lines: list[str] = []
    evaluate(again, device="cpu", say=lines.append)  # models of both kinds, sampled on the CPU
    started = [line.removesuffix(": started") for line in lines if line.endswith("started")]
    assert started == ["evaluation/weibull", "evaluation/results"]
    monkeypatch.setattr(evaluation, "device_kind", lambda device: "cuda")
    lines.clear()
    evaluate(again, device="cpu", say=lines.append)
    again = [line.removesuffix(": started") for line in lines if line.endswith("started")]
    assert again == [*(f"evaluation/{name}" for name in METHODS), "evaluation/results"]


def test_interrupted_training_is_not_taken_for_finished(finished, tmp_path, monkeypatch):
    database, *_ = finished
    build(database, tmp_path)
    method = type(METHODS["censored"])
    whole = method.fit

    def interrupted(self, model, *args):
        whole(self, model, *args)
        model.history_.interrupted = True

    monkeypatch.setattr(method, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, TINY, ["censored"])
    assert not (tmp_path / "models" / "censored").exists()
    monkeypatch.setattr(method, "fit", whole)
    assert not train(tmp_path, TINY, ["censored"])["censored"].skipped


def test_steps_out_of_order_say_what_to_run(finished, tmp_path):
    database, out, _ = finished
    with pytest.raises(InvalidInputError, match="run build"):
        train(tmp_path, TINY)
    build(database, tmp_path)
    with pytest.raises(InvalidInputError, match="run train"):
        evaluate(tmp_path)
    with pytest.raises(InvalidInputError, match="run evaluate"):
        report(tmp_path)
    with pytest.raises(InvalidInputError, match="Unknown methods \\['magic'\\]"):
        train(out, TINY, ["magic"])
    with pytest.raises(InvalidInputError, match=r"preset must be .* got 'huge'"):
        train(out, "huge")


def test_a_build_that_is_half_new_is_not_opened(finished, tmp_path):
    database, *_ = finished
    build(database, tmp_path)

    def stop(line: str) -> None:
        if line == "rows/0000: started":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(database, tmp_path, AkiSettings(rows=RowSettings(window_hours=24)), say=stop)
    open_build(tmp_path)  # nothing was replaced yet
    with pytest.raises(KeyboardInterrupt):
        build(database, tmp_path, AkiSettings(rows=RowSettings(stays_per_part=100)), say=stop)
    with pytest.raises(InvalidInputError, match="unfinished build"):
        open_build(tmp_path)


def test_rows_lie_on_disk_and_are_those_of_the_parquet_files(finished):
    import duckdb

    _, out, _ = finished
    side = open_build(out)
    rows = side.rows("validation")
    assert isinstance(rows.X.base, np.memmap)
    assert not rows.X.flags.writeable
    chosen = f"SELECT stay_id FROM '{out}/split/split.parquet' WHERE split = 'validation'"
    found = (
        duckdb.connect()
        .execute(
            f"SELECT * FROM '{out}/rows/*/rows.parquet' WHERE stay_id IN ({chosen}) "
            "AND NOT (creatinine_present AND urine_present) ORDER BY stay_id, elapsed_hours"
        )
        .fetchnumpy()
    )
    assert len(rows) == len(found["stay_id"]) > 500
    rows = rows.take(np.lexsort([rows.elapsed, rows.stay_id]))  # they come part by part
    assert np.array_equal(rows.stay_id, found["stay_id"])
    assert np.array_equal(rows.time[:, 1], found["urine_time"])
    assert np.array_equal(rows.event[:, 0], found["creatinine_event"])
    raw = np.column_stack([np.ma.filled(found[name].astype(float), np.nan) for name in FEATURES])
    assert np.array_equal(rows.X, side.preprocessing.transform(raw))
    rows.outcome()


def test_rows_are_drawn_per_stay_and_in_all(finished):
    _, out, _ = finished
    side = open_build(out)
    everything = side.rows("train")
    few = side.rows("train", per_stay=5, seed=1)
    assert everything.at_risk.any(axis=1).all()
    counts = np.unique(everything.stay_id, return_counts=True)[1]
    assert len(few) == np.minimum(counts, 5).sum()
    assert len(side.rows("train", at_most=100, per_stay=5)) == 100
    assert np.array_equal(few.X, side.rows("train", per_stay=5, seed=1).X)
    assert not np.array_equal(few.elapsed, side.rows("train", per_stay=5, seed=2).elapsed)


# Page


def test_the_page_holds_the_tables_and_needs_nothing_else(finished):
    *_, text = finished
    for label in (method.label for method in METHODS.values()):
        assert text.count(label) >= 6
    assert "30.933" in text
    assert "0.0%" not in text.split("<style>")[0]
    assert len(re.findall("<img ", text)) >= 5
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!data:)", text)
    assert "http" not in re.sub(r"data:image[^']*|http-equiv", "", text)


def test_the_page_shows_no_patient_and_no_small_count_unless_told(finished, tmp_path):
    _, out, text = finished
    text = re.sub(r"data:image[^']*", "", text)
    assert not re.search(r"\b[123]00\d{5}\b", text)  # subject, admission and stay numbers
    counts = re.findall(r"<td>([\d,]+)</td>", text.split("<h2>Endpoints")[0])
    assert counts
    assert all(int(count.replace(",", "")) % 10 == 0 for count in counts)
    assert "under 10" in text
    revealed = report(out, reveal=True).read_text("utf-8")
    assert "for private use" in revealed
    assert "under 10" not in revealed
    assert "after admission, risk" not in text


def test_a_legend_names_what_is_drawn_and_says_what_is_withheld():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from censcore_studies.aki.figures import _calibration, _risk

    few, some = np.full(10, np.nan), np.r_[0.5, np.nan, 0.3, np.zeros(7)]
    fig, axes = pyplot.subplots(1, 4)
    _risk(np.r_[few[:2], np.zeros(8)], some, axes[0])
    legend = axes[0].get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["no AKI by then: 1 of 3 bars withheld", "AKI by then: all bars withheld"]
    assert [handle.get_alpha() > 0 for handle in legend.legend_handles] == [True, False]
    _risk(np.zeros(10), some / 2, axes[1])  # nobody had an event: no bar, nothing withheld
    assert axes[1].get_legend().get_texts()[1].get_text() == "AKI by then: none"
    one = np.r_[0.4, few[1:]]
    curve = np.r_[np.linspace(0.1, 0.9, 8), np.nan, np.nan]
    _calibration({"censored": (curve, curve), "naive": (one, one)}, {"censored": "C", "naive": "N"}, axes[2])
    assert [text.get_text() for text in axes[2].get_legend().get_texts()] == ["C"]
    assert axes[2].texts[0].get_text() == "C: 2 of 10 withheld\nN: withheld"
    _calibration({"naive": (one, one)}, {"naive": "N"}, axes[3])  # one point is no curve
    assert "withheld" in axes[3].texts[0].get_text()
    pyplot.close(fig)


def test_a_side_of_few_patients_shows_no_rates(finished, tmp_path):
    _, out, text = finished
    again = shutil.copytree(out, tmp_path / "again")
    page = _Page(open_build(again), reveal=False)
    assert re.search(r">validation</th>(<td>[^–<]+</td>){6}", page._endpoints())
    page.build.summary["split"]["sides"]["validation"]["patients"] = 9
    assert re.search(r">validation</th><td>[\d,]+</td>(<td>–</td>){5}", page._endpoints())
    page.reveal = True
    assert "–" not in page._endpoints()
    assert "are the paper's, on MIMIC-IV" in text


# Tables


def test_tables_are_the_results_and_hold_back_what_rests_on_few(finished):
    pytest.importorskip("pandas")
    from censcore_studies.aki.tables import study_tables

    _, out, _ = finished
    results = json.loads((out / "evaluation" / "results" / "results.json").read_text(encoding="utf-8"))
    shown = {table.name: table for table in study_tables(out, reveal=True)}
    energy = shown["energy"].rows.set_index("method")
    assert list(energy.index) == [*(method.label for method in METHODS.values()), "Truth"]
    excess = shown["excess"].rows.set_index("method")
    assert excess.loc["Censored", "joint"] == results["excess"]["censored"]["joint"]["mean"]
    assert energy.loc["Naive", "urine"] == results["methods"]["naive"]["urine"]["mean"]
    assert energy.loc["Censored", "joint_printed"] == 30.933
    utility = shown["utility"].rows.set_index(["horizon", "method"])
    assert len(utility) == 4 * (len(METHODS) + 1)
    found = results["methods"]["clayton"]["sensitivity_12_10"]
    assert utility.loc[("12 h", "Clayton Weibull"), "sensitivity_10"] == found["mean"]
    differences = shown["differences"].rows.set_index("method")
    assert (
        differences.loc["Naive", "brier_48_error"]
        == (results["differences"]["naive"]["brier_48"]["standard_error"])
    )
    withheld = {table.name: table for table in study_tables(out)}["utility"].rows
    scored = [*(results["methods"][name] for name in METHODS), results["truth"]]
    few = [found[f"ppv_{horizon}_5"]["patients"] < 10 for horizon in (6, 12, 24, 48) for found in scored]
    assert 0 < sum(few) < len(few)
    assert withheld["ppv_5"].isna().tolist() == few


@pytest.mark.slow
def test_censored_engression_beats_the_naive_one(tmp_path):
    """The paper's finding, on the synthetic database: every localized score, by paired intervals."""
    database = write_synthetic_database(tmp_path / "database", stays=1500, seed=1)
    run_all(database, tmp_path / "out", "quick", ["naive", "censored"])
    results = json.loads(
        (tmp_path / "out" / "evaluation" / "results" / "results.json").read_text(encoding="utf-8")
    )
    for what, found in results["differences"]["naive"].items():
        assert found["mean"] > 3 * found["standard_error"], what
