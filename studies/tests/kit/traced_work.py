"""Work for the tests of cells that other processes can import, with a trace of every run on disk."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def square(settings: dict[str, Any]) -> dict[str, Any]:
    """A pure function that leaves a trace: one file per run."""
    if "traces" in settings:
        trace = Path(settings["traces"]) / f"{settings['x']}-{os.getpid()}-{time.monotonic_ns()}"
        trace.write_text("", encoding="utf-8")
    time.sleep(settings.get("sleep", 0.0))
    rng = np.random.default_rng(settings["x"])
    return {"value": settings["x"] ** 2, "noise": float(rng.standard_normal())}
