"""Run the benchmarks, each in its own process, and keep what they print in ``benchmarks/results``.

``python -m benchmarks`` runs all of them, ``python -m benchmarks crps import`` only those named.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
PEERS = ["scikit-survival", "scoringrules", "hazardous", "engression"]
PACKAGES = ["numpy", "scipy", "numba", "torch", "scikit-learn", *PEERS]


def available() -> list[str]:
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def header(name: str) -> str:
    """The command and the versions behind a result."""
    lines = [
        f"$ python -m benchmarks {name}",
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores",
        ", ".join(f"{package} {_version(package)}" for package in PACKAGES),
    ]
    return "\n".join(lines)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def run(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.bench_{name}"]
    printed = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = f"{header(name)}\n\n{printed}"
    print(result)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"{name}.txt").write_text(result, encoding="utf-8")


def main(asked: list[str]) -> None:
    unknown = sorted(set(asked) - set(available()))
    if unknown:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(available())}")
    for name in asked or available():
        run(name)


if __name__ == "__main__":
    main(sys.argv[1:])
