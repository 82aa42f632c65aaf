"""The commands, one file each; other packages add theirs, see :mod:`censcore.cli.plugins`."""

from __future__ import annotations

from typing import Annotated

import typer

from censcore.cli.compare_command import EPILOG as COMPARE_EXAMPLES
from censcore.cli.compare_command import compare
from censcore.cli.demo import demo
from censcore.cli.plugins import Commands
from censcore.cli.score import EPILOG as SCORE_EXAMPLES
from censcore.cli.score import score
from censcore.cli.validate import EPILOG as VALIDATE_EXAMPLES
from censcore.cli.validate import pool, validate

app = typer.Typer(
    cls=Commands,
    help="Proper scores for right-censored forecasts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command(epilog=COMPARE_EXAMPLES)(compare)
app.command(epilog=SCORE_EXAMPLES)(score)
app.command(epilog=VALIDATE_EXAMPLES)(validate)
app.command()(pool)


def _show_version(asked: bool) -> None:
    if asked:
        import censcore

        typer.echo(f"censcore {censcore.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Proper scores for right-censored forecasts."""
