"""``censcore reproduce stack-scenarios``, ``stack-intervals``: the default stack where the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore_studies.cli.reproduce import Jobs, Out, Run, _finish, _stages
from censcore_studies.cli.several import ManyValues

__all__ = ["add_to"]


def stack_scenarios(
    sizes: Annotated[list[int] | None, typer.Option(help="Subjects; 300 and 1000 by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0, 1, ...")] = 5,
    models: Annotated[list[str] | None, typer.Option(help="Models; all by default.")] = None,
    jobs: Jobs = 1,
    out: Out = Path("results/stack-scenarios"),
    run: Run = True,
) -> None:
    """The default stack beside models of other libraries in ten scenarios: excess over the truth."""
    from censcore_studies.stack_scenarios.study import SIZES, report_scenarios, run_scenarios

    stages = _stages()
    if run:
        with stages("cells"):
            run_scenarios(out, sizes or SIZES, seeds, models, jobs=jobs)
    with stages("tables"):
        reports = report_scenarios(out)
    settings = {"sizes": sizes or list(SIZES), "seeds": seeds, "models": models}
    _finish(out, reports, stages, f"0 to {seeds - 1}", settings)


def stack_intervals(
    sizes: Annotated[list[int] | None, typer.Option(help="Subjects; 300 and 1000 by default.")] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Seeds 0, 1, ...")] = 20,
    jobs: Jobs = 1,
    out: Out = Path("results/stack-scenarios"),
    run: Run = True,
) -> None:
    """What the intervals of forecast risks of the default stack cover in six scenarios."""
    from censcore_studies.stack_scenarios.intervals import report_intervals, run_intervals
    from censcore_studies.stack_scenarios.study import SIZES

    stages = _stages()
    if run:
        with stages("cells"):
            run_intervals(out, sizes or SIZES, seeds, jobs=jobs)
    with stages("tables"):
        reports = [report_intervals(out)]
    _finish(out, reports, stages, f"0 to {seeds - 1}", {"sizes": sizes or list(SIZES), "seeds": seeds})


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("stack-intervals", cls=ManyValues)(stack_intervals)
    app.command("stack-scenarios", cls=ManyValues)(stack_scenarios)
