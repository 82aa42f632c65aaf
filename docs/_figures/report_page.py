"""The picture of docs/reading_the_report.md, which needs chromium: python docs/_figures/report_page.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from kit import DOCS, names_of

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    names_of("reading_the_report", 1)["comparison"].to_html(page)
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            "--window-size=1100,930",
            f"--screenshot={DOCS / '_static' / 'report.png'}",
            page.as_uri(),
        ],
        check=True,
    )
