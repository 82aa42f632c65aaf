"""Covariates that stay where they lie: the same models, and memory that does not grow with the file."""

import tracemalloc

import numpy as np
import pytest
from benchmarks.growth import MEASURABLE, printed_by

import censcore as cs
from censcore.exceptions import InvalidInputError

torch = pytest.importorskip("torch", reason="networks need the extra 'torch'")


from tests.learning.small_trainings import SMALL as QUICK  # noqa: E402
from tests.learning.small_trainings import engression, sample, weights_of  # noqa: E402

from censcore.learning.data.standardised import Standardised, rows_of  # noqa: E402
from censcore.learning.data.units import means_and_spreads  # noqa: E402
from censcore.learning.engression import loss as quantiles  # noqa: E402
from censcore.simulation import LogNormalScenario  # noqa: E402

SMALL = {"width": 8, "depth": 1, "noise_dim": 4, "samples": 2, "n_networks": 1}
CENTER, SPREAD = np.float32([1.0, -2.0]), np.float32([2.0, 0.5])


@pytest.fixture
def mapped(tmp_path):
    """A matrix, and the same one as a read-only file."""
    X = np.random.default_rng(0).normal(3, 2, size=(500, 2)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    return X, np.load(tmp_path / "X.npy", mmap_mode="r")


def test_rows_are_standardised_when_they_are_taken(mapped):
    X, on_disk = mapped
    expected = (X - CENTER) / SPREAD
    x = Standardised(on_disk, CENTER, SPREAD)
    assert x.shape == (500, 2)
    assert x.nbytes == expected.nbytes
    rows = np.array([7, 3, 3])
    for index in (rows, torch.from_numpy(rows), slice(5, 9), slice(None)):
        np.testing.assert_array_equal(x[index].numpy(), expected[index])
    np.testing.assert_array_equal(x.to(torch.device("cpu")).numpy(), expected)


def test_some_rows_of_some_rows(mapped):
    X, on_disk = mapped
    expected = (X - CENTER) / SPREAD
    x = Standardised(on_disk, CENTER, SPREAD)
    for taken, where in (
        (x.take(np.array([9, 4, 2])).take(np.array([2, 0])), [2, 9]),
        (x.take(slice(10, 20)).take(np.array([1])), [11]),
        (x.take(np.array([9, 4, 2])).take(slice(1, None)), [4, 2]),
    ):
        assert len(taken) == len(where)
        np.testing.assert_array_equal(taken[:].numpy(), expected[where])
    data = rows_of({"x": x, "y": torch.arange(500)}, np.array([5, 1]))
    assert data["y"].tolist() == [5, 1]
    np.testing.assert_array_equal(data["x"][:].numpy(), expected[[5, 1]])


def test_no_columns_are_one_column_of_zeros():
    x = Standardised(np.empty((4, 0), np.float32), np.empty(0, np.float32), np.empty(0, np.float32))
    assert x.shape == (4, 1)
    assert x[np.array([0, 3])].tolist() == [[0.0], [0.0]]


def test_moments_are_those_of_numpy_in_one_block_or_many(mapped, monkeypatch):
    X, on_disk = mapped
    rows = np.random.default_rng(1).permutation(500)[:200]
    monkeypatch.setattr("censcore.learning.data.standardised._VALUES_AT_ONCE", 64)
    for (mean, spread), X_chosen in (
        (means_and_spreads(on_disk), X),
        (means_and_spreads(on_disk, rows), X[rows]),
        (means_and_spreads(X, slice(7, 90)), X[7:90]),
    ):
        np.testing.assert_allclose(mean, X_chosen.mean(axis=0, dtype=float), rtol=1e-13)
        np.testing.assert_allclose(spread, X_chosen.std(axis=0, dtype=float), rtol=1e-13)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("kind", [engression, cs.CopulaWeibull])
def test_a_mapped_file_gives_the_model_of_the_array(kind, held_out, tmp_path):
    data = LogNormalScenario(k=2, censoring="administrative").sample(300, seed=0)
    X = data.X.astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    predictions = []
    for matrix in (X, on_disk):
        model = kind(epochs=2, random_state=0, **(SMALL if kind is engression else {}))
        model.fit(matrix, data.y_known, eval_set=(matrix[:50], data.y_known[:50]) if held_out else None)
        distribution = model.predict_distribution(matrix[:20])
        predictions.append(distribution.marginal(0).cdf(1.0))
    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize(("dtype", "copies"), [(np.float32, 0), (np.float64, 1)])
@pytest.mark.parametrize("kind", [engression, cs.CopulaWeibull])
def test_a_mapped_file_is_copied_for_its_precision_alone(kind, dtype, copies, tmp_path):
    n, d = 8000, 1000
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, (n, d))
    X[:] = np.random.default_rng(0).normal(size=(1, d)) + np.arange(n)[:, None] % 7
    X.flush()
    X, y = np.load(tmp_path / "X.npy", mmap_mode="r"), sample(n, censoring="administrative").y_known
    model = engression(**QUICK) if kind is engression else kind(solver="adam", random_state=0)
    model.set_params(epochs=1).fit(np.array(X[:200, :3]), y[:200])  # what is imported once is not counted
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = 4 * n * d  # of a copy in single precision
    assert copies * size <= peak < (copies + 0.7) * size, peak / size


_GROWTH = """
import json, sys
import numpy as np
import censcore as cs
from benchmarks.growth import grown

X = np.load(sys.argv[1], mmap_mode="r")
n = len(X)
rng = np.random.default_rng(0)
c, t = rng.uniform(1, 80, n), rng.exponential(30, (n, 2))
y = cs.RightCensored(np.minimum(t, c[:, None]), t <= c[:, None], c)
groups, some = np.arange(n) // 80, slice(0, 500)
small = {"epochs": 1, "random_state": 0}
models = {
    "engression": lambda: cs.CensoredEngression(
        n_networks=1, network=cs.learning.Network(width=8, depth=1, noise_dim=4),
        training=cs.learning.Training(samples=2, batch_size=8192), **small
    ),
    "copula": lambda: cs.CopulaWeibull(training=cs.learning.Training(batch_size=8192), **small),
}
for make in models.values():  # what the libraries themselves take is not counted
    make().fit(np.array(X[some]), y[some])
print(json.dumps({
    name: grown(lambda: make().fit(X, y, groups=groups, eval_set=(X[some], y[some])))
    for name, make in models.items()
}))
"""


@pytest.mark.slow  # that nothing is copied is seen above every time
@pytest.mark.skipif(not MEASURABLE, reason="memory is read from /proc, on Linux")
def test_training_takes_less_memory_than_its_file(tmp_path):
    path, n = tmp_path / "X.npy", 200_000
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, 96))
    X[:] = np.random.default_rng(0).normal(size=96).astype(np.float32) + np.arange(n)[:, None] % 7
    X.flush()
    size = path.stat().st_size
    growth = printed_by(_GROWTH, str(path))
    assert set(growth) == {"engression", "copula"}
    # a copy of X would be its size; times, censoring times, groups and the order of rows are what grows
    assert all(found < 0.4 * size for found in growth.values()), (growth, size)


# ---- quantiles of C that are not kept ------------------------------------------------------------------


@pytest.mark.parametrize("censoring", [None, cs.KaplanMeier(stratify=0), cs.CoxRegression()])
def test_quantiles_by_batch_give_the_model_of_the_table(censoring, monkeypatch):
    data = sample(300)
    X = data.X.copy()
    X[:, 0] = X[:, 0] > 0
    models = []
    for kept in (2**24, 0):
        monkeypatch.setattr(quantiles, "_KEPT", kept)
        models.append(engression(**QUICK).fit(X, data.y, censoring=censoring))
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


# ---- times that do not count ---------------------------------------------------------------------------


def test_masked_times_need_no_order():
    data = sample(200)
    mask = np.random.default_rng(3).random((200, 2)) < 0.7
    time = np.sort(data.y.time, axis=1)
    y = cs.RightCensored(np.where(mask, time, 0.0), data.y.event | ~mask)
    settings = QUICK | {"epochs": 1, "ordered": True}
    with pytest.raises(InvalidInputError, match="another order"):
        engression(**settings).fit(data.X, y)
    model = engression(**settings).fit(data.X, y, mask=mask)
    first, second = np.moveaxis(model.predict_distribution(data.X[:20]).samples, -1, 0)
    assert (first <= second).all()


def test_a_mask_of_semi_competing_risks_is_refused():
    y = sample(100).y
    semi = cs.SemiCompetingRisks(np.sort(y.time, axis=1), np.ones((100, 2), dtype=bool), 1)
    with pytest.raises(InvalidInputError, match="not available for SemiCompetingRisks"):
        engression(**QUICK).fit(None, semi, mask=np.ones((100, 2), dtype=bool))


@pytest.mark.parametrize(("model", "settings"), [(engression, QUICK), (cs.CopulaWeibull, {})])
def test_validation_needs_times_that_count(model, settings):
    data = sample(100)
    nothing = np.zeros((100, 2), dtype=bool)
    validation = (data.X, data.y, cs.Uniform(0.0, 5.0), nothing) if settings else (data.X, data.y, nothing)
    with pytest.raises(InvalidInputError, match="False everywhere"):
        model(**settings).fit(data.X, data.y, eval_set=validation)
