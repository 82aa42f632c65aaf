"""Build the archives, check them, and try the wheel in fresh environments: ``release_check.py [TRIAL ...]``.

A trial is an extra, installed alone and used as promises.py has it; ``readme``, the page on the wheel without
extras; ``pages``, the README and the gallery; or ``tests``, all tests of the unpacked archive. Without names
all but the last are made. The Python that runs this makes the environments.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"
EXTRAS = ["plots", "cli", "dask", "fast", "demo", "torch"]
#: Other packages, and arguments of pytest.
BY_PYTEST = {
    "readme": ([], ["tests/test_install.py", "-k", "readme"]),
    "pages": (
        ["hazardous", "scikit-survival", "xgboost-cpu"],
        ["tests/test_docs.py", "-k", "blocks_run and (README or gallery)"],
    ),
    "tests": ([], ["-m", "not slow"]),
}


def run(*words: str | Path, cwd: Path) -> None:
    """Run a command, or end with its status."""
    print("$", *words, flush=True)
    status = subprocess.run(list(map(str, words)), cwd=cwd, check=False).returncode
    if status:
        sys.exit(f"release check: {' '.join(map(str, words))} ended with {status}")


def environment(folder: Path, *packages: str) -> Path:
    """The Python of a new environment with some packages."""
    run(sys.executable, "-m", "venv", folder, cwd=ROOT)
    python = folder / BIN / "python"
    run(python, "-m", "pip", "install", "-qq", *packages, cwd=folder)
    return python


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel, made from the source archive, and the folder of the unpacked archive."""
    python = environment(folder / "build", "build", "twine")
    dist = ROOT / "dist"
    for old in dist.glob("censcore-*"):
        old.unlink()
    run(python, "-m", "build", "--outdir", dist, ROOT, cwd=folder)
    (wheel,), (archive,) = dist.glob("censcore-*.whl"), dist.glob("censcore-*.tar.gz")
    run(python, "-m", "twine", "check", "--strict", wheel, archive, cwd=folder)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return wheel, folder / archive.name.removesuffix(".tar.gz")


def main() -> None:
    """Build, check, try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    default = ["readme", "pages", *EXTRAS]
    parser.add_argument("trials", nargs="*", metavar="TRIAL", default=default)
    parser.add_argument("--newest", action="store_true", help="without the pins of constraints.txt")
    given = parser.parse_args()
    if unknown := set(given.trials) - {*BY_PYTEST, *EXTRAS}:
        parser.error(f"got {', '.join(unknown)}, expected some of {', '.join([*BY_PYTEST, *EXTRAS])}")
    pins = [] if given.newest else ["--constraint", str(ROOT / "constraints.txt")]
    # pages that need torch are skipped where it is not to be tried
    pages = "cli,demo,torch" if "torch" in given.trials else "cli,demo"
    extras = {"readme": "", "pages": f"[{pages}]", "tests": "[test]"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = build(folder)
        for trial in given.trials:
            wanted = f"{wheel}{extras.get(trial, f'[{trial}]')}"
            if trial in EXTRAS:
                python = environment(folder / trial, *pins, wanted)
                run(python, ROOT / ".ci" / "promises.py", trial, cwd=folder / trial)
            else:
                packages, arguments = BY_PYTEST[trial]
                python = environment(folder / trial, *pins, wanted, "pytest", "hypothesis", *packages)
                run(python, "-m", "pytest", "-q", *arguments, cwd=source)
    print(f"release check: passed {', '.join(given.trials)}; dist/ has {wheel.name} and its source archive")


if __name__ == "__main__":
    main()
