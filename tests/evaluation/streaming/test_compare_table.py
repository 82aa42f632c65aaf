"""A comparison of a table in batches is that of the table in memory."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.evaluation.streaming.tables import assert_same, make_table

import censcore as cs
from censcore.evaluation.decisions.forecast_columns import forecasts_of
from censcore.evaluation.parts.batches.runners import Runner
from censcore.evaluation.parts.batches.sums import Keyed, PartialSums
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError
from censcore.tables import Batches

KM = cs.Censoring(cs.KaplanMeier())
BY_SITE = cs.Censoring(cs.KaplanMeier(stratify="site"))
SCORES = ["integrated_brier_score:ipcw", "crps", "brier_score:ipcw", "log_score"]


def in_memory(table, C=KM, **options):
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy())
    for name in ("groups", "sample_weight", "by"):
        if name in options:
            options[name] = table[options[name]].rename(options[name])
    X = table[["site"]]
    return cs.compare(forecasts_of(table, ("t", "d")), y, C, X=X, discrimination=False, **options)


def in_batches(data, C=KM, rows=180, **options):
    options.setdefault("discrimination", False)
    executed = {name: options.pop(name) for name in ("n_jobs", "store") if name in options}
    return cs.compare("columns", cs.OutcomeTable(data, "t", "d", rows=rows, **executed), C, **options)


@pytest.fixture(scope="module")
def train() -> tuple[pd.DataFrame, cs.RightCensored]:
    other = make_table(300, seed=1)
    return other[["site"]], cs.RightCensored(other["t"].to_numpy() + 0.5, other["d"].to_numpy())


def test_sums_by_keys_of_more_combinations_than_integers():
    rng = np.random.default_rng(0)
    keys = tuple(rng.permutation(70_000).astype(float) for _ in range(4))  # 2.4e19 combinations
    twice = tuple(np.tile(key, 2) for key in keys)
    sums = Keyed.of(twice, np.ones((140_000, 1)))
    order = np.lexsort(keys[::-1])
    np.testing.assert_array_equal(sums.keys, [key[order] for key in keys])
    assert (sums.values == 2).all()


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (KM, {"scores": "all"}),
        (BY_SITE, {"scores": SCORES, "by": "site"}),
        (KM, {"scores": SCORES, "groups": "clinic", "sample_weight": "w", "by": "site"}),
        (
            cs.Exponential(1 / 300),
            {"scores": SCORES, "horizon": 250.0, "by": "site", "groups": "clinic", "sample_weight": "w"},
        ),
    ],
    ids=["all scores", "strata", "clusters and weights", "known C, clusters and weights"],
)
def test_batches_give_what_memory_gives(table, C, options):
    assert_same(in_memory(table, C, **options), in_batches(table, C, **options))


@pytest.mark.parametrize(
    ("C", "options"), [(KM, {}), (BY_SITE, {"groups": "clinic"})], ids=["pooled", "strata, clusters"]
)
def test_training_subjects_and_a_reference(table, train, C, options):
    options = {"train": train, "scores": SCORES, **options}
    assert_same(in_memory(table, C, **options), in_batches(table, C, **options))


def test_any_size_of_batches_gives_the_same(table):
    whole = in_batches(table, rows=10_000, scores=SCORES)
    assert_same(whole, in_batches(table, rows=53, scores=SCORES))


def test_known_censoring_times_and_no_censoring(table):
    table = table.assign(c=np.where(table["d"] == 1, table["t"] + 30.0, table["t"]))
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy(), table["c"].to_numpy())
    forecasts = forecasts_of(table, ("t", "d", "c"))
    memory = cs.compare(forecasts, y, scores=SCORES, discrimination=False)
    data = cs.OutcomeTable(table, "t", "d", censoring_time="c", rows=200)
    assert_same(memory, cs.compare("columns", data, scores=SCORES, discrimination=False))
    seen = table[table["d"] == 1]
    memory = cs.compare(
        forecasts_of(seen, ("t", "d", "c")), cs.RightCensored(seen["t"].to_numpy(), seen["d"].to_numpy()),
        scores=SCORES, discrimination=False,
    )  # fmt: skip
    assert_same(
        memory, cs.compare("columns", cs.OutcomeTable(seen, "t", "d"), scores=SCORES, discrimination=False)
    )


def test_functions_of_rows_and_distributions_for_all(table):
    models = {"weibull": lambda rows: cs.Weibull(1.5, rows["scale"]), "one": cs.Weibull(1.5, 110.0)}
    data = cs.OutcomeTable(table, "t", "d", rows=300)
    found = cs.compare(
        {**models, "good": "good"}, data, KM, scores="crps", discrimination=False, horizon=250.0
    )
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy())
    given = {
        "weibull": cs.Weibull(1.5, table["scale"].to_numpy()), "one": models["one"],
        "good": forecasts_of(table, ("t", "d"))["good"],
    }  # fmt: skip
    memory = cs.compare(given, y, KM, scores="crps", discrimination=False, horizon=250.0)
    # the quadrature of smooth forecasts has nodes of its own in every batch
    np.testing.assert_allclose(found.frame()["mean"], memory.frame()["mean"], rtol=1e-9)
    np.testing.assert_allclose(found.frame()["standard_error"], memory.frame()["standard_error"], rtol=1e-9)


def test_files_in_parts_give_what_the_frame_gives(table, tmp_path):
    pytest.importorskip("pyarrow")
    whole = in_batches(table, scores=SCORES, by="site", groups="clinic")
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(folder / f"{i}.parquet", row_group_size=90)
    assert_same(whole, in_batches(folder, scores=SCORES, by="site", groups="clinic"))
    assert_same(whole, in_batches(str(folder / "*.parquet"), scores=SCORES, by="site", groups="clinic"))
    quoted = table.assign(note='says "so",\nand goes on')
    quoted.to_csv(tmp_path / "table.csv", index=False)
    found = in_batches(tmp_path / "table.csv", scores=SCORES, by="site", groups="clinic", rows=130)
    assert_same(whole, found)


def test_processes_give_the_same(table, tmp_path):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet", row_group_size=250)
    whole = in_batches(tmp_path / "table.parquet", scores="crps")
    assert_same(whole, in_batches(tmp_path / "table.parquet", scores="crps", rows=250, n_jobs=2))


def test_killed_processes_lose_nothing(monkeypatch):
    """Each pool gives two results and breaks, as it does where a process is killed."""
    import joblib

    class Breaking:
        def __init__(self, **options):
            assert options["n_jobs"] == 2

        def __call__(self, tasks):
            for number, (function, args, _) in enumerate(tasks):
                if number == least:
                    raise BrokenProcessPool
                yield function(*args)

    monkeypatch.setattr(joblib, "Parallel", Breaking)
    monkeypatch.setenv("CENSCORE_THREADS", "1")
    least = 2
    numbers = Batches.of(range(5))
    assert list(Runner(2).each(lambda batch: 2 * batch, numbers, "")) == [0, 2, 4, 6, 8]
    least = 0  # a batch that kills every process is not tried for ever
    with pytest.raises(BrokenProcessPool):
        list(Runner(2).each(lambda batch: 2 * batch, numbers, ""))


def test_dask_frames_give_the_same(table):
    dd = pytest.importorskip("dask.dataframe")
    whole = in_batches(table, scores="crps", groups="clinic")
    assert_same(whole, in_batches(dd.from_pandas(table, npartitions=5), scores="crps", groups="clinic"))


def test_a_run_that_was_stopped_goes_on(table, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet", row_group_size=100)
    data = {"data": tmp_path / "table.parquet", "rows": 100, "scores": "crps", "store": tmp_path / "store"}
    written = []
    write = PartialSums.write

    def stops(sums, path):
        if len(written) == 7:
            raise KeyboardInterrupt
        written.append(path)
        write(sums, path)

    monkeypatch.setenv("CENSCORE_KERNELS", "never")  # the same sums to the last bit
    with monkeypatch.context() as patched:
        patched.setattr(PartialSums, "write", stops)
        with pytest.raises(KeyboardInterrupt):
            in_batches(**data)
    stored = sorted((tmp_path / "store").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(stored) == 7
    first = in_batches(**data)
    assert set(stored) < set((tmp_path / "store").iterdir())
    assert_same(first, in_batches(table, scores="crps"))
    count = len(list((tmp_path / "store").iterdir()))
    stored[0].write_bytes(b"damaged")
    assert_same(first, in_batches(**data))
    assert len(list((tmp_path / "store").iterdir())) == count
    in_batches(**{**data, "horizon": 200.0})  # other settings are other sums; counts are the same
    assert len(list((tmp_path / "store").iterdir())) == count + 10


def test_infinite_losses_are_counted(table):
    table = table.copy()
    table.loc[:2, ["t", "d"]] = [30.0, 1]
    table.loc[:2, [name for name in table if name.startswith("poor__sf")]] = 1.0
    with np.errstate(invalid="ignore"):
        memory, found = (compare(table, scores=["log_score", "crps"]) for compare in (in_memory, in_batches))
    assert_same(memory, found)
    assert (found.frame().query("score == 'log_score' and model == 'poor'")["infinite"] == 3).all()


def test_text_page_and_json(table, tmp_path):
    found = in_batches(table, scores=SCORES, discrimination=True)
    assert "500 subjects" in repr(found)
    assert any("all pairs of subjects" in note for note in found.notes)
    assert found.to_html(tmp_path / "page.html") is None
    assert "Differences" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"verdict"' in found.to_json()
    with pytest.raises(InvalidInputError, match="'calibration' needs the subjects in memory"):
        found.plot("calibration")
    with pytest.raises(InvalidInputError, match="sample in memory"):
        found.net_benefit()


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"data": "nowhere.parquet"}, InvalidInputError, "There is no file nowhere.parquet"),
        ({"time": "days"}, InvalidInputError, "there is no column days"),
        ({"censoring": None}, MissingCensoringError, "subjects are censored"),
        ({"censoring": cs.Censoring(cs.CoxRegression())}, InvalidInputError, "CoxRegression.* and no train="),
        ({"censoring": cs.Censoring(cs.KaplanMeier(), cv=5)}, InvalidInputError, "out of fold"),
        ({"censoring": "cox"}, InvalidInputError, "got .cox., expected .auto."),
        ({"censoring": cs.Exponential(np.ones(3))}, InvalidInputError, "for given subjects"),
        ({"groups": np.ones(3)}, InvalidTypeError, "groups: got ndarray, expected the name of a column"),
        ({"forecasts": "models"}, InvalidTypeError, "forecasts: got str"),
        ({"forecasts": ["better"]}, InvalidInputError, "no model 'better'"),
        ({"forecasts": {"a": 3.0}}, InvalidTypeError, "got float, expected a function"),
        ({"reference": "cox"}, InvalidInputError, "reference: got 'cox'"),
        ({"X": np.ones((3, 1))}, InvalidInputError, "X: not available for a table"),
        ({"rows": 0}, InvalidInputError, "rows must be a whole number from 1 .*; got 0"),
    ],
)
def test_what_cannot_be_done_says_so(table, change, error, match):
    options = {"forecasts": "columns", "censoring": KM, "data": table, "time": "t", "rows": 100, **change}

    def compared():
        data = cs.OutcomeTable(options.pop("data"), options.pop("time"), "d", rows=options.pop("rows"))
        cs.compare(options.pop("forecasts"), data, **options)

    with pytest.raises(error, match=match):
        compared()


def test_a_table_has_no_landmarks(table):
    with pytest.raises(InvalidInputError, match="landmarks: not available for a table"):
        cs.compare_landmarks("columns", cs.OutcomeTable(table, "t", "d"), KM, landmarks=[1.0])


def test_bad_rows_are_named_by_their_place(table, tmp_path):
    pytest.importorskip("pyarrow")
    table = table.copy()
    table.loc[450, "t"] = -1.0
    table.to_parquet(tmp_path / "table.parquet", row_group_size=200)
    with pytest.raises(InvalidInputError, match=r"table.parquet, 100 rows from 0 on: "):
        in_batches(tmp_path / "table.parquet", rows=200)


def test_many_distinct_times_are_an_error_with_advice(table, monkeypatch):
    from censcore.evaluation.parts.batches import counts

    monkeypatch.setattr(counts, "DISTINCT", 50)
    with pytest.raises(InvalidInputError, match="Round the times"):
        in_batches(table)


@pytest.fixture(scope="module")
def sample() -> tuple[pd.DataFrame, cs.RightCensored]:
    """Training subjects with covariates, none of whom is scored."""
    other = make_table(300, seed=1).assign(t=lambda frame: frame["t"] + 0.5)
    return other[["w", "scale"]], cs.RightCensored(other["t"].to_numpy(), other["d"].to_numpy())


@pytest.mark.parametrize(
    ("before", "options"),
    [
        (False, {}),
        (True, {"horizon": 200.0, "by": "site", "groups": "clinic"}),
        (False, {"horizon": 200.0, "sample_weight": "w"}),
    ],
    ids=["fitted here", "fitted before, clusters and subgroups", "weights"],
)
def test_cox_regression_of_the_censoring_time(table, sample, before, options):
    C, options = cs.Censoring(cs.CoxRegression()), {"scores": SCORES, "reference": None, **options}
    fitted = C.fit(*sample) if before else C
    options |= {} if before else {"train": sample}
    labels = {name: table[options[name]].rename(options[name]) for name in ("groups", "sample_weight", "by")
              if name in options}  # fmt: skip
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy())
    X, given = table[["w", "scale"]], forecasts_of(table, ("t", "d"))
    memory = cs.compare(given, y, fitted, X=X, discrimination=False, **{**options, **labels})
    streamed = in_batches(table, fitted, **options)
    assert_same(memory, streamed)
    assert streamed.method == memory.method
    ours, theirs = memory.censoring, streamed.censoring
    assert (ours.events_in, ours.beyond, ours.conditional) == (theirs.events_in, theirs.beyond, True)
    assert theirs.safe_horizon == pytest.approx(ours.safe_horizon)
    assert theirs.weights == pytest.approx(ours.weights, rel=0.01)
    assert theirs.effective == pytest.approx(ours.effective, rel=0.01)


def test_other_regressions_are_taken_as_known_and_say_so(table, sample, tmp_path):
    pytest.importorskip("pyarrow")
    C, options = cs.Censoring(cs.WeibullRegression()), {"scores": "crps", "horizon": 200.0, "reference": None}
    table.to_parquet(tmp_path / "table.parquet", row_group_size=200)
    found = in_batches(tmp_path / "table.parquet", C, train=sample, store=tmp_path / "store", **options)
    assert any("take the censoring distribution (WeibullRegression) as known" in note for note in found.notes)
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy())
    known = clone(C).fit(*sample).predict_distribution(table[["w", "scale"]])
    memory = cs.compare(forecasts_of(table, ("t", "d")), y, known, discrimination=False, **options)
    assert_same(memory, found)
    again = in_batches(tmp_path / "table.parquet", clone(C).fit(*sample), store=tmp_path / "store", **options)
    assert_same(memory, again)


def test_kaplan_meier_that_was_fitted_before_is_not_fitted_again(table, sample):
    C = cs.Censoring(cs.KaplanMeier()).fit(None, sample[1])
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy())
    options = {"scores": SCORES, "reference": None}
    memory = cs.compare(forecasts_of(table, ("t", "d")), y, C, discrimination=False, **options)
    found = in_batches(table, C, **options)
    assert_same(memory, found)
    assert any("pass the estimator without fitting it" in note for note in found.notes)
    grouped = {**options, "groups": "clinic"}
    memory = cs.compare(
        forecasts_of(table, ("t", "d")), y, C, discrimination=False, **{**grouped, "groups": table["clinic"]}
    )
    assert_same(memory, in_batches(table, C, **grouped))


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (KM, {"scores": "all"}),
        (BY_SITE, {"scores": SCORES, "by": "site", "sample_weight": "w", "groups": "clinic"}),
        (cs.Exponential(1 / 300), {"scores": SCORES, "horizon": 250.0}),
    ],
    ids=["all scores", "strata, clusters and weights", "known C"],
)
def test_delayed_entry(table, C, options):
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy(), entry=table["since"].to_numpy())
    labels = {name: table[options[name]].rename(options[name]) for name in ("groups", "sample_weight", "by")
              if name in options}  # fmt: skip
    given, X = forecasts_of(table, ("t", "d", "since")), table[["site"]]
    memory = cs.compare(given, y, C, X=X, discrimination=False, **{**options, **labels})
    data = cs.OutcomeTable(table, "t", "d", rows=180, entry="since")
    streamed = cs.compare("columns", data, C, discrimination=False, **options)
    assert_same(memory, streamed)
    entered = [note for note in memory.notes if "Delayed entry" in note]
    assert len(entered) == 1
    assert entered[0] in streamed.notes
    assert streamed.censoring.weights["largest"] == pytest.approx(memory.censoring.weights["largest"])


def test_training_subjects_who_enter_late(table, train):
    X, y = train
    late = cs.RightCensored(y.time, y.event, entry=np.where(y.time > 40, 20.0, 0.0))
    options = {"train": (X, late), "scores": "crps"}
    assert_same(in_memory(table, **options), in_batches(table, **options))


def test_subjects_without_a_label_are_a_subgroup_as_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    T, C = rng.exponential(1.0, n), rng.uniform(0, 3, n)
    frame = pd.DataFrame({"time": np.minimum(T, C), "event": (T <= C).astype(int)})
    frame["site"] = np.where(np.arange(n) % 7 == 0, None, np.where(np.arange(n) % 2, "a", "b"))
    frame["ward"] = np.where(np.arange(n) % 9 == 0, np.nan, np.arange(n) % 3)
    frame.to_parquet(tmp_path / "table.parquet")
    forecasts = {"one": cs.Exponential(1.0), "other": cs.Exponential(1.3)}
    options = {"scores": "crps", "horizon": 2.0, "discrimination": False}
    y = cs.RightCensored.from_frame(frame)
    memory = cs.compare(forecasts, y, cs.Uniform(0.0, 3.0), X=frame, by=["site", "ward"], **options).frame()
    table = cs.OutcomeTable(tmp_path / "table.parquet", time="time", event="event", rows=64)
    stream = cs.compare(forecasts, table, cs.Uniform(0.0, 3.0), by=["site", "ward"], **options).frame()
    assert {"missing"} == set(memory[memory.by == "site"].group) - {"a", "b"}
    keys = ["by", "group", "model"]
    both = memory.merge(stream, on=keys, suffixes=("", "_stream"))
    assert len(both) == len(memory) == len(stream)
    np.testing.assert_allclose(both["mean"], both["mean_stream"], rtol=1e-9)
    np.testing.assert_allclose(both["standard_error"], both["standard_error_stream"], rtol=1e-9)


def test_sums_under_another_fit_of_the_censoring_distribution_are_not_taken_from_the_store(
    table, sample, tmp_path
):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet", row_group_size=200)
    X, y = sample
    options = {"scores": "crps", "horizon": 200.0, "reference": None}
    C, other = cs.Censoring(cs.CoxRegression()), (X.iloc[::-1].reset_index(drop=True), y)
    for train in (sample, other):
        stored = in_batches(tmp_path / "table.parquet", C, train=train, store=tmp_path / "store", **options)
        assert_same(in_batches(table, C, train=train, **options), stored)
