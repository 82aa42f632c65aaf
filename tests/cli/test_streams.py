"""Standard input, standard output and pipes in place of files; streams that fail or know few characters."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.predictions import sample
from typer.testing import CliRunner

import censcore as cs
from censcore.cli.app import app
from censcore.cli.predictions import read_table
from censcore.exceptions import InvalidInputError, StorageError

OUTCOME = ("--time", "days", "--event", "died")
ASKED = (*OUTCOME, "--scores", "crps")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    for name, frame in (("test", sample(60, 0)), ("train", sample(70, 1))):
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet")
    return folder


def run(*words, stdin=b""):
    done = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if done.exception is not None:
        raise done.exception
    return done


def command(*words, **options):
    """The command in a process of its own, as a shell starts it."""
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "censcore", *map(str, words)],
        stderr=subprocess.PIPE, check=False, env=environment, **options,
    )  # fmt: skip


# ---- standard output and pipes ---------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--batch", 20)])
def test_numbers_go_to_standard_output_alone(files, tmp_path, more):
    words = ("compare", files / "test.csv", *ASKED, *more)
    done = run(*words, "--json", "-", "--html", tmp_path / "page.html")
    assert json.loads(done.stdout)["verdict"]
    assert "CRPS" in done.stderr
    assert "page.html" in done.stderr
    quiet = run(*words, "--json", "-", "--quiet")
    assert (json.loads(quiet.stdout), quiet.stderr) == (json.loads(done.stdout), "")
    assert run(*words, "--html", "-", "--quiet").stdout.startswith("<!doctype html>")


def test_standard_output_is_taken_once(files):
    with pytest.raises(InvalidInputError, match="--html and --json: got standard output for both"):
        run("compare", files / "test.csv", *ASKED, "--json", "-", "--html", "-")


@pytest.mark.parametrize("more", [(), ("--batch", 20)])
def test_losses_go_to_standard_output(files, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    words = ("score", files / "test.csv", *ASKED, *more)
    run(*words, "--out", tmp_path / "losses.csv")
    expected = (tmp_path / "losses.csv").read_text(encoding="utf-8")
    assert run(*words).stdout == run(*words, "--out", "-").stdout == expected
    assert "written" not in run(*words, "--out", "-").stderr
    assert [path.name for path in tmp_path.iterdir()] == ["losses.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="streams have no paths here")
def test_paths_of_standard_output_are_no_files(files, tmp_path):
    log = tmp_path / "log"
    log.write_text("kept\n", encoding="utf-8")
    with log.open("a", encoding="utf-8") as out:
        done = command("score", files / "test.csv", *ASKED, "--out", "/dev/stdout", stdout=out)
    assert (done.returncode, b"written" in done.stderr) == (0, False)
    assert log.read_text(encoding="utf-8") == "kept\n" + run("score", files / "test.csv", *ASKED).stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are those of Unix")
@pytest.mark.parametrize("more", [(), ("--batch", 20)])
@pytest.mark.parametrize("name", ["pipe", "pipe.csv", "pipe.parquet"])
def test_losses_go_into_pipes(files, tmp_path, name, more):
    os.mkfifo(tmp_path / name)
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / name).read_bytes()))
    reader.start()
    assert "written" in run("score", files / "test.csv", *ASKED, *more, "--out", tmp_path / name).stderr
    reader.join()
    table = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    assert len(table(io.BytesIO(read[0]))) == 60


@pytest.mark.parametrize("more", [(), ("--batch", 20)])
def test_a_file_without_an_ending_is_no_pipe(files, tmp_path, more):
    with pytest.raises(InvalidInputError, match=r"must end in \.csv or \.parquet"):
        run("score", files / "test.csv", *ASKED, *more, "--out", tmp_path / "losses")


# ---- standard input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_come_from_standard_input(files, ending):
    test, train = files / f"test.{ending}", files / f"train.{ending}"
    expected = run("score", test, *ASKED, "--train", train).stdout
    assert run("score", "-", *ASKED, "--train", train, stdin=test.read_bytes()).stdout == expected
    assert run("score", test, *ASKED, "--train", "-", stdin=train.read_bytes()).stdout == expected
    page = run("compare", "-", *ASKED, "--html", "-", "--quiet", stdin=test.read_bytes()).stdout
    assert "Comparison of forecasts in standard input" in page


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (("-", "--train", "-"), b"", "got standard input for the table and for --train"),
        (("-", "--batch", 20), b"", "standard input is read whole"),
        (("test.csv", "--batch", 20, "--train", "-"), b"", "standard input is read whole"),
        (("-",), b"", "standard input could not be read as a table"),
        (("-",), b"days,died\n", "standard input has no rows"),
        (("-",), b"PAR1 and no more", "standard input could not be read as a table"),
    ],
)
def test_standard_input_that_is_no_table(files, monkeypatch, words, stdin, message):
    monkeypatch.chdir(files)
    with pytest.raises(InvalidInputError, match=message):
        run("score", *words, *ASKED, stdin=stdin)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidInputError, match="standard input: got a closed stream"):
        read_table(Path("-"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are those of Unix")
def test_tables_come_out_of_pipes(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=(tmp_path / "pipe").write_bytes, args=[(files / "test.csv").read_bytes()]
    )
    writer.start()
    found = run("score", tmp_path / "pipe", *ASKED).stdout
    writer.join()
    assert found == run("score", files / "test.csv", *ASKED).stdout


# ---- streams that fail -----------------------------------------------------------------------------------

UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
SCORE = ("score", "test.csv", *ASKED)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("--version",), {}),
        (("--version",), UNBUFFERED),
        (("--help",), {}),
        pytest.param(SCORE, UNBUFFERED, marks=pytest.mark.slow),
    ],
)
def test_full_standard_output_is_told_in_one_line(files, words, env):
    with open("/dev/full", "wb") as full:
        done = command(*words, stdout=full, cwd=files, env=env)
    *notes, told = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert told.startswith("censcore: standard output cannot be written: No space left on device.")
    assert all(line.startswith("note: ") for line in notes)


@pytest.mark.parametrize(("words", "env"), [(("--version",), {}), (("--help",), UNBUFFERED), (SCORE, {})])
def test_a_reader_that_has_seen_enough_is_told_nothing(files, words, env):
    read, write = os.pipe()
    os.close(read)
    done = command(*words, stdout=write, cwd=files, env=env)
    os.close(write)
    assert done.returncode == 1
    assert all(line.startswith("note: ") for line in done.stderr.decode().splitlines())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("subjects", [60, 5000])
def test_a_full_device_is_told(tmp_path, ending, subjects):
    """Whether it is full when losses are written, or only when the file is closed."""
    sample(subjects, 0).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / f"full.{ending}").symlink_to("/dev/full")
    with pytest.raises(StorageError, match=f"full.{ending} cannot be written: No space left on device"):
        run("score", tmp_path / "test.csv", *ASKED, "--out", tmp_path / f"full.{ending}")
    gc.collect()  # a warning of what is left open would be an error


# ---- streams that know few characters --------------------------------------------------------------------

ASCII = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


def test_signs_that_a_terminal_does_not_have(tmp_path):
    """Text is told in those it has; a table is data, in UTF-8 wherever it goes."""
    if not cs.__file__.isascii():
        pytest.skip("in the C locale Python does not find a package in a folder with such signs")
    table = sample(60, 0).rename(columns=lambda name: name.replace("exact", "größe"))
    table.to_csv(tmp_path / "test.csv", index=False)
    done = command("compare", "test.csv", *ASKED, stdout=subprocess.PIPE, env=ASCII[1], cwd=tmp_path)
    assert "mean loss +- standard error" in done.stdout.decode("ascii"), done.stderr.decode()
    assert "gr\\xf6\\xdfe" in done.stdout.decode("ascii")
    done = command(*SCORE, stdout=subprocess.PIPE, env=ASCII[0], cwd=tmp_path)
    assert "größe__crps" in done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow  # compare is the fast one of the commands that print text
def test_the_demo_on_a_terminal_of_few_signs(tmp_path):
    pytest.importorskip("lifelines")
    done = command("demo", "--out", tmp_path, stdout=subprocess.PIPE, env=ASCII[0])
    assert "mean loss +- standard error" in done.stdout.decode("ascii"), done.stderr.decode()


def test_the_package_is_the_command():
    done = command("--help", stdout=subprocess.PIPE, env=ASCII[0])
    assert "Usage: python -m censcore" in done.stdout.decode("ascii"), done.stderr.decode()
