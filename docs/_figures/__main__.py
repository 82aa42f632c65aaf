"""Draw the pictures of the guide: python docs/_figures [NAME ...]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import censoring  # noqa: F401
import comparisons  # noqa: F401
import concepts  # noqa: F401
import diagrams  # noqa: F401
import evidence  # noqa: F401
import gallery  # noqa: F401
import observation  # noqa: F401
import scale  # noqa: F401
import studies  # noqa: F401
import training  # noqa: F401

from kit import PICTURES, write

for name in sys.argv[1:] or PICTURES:
    print(name)
    write(name)
