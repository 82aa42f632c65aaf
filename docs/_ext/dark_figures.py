"""A dark twin of every SVG figure, made when the pages are built.

Figures are drawn once, in the light colours of ``censcore.evaluation.report.style``. The twin has the dark
colours of the same palette; the theme shows whichever suits the reader's settings.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from censcore.evaluation.report.style import AMBER, PALETTE, RED

#: Light colour to dark colour: of the palette, of axes, and of the background of the theme.
DARK = dict(PALETTE.values()) | {
    AMBER: "#fbbf24",
    RED: "#f87171",
    "#9ca3af": "#6b7280",
    "#ffffff": "#14181e",
    "#000000": "#e5e7eb",
}
_COLOUR = re.compile("|".join(DARK), re.IGNORECASE)


def darkened(svg: str) -> str:
    """The SVG with every light colour of the palette replaced by its dark one."""
    return _COLOUR.sub(lambda match: DARK[match.group(0).lower()], svg)


class DarkFigures(SphinxTransform):
    """Put the dark twin behind each SVG figure, each shown in one theme only."""

    default_priority = 500

    def apply(self, **_: object) -> None:
        source, page = Path(self.app.srcdir), Path(self.env.docname).parent
        for image in list(self.document.findall(nodes.image)):
            if not image["uri"].endswith(".svg") or "only-light" in image["classes"]:
                continue
            path = (source / page / image["uri"]).resolve()
            svg = path.read_text(encoding="utf-8")
            if "<image" in svg:  # pixels, as of a heat map: their colours stay, so the labels must too
                continue
            folder = source / "generated" / "dark"
            folder.mkdir(parents=True, exist_ok=True)
            made = folder / path.name
            made.write_text(darkened(svg), encoding="utf-8")
            twin = image.deepcopy()
            twin["uri"] = f"/generated/dark/{path.name}"
            twin["classes"].append("only-dark")
            image["classes"].append("only-light")
            image.parent.insert(image.parent.index(image) + 1, twin)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(DarkFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
