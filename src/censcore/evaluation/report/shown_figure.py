"""A figure that notebooks show by themselves; loading it needs matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

SHARP = 2  # pixels of the picture per pixel of the screen


class ShownFigure(Figure):
    """A figure of matplotlib that needs no pyplot and no backend to be seen in a notebook."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=SHARP * self.dpi)
        width, height = self.get_size_inches() * self.dpi
        return stream.getvalue(), {"width": round(width), "height": round(height)}
