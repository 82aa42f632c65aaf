"""``censcore aki``: the ICU study step by step, and a synthetic database to try it on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore_studies.aki import AkiSettings

__all__ = ["app", "reproduce_aki"]

app = typer.Typer(
    no_args_is_help=True,
    help="Early acute kidney injury on MIMIC-IV: build, train, evaluate, report.",
    epilog="Example: censcore aki build mimic-iv-3.1 --out study && censcore aki train --out study",
)

Out = Annotated[Path, typer.Option("--out", help="Folder of the study; finished stages in it are kept.")]
Data = Annotated[Path, typer.Argument(help="MIMIC-IV folder with hosp/ and icu/ (csv.gz or csv).")]
PresetName = Annotated[
    str, typer.Option("--preset", help="'quick' for minutes on a laptop, 'paper' for full size.")
]
Methods = Annotated[
    list[str] | None, typer.Option("--method", help="Only these methods; may be given several times.")
]
Device = Annotated[str, typer.Option("--device", help="'auto', 'cpu', 'cuda'.")]
Memory = Annotated[
    str, typer.Option("--memory", help="Memory limit of the build, e.g. 4GB; beyond it data spill.")
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="JSON file with settings that differ from the defaults.")
]
AsPrinted = Annotated[bool, typer.Option("--as-printed", help="Definitions as printed in the publication.")]
Reveal = Annotated[bool, typer.Option("--reveal", help="Show small counts and patients; for private use.")]


def _settings(path: Path | None, as_printed: bool) -> AkiSettings:
    from censcore_studies.aki import AkiSettings

    if path is None:
        return AkiSettings.as_printed() if as_printed else AkiSettings()
    if as_printed:
        raise InvalidInputError("--settings and --as-printed exclude each other.")
    try:
        return AkiSettings.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise InvalidInputError(f"The settings file {path} cannot be read: {error}.") from error


@app.command()
def build(
    data: Data,
    out: Out,
    memory: Memory = "4GB",
    settings: SettingsFile = None,
    as_printed: AsPrinted = False,
) -> None:
    """Cohort, endpoints, prediction rows, features and split, as Parquet."""
    from censcore_studies import aki

    resources = aki.Resources(memory_limit=memory)
    aki.build(data, out, _settings(settings, as_printed), resources=resources, say=typer.echo)


@app.command()
def train(out: Out, preset: PresetName = "quick", method: Methods = None, device: Device = "auto") -> None:
    """Train censored and naive engression and the likelihood models; finished methods are kept."""
    from censcore_studies import aki

    aki.train(out, preset, method or None, device=device, say=typer.echo)


@app.command()
def evaluate(out: Out, device: Device = "auto") -> None:
    """Score every trained method on the test rows."""
    from censcore_studies import aki

    aki.evaluate(out, device=device, say=typer.echo, progress=sys.stderr.isatty())


@app.command()
def report(out: Out, reveal: Reveal = False) -> None:
    """Write the page and the tables of the study."""
    from censcore_studies import aki

    typer.echo(f"wrote {aki.report(out, reveal=reveal)}")
    _write_tables(out, reveal)


@app.command()
def synthetic(
    folder: Annotated[Path, typer.Argument(help="Where to write the database.")],
    stays: Annotated[int, typer.Option(help="Number of ICU stays.")] = 2000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Write a synthetic database in MIMIC-IV's layout, with the true endpoints beside it."""
    from censcore_studies import aki

    typer.echo(f"wrote {aki.write_synthetic_database(folder, stays, seed)}")


def reproduce_aki(
    data: Annotated[Path, typer.Option("--data", help="MIMIC-IV folder with hosp/ and icu/.")],
    out: Out = Path("results/aki"),
    preset: PresetName = "quick",
    method: Methods = None,
    memory: Memory = "4GB",
    settings: SettingsFile = None,
    as_printed: AsPrinted = False,
    device: Device = "auto",
    reveal: Reveal = False,
) -> None:
    """The whole ICU study: build, train, evaluate, report; a second run continues where the first stopped."""
    from censcore_studies import aki

    page = aki.run_all(
        data,
        out,
        preset,
        method or None,
        settings=_settings(settings, as_printed),
        resources=aki.Resources(memory_limit=memory),
        device=device,
        reveal=reveal,
        say=typer.echo,
        progress=sys.stderr.isatty(),
    )
    typer.echo(f"wrote {page}")
    _write_tables(out, reveal)


def _write_tables(out: Path, reveal: bool) -> None:
    from censcore_studies.aki.evaluation import read_preset
    from censcore_studies.aki.tables import study_tables
    from censcore_studies.kit.tables import how_it_was_made

    preset = read_preset(out)
    record = how_it_was_made({"preset": preset.seed}, {"preset": preset.name})
    for table in study_tables(out, reveal=reveal):
        table.write(out / "tables", record)
    typer.echo(f"wrote {out / 'tables'}")
