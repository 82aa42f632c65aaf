"""Options that take several values in a row: ``--k 2 3 5`` or ``--k 2,3,5``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["ManyValues"]


class ManyValues(TyperCommand):
    """A command whose list options take every word up to the next option, and words between commas."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the name of a list option before each of its values, which is what the parser expects."""
        several = {name for p in self.params if getattr(p, "multiple", False) for name in p.opts}
        expanded: list[str] = []
        current = ""
        for word in args:
            name, equals, value = word.partition("=")
            if word.startswith("--"):
                current = name if name in several else ""
                word = value if current and equals else word
                if current and not equals:
                    continue
            values = word.split(",") if current else [word]
            for value in values:
                expanded += [current, value] if current else [value]
        return super().parse_args(ctx, expanded)
