"""Compare what comparisons give with what they gave at another commit, a tool for large changes of structure.

    python -m benchmarks.freeze compare                   # this working tree with the base commit
    python -m benchmarks.freeze compare --only folds      # of cases with this word in their names
    python -m benchmarks.freeze compare --commit HEAD~3
    python -m benchmarks.freeze record                    # the contents at the base commit alone

Both sides run the cases of this working tree, the other one with the source of its commit. Its contents are
kept in the folder for temporary files, by commit, cases and versions. What may differ is in
``permitted.json``: the case, where it is, the old value, the new one, and the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from benchmarks.freeze.changes import changes, left_over

ROOT = Path(__file__).parents[2]
BASE = "2cee85bf43421d62ba334ad53272c6c0b044b117"  # what is compared with by default
SHOWN = 40  # changes that are printed
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CENSCORE_THREADS")


def run(source: Path, out: Path, only: str) -> None:
    """Write the contents of the cases with the library under ``source``, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.freeze", "write", "--source", str(source), "--out", str(out)]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment |= {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]), "PYTHONHASHSEED": "0"}
    subprocess.run([*command, "--only", only], check=True, cwd=ROOT, env=environment)


def write(source: Path, out: Path, only: str) -> None:
    """Do so in this process."""
    import censcore
    from benchmarks.freeze.cases import CASES
    from benchmarks.freeze.content import record

    imported = Path(str(censcore.__file__)).resolve()
    if source.resolve() not in imported.parents:
        sys.exit(f"got {imported}, expected the library under {source}")
    contents = record([name for name in CASES if only in name])
    partial = out.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(contents), encoding="utf-8")
    partial.replace(out)


def commit_of(name: str) -> str:
    """The full name of a commit."""
    asked = ["git", "rev-parse", "--verify", f"{name}^{{commit}}"]
    return subprocess.run(asked, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def contents_at(commit: str, only: str) -> dict[str, Any]:
    """The contents at a commit, which are kept; its source is unpacked into a folder that goes again."""
    key = hashlib.blake2b(digest_size=12)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        key.update(path.read_bytes())
    about = (
        only,
        platform.python_version(),
        np.__version__,
        scipy.__version__,
        os.environ.get("OPENBLAS_CORETYPE"),
    )
    key.update(repr(about).encode())
    folder = Path(tempfile.gettempdir()) / f"censcore-freeze-{os.getuid()}" / commit
    out = folder / f"{key.hexdigest()}.json"
    if not out.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as where:
            packed = Path(where) / "src.tar"
            subprocess.run(["git", "archive", "-o", str(packed), commit, "src"], check=True, cwd=ROOT)
            with tarfile.open(packed) as archive:
                archive.extractall(where, filter="data")
            run(Path(where) / "src", out, only)
    return dict(json.loads(out.read_text(encoding="utf-8")))


def contents_now(only: str) -> dict[str, Any]:
    """The contents of this working tree."""
    with tempfile.TemporaryDirectory() as where:
        out = Path(where) / "now.json"
        run(ROOT / "src", out, only)
        return dict(json.loads(out.read_text(encoding="utf-8")))


def compare(commit: str, only: str) -> int:
    """Print what differs and is not permitted; how many changes these are."""
    old, new = contents_at(commit, only), contents_now(only)
    found = [change for name in new for change in changes(name, old[name], new[name])]
    permitted = json.loads((Path(__file__).parent / "permitted.json").read_text(encoding="utf-8"))
    rest, unused = left_over(found, permitted)
    for change in rest[:SHOWN]:
        print(change)
    if len(rest) > SHOWN:
        print(f"... and {len(rest) - SHOWN} more")
    failed = [name for name, content in new.items() if isinstance(content, dict) and "failed" in content]
    by_case = {name: sum(change.case == name for change in rest) for name in new}
    print(
        f"\n{len(new)} cases, {sum(map(bool, by_case.values()))} of them differ from {commit[:10]}: ", end=""
    )
    print(f"{len(rest)} changes, {len(found) - len(rest)} permitted ones; {len(failed)} cases fail")
    for name, count in by_case.items():
        if count:
            print(f"{count:8,} {name}")
    for each in unused if not only else []:
        print(f"nothing needs the permission {each}")
    return len(rest) + len(failed)


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.freeze", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=["compare", "record", "write"])
    parser.add_argument("--commit", default=BASE, help="to compare with")
    parser.add_argument("--only", default="", help="cases whose names contain it")
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.what == "write":
        write(asked.source, asked.out, asked.only)
        return 0
    commit = commit_of(asked.commit)
    if asked.what == "record":
        print(f"{len(contents_at(commit, asked.only))} cases at {commit}")
        return 0
    return int(compare(commit, asked.only) > 0)


if __name__ == "__main__":
    sys.exit(main())
