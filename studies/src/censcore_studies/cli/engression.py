"""``censcore reproduce real-data``, ``recovery``, ``ablations``: engression beyond the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from censcore_studies.cli.reproduce import Device, Jobs, Out, _finish, _on, _stages
from censcore_studies.cli.several import ManyValues

__all__ = ["add_to"]

REAL_DATA = Path("results/real-data")
RECOVERY = Path("results/recovery")
ABLATIONS = Path("results/ablations")


def real_data(
    data: Annotated[list[str] | None, typer.Option(help="Data sets; all five by default.")] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Partitions into five folds.")] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder with colon.csv, ...; the folder survival below CENSCORE_DATA by default."),
    ] = None,
    jobs: Jobs = 1,
    out: Out = REAL_DATA,
) -> None:
    """Censored engression against independent and copula models on five real data sets, five-fold."""
    from censcore_studies.real_data import DATA, report_real_data, run_real_data

    stages = _stages()
    chosen = data or list(DATA)
    with stages("cells"):
        where: dict[str, Any] = {} if folder is None else {"folder": str(folder)}
        table = run_real_data(out, jobs=jobs, data=chosen, repetitions=repetitions, **where)
    settings = {"data": chosen, "repetitions": repetitions}
    _finish(out, [report_real_data(table)], stages, {"first": 0, "last": repetitions - 1}, settings)


def recovery(
    subjects: Annotated[int, typer.Option(min=100, help="Training subjects.")] = 4000, out: Out = RECOVERY
) -> None:
    """Margins, Kendall's tau and joint probabilities that censored engression learns, against the truth."""
    from censcore_studies.engression.recovery import draw_recovery, recover, report_recovery

    stages = _stages()
    with stages("training"):
        found = recover(subjects)
    with stages("figure"):
        draw_recovery(out / "recovery.svg", found)
    _finish(out, [report_recovery(found)], stages, {"all": 0}, {"subjects": subjects})


def ablations(
    variant: Annotated[list[str] | None, typer.Option(help="Names of variants; all by default.")] = None,
    repetitions: Annotated[int, typer.Option(min=2, help="Training sets.")] = 5,
    k: Annotated[int, typer.Option("--k", min=1, help="Event times.")] = 3,
    jobs: Jobs = 1,
    device: Device = "cpu",
    out: Out = ABLATIONS,
) -> None:
    """What each choice in censored engression contributes: twenty variants, a minute per training set."""
    from censcore_studies.engression.ablations import VARIANTS, report_ablations, run_ablations

    stages = _stages()
    chosen = variant or list(VARIANTS)
    with stages("cells"):
        table = run_ablations(
            out, jobs=jobs, variants=chosen, repetitions=repetitions, k=k, settings=_on(device)
        )
    settings = {"variants": chosen, "repetitions": repetitions, "k": k, "device": device}
    _finish(out, [report_ablations(table, k)], stages, {"first": 0, "last": repetitions - 1}, settings)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("real-data", cls=ManyValues)(real_data)
    app.command("recovery")(recovery)
    app.command("ablations", cls=ManyValues)(ablations)
