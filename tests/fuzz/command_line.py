"""Commands with broken files, and with plausible wrong words in every option."""

from __future__ import annotations

import gzip
import math
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.fuzz.invariant import Count, Endless, limit
from typer.testing import CliRunner

from censcore.cli.app import app
from censcore.exceptions import CenscoreError
from censcore.plain_text import visible


@cache
def frame(causes: bool) -> pd.DataFrame:
    """A table with a column for every option, and predictions of one kind of event or of two causes."""
    rng, n = np.random.default_rng(3), 40
    T, C = rng.weibull(1.3, n), rng.uniform(0.2, 3.0, n)
    time, event = np.minimum(T, C).round(3), (T <= C).astype(int)
    table = pd.DataFrame({"time": time, "event": event})
    table["cause"] = event * (1 + np.arange(n) % 2)
    table["label"] = np.array(["censored", "a", "b"])[table["cause"]]
    table["lower"], table["upper"] = time, np.where(event == 1, time + 0.5, np.inf)
    table["visit_1"], table["visit_2"] = time, time + 0.5
    table["entry"], table["c"] = time / 4, np.where(event == 1, 3.5, time)
    table["site"], table["id"], table["w"], table["x"] = "s", np.arange(n) // 2, 1.0, rng.normal(size=n)
    for j, t in enumerate((0.5, 1.0, 2.0), start=1):
        if causes:
            table[f"cox__cif_a@{t}"], table[f"cox__cif_b@{t}"] = 0.1 * j, 0.2 * j
        else:
            table[f"cox__sf@{t}"], table[f"km__sf@{t}"] = np.exp(-(t**1.3)), np.exp(-t)
    return table


Write = Callable[[Path, pd.DataFrame], Path]


def _bytes(change: Callable[[bytes], bytes], name: str = "t.csv") -> Write:
    """The table as CSV, changed."""

    def write(folder: Path, table: pd.DataFrame) -> Path:
        (folder / name).write_bytes(change(table.to_csv(index=False).encode()))
        return folder / name

    return write


def _header(text: bytes) -> bytes:
    return text.split(b"\n")[0]


def _line(line: bytes) -> Callable[[bytes], bytes]:
    def change(text: bytes) -> bytes:
        lines = text.split(b"\n")
        return b"\n".join([*lines[:5], line, *lines[6:]])

    return change


def _parquet(change: Callable[[bytes], bytes] = bytes, name: str = "t.parquet") -> Write:
    def write(folder: Path, table: pd.DataFrame) -> Path:
        table.to_parquet(folder / name)
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        return folder / name

    return write


def _inverted(data: bytes, start: int, stop: int) -> bytes:
    return data[:start] + bytes(255 - x for x in data[start:stop]) + data[stop:]


def _table(change: Callable[[pd.DataFrame], pd.DataFrame], ending: str = ".csv") -> Write:
    def write(folder: Path, table: pd.DataFrame) -> Path:
        path, table = folder / f"t{ending}", change(table.copy())
        table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
        return path

    return write


def _renamed(time: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.rename(columns=lambda name: name.replace("@2.0", time))


def _gaps(table: pd.DataFrame) -> pd.DataFrame:
    return table.mask(pd.DataFrame(np.eye(*table.shape) > 0, columns=table.columns))


def _folder(name: str = "parts", **files: Callable[[bytes], bytes]) -> Write:
    def write(folder: Path, table: pd.DataFrame) -> Path:
        (folder / name).mkdir()
        for file, change in files.items():
            _bytes(change, f"{name}/{file.replace('_', '.')}")(folder, table)
        return folder / name

    return write


def _place(path: Callable[[Path], Path | str]) -> Write:
    return lambda folder, table: Path(path(folder))


def _loop(folder: Path) -> Path:
    (folder / "t.csv").symlink_to(folder / "t.csv")
    return folder / "t.csv"


def _pipe(content: bytes) -> Write:
    def write(folder: Path, table: pd.DataFrame) -> Path:
        os.mkfifo(folder / "t.csv")
        threading.Thread(target=_write_once, args=(folder / "t.csv", content), daemon=True).start()
        return folder / "t.csv"

    return write


def _write_once(path: Path, content: bytes) -> None:
    with suppress(OSError):  # nobody reads
        path.write_bytes(content)


#: Files that somebody may pass by mistake, or that broke on the way.
FILES: dict[str, Write] = {
    "header alone": _bytes(lambda text: _header(text) + b"\n"),
    "header alone without an end": _bytes(_header),
    "empty csv": _bytes(lambda text: b""),
    "empty lines": _bytes(lambda text: b"\n\n\n"),
    "not UTF-8 in a line": _bytes(_line(b"\xff" * 20)),
    "not UTF-8 in the header": _bytes(lambda text: b"\xe9" + text),
    "UTF-16": _bytes(lambda text: text.decode().encode("utf-16")),
    "byte order mark": _bytes(lambda text: b"\xef\xbb\xbf" + text),
    "a line too long": _bytes(_line(b"1," * 60)),
    "a quote without an end": _bytes(_line(b'"1,0')),
    "zeros": _bytes(lambda text: bytes(5000)),
    "zero bytes in a line": _bytes(_line(b"\x00,\x00,\x00")),
    "text in a line": _bytes(_line(b"a,b," * 9)),
    "huge numbers in a line": _bytes(_line(b"1e400,1e400," * 9)),
    "semicolons": _bytes(lambda text: text.replace(b",", b";")),
    "columns called alike": _bytes(lambda text: text.replace(b"event", b"time", 1)),
    "one column": _bytes(lambda text: b"time\n1\n2\n"),
    "a picture": _bytes(lambda text: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9),
    "csv called parquet": _bytes(bytes, "t.parquet"),
    "parquet called csv": _parquet(name="t.csv"),
    "empty parquet": _parquet(lambda data: b""),
    "damaged page": _parquet(lambda data: _inverted(data, 4, 4000)),
    "damaged bytes": _parquet(lambda data: _inverted(data, 40, 60)),
    "damaged footer": _parquet(lambda data: _inverted(data, -200, -100)),
    "cut off": _parquet(lambda data: data[: len(data) // 2]),
    "no rows": _table(lambda table: table[:0], ".parquet"),
    "no columns": _table(lambda table: table[[]], ".parquet"),
    "one row": _table(lambda table: table[:1]),
    "one row of parquet": _table(lambda table: table[:1], ".parquet"),
    "missing values": _table(_gaps),
    "a row of missing values": _table(lambda table: pd.concat([table, table[:0].reindex([99])])),
    "dates": _table(lambda table: table.assign(time=pd.Timestamp("2024-01-01")), ".parquet"),
    "text": _table(lambda table: table.astype(str), ".parquet"),
    "lists": _table(lambda table: table.assign(time=[[1.0]] * len(table)), ".parquet"),
    "no events": _table(lambda table: table.assign(event=0, cause=0, label="censored", upper=np.inf)),
    "times of 1e300": _table(lambda table: table.assign(time=table["time"] * 1e300), ".parquet"),
    "times of 1e-300": _table(lambda table: table.assign(time=table["time"] * 1e-300), ".parquet"),
    "infinite times": _table(lambda table: table.assign(time=math.inf)),
    "infinite forecasts": _table(lambda table: table.assign(**{"cox__sf@0.5": math.inf})),
    "a time that is no number": _table(_renamed("@x")),
    "a time of 1e400": _table(_renamed("@1e400")),
    "a time of -1": _table(_renamed("@-1")),
    "no forecasts": _table(lambda table: table.filter(regex="^[^@]*$")),
    "not compressed": _bytes(bytes, "t.csv.gz"),
    "compressed": _bytes(gzip.compress, "t.csv.gz"),
    "compressed, cut off": _bytes(lambda text: gzip.compress(text)[:500], "t.csv.gz"),
    "compressed, called csv": _bytes(gzip.compress),
    "no ending": _bytes(bytes, "t"),
    "escapes in the name": _bytes(lambda text: b"", "t\x1b[31m.csv"),
    "missing": _place(lambda folder: folder / "t.csv"),
    "missing parquet": _place(lambda folder: folder / "t.parquet"),
    "a long name": _place(lambda folder: folder / ("x" * 5000 + ".csv")),
    "a zero in the name": _place(lambda folder: f"{folder}/t\0.csv"),
    "a directory": _place(lambda folder: folder),
    "a directory called csv": _folder("t.csv", t_txt=bytes),
    "a directory of broken files": _folder(a_csv=lambda text: b"", b_csv=lambda text: b"\xff\n1\n"),
    "a directory of two kinds": _folder(a_csv=bytes, b_parquet=lambda text: b""),
    "a directory of two tables": _folder(a_csv=bytes, b_csv=lambda text: b"x\n1\n"),
    "a loop": _place(_loop),
    "a device": _place(lambda folder: "/dev/null"),
    "an empty pipe": _pipe(b""),
    "a broken pipe": _pipe(b"PAR1 no parquet"),
    "a pattern without files": _place(lambda folder: folder / "*.csv"),
}

#: Words that somebody may pass by mistake.
WORDS = (
    "", " ", ",", "x", "0", "-1", "1", "2.5", "1e20", "1e300", "-1e300", "1e-300", "1e400", "nan", "inf",
    "-inf", "9" * 20, "9" * 400, "0.5,1.0", "0.5,,x", "1,1", "x" * 5000, "a\x1b[31m\u202e", "٣", "1_000",
    "0x10", "True", "time", "event", "site", "label", "id", "w", "x,x", "cause", "cox__sf@0.5",
    "visit_*", "[", "*", "--", "None", "crps", "brier_score", "log_score,log_score", "cox", "weibull",
    "auto", "none", "km",
)  # fmt: skip
COLUMNS = (
    "--time", "--event", "--cause", "--causes", "--lower", "--upper", "--visits", "--covariates",
    "--stratify", "--censoring-time", "--entry",
)  # fmt: skip
WORDED = (
    *COLUMNS,
    "--times",
    "--levels",
    "--horizon",
    "--censoring",
    "--interpolation",
    "--tail",
    "--scores",
)
#: Processes are few, and no network is there.
GUARDED = {"--jobs": ("0", "x", "-9999999", "1.5", ""), "--dask": ("x", "tcp://127.0.0.1:1", "", "tcp://x:y")}
ALONE: dict[str, tuple[str, ...]] = {
    "compare": ("--reference", "--by", "--groups", "--weights", "--time-unit"),
    "score": (),
}
#: Places where nothing can be written, and some where it can.
OUTPUTS: dict[str, Callable[[Path], str]] = {
    "a directory": str,
    "below a file": lambda folder: f"{folder}/0/t.parquet/out.csv",
    "a full device": lambda folder: "/dev/full",
    "a long name": lambda folder: str(folder / ("x" * 5000)),
    "a zero in the name": lambda folder: f"{folder}/t\0.csv",
    "nothing": lambda folder: "",
    "a file": lambda folder: str(folder / "out.csv"),
    "a file of parquet": lambda folder: str(folder / "out.parquet"),
}
WRITTEN = {"compare": ("--html", "--json", "--store"), "score": ("--out",)}
DESIGNS: tuple[dict[str, str], ...] = (
    {},
    {"--cause": "cause", "--causes": "a,b"},
    {"--cause": "label", "--causes": "a,b"},
    {"--lower": "lower", "--upper": "upper", "--visits": "visit_*"},
    {"--censoring": "cox", "--covariates": "x"},
    {"--entry": "entry"},
    {"--censoring-time": "c"},
)


@dataclass(frozen=True)
class Command:
    """A command that is run in a folder of its own."""

    label: str
    name: str
    files: dict[str, str]
    options: dict[str, str]
    outputs: dict[str, str]


def draw(rng: np.random.Generator) -> Command:
    """A valid command with one or two mistakes."""

    def one_of(things: Any) -> Any:
        things = list(things)
        return things[rng.integers(len(things))]

    name = str(one_of(ALONE))
    options = dict(one_of(DESIGNS)) | ({"--batch": one_of(("7", "100"))} if rng.random() < 0.4 else {})
    files, outputs = {"predictions": ""}, {}
    if rng.random() < 0.3:
        files["--train"] = ""
    if rng.random() < 0.5:
        files[one_of(("predictions", "--train"))] = one_of(FILES)
    for _ in range(rng.integers(0 if any(files.values()) else 1, 3)):
        kind = rng.random()
        if kind < 0.1:
            option = one_of(GUARDED)
            options[option] = one_of(GUARDED[option])
        elif kind < 0.25:
            outputs[one_of(WRITTEN[name])] = one_of(OUTPUTS)
        else:
            options[one_of((*WORDED, *ALONE[name], "--batch"))] = one_of(WORDS)
    given = {**{k: v for k, v in files.items() if v}, **options, **outputs}
    label = " ".join(f"{option}={word[:40]!r}" for option, word in given.items())
    return Command(f"{name} {label}", name, files, options, outputs)


@contextmanager
def _arguments(command: Command) -> Iterator[list[str]]:
    """The words of a command, whose files are made in a new folder."""
    with tempfile.TemporaryDirectory() as place:
        paths = {}
        for number, (option, file) in enumerate(command.files.items()):
            folder = Path(place) / str(number)
            folder.mkdir()
            write = FILES[file] if file else _parquet()
            paths[option] = str(write(folder, frame("--cause" in command.options)))
        words = [command.name, paths.pop("predictions")]
        outputs = {option: OUTPUTS[output](Path(place)) for option, output in command.outputs.items()}
        for option, word in {**paths, **command.options, **outputs}.items():
            words.append(f"{option}={word}")
        yield words


def judge_command(command: Command, seconds: float = 20.0) -> tuple[str, str]:
    """How a command ends, in the words of :func:`tests.fuzz.invariant.judge`."""
    with _arguments(command) as words, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with limit(seconds):
                result = CliRunner().invoke(app, words)
        except Endless:
            return "hang", f"no end after {seconds:g} s"
    error = result.exception
    if isinstance(error, Endless):
        return "hang", f"no end after {seconds:g} s"
    if isinstance(error, CenscoreError):
        plain = len(str(error).split()) >= 4 and str(error) == visible(str(error))
        return ("error" if plain else "no words"), str(error)
    if error is not None and not isinstance(error, SystemExit):
        return "foreign error", f"{type(error).__name__}: {error}"
    if result.exit_code:
        return ("error" if len(result.output.split()) >= 4 else "no words"), result.output
    return ("NaN", "a table with NaN") if re.search(r"\bnan\b", result.stdout) else ("answer", "")


def fuzz_commands(examples: int, count: Count, seed: int = 0, seconds: float = 20.0) -> None:
    """Run commands with mistakes, and count how they end."""
    rng = np.random.default_rng(seed)
    for _ in range(examples):
        command = draw(rng)
        kind, words = judge_command(command, seconds)
        count.add("command line", command, kind, words)
