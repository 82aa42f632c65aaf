"""Write the numbers of the committed tables into the pages: ``python -m benchmarks.page_numbers``."""

from __future__ import annotations

from benchmarks.page_numbers.pages import DOCS, NUMBERS, filled


def main() -> None:
    """Write every page that has such numbers."""
    for page in NUMBERS:
        (DOCS / page).write_text(filled(page), encoding="utf-8")


if __name__ == "__main__":
    main()
