"""Wrong values whose errors came from other libraries: each is an error of this one, with words."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run

import censcore as cs
from censcore.exceptions import (
    CenscoreError,
    InvalidIndexError,
    InvalidInputError,
    InvalidTypeError,
    ModelFileError,
)
from censcore.model_files import read_model_file, write_model_file
from censcore.tables import MOST_ROWS, batches_of

N = 40
RNG = np.random.default_rng(4)
T, C = RNG.weibull(1.3, N), RNG.uniform(0.2, 3.0, N)
Y = cs.RightCensored(np.minimum(T, C), T <= C)
X = RNG.normal(size=(N, 2))
MODELS = {"a": cs.Weibull(1.3, np.linspace(0.8, 1.4, N)), "b": cs.Exponential(1.0)}
ASKED = {"censoring": cs.Uniform(0.2, 3.0), "reference": None, "horizon": 2.0}


# ---- tables ------------------------------------------------------------------------------------------


def table(path, lines=30):
    rows = "".join(f"{1 + j % 7},{j % 2},0.9,0.5\n" for j in range(lines))
    path.write_text(f"time,event,m__sf@1,m__sf@3\n{rows}", encoding="utf-8")
    return path


@pytest.mark.parametrize("batch", [(), ("--batch", 7)])
@pytest.mark.parametrize("rows", ["time,event,m__sf@1\n", "time,event,m__sf@1", ""])
def test_a_table_without_rows(tmp_path, batch, rows):
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"a\.csv"):
        run("compare", tmp_path / "a.csv", *batch)


@pytest.mark.parametrize("batch", [(), ("--batch", 7)])
def test_a_byte_that_is_not_utf8_is_told_with_its_line(tmp_path, batch):
    path = table(tmp_path / "a.csv")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:19], b"2,1,0.\xff,0.5", *lines[20:]]))
    with pytest.raises(InvalidInputError, match=r"a\.csv .*not UTF-8 in line 20"):
        run("compare", path, *batch)


@pytest.mark.parametrize("batch", [(), ("--batch", 7)])
def test_a_line_that_is_too_long_is_told_by_its_number_in_the_file(tmp_path, batch):
    path = table(tmp_path / "a.csv")
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([*lines[:19], "2,1,0.5,0.5,9,9", *lines[20:]]), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"a\.csv .*line 20"):
        run("compare", path, *batch)


@pytest.mark.parametrize("option", ["table", "--train"])
@pytest.mark.parametrize("batch", [(), ("--batch", 7)])
def test_a_damaged_page_of_parquet(tmp_path, option, batch):
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    frame = pd.read_csv(table(tmp_path / "a.csv", lines=2000))
    frame = frame.assign(time=np.linspace(0.1, 7.0, len(frame)))
    for path in (good, bad):
        frame.to_parquet(path, compression="gzip")
    data = bad.read_bytes()
    bad.write_bytes(data[:60] + bytes(len(data) // 2 - 60) + data[len(data) // 2 :])
    files = [bad] if option == "table" else [good, "--train", bad]
    with pytest.raises(InvalidInputError, match=r"bad\.parquet could not be read"):
        run("compare", *files, *batch)


def test_more_rows_than_there_can_be(tmp_path):
    path = table(tmp_path / "a.csv")
    for rows in (1e300, 10**20):
        with pytest.raises(InvalidInputError, match="rows must be a whole number"):
            cs.OutcomeTable(path, "time", "event", rows=rows)
    with pytest.raises(InvalidInputError, match="--batch must be a whole number"):
        run("compare", path, "--batch", 10**20)
    assert len(batches_of(path, MOST_ROWS).known) == 1
    assert cs.OutcomeTable(path, "time", "event", rows=7.0).rows == 7


def test_a_compressed_table_that_is_cut_off(tmp_path):
    content = gzip.compress(table(tmp_path / "a.csv").read_bytes())
    (tmp_path / "b.csv.gz").write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInputError, match="could not be read"):
        run("compare", tmp_path / "b.csv.gz")


LITTLE_MEMORY = """
import resource, sys, threading
import censcore.evaluation, pandas, pyarrow.parquet
from censcore.cli.predictions import read_table
from censcore.exceptions import CenscoreError
from pathlib import Path

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20,) * 2)
try:
    print(len(read_table(Path(sys.argv[1]))))
except (CenscoreError, MemoryError) as error:
    print(type(error).__name__)
print(len(threading.enumerate()))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs the memory of a process")
@pytest.mark.parametrize("megabytes", [2, 6, 12, 20])
def test_parquet_is_read_or_refused_where_there_is_no_memory_for_threads(tmp_path, megabytes):
    """The threads of Arrow wait for each other without an end where one of them cannot start."""
    pd.DataFrame({"time": np.arange(300.0)}).to_parquet(tmp_path / "a.parquet")
    words = [sys.executable, "-c", LITTLE_MEMORY, str(tmp_path / "a.parquet"), str(megabytes)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert done.stdout.split("\n")[0] in ("300", "InvalidInputError", "MemoryError"), done.stderr[-500:]


# ---- arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [3, 1.5, object(), [1], {"a": 1}, np.ones(3), b"x", True])
@pytest.mark.parametrize("train", [None, (None, Y)])
def test_a_reference_of_the_wrong_kind(value, train):
    with pytest.raises(InvalidTypeError, match="reference: got"):
        cs.compare(MODELS, Y, **ASKED | {"reference": value}, train=train)


def test_a_function_that_takes_other_arguments_is_no_reference():
    with pytest.raises(InvalidTypeError, match=r"expected f\(X_train, y_train, X_test\)"):
        cs.compare(MODELS, Y, **ASKED | {"reference": len}, train=(None, Y))


@pytest.mark.parametrize("name", ["groups", "by"])
def test_labels_that_are_lists(name):
    labels = pd.Series([["a"]] * N)
    with pytest.raises(InvalidTypeError, match="got list, expected one label"):
        cs.compare(MODELS, Y, **ASKED, **{name: labels})


def test_labels_in_a_format_that_numpy_does_not_have():
    torch = pytest.importorskip("torch")
    labels = torch.arange(N) // 2 % 8
    one, other = (
        cs.compare(MODELS, Y, **ASKED, groups=x).frame() for x in (labels, labels.to(torch.bfloat16))
    )
    pd.testing.assert_frame_equal(one, other)


def test_an_outcome_in_a_table_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    model = cs.KaplanMeier().fit(None, pa.table({"time": Y.time, "event": Y.event}))
    expected = cs.KaplanMeier().fit(None, Y).predict_distribution(None).sf([[1.0]])
    np.testing.assert_array_equal(model.predict_distribution(None).sf([[1.0]]), expected)


def test_gaps_of_pyarrow_are_told():
    gaps = pytest.importorskip("pyarrow").array([0.9, 0.5, None])
    with pytest.raises(InvalidInputError, match="sf must be free of NaN"):
        cs.as_forecast(gaps, times=[0.5, 1.0, 3.0])
    with pytest.raises(InvalidInputError, match="test_risk"):
        cs.from_risk(X[:, 0], Y, gaps)


def test_competing_risks_in_tables_of_pyarrow_and_polars():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    columns = {"time": Y.time, "cause": Y.event.astype(int)}
    for frame in (pa.table(columns), pl.DataFrame(columns)):
        assert cs.outcomes.is_competing(frame)
        np.testing.assert_array_equal(cs.outcomes.as_competing_risks(frame).time, Y.time)


@pytest.mark.parametrize("value", [None, 3, "x", [None], [1, 2], [Y, None], {"a": Y}])
@pytest.mark.parametrize("kind", [cs.RightCensored, cs.CompetingRisks, cs.IntervalCensored])
def test_outcomes_that_are_none_are_not_joined(kind, value):
    with pytest.raises(InvalidTypeError, match="concat: got"):
        kind.concat(value)


@pytest.mark.parametrize("value", [None, 3, [1, 2], {"a": 1}])
def test_structured_outcomes_of_the_wrong_kind(value):
    with pytest.raises(InvalidTypeError, match="structured array"):
        cs.RightCensored.from_structured(value)


def test_a_span_of_time_is_no_place_of_a_subject():
    with pytest.raises(InvalidIndexError, match="rows: got"):
        Y.take(np.timedelta64(3, "D"))


# ---- paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["to_html", "to_json", "to_latex", "to_markdown"])
def test_what_is_no_path_is_not_written_to(method):
    comparison = cs.compare(MODELS, Y, **ASKED, scores="crps")
    for value in (False, 3, 1.5, b"x", [], "x" * 5000, "a\0b"):
        with pytest.raises(CenscoreError, match=r"path: got|cannot be written"):
            getattr(comparison, method)(value)


@pytest.mark.parametrize("kind", [["roc"], 3, b"roc", np.ones(2)])
def test_pictures_of_no_name(kind):
    with pytest.raises(InvalidInputError, match="There is no plot called"):
        cs.compare(MODELS, Y, **ASKED, scores="crps").plot(kind)


@pytest.mark.parametrize("value", ["x" * 5000, "a\0b", b"x", 3, None])
def test_what_is_no_path_is_not_loaded(value):
    with pytest.raises((InvalidInputError, InvalidTypeError), match=r"path: got .{1,200}$"):
        cs.load(value)


# ---- model files ---------------------------------------------------------------------------------------


def test_a_kind_that_a_terminal_would_obey(tmp_path):
    write_model_file(tmp_path / "m", "\x1b[2J\u202eowned" + "x" * 5000, {"w": np.ones(1)}, {})
    with pytest.raises(ModelFileError) as error:
        cs.load(tmp_path / "m")
    assert re.search(r"got a \\x1b\[2J\\u202eowned", str(error.value))
    assert len(str(error.value)) < 1000


def test_no_message_holds_what_a_terminal_obeys():
    assert str(InvalidInputError("got \x1b[31m\u202e")) == r"got \x1b[31m\u202e"


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    """A stack in a file, by its arrays and settings."""
    path = tmp_path_factory.mktemp("forged") / "stack"
    members = [("km", cs.KaplanMeier()), ("w", cs.WeibullRegression()), ("t", cs.BoostedHazards(max_iter=3))]
    cs.Stacking(members, random_state=0).fit(X, Y).save(path)
    return path, *read_model_file(path, "Stacking")


def _leaves(value, place=()):
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*place, name)
        yield from _leaves(part, (*place, name))


def _changed(value, place, new):
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = _changed(value[place[0]], place[1:], new)
    return copy


def test_a_forged_stack_is_refused_or_forecasts(forged):
    """Whatever stands in the settings of its file: an error of the file, or finite forecasts."""
    path, arrays, settings = forged
    places = list(_leaves(settings))
    chosen = np.random.default_rng(1).permutation(len(places))[:150]
    for number, i in enumerate(chosen):
        new = [None, "x", -1, float("nan"), 1e308, [], {"a": 1}, 10**12][number % 8]
        write_model_file(path, "Stacking", arrays, _changed(settings, places[i], new))
        try:
            model = cs.load(path, device="cpu")
        except ModelFileError:
            continue
        draws = model.predict_distribution(X[:3]).sample(3, seed=0)
        assert not np.isnan(draws).any(), places[i]


def test_trees_of_a_forged_stack_end(tmp_path):
    path, trees = tmp_path / "stack", cs.BoostedHazards(max_iter=3, random_state=0, min_samples_leaf=2)
    cs.Stacking([("trees", trees)]).fit(np.tile(X, (9, 1)), cs.RightCensored.concat([Y] * 9)).save(path)
    arrays, settings = read_model_file(path, "Stacking")
    places = [place for place in _leaves(settings) if place[-2:] == ("state", "left")]
    node = settings
    for name in places[0]:
        node = node[name]
    loops = np.zeros_like(arrays[node["array"]])
    write_model_file(path, "Stacking", arrays | {node["array"]: loops}, settings)
    with pytest.raises(ModelFileError, match="trees without an end"):
        cs.load(path)


def test_a_number_is_no_matrix_of_cumulative_incidences():
    with pytest.raises(InvalidInputError, match=r"\(n, m, q\) or \(m, q\); got \(\)"):
        cs.as_competing_forecast(np.array(1.0), times=[1.0])
