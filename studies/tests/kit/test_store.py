"""Records and stages: whole and of the right key, or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from censcore.exceptions import InvalidInputError
from censcore.store import content_key, read_record, write_record
from censcore_studies.kit.store import locked, read_stage, run_stage


def silent(_: str) -> None:
    pass


def write(text: bytes):
    def make(folder) -> dict:
        (folder / "numbers.bin").write_bytes(text)
        return {"size": len(text)}

    return make


def test_a_record_comes_back_as_it_was_written(tmp_path):
    content = {"mean": 0.1 + 0.2, "none": None, "rows": (1, 2), "endless": float("inf")}
    write_record(tmp_path / "r.json", "k", content)
    assert read_record(tmp_path / "r.json", "k") == content | {"rows": [1, 2]}
    assert read_record(tmp_path / "r.json")["key"] == "k"
    assert read_record(tmp_path / "r.json", "another key") is None
    assert read_record(tmp_path / "missing.json", "k") is None


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"checksum": "x"}', '{"key": "k", "mean": 1.0}'])
def test_what_is_no_record_is_not_there(tmp_path, text):
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    assert read_record(tmp_path / "r.json") is None


def test_a_changed_digit_is_noticed(tmp_path):
    path = tmp_path / "r.json"
    write_record(path, "k", {"mean": 0.25})
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", "0.26"), encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["mean"] == 0.26
    assert read_record(path, "k") is None


def test_a_stage_is_made_once_for_each_key(tmp_path):
    first = run_stage(tmp_path, "a/b", "k", write(b"12"), silent)
    again = run_stage(tmp_path, "a/b", "k", write(b"never written"), silent)
    assert (first.skipped, again.skipped) == (False, True)
    assert again.summary == {"size": 2}
    other = run_stage(tmp_path, "a/b", "another key", write(b"345"), silent)
    assert not other.skipped
    assert (other.folder / "numbers.bin").read_bytes() == b"345"


@pytest.mark.parametrize("damage", ["cut", "same size", "missing", "added", "record"])
def test_a_damaged_stage_is_made_again(tmp_path, damage):
    folder = run_stage(tmp_path, "a", "k", write(b"1234"), silent).folder
    file = folder / "numbers.bin"
    if damage == "cut":
        file.write_bytes(b"12")
    elif damage == "same size":
        file.write_bytes(b"1235")
    elif damage == "missing":
        file.unlink()
    elif damage == "added":
        (folder / "more.bin").write_bytes(b"")
    else:
        record = folder / "stage.json"
        record.write_text(
            record.read_text(encoding="utf-8").replace('"size": 4', '"size": 5'), encoding="utf-8"
        )
    assert read_stage(tmp_path, "a") is None
    assert not run_stage(tmp_path, "a", "k", write(b"1234"), silent).skipped
    assert file.read_bytes() == b"1234"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_copied_stage_is_still_whole(tmp_path):
    folder = run_stage(tmp_path, "a", "k", write(b"1234"), silent).folder
    for moment in (1, 2**62):
        os.utime(folder / "numbers.bin", ns=(moment, moment))
        assert read_stage(tmp_path, "a").key == "k"


def test_a_stage_that_fails_leaves_the_old_one(tmp_path):
    run_stage(tmp_path, "a", "k", write(b"1234"), silent)

    def fail(folder) -> dict:
        (folder / "numbers.bin").write_bytes(b"half")
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        run_stage(tmp_path, "a", "another key", fail, silent)
    assert (read_stage(tmp_path, "a").folder / "numbers.bin").read_bytes() == b"1234"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_keys_tell_values_apart():
    assert content_key(1, 2) != content_key([1, 2])
    assert content_key("1") != content_key(1)
    assert content_key({"a": 1.0}) != content_key({"a": 1.0000000000000002})


def test_a_second_writer_of_windows_gets_the_same_error(tmp_path, monkeypatch):
    """Windows locks a byte of the file, and forbids it to others."""
    held = set()

    def locking(descriptor, mode, size):
        file = os.fstat(descriptor).st_ino
        if file in held:
            raise PermissionError(13, "Permission denied")
        held.add(file)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with (
        locked(tmp_path),
        pytest.raises(InvalidInputError, match="Another run is writing"),
        locked(tmp_path),
    ):
        raise AssertionError("two writers")


KILLED = """
import sys, time
from pathlib import Path
from censcore_studies.kit.store import locked, run_stage
out, pause = Path(sys.argv[1]), float(sys.argv[2])
def make(text, seconds):
    def write(folder):
        (folder / "numbers.bin").write_bytes(text)
        time.sleep(seconds)
        return {}
    return write
with locked(out):
    for name, text, seconds in (("a", b"12", 0.0), ("b", b"34", pause)):
        print(name, run_stage(out, name, name, make(text, seconds), lambda line: None).skipped, flush=True)
"""


def test_a_killed_run_keeps_its_finished_stages_and_lets_go_of_the_folder(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "a False\n"
        while not (tmp_path / "b.partial" / "numbers.bin").exists():
            assert process.poll() is None
        process.kill()
    assert read_stage(tmp_path, "b") is None
    again = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)
    assert again.stdout == "a True\nb False\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "a", "b"]
