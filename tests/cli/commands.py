"""Commands of the library, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from censcore.cli.app import app


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output
