"""Training on data that are read in batches: units of all subjects, each visited once, bounded memory."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from benchmarks.growth import MEASURABLE, printed_by

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, ModelFileError

torch = pytest.importorskip("torch", reason="networks need the extra 'torch'")

from tests.learning.small_trainings import SMALL, engression, in_batches, likelihood, sample, weights_of  # noqa: E402

from censcore.estimators.counted_follow_up import CountedTimes  # noqa: E402
from censcore.learning.data.first_pass import Moments, Reservoir  # noqa: E402
from censcore.learning.data.sources import Block, as_source  # noqa: E402
from censcore.learning.data.streamed import StreamedRows  # noqa: E402
from censcore.learning.engression import loss as quantiles  # noqa: E402


@pytest.fixture
def files(tmp_path):
    """A data set of two files with three row groups each, and its subjects in memory."""
    pytest.importorskip("pyarrow", reason="Parquet files need the extra 'cli'")
    data = sample()
    frame = pd.DataFrame(data.X, columns=[f"x{i}" for i in range(data.X.shape[1])])
    frame[["t1", "t2"]], frame[["d1", "d2"]] = data.y.time, data.y.event
    for i in range(2):
        part = frame.iloc[300 * i : 300 * (i + 1)]
        part.to_parquet(tmp_path / f"part{i}.parquet", row_group_size=100, index=False)
    return tmp_path / "*.parquet", frame, data


def table(data, **settings):
    return cs.TrainingTable(data, ["t1", "t2"], ["d1", "d2"], rows=100, **settings)


# ---- quantiles of C ------------------------------------------------------------------------------------


@pytest.mark.parametrize("censoring", [None, cs.KaplanMeier(stratify=0), cs.CoxRegression()])
def test_quantiles_by_batch_give_the_model_of_the_table(censoring, monkeypatch):
    data = sample(300)
    X = data.X.copy()
    X[:, 0] = X[:, 0] > 0
    models = []
    for kept in (2**24, 0):
        monkeypatch.setattr(quantiles, "_KEPT", kept)
        models.append(engression(**SMALL).fit(X, data.y, censoring=censoring))
    np.testing.assert_array_equal(*[weights_of(model) for model in models])


def test_a_large_table_of_quantiles_is_not_kept(monkeypatch):
    monkeypatch.setattr(quantiles, "_KEPT", 10_000)
    y = sample(400).y
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    found = quantiles.censoring_quantiles(y, C, lambda t: t)
    assert isinstance(found, quantiles.CensoringQuantiles)
    assert found.shape == (400, 64, 1)
    assert found.nbytes == 400 * 64 * 4
    monkeypatch.undo()
    whole = quantiles.censoring_quantiles(y, C, lambda t: t)
    assert isinstance(whole, torch.Tensor)
    torch.testing.assert_close(found[:], whole, rtol=0, atol=0)
    torch.testing.assert_close(found.take(np.array([7, 3])).take(slice(1, 2))[:], whole[[3]], rtol=0, atol=0)
    torch.testing.assert_close(found.to(torch.device("cpu")), whole, rtol=0, atol=0)


def test_a_thinned_curve_rounds_up(rng):
    y = cs.RightCensored(rng.exponential(size=1000), np.ones(1000, dtype=bool))
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    thin, t = curve.thinned(100), np.linspace(0, 8, 500)[None]
    difference = thin.sf(t) - curve.sf(t)
    assert difference.min() >= 0
    assert 0 < difference.max() < 0.0101
    assert (thin.sf_left(y.time[None]) > 0).all()
    assert curve.thinned(1000) is curve


# ---- the first pass ------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["scale", "log1p"])
@pytest.mark.parametrize("censoring", ["uniform", "componentwise", "administrative"])
def test_units_and_censoring_are_those_of_all_subjects(transform, censoring):
    data = sample(censoring=censoring)
    y = data.y_known if censoring == "administrative" else data.y
    whole = engression(**SMALL, time_transform=transform).fit(data.X, y)
    parts = engression(**SMALL, time_transform=transform).fit_batches(in_batches(data.X, y, 70))
    np.testing.assert_allclose(parts._center, whole._center, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(parts._spread, whole._spread, rtol=1e-5)
    assert parts._times.unit == pytest.approx(whole._times.unit, rel=1e-12)
    np.testing.assert_allclose(parts._times.centre, whole._times.centre, rtol=1e-6)
    np.testing.assert_array_equal(parts.follow_up_, whole.follow_up_)
    if censoring == "administrative":  # known for every subject
        assert parts.censoring_ is None
        return
    for j in range(whole.censoring_.k):
        t = np.linspace(0, 4, 40)[None]
        found, expected = (model.censoring_.marginal(j).sf(t) for model in (parts, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow  # units, draws and weights are compared with those in memory every time
def test_the_model_is_about_as_good_as_in_memory():
    data, test = sample(1200), sample(1000, seed=1)
    settings = SMALL | {"width": 32, "noise_dim": 16, "samples": 8, "epochs": 10}
    whole = engression(**settings).fit(data.X, data.y)
    parts = engression(**settings).fit_batches(in_batches(data.X, data.y, 200))
    constant = engression(**settings).fit(None, data.y)
    gain = whole.score(test.X, test.y) - constant.score(None, test.y)
    assert gain > 0.02
    assert parts.score(test.X, test.y) > whole.score(test.X, test.y) - 0.15 * gain


def test_moments_and_counts_do_not_depend_on_the_batches(rng):
    X, time = rng.normal(5, 2, size=(1000, 3)), rng.exponential(size=1000)
    censored = rng.random(1000) < 0.3
    cuts = [0, 13, 500, 501, 1000]
    moments, counted = None, CountedTimes()
    for a, b in pairwise(cuts):
        moments = Moments.of(X[a:b]) if moments is None else moments + Moments.of(X[a:b])
        counted = counted.add(time[a:b], censored[a:b])
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.spread, X.std(axis=0), rtol=1e-12)
    whole = CountedTimes().add(time, censored)
    np.testing.assert_array_equal(counted.time, np.sort(time))
    np.testing.assert_array_equal(counted.censored, whole.censored)


def test_many_distinct_times_are_rounded_up_in_any_order(rng, monkeypatch):
    monkeypatch.setattr("censcore.estimators.counted_follow_up.DISTINCT", 200)
    time, censored = rng.exponential(size=5000), rng.random(5000) < 0.4
    orders = [np.arange(5000), rng.permutation(5000)]
    found = []
    for order in orders:
        counted = CountedTimes()
        for rows in np.array_split(order, 7):
            counted = counted.add(time[rows], censored[rows])
        found.append(counted)
    assert len(found[0].time) <= 200
    for name in ("time", "censored", "other"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))
    assert found[0].censored.sum() == censored.sum()
    assert found[0].time[-1] >= time.max()
    cumulated = (found[0].censored + found[0].other).cumsum()
    late = found[0].time[np.searchsorted(cumulated, 2500)]
    assert 1 <= late / np.sort(time)[2499] < 1.1


def test_the_reservoir_keeps_the_smallest_numbers_in_any_order(rng):
    y = cs.RightCensored(np.arange(500.0), np.ones(500, dtype=bool))
    key = rng.permutation(500).astype(np.uint64)
    for size in (40, 500):
        kept = Reservoir(size)
        for rows in np.array_split(np.arange(500), 9):
            kept.add(key[rows], Block(None, y.take(rows), None, None, 0, rows))
        found, block = kept.content()
        np.testing.assert_array_equal(found, np.arange(size))
        np.testing.assert_array_equal(key[block.y.time.astype(int)], found)


# ---- epochs --------------------------------------------------------------------------------------------


def streamed(groups=None, held_out=0, buffer=64, n=500):
    """Rows whose covariate is their number."""
    y = cs.RightCensored(np.arange(n) + 1.0, np.ones(n, dtype=bool))
    batches = [
        (np.arange(a, a + 50.0)[:, None], y[a : a + 50], None, None if groups is None else groups[a : a + 50])
        for a in range(0, n, 50)
    ]
    source = as_source(batches)
    key = np.concatenate([block.keys(0) for read in source.parts for block in read()])
    limit = int(np.sort(key)[held_out - 1]) if held_out else -1
    left = key > np.uint64(limit) if held_out else np.ones(n, dtype=bool)
    rows = StreamedRows(
        source, lambda b: {"x": torch.from_numpy(b.X)}, left.sum(), left.sum(), 0, limit, {}, buffer
    )
    return rows, np.flatnonzero(left)


def visited(rows, epoch, count=9):
    return [batch["x"][:, 0].long().tolist() for batch in rows.epoch(seed=3, epoch=epoch, count=count)]


@pytest.mark.parametrize("buffer", [1, 64, 10_000])
def test_every_training_subject_is_visited_once_an_epoch(buffer):
    rows, left = streamed(held_out=100, buffer=buffer)
    batches = visited(rows, 0)
    assert len(batches) == 9
    assert sorted(i for batch in batches for i in batch) == left.tolist()
    assert max(map(len, batches)) - min(map(len, batches)) <= 1
    assert visited(rows, 0) == batches
    assert visited(rows, 1) != batches


def test_batches_mix_subjects_of_different_parts():
    rows, _ = streamed(buffer=200)
    parts = [len({i // 50 for i in batch}) for batch in visited(rows, 0)]
    assert min(parts) >= 3


def test_groups_are_held_out_whole():
    groups = np.arange(500) // 7 % 40
    _, left = streamed(groups, held_out=90)
    held = np.setdiff1d(np.arange(500), left)
    assert not set(groups[held]) & set(groups[left])
    assert 90 <= len(held) < 110


def test_data_that_change_are_noticed():
    rows, _ = streamed()
    for n in (rows.n - 1, rows.n + 1):
        other = StreamedRows(rows.source, rows.convert, n, n, 0, -1, {}, 64)
        with pytest.raises(InvalidInputError, match="changed during training"):
            visited(other, 0)


# ---- sources -------------------------------------------------------------------------------------------


def test_files_give_the_model_of_their_batches(files):
    pattern, frame, _ = files
    covariates = frame[[name for name in frame if name.startswith("x")]]
    y = cs.RightCensored(frame[["t1", "t2"]].to_numpy(), frame[["d1", "d2"]].to_numpy())
    from_files = engression(**SMALL).fit_batches(table(pattern))
    listed = [(covariates.iloc[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    from_list = engression(**SMALL).fit_batches(listed)
    np.testing.assert_array_equal(weights_of(from_files), weights_of(from_list))
    assert from_files.feature_names_in_.tolist() == list(covariates.columns)
    from_frame = engression(**SMALL).fit_batches(table(frame))
    again = engression(**SMALL).fit_batches(lambda: iter(listed))
    assert from_frame.sample(covariates[:3], 5).shape == again.sample(covariates[:3], 5).shape == (3, 5, 2)


def test_columns_of_a_table(files):
    _, frame, _ = files
    frame["w"], frame["who"], frame["c"] = 1.0, np.arange(600) // 3, 9.0
    frame[["d1", "d2"]] = True
    named = table(frame, covariates=["x1"], sample_weight="w", groups="who", censoring_time="c")
    X, y, weight, groups = next(iter(named))
    assert list(X.columns) == ["x1"]
    assert (y.censoring_time == 9.0).all()
    assert weight.sum() == 100
    assert groups[3] == 1
    with pytest.raises(InvalidInputError, match="no column nothing"):
        table(frame, covariates=["nothing"])
    with pytest.raises(InvalidTypeError, match="list of column names"):
        table(frame, covariates="x1")
    with pytest.raises(InvalidInputError, match="rows"):
        cs.TrainingTable(frame, "t1", "d1", rows=0)


@pytest.mark.parametrize(
    ("batches", "error", "words"),
    [
        (iter([]), InvalidTypeError, "once per epoch"),
        ("data.parquet", InvalidTypeError, "TrainingTable"),
        ([], InvalidInputError, "empty"),
        ([(None,)], InvalidTypeError, r"\(X, y\)"),
        ([(np.zeros((2, 1)), cs.RightCensored([1.0], [1]))], InvalidInputError, "one per subject"),
        (lambda: iter([]), InvalidInputError, "no subject"),
    ],
)
def test_what_is_no_source_raises_an_error(batches, error, words):
    with pytest.raises(error, match=words):
        engression(**SMALL).fit_batches(batches)


def test_a_buffer_must_be_positive():
    data = sample(100)
    with pytest.raises(InvalidInputError, match="buffer"):
        engression(**SMALL).fit_batches([(data.X, data.y)], buffer=0)


# ---- what can be trained -------------------------------------------------------------------------------


@pytest.mark.parametrize("censoring", ["auto", cs.KaplanMeier(stratify=0), cs.CoxRegression()])
def test_estimators_of_the_censoring_distribution(censoring):
    data = sample()
    X = data.X.copy()
    X[:, 0] = X[:, 0] > 0
    model = engression(**SMALL).fit_batches(in_batches(X, data.y), censoring=censoring)
    whole = engression(**SMALL).fit(X, data.y, censoring=censoring)
    expected, found = (
        ("sample" if isinstance(censoring, cs.CoxRegression) else "training"),
        model.censoring_choice_,
    )
    assert expected in found
    np.testing.assert_allclose(model.follow_up_, whole.follow_up_, rtol=0.05)
    assert np.isfinite(model.score(X[:100], data.y[:100]))
    if isinstance(censoring, cs.KaplanMeier):
        t = np.linspace(0, 4, 30)[None]
        curves = [m._training_censoring.estimator.predict_distribution(X[:5]).sf(t) for m in (model, whole)]
        np.testing.assert_allclose(*curves, rtol=1e-12)


def test_other_outcomes():
    data = sample(400)
    T, C = data.T, data.C.reshape(-1)
    first, cause = np.minimum(T.min(axis=1), C), np.where(T.min(axis=1) <= C, T.argmin(axis=1) + 1, 0)
    competing = cs.CompetingRisks(first, cause, n_causes=2)
    last = np.minimum(T[:, 1], C)
    semi = cs.SemiCompetingRisks(
        np.column_stack([np.minimum(T[:, 0], last), last]),
        np.column_stack([T[:, 0] <= last, T[:, 1] <= C]),
    )
    for y, objective in ((competing, "censored"), (semi, "censored"), (data.y.marginal(0), "naive")):
        model = engression(**SMALL, objective=objective).fit_batches(in_batches(data.X, y))
        whole = engression(**SMALL, objective=objective).fit(data.X, y)
        assert model._times.unit == pytest.approx(whole._times.unit)
        np.testing.assert_array_equal(model.follow_up_, whole.follow_up_)
        assert model.predict_distribution(data.X[:3]).shape == whole.predict_distribution(data.X[:3]).shape


@pytest.mark.parametrize("kind", [cs.CopulaWeibull, cs.JointGridModel])
@pytest.mark.parametrize("hidden", [(), (16,)])
def test_likelihood_models(kind, hidden):
    data, test = sample(1000), sample(500, seed=1)
    settings = {"hidden": hidden, "epochs": 15, "learning_rate": 0.02, "random_state": 0, "solver": "adam"}
    whole = likelihood(kind, **settings).fit(data.X, data.y)
    parts = likelihood(kind, **settings).fit_batches(in_batches(data.X, data.y))
    assert parts._unit == pytest.approx(whole._unit, rel=0.1)  # that one without held-out subjects
    empty = likelihood(kind, **settings | {"epochs": 1, "learning_rate": 1e-9}).fit(data.X, data.y)
    losses = [
        cs.log_score(test.y, model.predict_distribution(test.X)).mean() for model in (whole, parts, empty)
    ]
    assert losses[1] < losses[0] + 0.15 * (losses[2] - losses[0])
    with pytest.raises(InvalidInputError, match="lbfgs"):
        kind(solver="lbfgs").fit_batches(in_batches(data.X, data.y))


def test_rare_events_are_seen_wherever_they_are():
    y = cs.RightCensored(np.full((300, 2), 2.0), np.zeros((300, 2), dtype=bool))
    y.event[290, 0] = y.event[299, 1] = True
    X = np.random.default_rng(0).normal(size=(300, 2))
    engression(**SMALL).fit_batches(in_batches(X, y))
    y.event[:] = False
    with pytest.raises(InvalidInputError, match="No subject has an event"):
        engression(**SMALL).fit_batches(in_batches(X, y))


def test_weights_count_relative_to_each_other():
    data = sample(300)
    models = []
    for weight in (None, np.full(300, 4.0), np.where(data.X[:, 0] > 0, 0.0, 1.0)):
        batches = [
            (data.X[i : i + 50], data.y[i : i + 50], None if weight is None else weight[i : i + 50])
            for i in range(0, 300, 50)
        ]
        models.append(weights_of(engression(**SMALL).fit_batches(batches)))
    np.testing.assert_allclose(models[1], models[0], rtol=1e-3, atol=1e-4)
    assert np.abs(models[2] - models[0]).max() > 1e-3


def test_validation_data_in_memory_hold_nobody_out():
    data, other = sample(300), sample(80, seed=1)
    seen = []
    model = engression(**SMALL).fit_batches(
        in_batches(data.X, data.y), eval_set=(other.X, other.y), callbacks=[lambda e, net: seen.append(e)]
    )
    assert all(epoch.validation_loss is not None for epoch in seen)
    assert model.history_.epochs[-1].validation_loss == seen[-1].validation_loss


# ---- resuming, several processes, memory ---------------------------------------------------------------


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(files, tmp_path):
    pattern, _, data = files
    settings = SMALL | {"epochs": 4}
    whole = engression(**settings).fit_batches(table(pattern))
    state = tmp_path / "state"
    stopped = engression(**settings, checkpoint=state)
    stopped.fit_batches(table(pattern), callbacks=[lambda epoch, network: epoch.epoch == 1])
    assert len(stopped.history_.epochs) == 2
    resumed = engression(**settings, checkpoint=state).fit_batches(table(pattern))
    assert len(resumed.history_.epochs) == 4
    np.testing.assert_array_equal(weights_of(resumed), weights_of(whole))
    changed = data.X.copy()
    changed[599, 0] += 1e-3
    with pytest.raises(ModelFileError, match="other data"):
        engression(**settings, checkpoint=state).fit_batches(in_batches(changed, data.y))


_MEMORY = """
import json
import sys
import numpy as np
import censcore as cs
from benchmarks.growth import grown

def batches(n):
    rng = np.random.default_rng(0)
    for _ in range(n // 2000):
        T, C = rng.exponential(size=2000).round(3), rng.uniform(0, 3, 2000).round(3)
        yield rng.normal(size=(2000, 10)), cs.RightCensored(np.minimum(T, C), T <= C)

def fit(n, held):
    data = list(batches(n)) if held else lambda: batches(n)
    model = cs.CensoredEngression(
        epochs=1, random_state=0, network=cs.learning.Network(width=8, depth=1, noise_dim=4),
        training=cs.learning.Training(samples=2, batch_size=2000, validation_fraction=0.001),
    )
    model.fit_batches(data, buffer=4000)

import censcore.learning.data.first_pass as module
module.HELD_OUT, module.SAMPLE = 1000, 2000
fit(4000, False)
print(json.dumps(grown(lambda: fit(int(sys.argv[1]), sys.argv[2] == "held"))))
"""


@pytest.mark.skipif(not MEASURABLE, reason="memory is read from /proc, on Linux")
def test_memory_does_not_grow_with_the_number_of_subjects():
    runs = (("8000", "read"), ("120000", "read"), ("120000", "held"))  # each in a fresh process
    small, large, held = (printed_by(_MEMORY, *run) for run in runs)
    covariates = 120_000 * 10 * 8  # bytes; the quantiles of C would be three times as many
    assert large - small < 0.5 * covariates, (small, large)
    assert held - small > 0.75 * covariates, (small, held)  # what is held would be noticed


# ---- times that do not count ---------------------------------------------------------------------------


def masked(n=400):
    """Subjects of whom some times do not count, twice: with the times as they were, and with others."""
    data = sample(n)
    mask = np.random.default_rng(3).random((n, 2)) < 0.7
    other = cs.RightCensored(np.where(mask, data.y.time, 40.0), data.y.event & mask)
    return data.X, data.y, other, mask


def in_masked_batches(X, y, mask, size=100):
    rows = [slice(i, i + size) for i in range(0, len(y), size)]
    return [(X[r], y[r], None, None, mask[r]) for r in rows]


def test_times_that_do_not_count_play_no_part():
    X, y, other, mask = masked()
    one, two = (
        engression(**SMALL).fit_batches(in_masked_batches(X, outcome, mask)) for outcome in (y, other)
    )
    np.testing.assert_array_equal(weights_of(one), weights_of(two))
    plain = engression(**SMALL).fit_batches(in_batches(X, y))
    assert (weights_of(one) != weights_of(plain)).any()


def test_masked_batches_have_the_units_and_the_censoring_of_the_subjects_in_memory():
    X, _, other, mask = masked()
    whole = engression(**SMALL).fit(X, other, mask=mask)
    parts = engression(**SMALL).fit_batches(in_masked_batches(X, other, mask))
    assert parts._times.unit == pytest.approx(whole._times.unit)
    assert parts._times.centre == pytest.approx(whole._times.centre)
    assert parts.follow_up_ == pytest.approx(whole.follow_up_)
    t = np.linspace(0.1, 4.0, 7)[None]
    np.testing.assert_allclose(parts.censoring_.sf(t), whole.censoring_.sf(t), rtol=1e-6)


@pytest.mark.parametrize("model", [cs.CopulaWeibull, cs.JointGridModel])
def test_likelihoods_leave_out_what_does_not_count(model):
    X, y, other, mask = masked()
    settings = {"epochs": 2, "random_state": 0, "batch_size": 64}
    one, two = (
        likelihood(model, **settings).fit_batches(in_masked_batches(X, outcome, mask)).sample_chunks(X[:9], 5)
        for outcome in (y, other)
    )
    np.testing.assert_array_equal(next(one).numpy(), next(two).numpy())


def test_a_table_names_the_columns_of_the_mask():
    X, y, _, mask = masked()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    frame[["t1", "t2"]], frame[["d1", "d2"]] = np.where(mask, y.time, np.nan), y.event
    frame[["m1", "m2"]] = mask
    of_files = table(frame, mask=["m1", "m2"])
    assert of_files._columns == [f"x{i}" for i in range(X.shape[1])]
    one = engression(**SMALL).fit_batches(of_files)
    # a frame is one part, and so are these batches
    two = engression(**SMALL).fit_batches(lambda: iter(in_masked_batches(X, y, mask)))
    np.testing.assert_array_equal(weights_of(one), weights_of(two))
    with pytest.raises(InvalidInputError, match=r"NaN in .* subject.*mask"):
        engression(**SMALL).fit_batches(table(frame.drop(columns=["m1", "m2"])))
    with pytest.raises(InvalidInputError, match="mask: got 1 columns, expected one for each of 2"):
        table(frame, mask="m1")
    with pytest.raises(InvalidInputError, match="not available with causes or terminal"):
        table(frame, mask=["m1", "m2"], terminal=1)
    with pytest.raises(InvalidInputError, match=r"other than True and False.*m1, m2"):
        next(iter(table(frame.assign(m1=0.5), mask=["m1", "m2"])))


def test_bad_masks_of_batches_are_named():
    X, y, _, mask = masked(100)
    fit = engression(**SMALL).fit_batches
    with pytest.raises(InvalidInputError, match="mask in some of them"):
        fit([(X, y, None, None, mask), (X, y)])
    with pytest.raises(InvalidInputError, match=r"expected booleans of shape \(100, 2\)"):
        fit([(X, y, None, None, mask[:, :1])])
    with pytest.raises(InvalidInputError, match="False everywhere"):
        fit([(X, y, None, None, np.zeros_like(mask))])
    semi = cs.SemiCompetingRisks(np.sort(y.time, axis=1), np.ones((100, 2), dtype=bool), 1)
    with pytest.raises(InvalidInputError, match="not available for SemiCompetingRisks"):
        fit([(X, semi, None, None, mask)])


def test_one_batch_may_have_nothing_that_counts():
    X, y, _, mask = masked(200)
    mask[:100] = False
    model = engression(**SMALL | {"epochs": 1}).fit_batches(in_masked_batches(X, y, mask))
    assert np.isfinite(weights_of(model)).all()


def test_masked_times_need_no_order():
    data = sample(200)
    mask = np.random.default_rng(3).random((200, 2)) < 0.7
    time = np.sort(data.y.time, axis=1)
    y = cs.RightCensored(np.where(mask, time, 0.0), data.y.event | ~mask)
    settings = SMALL | {"epochs": 1, "ordered": True}
    with pytest.raises(InvalidInputError, match="another order"):
        engression(**settings).fit(data.X, y)
    of_batches = engression(**settings).fit_batches(in_masked_batches(data.X, y, mask))
    in_memory = engression(**settings).fit(data.X, y, mask=mask)
    for model in (of_batches, in_memory):
        first, second = np.moveaxis(model.predict_distribution(data.X[:20]).samples, -1, 0)
        assert (first <= second).all()


@pytest.mark.parametrize(("model", "settings"), [(engression, SMALL), (cs.CopulaWeibull, {})])
def test_validation_needs_times_that_count(model, settings):
    X, y, _, mask = masked(100)
    nothing = np.zeros_like(mask)
    validation = (X, y, cs.Uniform(0.0, 5.0), nothing) if settings else (X, y, nothing)
    with pytest.raises(InvalidInputError, match="False everywhere"):
        model(**settings).fit(X, y, eval_set=validation)
