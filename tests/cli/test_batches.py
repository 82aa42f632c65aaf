"""``censcore compare`` and ``censcore score`` of tables that are read in batches."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.streaming.tables import make_competing, make_table
from typer.testing import CliRunner

from censcore.cli.app import app
from censcore.cli.options import Source
from censcore.exceptions import InvalidInputError
from censcore.tables import memory_of

COMMON = ("--time", "t", "--event", "d", "--scores", "crps,brier_score:ipcw", "--times", "50,100")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    table = make_table(300)
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet", row_group_size=80)
    make_table(200, seed=1).to_parquet(folder / "train.parquet")
    (folder / "parts").mkdir()
    for i in range(3):
        table.iloc[100 * i : 100 * (i + 1)].to_parquet(folder / "parts" / f"{i}.parquet")
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def numbers(folder, *arguments) -> pd.DataFrame:
    run("compare", *arguments, *COMMON, "--by", "site", "--json", folder / "out.json")
    found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return pd.DataFrame(found["means"]).query("proper")[
        ["group", "score", "model", "mean", "standard_error", "skill"]
    ]


COX = ("--censoring", "cox", "--covariates", "scale,site")


@pytest.mark.parametrize(
    "more",
    [
        ("--weights", "w", "--groups", "clinic"),
        ("--entry", "since"),
        pytest.param(COX, marks=pytest.mark.slow),
    ],
    ids=["clusters", "delayed entry", "Cox regression of C"],
)
def test_compare_in_batches_gives_what_it_gives_whole(folder, more):
    options = ("--train", folder / "train.parquet", *more)
    whole = numbers(folder, folder / "table.parquet", *options)
    paths = [("table.csv", 70), ("table.parquet", 80), ("parts", None), ("parts/*.parquet", None)]
    for path, batch in paths[: 1 if "--entry" in more or more is COX else 4]:
        size = () if batch is None else ("--batch", batch)
        found = numbers(folder, folder / path, *options, *size)
        pd.testing.assert_frame_equal(found, whole, rtol=1e-11, check_exact=False)


@pytest.mark.parametrize("out", ["losses.csv", "losses.parquet"])
def test_score_in_batches_gives_what_it_gives_whole(folder, out):
    read = pd.read_csv if out.endswith("csv") else pd.read_parquet
    run("score", folder / "table.parquet", *COMMON, "--out", folder / out)
    whole = read(folder / out)
    for path, batch in (("table.csv", 70), ("table.parquet", 80), ("parts", 1000)):
        run("score", folder / path, *COMMON, "--out", folder / out, "--batch", batch)
        pd.testing.assert_frame_equal(read(folder / out), whole, rtol=1e-12)
    printed = run("score", folder / "parts", *COMMON)
    assert len([line for line in printed.splitlines() if line[:1].isdigit()]) == len(whole) == 300
    assert not list(folder.glob(".*partial"))


CAUSES = ("--time", "t", "--cause", "cause", "--scores", "crps,brier_score", "--times", "50,100")


@pytest.mark.parametrize(
    "names",
    [("--causes", "relapse,death"), pytest.param((), marks=pytest.mark.slow)],
    ids=["names", "numbers"],
)
def test_competing_risks_in_batches_are_those_of_the_whole_file(tmp_path, names):
    table = make_competing(300)
    if names:
        table["cause"] = np.array(["censored", "relapse", "death"])[table["cause"]]
    table.to_csv(tmp_path / "table.csv", index=False)
    table.iloc[100:].to_csv(tmp_path / "train.csv", index=False)
    train = ("--train", tmp_path / "train.csv")
    means = []
    for size in ((), ("--batch", 70)):
        run(
            "compare", tmp_path / "table.csv", *CAUSES, *names, *train, *size, "--json", tmp_path / "out.json"
        )
        found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        means.append(
            pd.DataFrame(found["means"]).query("proper")[["score", "outcome", "model", "mean", "skill"]]
        )
        run("score", tmp_path / "table.csv", *CAUSES, *names, *size, "--out", tmp_path / f"{len(size)}.csv")
    pd.testing.assert_frame_equal(*means, rtol=1e-11, check_exact=False)
    assert len(set(means[0]["outcome"])) == 4
    losses = [pd.read_csv(tmp_path / f"{n}.csv") for n in (0, 2)]
    pd.testing.assert_frame_equal(*losses, rtol=1e-11, check_exact=False)


def test_intervals_are_not_read_in_batches(folder):
    with pytest.raises(InvalidInputError, match="intervals are compared in memory"):
        run("compare", folder / "table.csv", "--lower", "since", "--upper", "t", "--batch", 100)


def test_a_score_that_fails_leaves_no_file(folder, tmp_path):
    table = make_table(300)
    table.loc[250, "good__sf@100"] = 7.0
    table.to_parquet(tmp_path / "bad.parquet", row_group_size=100)
    with pytest.raises(InvalidInputError, match="good"):
        run("score", tmp_path / "bad.parquet", *COMMON, "--out", tmp_path / "x.csv", "--batch", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.parquet"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--event", "d", "--cause", "d"), "both of --event and --cause"),
        (("--event", "d", "--censoring", "cox", "--covariates", "w"), "got no --train"),
        (("--event", "d", "--covariates", "w"), "is tested with all subjects in memory"),
        (("--event", "d", "--batch", "0"), "--batch must be a whole number from 1"),
        (("--event", "d", "--dask", "nowhere"), "expected the address of a scheduler"),
        (("--event", "d", "--dask", "tcp://127.0.0.1:9"), "no Dask scheduler at tcp://127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "score"])
def test_what_cannot_be_read_in_batches_says_so(folder, command, options, match):
    size = () if "--batch" in options or "--dask" in options else ("--batch", 100)
    with pytest.raises(InvalidInputError, match=match):
        run(command, folder / "table.csv", "--time", "t", *options, *size)


def test_options_of_batches_need_batches(folder):
    with pytest.raises(InvalidInputError, match="pass --batch"):
        run("compare", folder / "table.csv", *COMMON, "--jobs", 2)
    with pytest.raises(InvalidInputError, match="pass --batch"):
        run("score", folder / "table.csv", *COMMON, "--jobs", 2)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_file_is_read_in_batches_by_its_size_in_memory(folder, name):
    """Compressed bytes say little: numbers that repeat take hardly any of them."""
    table = pd.read_parquet(folder / "table.parquet")
    size = 8 * table.shape[0] * table.shape[1] / 1e6
    assert memory_of(folder / name) / 1e6 == pytest.approx(size, rel=0.05)
    found = run("compare", folder / name, *COMMON, "--memory", size / 2)
    assert f"more than --memory {size / 2:g}: it is read in batches of 100000 rows." in found
    assert "concordance" not in found  # needs the subjects in memory
    whole = run("compare", folder / name, *COMMON, "--memory", size * 2)
    assert "when it is decoded" not in whole
    assert "concordance" in whole
    assert run("compare", folder / name, *COMMON) == whole


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"covariates": "scale"}, "whether covariates predict censoring is tested with all subjects"),
        ({"censoring": "auto"}, "whether covariates predict censoring is tested with all subjects"),
        (
            {"censoring": "cox", "covariates": "w"},
            "--censoring cox is fitted to all subjects, without --train",
        ),
        ({"lower": "lower", "upper": "upper"}, "intervals are compared in memory"),
        ({"censoring": "cox", "covariates": "w", "train": Path("train.parquet")}, ""),
    ],
)
def test_a_large_file_that_is_read_whole_says_why(folder, capsys, options, why):
    assert Source(folder / "table.csv", memory=0.001, **options).in_batches is not bool(why)
    assert (why or "it is read in batches") in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--train", "train.parquet"), COX], ids=["", "train", "Cox"])
@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "parts"])
def test_a_store_of_sums_is_written_and_read_again(folder, tmp_path, monkeypatch, name, more):
    options = [folder / word if word == "train.parquet" else word for word in more]
    if more is COX:
        options += ["--train", folder / "train.parquet"]
    store = tmp_path / "sums"

    def numbers_with(*further: object) -> str:
        out = tmp_path / "out.json"
        run("compare", folder / name, *COMMON, *options, "--batch", 80, "--json", out, *further)
        found = json.loads(out.read_text(encoding="utf-8"))
        return json.dumps([found["means"], found["differences"]])  # to the last bit

    plain = numbers_with()
    assert numbers_with("--store", store) == plain
    kept = sorted(store.glob("*.safetensors"))
    assert len(kept) > 4
    for path in kept[::2]:  # as if stopped between batches
        path.unlink()
    assert numbers_with("--store", store, "--jobs", 1) == plain
    assert sorted(store.glob("*.safetensors")) == kept
    monkeypatch.setattr("censcore.evaluation.parts.batches.sums.PartialSums.write", _not_again)
    assert numbers_with("--store", store, "--quiet") == plain


def _not_again(*_):
    raise AssertionError("a batch was scored again")


def test_a_run_that_is_killed_goes_on_to_the_same_numbers(folder, tmp_path):
    """At any moment: what was written is whole, or not there."""
    store, out = tmp_path / "sums", tmp_path / "out.json"
    table = pd.concat([make_table(300, seed) for seed in range(20)], ignore_index=True)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=100)
    command = [
        sys.executable, "-m", "censcore", "compare", tmp_path / "table.parquet", *COMMON, "--batch", "100",
        "--store", store, "--quiet", "--json", out,
    ]  # fmt: skip
    for least in (3, 70, 130):  # in the first, the second and the third phase
        process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(store.glob("*.safetensors"))) < least:
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert not out.exists()
    run(*command[3:])
    resumed = json.loads(out.read_text(encoding="utf-8"))
    run("compare", tmp_path / "table.parquet", *COMMON, "--batch", 100, "--quiet", "--json", out)
    assert resumed == json.loads(out.read_text(encoding="utf-8"))
