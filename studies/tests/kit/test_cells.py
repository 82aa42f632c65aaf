"""Cells of a study: pure, computed once, safe against kills, the same on any machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.kit.cells import Cell, finished_cells, run_cells

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from traced_work import square  # noqa: E402

SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from traced_work import square
from censcore_studies.kit.cells import Cell, run_cells
cells = [Cell(f"square-{{x}}", {{"x": x, "traces": {traces!r}, "sleep": {sleep}}}) for x in range({count})]
if __name__ == "__main__":
    run_cells(square, cells, {out!r}, jobs={jobs}, progress=False)
"""


def plain_cells(count: int) -> list[Cell]:
    return [Cell(f"square-{x}", {"x": x}) for x in range(count)]


def numbers(results: list[dict]) -> list[tuple]:
    return [(r["value"], r["noise"]) for r in results]


def test_results_come_in_order_with_settings_and_time():
    results = run_cells(square, plain_cells(3), progress=False)
    assert [r["value"] for r in results] == [0, 1, 4]
    assert [r["settings"] for r in results] == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert all(r["seconds"] >= 0 for r in results)


def test_two_processes_give_the_numbers_of_one(tmp_path):
    one = run_cells(square, plain_cells(6), progress=False)
    two = run_cells(square, plain_cells(6), tmp_path, jobs=2, progress=False)
    assert numbers(one) == numbers(two)
    assert len(list((tmp_path / "cells").glob("*.json"))) == 6


def test_finished_cells_are_not_computed_again(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    cells = [Cell(f"square-{x}", {"x": x, "traces": str(traces)}) for x in range(4)]
    first = run_cells(square, cells[:2], tmp_path, progress=False)
    whole = run_cells(square, cells, tmp_path, progress=False)
    again = run_cells(square, cells, tmp_path, progress=False)
    assert len(list(traces.iterdir())) == 4
    assert whole[:2] == first
    assert again == whole


def test_other_settings_are_another_cell():
    assert Cell("a", {"x": 1}).key != Cell("a", {"x": 2}).key
    assert Cell("a", {"x": 1, "y": 2}).key == Cell("a", {"y": 2, "x": 1}).key


def test_what_a_cell_leaves_at_its_default_is_part_of_its_key(tmp_path):
    usual = Cell("a", {"x": 1}, {"study": "squares 1", "draws": 32})
    assert usual.key == Cell("a", {"x": 1, "draws": 32}, {"study": "squares 1"}).key
    assert usual.key != Cell("a", {"x": 1, "draws": 64}, usual.fixed).key
    assert usual.key != Cell("a", {"x": 1}, {"study": "squares 1", "draws": 64}).key
    assert usual.key != Cell("a", {"x": 1}, {"study": "squares 2", "draws": 32}).key
    run_cells(square, [usual], tmp_path, progress=False)
    assert [r["value"] for r in finished_cells(tmp_path, "squares 1")] == [1]
    assert list(finished_cells(tmp_path, "squares 2")) == []


def test_a_result_in_the_wrong_place_is_not_shown(tmp_path):
    one, two = plain_cells(3)[1:]
    run_cells(square, [one], tmp_path, progress=False)
    cells = tmp_path / "cells"
    shutil.copy(cells / f"{one.key}.json", cells / f"{two.key}.json")
    assert run_cells(square, [two], tmp_path, progress=False)[0]["value"] == 4


def test_two_runs_share_a_folder(tmp_path):
    traces, out = tmp_path / "traces", tmp_path / "out"
    traces.mkdir()
    script = tmp_path / "study.py"
    filled = {"here": str(HERE), "traces": str(traces), "out": str(out), "count": 8, "jobs": 1}
    script.write_text(SCRIPT.format(sleep=0.1, **filled), encoding="utf-8")
    runs = [subprocess.Popen([sys.executable, str(script)]) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    results = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("cells/*.json")]
    assert sorted(r["value"] for r in results) == [x**2 for x in range(8)]
    cells = [Cell(f"square-{x}", {"x": x, "traces": str(traces), "sleep": 0.1}) for x in range(8)]
    before = len(list(traces.iterdir()))
    run_cells(square, cells, out, progress=False)
    assert len(list(traces.iterdir())) == before


def test_a_cell_asked_for_twice_is_refused():
    with pytest.raises(InvalidInputError, match="same name and settings"):
        run_cells(square, [Cell("a", {"x": 1}), Cell("a", {"x": 1})], progress=False)


def test_progress_bar_changes_nothing():
    assert numbers(run_cells(square, plain_cells(2))) == numbers(
        run_cells(square, plain_cells(2), progress=False)
    )


def _wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the study did not get under way"
        time.sleep(0.02)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a system without process groups")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_study_goes_on_where_it_stopped(tmp_path, jobs):
    traces, out = tmp_path / "traces", tmp_path / "out"
    traces.mkdir()
    script = tmp_path / "study.py"
    filled = {"here": str(HERE), "traces": str(traces), "out": str(out), "count": 8, "jobs": jobs}
    script.write_text(SCRIPT.format(sleep=0.2, **filled), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
    _wait_for(lambda: len(list(out.glob("cells/*.json"))) >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path.name for path in out.glob("cells/[!.]*.json")}
    assert 3 <= len(finished) < 8
    before = {path.name for path in traces.iterdir()}
    done = subprocess.run([sys.executable, str(script)], check=False)
    assert done.returncode == 0
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("cells/[!.]*.json"))]
    assert sorted(r["value"] for r in results) == [x**2 for x in range(8)]
    recomputed = {name.split("-")[0] for name in {p.name for p in traces.iterdir()} - before}
    assert recomputed == {str(x) for x in range(8)} - {name.split("-")[1] for name in finished}


def test_an_interrupted_run_says_what_it_has(tmp_path, caplog):
    def work(settings):
        if settings["x"] == 2:
            raise KeyboardInterrupt
        return {"value": settings["x"]}

    with pytest.raises(KeyboardInterrupt):
        run_cells(work, plain_cells(5), tmp_path, progress=False)
    assert f"2 of 5 cells are in {tmp_path / 'cells'}; run it again" in caplog.text


def test_a_damaged_file_is_computed_anew(tmp_path):
    first = run_cells(square, plain_cells(2), tmp_path, progress=False)
    damaged = next((tmp_path / "cells").glob("square-1-*.json"))
    damaged.write_text(damaged.read_text(encoding="utf-8")[:20], encoding="utf-8")
    assert numbers(run_cells(square, plain_cells(2), tmp_path, progress=False)) == numbers(first)
    assert json.loads(damaged.read_text(encoding="utf-8"))["value"] == 1
