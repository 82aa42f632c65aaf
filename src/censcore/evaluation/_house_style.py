"""What all pictures have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["FAINT", "GREY", "HOUSE_STYLE", "INK"]

INK, FAINT, GREY = "#1f2937", "#e5e7eb", "#6b7280"

HOUSE_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9ca3af",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
}
