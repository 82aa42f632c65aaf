"""Files written by somebody else: what they hold is read as numbers and text, or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
import torch

import censcore as cs
from censcore.evaluation.parts.batches.sums import PartialSums
from censcore.evaluation.parts.fold_store import load_forecast, save_value
from censcore.evaluation.report.export import latex_table
from censcore.evaluation.report.page import whole_page
from censcore.exceptions import ModelFileError
from censcore.model_files import read_model_file, write_model_file
from censcore.tables import batches_of

# ---- stores ------------------------------------------------------------------------------------------


def packed(header: str, data: bytes = b"") -> bytes:
    """A file with this header, whose checksum does not matter: it is never reached."""
    text = header.encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(shape: str, offsets: str) -> str:
    return f'{{"w":{{"dtype":"F64","shape":{shape},"data_offsets":{offsets}}}}}'


PACKED = {
    "nested without end": lambda: packed('{"__metadata__":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "a number": lambda: packed("3"),
    "a shape without end": lambda: packed(tensor("[100000000000000]", "[0,800000000000000]")),
    "a shape that does not fit": lambda: packed(tensor("[3]", "[0,8]"), bytes(8)),
    "an array before its place": lambda: packed(tensor("[1]", "[-8,0]"), bytes(8)),
    "bytes that nobody claims": lambda: packed(tensor("[1]", "[0,8]"), bytes(16)),
    "a header without end": lambda: (2**63).to_bytes(8, "little") + b"{}",
    "no header": lambda: b"PK\x03\x04 but no more",
}
VALUES = {
    "nothing of the kind": {"forecast": 3, "about": {}},
    "a list": [1],
    "a class that is none": {"tuple": [{"class": "os", "state": {}}, {"dict": []}]},
    "an abstract class": {"tuple": [{"class": "censcore.Univariate", "state": {}}, {"dict": []}]},
    "other words": {"unavailable": 3, "largest": 4},
}


@pytest.mark.parametrize("name", [*PACKED, *VALUES])
def test_a_store_takes_what_it_did_not_write_as_not_there(tmp_path, name):
    file = tmp_path / "a"
    assert save_value(file, (cs.Weibull([1.0, 2.0], 1.0), {"seconds": 1.0}))
    assert load_forecast(file) is not None
    if name in PACKED:
        file.write_bytes(PACKED[name]())
        with pytest.raises(ModelFileError, match="not a model file"):
            read_model_file(file, "result")
    else:
        write_model_file(file, "result", {}, {"value": VALUES[name]})
    assert load_forecast(file) is None
    assert PartialSums.read(file) is None


# ---- model files ---------------------------------------------------------------------------------------


def test_what_a_model_file_holds_is_not_obeyed_by_the_terminal(tmp_path):
    file = tmp_path / "a\x1b[31m.censcore"
    write_model_file(file, "x\x1b[31m\u202e", {"w": torch.ones(2)}, {})
    for path in (file, tmp_path / "\x1b[2Jnot there"):
        with pytest.raises(ModelFileError) as error:
            read_model_file(path, "engression")
        assert "\x1b" not in str(error.value)
        assert "\u202e" not in str(error.value)


@pytest.mark.parametrize("version", ["9" * 5000, "٣", "²", "0", "-1", "2.0", "1"])
def test_versions_that_nobody_wrote(tmp_path, version):
    file = tmp_path / "a.censcore"
    write_model_file(file, "example", {"w": torch.ones(2)}, {})
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"]["version"] = version
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    with pytest.raises(ModelFileError) as error:
        read_model_file(file, "example")
    assert len(str(error.value)) < 1000


# ---- tables --------------------------------------------------------------------------------------------


def frames_of(path, columns=None, rows=1000):
    return [frame for batch in batches_of(str(path), rows) for frame in batch.frames(columns, rows, ())]


def test_an_index_that_pandas_wrote_into_a_parquet_file_is_a_column(tmp_path):
    file = tmp_path / "a.parquet"
    frame = pd.DataFrame({"id": [7, 8], "t": [1.0, 2.0], "d": [1, 0], "x": [0.1, 0.2]})
    frame.set_index("id").to_parquet(file)
    (frame,) = frames_of(file, ["x", "id"])
    assert (list(frame.columns), frame["id"].tolist()) == (["x", "id"], [7, 8])


def ranged(n=7, **index):
    """A frame whose index is no more than its first number and its step, which is all that a file holds."""
    frame = pd.DataFrame({"t": np.arange(1.0, n + 1), "d": 1, "x": 0.5})
    return frame.set_index(pd.RangeIndex(30, 30 - 3 * n, -3, name="id", **index))


def test_an_index_that_a_parquet_file_tells_in_two_numbers_is_a_column(tmp_path):
    ranged().to_parquet(tmp_path / "a.parquet", row_group_size=2)
    frames = frames_of(tmp_path, ["x", "id"], rows=3)
    assert len(frames) > 1
    assert np.concatenate([frame["id"] for frame in frames]).tolist() == list(range(30, 9, -3))
    assert all(list(frame.columns) == ["t", "d", "x", "id"] for frame in frames_of(tmp_path, rows=3))
    assert [frame["id"].tolist() for frame in frames_of(tmp_path, ["id", "t"])] == [list(range(30, 9, -3))]


@pytest.mark.parametrize(
    "change",
    [
        {"stop": 12}, {"step": 0}, {"start": "30"}, {"kind": "?"}, {"name": None}, {"name": 3}, {"name": "t"},
        {"start": 30 + 2**70, "stop": 9 + 2**70}, {"start": True}, {"step": None},
    ],
)  # fmt: skip
def test_an_index_that_does_not_fit_its_file_is_no_column(tmp_path, change):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    index = {"kind": "range", "name": "id", "start": 30, "stop": 9, "step": -3}
    table = pyarrow.table({"t": np.arange(1.0, 8.0), "d": [1] * 7, "x": [0.5] * 7})
    for told in ([index | change], index | change, [[index]], None):
        text = json.dumps({"index_columns": told})
        parquet.write_table(table.replace_schema_metadata({"pandas": text}), tmp_path / "a.parquet")
        (frame,) = frames_of(tmp_path / "a.parquet")
        assert list(frame.columns) == ["t", "d", "x"]


def test_metadata_of_parquet_files_are_not_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"t": [1.0, 2.0], "d": [1, 0]})
    parquet.write_table(table.replace_schema_metadata({"pandas": "{"}), tmp_path / "a.parquet")
    assert [len(frame) for frame in frames_of(tmp_path / "a.parquet")] == [2]


def test_a_file_may_be_called_like_a_pattern(tmp_path):
    file = tmp_path / "visits[1]*.csv"
    file.write_text("t,d\n1.0,1\n2.0,0\n", encoding="utf-8")
    assert [len(frame) for frame in frames_of(file)] == [2]


# ---- pages, papers, folders ----------------------------------------------------------------------------


def test_a_page_may_run_its_script_and_no_other_and_fetch_nothing():
    page = whole_page("a", ["<p>b</p>"])
    policy = re.search(r"Content-Security-Policy' content=\"([^\"]*)\"", page)[1]
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_brackets_are_no_argument_of_the_line_before():
    text = latex_table(["forecast", "score"], [["a", "1"], ["[1cm]", "2"]], "Two.")
    assert "\\\\\n{[}1cm{]} & 2" in text


@pytest.mark.skipif(os.name == "nt", reason="links need an administrator")
def test_a_lock_empties_nothing_that_it_leads_to(tmp_path):
    locked = pytest.importorskip("censcore_studies.kit.store").locked
    victim = tmp_path / "thesis.txt"
    victim.write_text("all my work", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".lock").symlink_to(victim)
    with locked(tmp_path / "out"):
        pass
    assert victim.read_text(encoding="utf-8") == "all my work"
