"""Run every library that is installed: ``python -m conformance [--out FOLDER]``."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from conformance.libraries import installed, library
from conformance.page import write
from conformance.runner import run


def main() -> None:
    """Print what came out, or write the results and the tables of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for results.csv and tables.md")
    out = parser.parse_args().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imports; those of the cases are part of the results
        if out is not None:
            print(f"{len(write(out))} results in {out}")
            return
        for name, version in installed().items():
            print(f"{name} {version}\n{run(library(name))}\n")


if __name__ == "__main__":
    main()
