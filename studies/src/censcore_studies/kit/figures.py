"""One look for the pictures of all studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from censcore.evaluation._house_style import FAINT, GREY, HOUSE_STYLE, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AMBER", "FAINT", "GREY", "INK", "RED", "TEAL", "new_figure", "picture", "styled"]

TEAL, AMBER, RED = "#0f766e", "#d97706", "#b91c1c"

_STYLE: dict[str, Any] = HOUSE_STYLE | {
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


@contextmanager
def styled() -> Iterator[None]:
    """The house style inside the block; the user's settings stay as they are."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own, known to no window system."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def picture(draw: Callable[..., Figure]) -> Callable[..., Path]:
    """Turn a function that draws a figure into one that writes it: ``draw(path, ...)``."""

    @wraps(draw)
    def write(path: str | Path, *args: Any, **options: Any) -> Path:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with styled():
            draw(*args, **options).savefig(path, dpi=140, metadata={"Software": None})
        return path

    return write
