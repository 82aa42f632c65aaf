"""Pictures of the gallery: what each of its pages draws as ``figure``, written beside the page."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from kit import DOCS, PICTURES, names_of


def drawn_by(page: str) -> Figure:
    return names_of(page)["figure"]


for path in sorted((DOCS / "gallery").glob("*.md")):
    if f"]({path.stem}.svg)" in path.read_text(encoding="utf-8"):
        name = f"gallery/{path.stem}"
        PICTURES[name] = partial(drawn_by, name)
