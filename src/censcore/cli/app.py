"""The commands, one file each."""

from __future__ import annotations

import typer

from censcore.cli import aki
from censcore.cli.demo import demo

app = typer.Typer(
    help="Proper scores for right-censored forecasts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.add_typer(aki.app, name="aki")


@app.callback()
def _root() -> None:
    """Proper scores for right-censored forecasts."""
