"""Numbers of studies and benchmarks on the pages are those of the committed tables."""

from __future__ import annotations

import re

import pytest
from benchmarks.page_numbers.pages import DOCS, NUMBERS, filled


@pytest.mark.parametrize("page", NUMBERS)
def test_the_numbers_of_a_page_are_those_of_the_tables(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert filled(page) == text, "python -m benchmarks.page_numbers writes them"
    assert not re.search(r"^\s*(?:[-*>] |\d+\. )?<!--=\w", text, re.MULTILINE), "Markdown reads HTML there"


def test_no_p_value_is_printed_as_zero():
    for page in sorted(DOCS.rglob("*.md")):
        if {"_build", "generated"} & set(page.parts):
            continue
        printed = re.findall(r"^ .* p_value\n(?:\d.*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE)
        zero = [line for frame in printed for line in frame.splitlines() if re.search(r" (0|0\.0+)$", line)]
        assert zero == [], page.name
