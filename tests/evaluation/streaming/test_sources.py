"""Tables of every source give the numbers of the same table in memory, and the same bits in any pieces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.streaming.tables import assert_same, make_table

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.tables import batches_of

KM = cs.Censoring(cs.KaplanMeier())


def compared(data, **executed):
    table = cs.OutcomeTable(data, "t", "d", **{"rows": 90, **executed})
    options = {"by": "site", "groups": "clinic", "scores": ["crps", "brier_score:ipcw"]}
    return cs.compare(["good", "draws"], table, KM, discrimination=False, **options)


def numbers(comparison):
    """Every number, to the last bit."""
    tables = comparison.frame(), comparison.differences()
    return [table.select_dtypes("float").to_numpy().tobytes() for table in tables]


@pytest.fixture(scope="module")
def whole(table):
    return compared(table)


def in_files(table, folder, ending):
    for i, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        if ending == "csv":
            table.iloc[part].to_csv(folder / f"{i}.csv", index=False)
        else:
            table.iloc[part].to_parquet(folder / f"{i}.parquet", row_group_size=70)
    return folder


SOURCES = {
    "polars": lambda table, folder: pytest.importorskip("polars").from_pandas(table).lazy(),
    "polars, scanned": lambda table, folder: pytest.importorskip("polars").scan_parquet(
        in_files(table, folder, "parquet") / "*.parquet"
    ),
    "duckdb": lambda table, folder: pytest.importorskip("duckdb").from_df(table),
    "arrow": lambda table, folder: pytest.importorskip("pyarrow").Table.from_pandas(table),
    "dask": lambda table, folder: pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=4),
    "frames": lambda table, folder: [table.iloc[:200], table.iloc[200:]],
    "a function": lambda table, folder: lambda: (table.iloc[i : i + 37] for i in range(0, len(table), 37)),
    "parquet": lambda table, folder: in_files(table, folder, "parquet"),
    "csv": lambda table, folder: in_files(table, folder, "csv"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_what_the_frame_gives(table, whole, tmp_path, name):
    pytest.importorskip("pyarrow")
    assert_same(whole, compared(SOURCES[name](table, tmp_path)))


@pytest.mark.parametrize("parts", [1, 7, 50])
def test_a_stream_in_any_number_of_pieces_gives_the_same_bits(table, whole, parts):
    pieces = [table.iloc[rows] for rows in np.array_split(np.arange(len(table)), parts)]
    assert numbers(compared(pieces)) == numbers(whole)


def test_processes_and_a_store_give_the_same_bits(table, whole, tmp_path):
    frames = [table.iloc[:130], table.iloc[130:]]
    stored = {"store": tmp_path / "sums"}
    assert numbers(compared(frames, n_jobs=2, **stored)) == numbers(whole)
    kept = sorted((tmp_path / "sums").iterdir())
    assert len(kept) == 18  # three phases of six batches, by their content
    for path in kept[::2]:
        path.unlink()
    assert numbers(compared(table, **stored)) == numbers(whole)
    assert sorted((tmp_path / "sums").iterdir()) == kept
    compared(table.assign(t=table["t"] + 1.0), **stored)
    assert len(list((tmp_path / "sums").iterdir())) == 36


@pytest.mark.parametrize("library", ["dask", "polars", "duckdb"])
def test_a_lazy_frame_is_an_outcome_as_a_frame_is(table, library):
    named = table.rename(columns={"t": "time", "d": "event"}).drop(columns="since")
    make = {
        "dask": lambda: pytest.importorskip("dask.dataframe").from_pandas(named, npartitions=3),
        "polars": lambda: pytest.importorskip("polars").from_pandas(named).lazy(),
        "duckdb": lambda: pytest.importorskip("duckdb").from_df(named),
    }
    y = make[library]()
    found = cs.compare(["good"], y, KM, scores="crps", groups="clinic", discrimination=False)
    expected = cs.compare(
        ["good"], cs.OutcomeTable(named, "time", "event"), KM, scores="crps", groups="clinic",
        discrimination=False,
    )  # fmt: skip
    assert_same(expected, found)
    columns = list(named.columns)
    with pytest.raises(InvalidInputError, match="a table without the column event, expected time and event"):
        cs.compare(["good"], y[columns[:1]] if library == "dask" else y.select("time"), KM)


def test_what_can_be_gone_through_once_is_refused(table):
    with pytest.raises(InvalidTypeError, match="got generator, which can be gone through once"):
        compared(part for part in [table])
    with pytest.raises(InvalidTypeError, match="data: got int, expected a path"):
        compared(3)
    with pytest.raises(InvalidInputError, match="got rows that are read in this process"):
        compared([table, table], dask=object())


def test_the_number_of_rows_is_known_where_the_source_tells_it(table, tmp_path):
    pytest.importorskip("pyarrow")
    known = {name: batches_of(SOURCES[name](table, tmp_path), 90).rows for name in ("frames", "parquet")}
    assert known == {"frames": 500, "parquet": 500}
    (folder := tmp_path / "csv").mkdir()
    assert batches_of(in_files(table, folder, "csv"), 90).rows == pytest.approx(500, rel=0.05)
    assert batches_of(SOURCES["a function"](table, tmp_path), 90).rows is None


def test_rows_of_a_stream_are_named_by_their_place(table):
    bad = table.assign(t=np.where(table.index == 450, -1.0, table["t"]))
    with pytest.raises(InvalidInputError, match="the table, 50 rows from 450 on: "):
        compared([bad.iloc[:300], bad.iloc[300:]])


def test_a_source_without_rows(table):
    for empty in ([], [table.iloc[:0]], table.iloc[:0]):
        with pytest.raises(InvalidInputError, match="a table without rows"):
            compared(empty)


def test_groups_enter_with_their_first_subject():
    table = make_table(300)
    y = cs.RightCensored(table["t"].to_numpy(), table["d"].to_numpy(), entry=table["since"].to_numpy())
    clinic = pd.Series(np.arange(300) // 20, name="clinic")
    forecasts = {"one": cs.Weibull(1.5, 100.0)}
    options = {"scores": "crps", "discrimination": False}
    memory = cs.compare(forecasts, y, KM, groups=clinic, **options)
    data = cs.OutcomeTable(table.assign(clinic=clinic), "t", "d", entry="since", rows=100)
    found = cs.compare(forecasts, data, KM, groups="clinic", **options)
    assert found.horizon == memory.horizon
    np.testing.assert_allclose(found.frame()["mean"], memory.frame()["mean"], rtol=1e-9)
