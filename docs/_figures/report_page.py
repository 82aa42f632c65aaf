"""The pictures of docs/reading_the_report.md, which need chromium: python docs/_figures/report_page.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from kit import DOCS, names_of

#: Name of the picture, and what the browser calls the reader's preference.
SCHEMES = {"report": "1", "report_dark": "0"}

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    names_of("reading_the_report", 1)["comparison"].to_html(page)
    for name, scheme in SCHEMES.items():
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--blink-settings=preferredColorScheme={scheme}",
                f"--user-data-dir={folder}/{name}",
                "--window-size=1100,930",
                f"--screenshot={DOCS / '_static' / f'{name}.png'}",
                page.as_uri(),
            ],
            check=True,
        )
