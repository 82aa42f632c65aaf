"""The pictures of docs/reading_the_report.md, which need Chromium: python docs/_figures/report_page.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

from kit import DOCS, names_of

sys.path.insert(0, str(DOCS.parent))
from tests.chromium import chromium

#: Name of the picture, and what the browser calls the reader's preference.
SCHEMES = {"report": "1", "report_dark": "0"}


def draw(into: Path) -> None:
    """Write one picture of the report for each scheme of colours."""
    browser = chromium()
    if browser is None:
        sys.exit("no Chromium on the path")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        names_of("reading_the_report", 1)["comparison"].to_html(page)
        for name, scheme in SCHEMES.items():
            subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                    f"--blink-settings=preferredColorScheme={scheme}",
                    f"--user-data-dir={folder}/{name}",
                    "--window-size=1100,930",
                    f"--screenshot={into / f'{name}.png'}",
                    page.as_uri(),
                ],
                check=True,
            )


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else DOCS / "_static")
