"""``censcore demo``: the command, apart from what it computes, so that ``censcore --help`` imports little."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("demo"),
) -> None:
    """Score three forecasts on the German Breast Cancer Study Group trial: a table and a plot."""
    _require("lifelines", "matplotlib", "rich")
    from rich.console import Console

    from censcore.cli.demo_figure import draw
    from censcore.cli.demo_scores import CURVE_TIMES, SCORES, brier_curve, cross_fit, load_trial, score_table

    X, y = load_trial()
    scores = {name: score for name, (score, _) in SCORES.items()}
    losses = cross_fit(X, y, {**scores, "curve": brier_curve})
    console = Console()
    console.print("\n[bold]German Breast Cancer Study Group trial[/bold]: years to recurrence or death")
    console.print(f"{len(y)} women, {y.event.sum()} events; each scored by models that never saw her\n")
    console.print(score_table(losses))
    console.print(f"plot: {draw(losses['curve'], CURVE_TIMES, out / 'brier.png')}", markup=False)


def _require(*packages: str) -> None:
    try:
        for package in packages:
            import_module(package)
    except ModuleNotFoundError as error:
        raise SystemExit(f"The demo needs {error.name}: pip install 'censcore[demo]'.") from error
