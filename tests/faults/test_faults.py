"""Kills by force, full disks and closed folders: nothing wrong is left, nothing finished is lost."""

from __future__ import annotations

import errno
import random
import sys
from itertools import pairwise

import pytest

if sys.platform == "win32":
    pytest.skip("signals and limits of Unix", allow_module_level=True)

from tests.faults import children
from tests.faults.children import Fault, results, run, start, wait

pytest.importorskip("torch")
pytest.importorskip("duckdb")
aki = pytest.importorskip("censcore_studies.aki")


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return aki.write_synthetic_database(tmp_path_factory.mktemp("database"), stays=40, seed=5)


@pytest.fixture(scope="module")
def arguments(database):
    """What each kind of work is given before its output folder."""
    return {children.build: (database,), children.whole_icu_study: (database,)}


WORK = [children.study, children.build, children.train]
LONG = [*WORK, children.whole_icu_study]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, arguments):
    """The results of each kind of work, and its number of events; made once."""
    known = {}

    def of(work):
        if work not in known:
            out = tmp_path_factory.mktemp("whole")
            ended = run(work, *arguments.get(work, ()), out, folder=out)
            assert ended.error == ""
            known[work] = results(out), ended.events
            assert len(known[work][0]) > 0
            assert ended.events > 3
        return known[work]

    return of


def points(work, events: int, count: int) -> list[int]:
    """Seeded events, spread over the whole run."""
    rng = random.Random(work.__name__)
    edges = [1 + events * i // count for i in range(count + 1)]
    return [rng.randrange(low, max(low + 1, high)) for low, high in pairwise(edges)]


def kills(work, events: int, count: int) -> list[Fault]:
    """Kills before such events and, in turn, shortly after they have begun."""
    rng = random.Random(work.__name__)
    found = points(work, events, count)
    return [Fault(kill_at=at, seconds=i % 2 * rng.uniform(1e-5, 1e-3)) for i, at in enumerate(found)]


def check_kills(work, arguments, uninterrupted, out, count: int) -> None:
    """Kill one run after the other, each later than the one before; then let one finish."""
    expected, events = uninterrupted(work)
    given = (*arguments.get(work, ()), out)
    killed = 0
    for kill in kills(work, events, count):
        ended = run(work, *given, folder=out, fault=kill)
        assert ended.error == ""
        killed += ended.killed
    assert killed
    assert run(work, *given, folder=out).error == ""
    assert results(out) == expected


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_a_killed_run_that_is_resumed_equals_an_uninterrupted_one(work, arguments, uninterrupted, tmp_path):
    check_kills(work, arguments, uninterrupted, tmp_path, count=2)


@pytest.mark.slow
@pytest.mark.parametrize("work", LONG, ids=lambda work: work.__name__)
def test_runs_killed_at_many_points(work, arguments, uninterrupted, tmp_path):
    check_kills(work, arguments, uninterrupted, tmp_path / "in turn", count=12)
    expected, events = uninterrupted(work)
    for kill in kills(work, events, 12):  # each from the start
        out = tmp_path / str(kill.kill_at)
        given = (*arguments.get(work, ()), out)
        run(work, *given, folder=out, fault=kill)
        assert run(work, *given, folder=out).error == ""
        assert results(out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("work", LONG, ids=lambda work: work.__name__)
def test_runs_killed_after_random_times(work, arguments, uninterrupted, tmp_path):
    """Not between two changes of files, but anywhere: also while numbers are computed."""
    import time

    expected, _ = uninterrupted(work)
    begun = time.monotonic()
    run(work, *arguments.get(work, ()), tmp_path / "timed", folder=tmp_path / "timed")
    whole, rng = time.monotonic() - begun, random.Random(work.__name__)
    given = (*arguments.get(work, ()), tmp_path / "out")
    for _ in range(8):
        child, pipe = start(work, *given, folder=tmp_path)
        child.join(rng.uniform(0.02, 0.5) * whole)
        child.kill()
        child.join()
        pipe.close()
    assert run(work, *given, folder=tmp_path).error == ""
    assert results(tmp_path / "out") == expected


def test_two_runs_on_one_store(uninterrupted, tmp_path):
    """Both finish, and their files are those of one."""
    both = [start(children.study, tmp_path, folder=tmp_path) for _ in range(2)]
    assert [wait(each).error for each in both] == ["", ""]
    assert results(tmp_path) == uninterrupted(children.study)[0]


def test_two_builds_in_one_folder(arguments, uninterrupted, tmp_path):
    """One builds; the other says that it does, or finds everything done."""
    given = (*arguments[children.build], tmp_path)
    both = [start(children.build, *given, folder=tmp_path) for _ in range(2)]
    said = [wait(each) for each in both]
    assert any(each.error == "" for each in said)
    assert all(each.ours and ("Another run" in each.error or each.error == "") for each in said)
    assert results(tmp_path) == uninterrupted(children.build)[0]


def check_one_sentence(ended, number: int) -> None:
    import os

    assert ended.error.startswith("StorageError: ")
    assert os.strerror(number) in ended.error
    assert "\n" not in ended.error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_a_disk_that_cannot_be_written_is_one_sentence(work, number, arguments, uninterrupted, tmp_path):
    """From some event on nothing can be written; what was finished before is there in the next run."""
    expected, events = uninterrupted(work)
    given = (*arguments.get(work, ()), tmp_path)
    first = 1 if number == errno.EROFS else points(work, events, 2)[1]
    ended = run(work, *given, folder=tmp_path, fault=Fault(fail_from=first, errno=number))
    check_one_sentence(ended, number)
    finished = results(tmp_path)
    assert {name: expected[name] for name in finished} == finished
    if number == errno.EROFS:
        assert finished == {}
        return
    assert run(work, *given, folder=tmp_path).error == ""
    assert results(tmp_path) == expected


@pytest.mark.parametrize(("work", "size"), [(children.build, 4000), (children.train, 6000)])
def test_files_that_may_not_grow(work, size, arguments, uninterrupted, tmp_path):
    """As on a full disk, the write itself fails, also those of DuckDB, which Python does not see."""
    given = (*arguments.get(work, ()), tmp_path)
    ended = run(work, *given, folder=tmp_path, fault=Fault(largest_file=size))
    check_one_sentence(ended, errno.EFBIG)
    assert not list(tmp_path.rglob("*.partial"))
    assert run(work, *given, folder=tmp_path).error == ""
    assert results(tmp_path) == uninterrupted(work)[0]


def test_a_folder_that_is_a_file(arguments, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    out = tmp_path / "file" / "out"
    for work in WORK:
        ended = run(work, *arguments.get(work, ()), out, folder=out)
        check_one_sentence(ended, errno.ENOTDIR)
