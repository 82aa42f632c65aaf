"""Commands and scores of other packages, by entry points of the groups ``censcore.commands``, ``...scores``.

A package adds ``censcore NAME`` to the command line by a line in its ``pyproject.toml``::

    [project.entry-points."censcore.commands"]
    NAME = "package.module:app"

where ``app`` is a ``typer.Typer`` or a function that typer can turn into a command. It is imported when the
command is run or listed, never by ``import censcore``. A score that is registered in ``package.module`` by
:func:`censcore.scores.score` is found by ``--scores NAME`` after::

    [project.entry-points."censcore.scores"]
    NAME = "package.module"
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from censcore.exceptions import CenscoreError

GROUP = "censcore.commands"
SCORE_GROUP = "censcore.scores"

#: Commands of packages that may not be installed, and how to get them.
ELSEWHERE = dict.fromkeys(
    ("reproduce", "aki"),
    "It belongs to the studies, a package beside the library: run 'pip install ./studies' in a checkout of "
    "the repository.",
)


def load_scores(names: Iterable[str]) -> None:
    """Import the packages that register scores of these names, which the registry does not know yet."""
    from censcore.scores import SCORES  # --help needs none of what it imports

    asked = {name.partition("[")[0] for name in names} - set(SCORES)
    for entry in entry_points(group=SCORE_GROUP) if asked else ():
        if entry.name in asked:
            try:
                entry.load()
            except Exception as error:  # any package may be broken in any way
                raise CenscoreError(_cannot_load("score", entry, error)) from error


class Commands(TyperGroup):
    """The commands of the library, and after them those of other packages."""

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """The entry points by name, the first of a name; to find them, all installed packages are read."""
        return {entry.name: entry for entry in reversed(list(entry_points(group=GROUP)))}

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands; a name of the library hides the same name of another package."""
        names = super().list_commands(ctx)
        return names + sorted(name for name in self._installed if name not in names)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command called ``cmd_name``, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        entry = self._installed.get(cmd_name)
        return None if entry is None else _command_of(entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the words name; the error for a missing package says where to find it."""
        if args[0] in ELSEWHERE and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. {ELSEWHERE[args[0]]}")
        return super().resolve_command(ctx, args)


def _command_of(entry: EntryPoint) -> Any:
    """The command of an entry point; one that cannot be loaded says so when it is run."""
    try:
        loaded = entry.load()
    except Exception as error:  # any package may be broken in any way
        return _command(entry.name, _broken(entry, error), {"ignore_unknown_options": True})
    return _command(entry.name, loaded)


def _command(name: str, loaded: Any, settings: dict[str, Any] | None = None) -> Any:
    parent = typer.Typer(add_completion=False)
    parent.callback()(lambda: None)  # with a callback it is always a group
    if not isinstance(loaded, typer.Typer):
        parent.command(name, context_settings=settings)(loaded)
        return typer.main.get_group(parent).commands[name]
    empty = copy.copy(loaded)
    empty.registered_commands, empty.registered_groups = [], []
    parent.add_typer(empty, name=name, cls=_group_of(loaded))
    return typer.main.get_group(parent).commands[name]


def _group_of(app: typer.Typer) -> type[TyperGroup]:
    """The group of an app, whose commands are made when they are asked for: a list needs its help alone."""
    kind: Any = getattr(app.info.cls, "value", app.info.cls)  # a default is wrapped

    class Group(kind or TyperGroup):  # type: ignore[misc]
        def list_commands(self, ctx: Any) -> list[str]:
            if not self.commands:
                self.commands.update(typer.main.get_group(app).commands)
            return super().list_commands(ctx)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            self.list_commands(ctx)
            return super().get_command(ctx, cmd_name)

    return Group


def _cannot_load(kind: str, entry: EntryPoint, error: Exception) -> str:
    source = entry.value if entry.dist is None else f"{entry.value} of {entry.dist.name}"
    reason = str(error).rstrip(".")
    return f"The {kind} {entry.name!r} ({source}) cannot be loaded: {type(error).__name__}: {reason}."


def _broken(entry: EntryPoint, error: Exception) -> Any:
    """A command that takes any arguments and fails with the reason."""
    message = _cannot_load("command", entry, error)

    def fail(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        raise CenscoreError(message)

    fail.__doc__ = message
    return fail
