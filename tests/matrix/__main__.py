"""The whole matrix: ``python -m tests.matrix [--kind NAME] [--out FOLDER]`` counts cells by their state."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from itertools import product
from pathlib import Path

import pandas as pd

from tests.matrix.cells import KINDS, Cell, cells_of
from tests.matrix.coverage import run as run_coverage
from tests.matrix.designs import DESIGNS, SOURCES
from tests.matrix.page import short, write


def run(kinds: list[tuple[str, bool]], designs: list[str], sources: list[str]) -> list[Cell]:
    """The cells of some kinds, designs and sources."""
    warnings.simplefilter("ignore")
    cells = []
    for (kind, entry), design, source in product(kinds, designs, sources):
        cells += cells_of(kind, entry, design, source)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("what", nargs="?", default="cells", choices=["cells", "coverage"])
    parser.add_argument("--data-sets", "--datasets", type=int, default=1000, help="of every representative")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the coverage")
    parser.add_argument("--only", default="", help="representatives whose kind, design or source contains it")
    parser.add_argument("--kind", default="")
    parser.add_argument("--design", default="")
    parser.add_argument("--source", default="")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.what == "coverage":
        warnings.simplefilter("ignore")
        run_coverage(Path(options.out) / "coverage.csv", options.data_sets, options.jobs, options.only)
        return 0
    chosen = [(kind, entry) for kind, entry in KINDS if options.kind in ("", kind)]
    cells = run(
        chosen,
        [d for d in DESIGNS if options.design in ("", d)],
        [s for s in SOURCES if options.source in ("", s)],
    )
    table = pd.DataFrame([vars(cell) for cell in cells])
    if options.out:
        write(table, Path(options.out))
    counts = Counter(table.state)
    print(", ".join(f"{counts[state]} {state}" for state in ("works", "refused", "fails")))
    for reason, some in table[table.state == "fails"].groupby("reason"):
        print(f"fails ({len(some)}): {', '.join(map(str, some.iloc[0, :4]))}: {reason}"[:300])
    refused = table[table.state == "refused"]
    for reason, some in refused.groupby(refused.reason.map(short)):
        print(f"refused ({len(some)}): {', '.join(map(str, some.iloc[0, :4]))}: {reason}"[:240])
    return 1 if counts["fails"] else 0


if __name__ == "__main__":
    sys.exit(main())
