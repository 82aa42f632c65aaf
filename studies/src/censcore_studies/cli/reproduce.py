"""``censcore reproduce``: the studies of the paper, our numbers beside the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from censcore_studies.cli.several import ManyValues

if TYPE_CHECKING:
    from censcore_studies.kit.tables import Stages, StudyTable

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="The studies of the paper. Finished cells are kept in OUT/cells: a run continues where it stopped.",
)

FORECASTS = Path("results/forecast-evaluation")
MULTIVARIATE = Path("results/multivariate")

N = Annotated[int, typer.Option("--n", min=10, help="Subjects in one draw.")]
Replications = Annotated[int, typer.Option(min=1, help="Draws.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Seed = Annotated[int, typer.Option(help="Seed of the first draw; the others follow it.")]
Out = Annotated[Path, typer.Option(help="Folder for cells, tables and figures.")]


@app.command("oracle-ranks")
def oracle_ranks(
    replications: Replications = 200, n: N = 1000, jobs: Jobs = 1, out: Out = FORECASTS, seed: Seed = 0
) -> None:
    """Where each scoring rule puts the true forecast under four kinds of censoring, and how often."""
    from censcore_studies import forecast_evaluation as study
    from censcore_studies.forecast_evaluation.ranks import report_ranks

    stages = _stages()
    with stages("cells"):
        table = study.oracle_ranks(replications, n, seed=seed, jobs=jobs, out=out)
    with stages("figure"):
        report = report_ranks(out, table, replications, n)
    _finish(out, [report], stages, _seeds(seed, replications), {"replications": replications, "n": n})
    typer.echo(f"{int(table['reproduced'].sum())} of {len(table)} cells reproduce the printed rank.")


@app.command("raw-scores")
def raw_scores(
    replications: Replications = 20,
    n: N = 1000,
    large: Annotated[
        int | None, typer.Option(help="Give means at this many subjects too, say 100000.")
    ] = None,
    jobs: Jobs = 1,
    out: Out = FORECASTS,
    seed: Seed = 0,
) -> None:
    """Mean scores of the true forecast and of its best competitor."""
    from censcore_studies import forecast_evaluation as study
    from censcore_studies.forecast_evaluation.raw import report_raw

    stages = _stages()
    with stages("cells"):
        table = study.raw_scores(n, replications, large_n=large, seed=seed, jobs=jobs, out=out)
    with stages("figure"):
        report = report_raw(out, table, replications, n)
    settings = {"replications": replications, "n": n, "large": large}
    _finish(out, [report], stages, _seeds(seed, replications), settings)


@app.command("sensitivity")
def sensitivity(
    replications: Replications = 20, n: N = 1000, jobs: Jobs = 1, out: Out = FORECASTS, seed: Seed = 0
) -> None:
    """What estimating the censoring distribution does: Kaplan-Meier, Weibull, Cox, cross-fitted or not."""
    from censcore_studies import forecast_evaluation as study
    from censcore_studies.forecast_evaluation.sensitivity import report_sensitivity

    stages = _stages()
    with stages("cells"):
        table = study.sensitivity(n, replications, seed=seed, jobs=jobs, out=out)
    with stages("figure"):
        report = report_sensitivity(out, table, replications, n)
    _finish(out, [report], stages, _seeds(seed, replications), {"replications": replications, "n": n})


@app.command("convergence", cls=ManyValues)
def convergence(
    replications: Replications = 100,
    sizes: Annotated[
        list[int] | None, typer.Option(help="Numbers of subjects; 100 to 100,000 by default.")
    ] = None,
    severities: Annotated[
        list[float] | None, typer.Option(help="Divisors of the censoring times; larger is heavier censoring.")
    ] = None,
    jobs: Jobs = 1,
    out: Out = FORECASTS,
    seed: Seed = 0,
) -> None:
    """How often each rule finds the truth as data grow and as censoring gets heavier."""
    from censcore_studies import forecast_evaluation as study
    from censcore_studies.forecast_evaluation.convergence import SEVERITIES, SIZES, report_convergence

    stages = _stages()
    counts, divisors = sizes or SIZES, severities or SEVERITIES
    with stages("cells"):
        table = study.convergence(counts, divisors, replications, seed=seed, jobs=jobs, out=out)
    with stages("figures"):
        report = report_convergence(out, table)
    settings = {"replications": replications, "sizes": list(counts), "severities": list(divisors)}
    _finish(out, [report], stages, _seeds(seed, replications), settings)


Repetitions = Annotated[int, typer.Option(min=1, help="Training sets.")]
Device = Annotated[str, typer.Option(help="'cpu' or 'cuda', for engression and for scoring.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler that gets the cells.")]
Run = Annotated[
    bool,
    typer.Option("--run/--no-run", help="Compute cells, or only make tables of finished ones."),
]


@app.command("multivariate", cls=ManyValues)
def multivariate(
    k: Annotated[list[int] | None, typer.Option("--k", help="Event times; 2 3 5 10 by default.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="mixture, lognormal; both by default.")] = None,
    censoring: Annotated[
        list[str] | None,
        typer.Option(help="administrative, uniform, conditional (the default), componentwise."),
    ] = None,
    methods: Annotated[list[str] | None, typer.Option(help="Methods of the tables; all by default.")] = None,
    repetitions: Repetitions = 5,
    jobs: Jobs = 1,
    dask: Dask = None,
    device: Device = "cpu",
    out: Out = MULTIVARIATE,
    run: Run = True,
) -> None:
    """Censored engression against the truth, naive training and six likelihood models, k = 2 to 10."""
    from censcore_studies import multivariate as study
    from censcore_studies.multivariate.finished import where_the_time_went
    from censcore_studies.multivariate.tables import report_tables

    stages = _stages()
    if run:
        cells = study.multivariate_cells(
            k or (2, 3, 5, 10),
            scenario or study.SCENARIOS,
            censoring or study.CENSORINGS[:3],
            methods,
            repetitions,
            **_on(device),
        )
        with stages("cells"):
            found = study.run_multivariate(cells, out, jobs=jobs, dask=dask)
    with stages("tables"):
        reports = report_tables(out)
    _finish(out, reports, stages, {"repetitions": repetitions}, {"device": device})
    typer.echo(where_the_time_went(found if run else study.read_cells(out)))


@app.command("multivariate-extensions", cls=ManyValues)
def multivariate_extensions(
    extension: Annotated[
        list[str] | None,
        typer.Option(
            help="training-size, severity, censoring-distribution, componentwise, clayton, clayton-k10; "
            "all by default."
        ),
    ] = None,
    repetitions: Repetitions = 2,
    jobs: Jobs = 1,
    dask: Dask = None,
    device: Device = "cpu",
    out: Out = MULTIVARIATE,
    run: Run = True,
) -> None:
    """Beyond the paper: training size, severity, estimated censoring, one C per event time, calibration."""
    from censcore_studies import multivariate as study
    from censcore_studies.multivariate.extensions import report_extension
    from censcore_studies.multivariate.reliability import report_calibration

    stages = _stages()
    reports = []
    for name in extension or list(study.EXTENSIONS):
        if run:
            cells = study.extension_cells(name, repetitions, **_on(device))
            with stages(name):
                study.run_multivariate(cells, out, jobs=jobs, dask=dask)
        reports.append(report_extension(out, name))
    calibration = report_calibration(out)
    reports += [] if calibration is None else [calibration]
    _finish(out, reports, stages, {"repetitions": repetitions}, {"device": device})


@app.command("pictures")
def pictures(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("results/pictures"),
    subjects: Annotated[int, typer.Option(min=100, help="Training subjects.")] = 4000,
    seed: Seed = 0,
) -> None:
    """The forecast that games plug-in weights, and joint densities after naive and censored training."""
    from censcore_studies.forecast_evaluation.trap import draw_trap
    from censcore_studies.multivariate.joint_densities import draw_joint_densities, sample_joint_forecasts

    stages = _stages()
    with stages("trap"):
        draw_trap(out / "trap.png", seed=seed)
    with stages("training"):
        samples = sample_joint_forecasts(subjects, seed=seed)
    with stages("densities"):
        draw_joint_densities(out / "joint_densities.png", samples)
    typer.echo(f"time: {stages}\nfigures: {out}")


def _on(device: str) -> dict[str, str]:
    """Cells on the default device keep their names."""
    return {} if device == "cpu" else {"device": device}


def _seeds(first: int, count: int) -> dict[str, int]:
    return {"first": first, "last": first + count - 1}


def _stages() -> Stages:
    from censcore_studies.kit.tables import Stages

    return Stages()


def _finish(
    out: Path, reports: Sequence[StudyTable], stages: Stages, seeds: Any, settings: Mapping[str, Any]
) -> None:
    """Write every table in four formats and show it."""
    from censcore_studies.kit.tables import how_it_was_made

    record = how_it_was_made(seeds, settings, stages)
    for report in reports:
        report.write(out, record)
        _show(report)
    typer.echo(f"time: {stages}")
    typer.echo(f"tables and figures: {out}")


def _show(report: StudyTable) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    view = report.view
    table = Table(title=report.caption, title_justify="left", box=SIMPLE_HEAD)
    for j, name in enumerate(view.columns):
        table.add_column(str(name), justify="left" if j == 0 else "right", no_wrap=True)
    for row in view.itertuples(index=False):
        table.add_row(*map(str, row))
    widths = [max(map(len, [str(name), *map(str, view[name])])) + 4 for name in view.columns]
    Console(width=max(80, sum(widths)), markup=False, emoji=False).print(table)
