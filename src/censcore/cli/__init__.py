"""The command line: ``censcore --help`` lists the commands."""

from __future__ import annotations

import sys

from censcore.exceptions import CenscoreError

__all__ = ["main"]


def main() -> None:
    """Run the command line; errors of the library end it with their message alone."""
    try:
        from censcore.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"The command line needs {error.name}: pip install 'censcore[cli]'.")
    try:
        app()
    except CenscoreError as error:
        sys.exit(f"censcore: {error}")
