"""How the pictures of the guide are made: one function per picture, drawn once as SVG in light colours.

Dark twins are made from them when the pages are built (docs/_ext/dark_figures.py).
"""

from __future__ import annotations

import doctest
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from types import ModuleType
from typing import Any

from matplotlib.figure import Figure

from censcore.evaluation.report.style import PALETTE, svg_of

DOCS = Path(__file__).resolve().parent.parent
OUT = DOCS / "_static" / "figures"
#: Colours of the palette on a white ground.
M0, M1, M2, M3 = (PALETTE[f"m{i}"][0] for i in range(4))
GREY, INK, FAINT = (PALETTE[name][0] for name in ("grey", "ink", "faint"))

PICTURES: dict[str, Callable[[], Figure | str]] = {}
_FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def picture(draw: Callable[[], Figure | str]) -> Callable[[], Figure | str]:
    """Register a function that gives a figure, or an SVG as text, as the picture of its name."""
    PICTURES[draw.__name__] = draw
    return draw


def write(name: str) -> None:
    """Draw one picture into docs/_static/figures, or beside its page where the name has a folder."""
    drawn = PICTURES[name]()
    svg = drawn if isinstance(drawn, str) else svg_of(drawn).decode()
    path = (DOCS if "/" in name else OUT) / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"[ \t]+\n", "\n", svg), encoding="utf-8")


def names_of(page: str, blocks: int | None = None) -> dict[str, Any]:
    """What the Python blocks of a page define, so that a picture shows the numbers of its page."""
    module = ModuleType("__page__")
    sys.modules["__page__"] = module
    sources = _FENCE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))[:blocks]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for source in sources:
            if ">>>" not in source:
                exec(source, module.__dict__)
                continue
            for example in doctest.DocTestParser().get_examples(source):
                exec(example.source, module.__dict__)
    return module.__dict__
