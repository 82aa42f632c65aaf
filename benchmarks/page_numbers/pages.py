"""Numbers on pages, between markers that name where they come from.

A number stands as ``<!--=cost.0-->7.5<!--=-->``: the first value of the function ``cost``, which is
registered for the page and reads the committed tables. Markers are comments, which no reader sees; a line
must not begin with one, or Markdown takes the line for HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"
MARKED = re.compile(r"<!--=(\w+)\.(\d+)-->(.*?)<!--=-->", re.DOTALL)

Values = Callable[[], list[str]]

#: Pages, and the functions whose values stand on them, by name.
NUMBERS: dict[str, dict[str, Values]] = {}


def on(page: str) -> Callable[[Values], Values]:
    """Register a function whose values stand on a page; it fails where the words around them are wrong."""

    def register(values: Values) -> Values:
        NUMBERS.setdefault(page, {})[values.__name__] = values
        return values

    return register


def filled(page: str) -> str:
    """The text of a page with the numbers of today's tables."""
    text = (DOCS / page).read_text(encoding="utf-8")
    values = {name: make() for name, make in NUMBERS[page].items()}
    wanted = {(name, i) for name, found in values.items() for i in range(len(found))}
    there = {(name, int(i)) for name, i, _ in MARKED.findall(text)}
    if wanted != there:
        raise ValueError(
            f"{page}: values without a place or places without a value: {sorted(wanted ^ there)}."
        )

    def value(place: re.Match[str]) -> str:
        return f"<!--={place[1]}.{place[2]}-->{values[place[1]][int(place[2])]}<!--=-->"

    return MARKED.sub(value, text)


@cache
def table(name: str) -> Any:
    """A committed table of the results, a frame of pandas."""
    return pd.read_csv(DOCS / "results" / f"{name}.csv")


@cache
def output(name: str) -> str:
    """The committed output of a benchmark."""
    return (RESULTS / f"{name}.txt").read_text(encoding="utf-8")


def match(pattern: str, text: str) -> re.Match[str]:
    """The first match in a text of many lines, which must be there."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"There is no line {pattern!r}.")
    return found


def spread(values: Any, form: str = ".1f") -> str:
    """Smallest and largest value."""
    return f"{min(values):{form}} to {max(values):{form}}"
