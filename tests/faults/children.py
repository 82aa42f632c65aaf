"""Work in other processes, which are killed, or find their disk full or closed, at chosen points.

Every change of a file below a folder is an event. A child dies before its n-th event, or its events fail from
the n-th on: the same points in every run, however busy the machine is.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.learning.small_trainings import engression

CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}
GROWTH = {"open", "os.mkdir"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

#: What the work imports: children are forks of one process that has done so, and start at once.
IMPORTED = (
    "duckdb", "matplotlib.figure", "matplotlib.backends.backend_agg", "pandas", "rich.console", "rich.table",
    "sklearn.isotonic", "torch._dynamo", "array_api_compat.torch", "censcore.cli.app",
    "censcore.learning.engression.estimator", "censcore_studies.aki.study",
    "censcore_studies.cli.reproduce", "censcore_studies.forecast_evaluation.raw",
)  # fmt: skip

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__, *IMPORTED])


@dataclass(frozen=True)
class Fault:
    """What happens to a child: it is killed, before an event or some seconds after it has begun, its events
    fail, or its files may not grow."""

    kill_at: int = 0
    seconds: float = 0.0
    fail_from: int = 0
    errno: int = 0
    largest_file: int | None = None


@dataclass(frozen=True)
class Ended:
    """How a child ended: what it raised, in words, and whether that is an error of ours."""

    killed: bool
    events: int = 0
    error: str = ""
    ours: bool = True


def run(work: Callable[..., None], *arguments: Any, folder: Path, fault: Fault | None = None) -> Ended:
    """Do ``work(*arguments)`` in a child; its events are the changes below ``folder``."""
    return wait(start(work, *arguments, folder=folder, fault=fault))


def start(work: Callable[..., None], *arguments: Any, folder: Path, fault: Fault | None = None) -> Any:
    """Begin what :func:`run` does."""
    ours, theirs = _processes.Pipe(duplex=False)
    child = _processes.Process(target=_child, args=(theirs, work, arguments, str(folder), fault or Fault()))
    child.start()
    theirs.close()
    return child, ours


def wait(started: Any) -> Ended:
    """How a child that was started ends."""
    child, pipe = started
    try:
        ended: Ended = pipe.recv()
    except EOFError:
        ended = Ended(killed=True)
    child.join()
    assert (child.exitcode in (-signal.SIGKILL, -signal.SIGALRM)) == ended.killed
    return ended


def _child(pipe: Any, work: Callable[..., None], arguments: Any, folder: str, fault: Fault) -> None:
    count = 0

    def watch(event: str, values: Any) -> None:
        nonlocal count
        if not _changes(event, values, folder):
            return
        count += 1
        if count == fault.kill_at and fault.seconds:
            signal.setitimer(signal.ITIMER_REAL, fault.seconds)  # the alarm ends a process as a kill does
        elif count == fault.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.fail_from and count >= fault.fail_from and event in GROWTH:
            raise OSError(fault.errno, os.strerror(fault.errno), values[0])

    if fault.largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.largest_file, fault.largest_file))
    sys.addaudithook(watch)
    from censcore.exceptions import CenscoreError

    try:
        work(*arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        pipe.send(Ended(False, count, text, isinstance(error, CenscoreError)))
    else:
        pipe.send(Ended(False, count))


def _changes(event: str, values: Any, folder: str) -> bool:
    if event not in CHANGES and not (event == "open" and isinstance(values[2], int) and values[2] & WRITING):
        return False
    return isinstance(values[0], str | os.PathLike) and os.fspath(values[0]).startswith(folder)


# ---- work ------------------------------------------------------------------------------------------


def study(out: Path) -> None:
    """A study of the paper by the command line, tiny."""
    from censcore.cli.app import app

    words = ["reproduce", "raw-scores", "--replications", "1", "--n", "30", "--out", str(out)]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        app(words, standalone_mode=False)


def build(database: Path, out: Path) -> None:
    """The data part of the ICU study."""
    from censcore_studies import aki

    settings = aki.AkiSettings(rows=aki.RowSettings(stays_per_part=20))
    aki.build(database, out, settings, resources=aki.Resources(threads=1, memory_limit="500MB"))


def whole_icu_study(database: Path, out: Path) -> None:
    """All stages of the ICU study, with two methods, tiny."""
    from censcore_studies import aki

    size = {"epochs": 3, "batch_size": 64}
    small = {"width": 8, "depth": 1, "noise_dim": 2, "samples": 2, "validate_every": 1}
    tiny = aki.Preset("tiny", 300, 100, 200, 10, small | size, size, hidden=(4,), bins=4, members=16)
    settings = aki.AkiSettings(rows=aki.RowSettings(stays_per_part=20))
    aki.run_all(database, out, tiny, ["naive", "censored"], settings=settings, device="cpu")


def train(out: Path) -> None:
    """Training of engression with a checkpoint, saved when it is done."""
    import numpy as np
    import torch

    import censcore as cs

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(80, 2)), rng.exponential(size=(80, 2))
    y = cs.RightCensored(np.minimum(T, 1.5), T <= 1.5, np.full(80, 1.5))
    model = engression(
        width=8,
        depth=2,
        noise_dim=4,
        epochs=4,
        n_networks=2,
        random_state=0,
        device="cpu",
        checkpoint=out / "state",
    )
    model.fit(X, y).save(out / "model")


# ---- what it leaves --------------------------------------------------------------------------------


def results(out: Path) -> dict[str, Any]:
    """The content of all files that a study, a build or a training left, without the time that they took."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not _passing(path):
            found[name] = _timeless(path)
    return found


def _passing(path: Path) -> bool:
    """Locks, checkpoints and what killed writers left: no result."""
    leftover = path.name.startswith(".") and path.name.endswith(".partial")
    passing = path.name in (".lock", "source.json") or path.name.startswith("state")
    return leftover or passing or "checkpoints" in path.parts


COSTS = {"seconds", "cost", "checksum", "command", "memory_gib", "gpu_gib"}


def _timeless(path: Path) -> Any:
    import json

    if path.suffix == ".json":
        content = json.loads(path.read_text("utf-8"))
        return _without(content)
    if path.name == "report.html":
        before, _, after = path.read_text("utf-8").partition("<h2>Time and memory</h2>")
        return before + after.partition("<h2>")[2]
    return path.read_bytes()


def _without(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without(value) for name, value in content.items() if name not in COSTS}
    return [_without(value) for value in content] if isinstance(content, list) else content
