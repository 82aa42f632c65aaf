"""``censcore reproduce neutral-benchmark``: a published benchmark on its own folds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore_studies.cli.reproduce import Jobs, Out, Run, _finish, _stages
from censcore_studies.cli.several import ManyValues

__all__ = ["add_to"]

OUT = Path("results/neutral-benchmark")


def neutral_benchmark(
    tasks: Annotated[list[str] | None, typer.Option(help="Data sets; all eleven by default.")] = None,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            help="'Kaplan-Meier', 'Cox', 'Random survival forest', 'Gradient boosting', 'SurvivalBoost', "
            "'BestForecast'; all by default."
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="First partitions into three folds; all by default.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder with folds.csv.gz, ...; the folder neutral-benchmark below CENSCORE_DATA by default."
        ),
    ] = None,
    jobs: Jobs = 1,
    out: Out = OUT,
    run: Run = True,
) -> None:
    """Eleven data sets, the folds and the ISBS of a published benchmark of 21 learners, and proper scores.

    Scores are added to OUT/cells.csv: learners and tasks may be run one after the other.
    """
    from censcore_studies.neutral_benchmark.report import report_benchmark
    from censcore_studies.neutral_benchmark.rescoring import report_rescoring, run_rescoring
    from censcore_studies.neutral_benchmark.study import read_scores, run_benchmark

    stages = _stages()
    reports = []
    if run:
        with stages("cells"):
            scores = run_benchmark(
                out, jobs=jobs, tasks=tasks, learners=learners, repetitions=repetitions, folder=folder
            )
    else:
        scores = read_scores(out)
    with stages("tables"):
        reports += report_benchmark(out, scores, folder)
    if run:
        done = {str(task): sorted(set(part)) for task, part in scores.groupby("task", sort=False)["learner"]}
        with stages("comparison over subjects"):
            reports.append(report_rescoring(run_rescoring(done, out, folder=folder, jobs=jobs)))
    settings = {"tasks": tasks, "learners": learners, "repetitions": repetitions}
    _finish(out, reports, stages, "the number of the fold", settings)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("neutral-benchmark", cls=ManyValues)(neutral_benchmark)
