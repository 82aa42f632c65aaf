"""Sentences of the pages that quote numbers, printed from the committed tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks" / "results"

Quote = Callable[[], str]


class Quotes(list[tuple[str, Quote]]):
    """Pages, and functions that print a sentence which has to stand on the page."""

    def on(self, page: str) -> Callable[[Quote], Quote]:
        """Register a function as a quote on the page."""

        def register(quote: Quote) -> Quote:
            self.append((page, quote))
            return quote

        return register


def stands_on(page: str, quote: Quote) -> bool:
    """Whether the page has the sentence, whatever its line breaks and emphasis."""
    return words(quote()) in words((DOCS / page).read_text(encoding="utf-8"))


def words(text: str) -> str:
    """The text with single blanks and without emphasis."""
    return " ".join(text.replace("**", "").split())


@cache
def table(name: str) -> pd.DataFrame:
    """A committed table of the results."""
    return pd.read_csv(DOCS / "results" / f"{name}.csv")


@cache
def output(name: str) -> str:
    """The committed output of a benchmark."""
    return (BENCHMARKS / f"{name}.txt").read_text(encoding="utf-8")


def spread(values: pd.Series | list[float], form: str = ".1f") -> str:
    """Smallest and largest value."""
    return f"{min(values):{form}} to {max(values):{form}}"


def cells(page: str) -> list[list[str]]:
    """Cells of all tables of a page, without emphasis."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").replace("*", "").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]
