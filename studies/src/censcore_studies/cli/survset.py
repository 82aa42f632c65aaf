"""``censcore reproduce survset``: tables of SurvSet on published splits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore_studies.cli.reproduce import Jobs, Out, Run, _finish, _stages
from censcore_studies.cli.several import ManyValues

__all__ = ["add_to"]


def survset(
    tables: Annotated[list[str] | None, typer.Option(help="Tables; all thirty by default.")] = None,
    splits: Annotated[int, typer.Option(min=1, max=10, help="First splits.")] = 10,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder with benchmark_results.csv; survivalpfn below CENSCORE_DATA by default."),
    ] = None,
    jobs: Jobs = 1,
    out: Out = Path("results/survset"),
    run: Run = True,
) -> None:
    """Thirty tables of SurvSet on the ten splits and in the convention of SurvivalPFN's published results."""
    from censcore_studies.survset.study import report_survset, run_survset

    stages = _stages()
    if run:
        with stages("cells"):
            run_survset(out, tables, splits, jobs=jobs)
    with stages("tables"):
        reports = report_survset(out, folder)
    _finish(out, reports, stages, "the number of the split", {"tables": tables, "splits": splits})


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("survset", cls=ManyValues)(survset)
