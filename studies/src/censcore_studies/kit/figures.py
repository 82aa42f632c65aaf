"""Figures of the studies, in the one style of the library."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from censcore.evaluation.report.style import AMBER, FAINT, GREY, INK, RED, TEAL, new_figure, styled
from censcore.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AMBER", "FAINT", "GREY", "INK", "RED", "TEAL", "new_figure", "picture", "styled"]


# what differs between two runs, or two versions of Matplotlib, is left out of a file
_METADATA = {"png": {"Software": None}, "svg": {"Date": None}}


def picture(draw: Callable[..., Figure]) -> Callable[..., Path]:
    """Turn a function that draws a figure into one that writes it: ``draw(path, ...)``."""

    @wraps(draw)
    def write(path: str | Path, *args: Any, **options: Any) -> Path:
        stream = io.BytesIO()
        form = Path(path).suffix.removeprefix(".")
        with styled():
            draw(*args, **options).savefig(stream, format=form, dpi=140, metadata=_METADATA.get(form))
        return write_atomically(path, stream.getvalue())

    return write
