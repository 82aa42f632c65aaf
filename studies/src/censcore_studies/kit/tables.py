"""What a study leaves behind: tables in four formats, a record of how they were made, times per stage."""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from censcore.evaluation.report.export import latex_table, markdown_table
from censcore.files import write_atomically

__all__ = [
    "Stages",
    "StudyTable",
    "as_latex",
    "as_markdown",
    "how_it_was_made",
    "number",
    "percent",
    "plus_minus",
]

_PACKAGES = ("censcore", "censcore-studies", "numpy", "scipy", "scikit-learn", "pandas", "torch")


class Stages:
    """Seconds of wall time per stage of a study.

    Examples
    --------
    >>> from censcore_studies.kit.tables import Stages
    >>> stages = Stages()
    >>> with stages("cells"):
    ...     _ = sum(range(10))
    >>> list(stages.seconds)
    ['cells']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time inside the ``with`` block to the stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items())


def how_it_was_made(seeds: Any, settings: Mapping[str, Any], stages: Stages | None = None) -> dict[str, Any]:
    """Command, settings, seeds, versions and times: what it takes to make a table again."""
    record = {
        "command": " ".join(["censcore", *sys.argv[1:]]),
        "settings": dict(settings),
        "seeds": seeds,
        "versions": {"python": platform.python_version()} | _versions(),
    }
    if stages is not None:
        record["seconds"] = {name: round(seconds, 2) for name, seconds in stages.seconds.items()}
    return record


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class StudyTable:
    """One table of a study.

    Attributes
    ----------
    name : str
        Name of its files.
    rows : data frame
        Every number, one row per line.
    view : data frame
        What is read: few columns of short strings.
    caption : str
        What the table shows.
    """

    name: str
    rows: pd.DataFrame
    view: pd.DataFrame
    caption: str

    def write(self, out: Path, record: Mapping[str, Any]) -> None:
        """``name.csv`` and ``name.json`` hold all numbers, ``name.md`` and ``name.tex`` the view.

        ``record`` says how they were made and is part of the JSON file, see :func:`how_it_was_made`.
        """
        rows = [
            {str(name): _plain(value) for name, value in row.items()}
            for row in self.rows.to_dict(orient="records")
        ]
        csv = self.rows.to_csv(index=False, float_format="%.6g")
        write_atomically(out / f"{self.name}.csv", csv)
        write_atomically(out / f"{self.name}.json", json.dumps({**record, "rows": rows}, indent=1) + "\n")
        write_atomically(out / f"{self.name}.md", f"{self.caption}\n\n{as_markdown(self.view)}\n")
        write_atomically(out / f"{self.name}.tex", as_latex(self.view, self.caption))


def number(value: float | None, form: str = ".4f") -> str:
    """A number for a view; empty where it is unknown."""
    return "" if value is None or math.isnan(value) else f"{value:{form}}"


def plus_minus(value: float, error: float, decimals: int = 4) -> str:
    """A number and its error, where there is one.

    Examples
    --------
    >>> from censcore_studies.kit.tables import plus_minus
    >>> plus_minus(0.25, 0.031, decimals=2), plus_minus(0.25, float("nan"), decimals=2)
    ('0.25 ± 0.03', '0.25')
    """
    return " ± ".join(f"{part:.{decimals}f}" for part in (value, error) if not math.isnan(part))


def percent(value: float, error: float = math.nan) -> str:
    """A share and its error in per cent; empty where it is unknown."""
    return "" if math.isnan(value) else f"{plus_minus(value, error, decimals=1)} %"


def _plain(value: Any) -> Any:
    """JSON has no infinities and no NaN."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_markdown(view: pd.DataFrame) -> str:
    """A pipe table; the first column is aligned left.

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore_studies.kit.tables import as_markdown
    >>> print(as_markdown(pd.DataFrame({"rule": ["CRPS"], "rank": ["1"]})))
    | rule | rank |
    |:-----|-----:|
    | CRPS |    1 |
    """
    return markdown_table([str(name) for name in view.columns], _cells(view), inert=False)


def _cells(view: pd.DataFrame) -> list[list[str]]:
    return [[str(value) for value in row] for row in view.itertuples(index=False)]


def as_latex(view: pd.DataFrame, caption: str) -> str:
    r"""A table of the booktabs package.

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore_studies.kit.tables import as_latex
    >>> print(as_latex(pd.DataFrame({"rule": ["CRPS"], "first": ["98 %"]}), "Ranks.").splitlines()[7])
    CRPS & 98 \% \\
    """
    return latex_table([str(name) for name in view.columns], _cells(view), caption)
