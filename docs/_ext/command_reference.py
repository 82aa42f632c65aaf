"""Tables of the options of every command, read from the commands themselves."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from sphinx.application import Sphinx

from censcore.cli.app import app as commands

#: Commands of the library, in the order of the page; other packages add theirs.
SHOWN = ("compare", "score", "demo")


def reference() -> str:
    """One section per command of the library, with a table of its options."""
    group = typer.main.get_command(commands)
    return "\n".join(section(name, group.commands[name]) for name in SHOWN)


def section(name: str, command: typer.core.TyperCommand) -> str:
    """What the command does, and its arguments and options."""
    summary = (command.help or "").split("\n")[0]
    lines = [f"## censcore {name}", "", summary, "", "| option | meaning | default |", "|---|---|---|"]
    for option in command.params:
        if option.name != "help":
            lines.append(f"| {spelling(option)} | {cell(option.help)} | {default(option)} |")
    return "\n".join([*lines, ""])


def spelling(option: typer.core.TyperOption) -> str:
    names = [*option.opts, *option.secondary_opts]
    if option.param_type_name == "argument":
        return f"`{option.name.upper()}`"
    return ", ".join(f"`{name}`" for name in names)


def default(option: typer.core.TyperOption) -> str:
    if option.required:
        return "required"
    if option.default is None or option.default is False:
        return ""
    return f"`{option.default}`"


def cell(text: str | None) -> str:
    """The text with options set as code."""
    return re.sub(r"(--[a-z-]+|[a-z]+@)", r"`\1`", text or "")


def write(app: Sphinx) -> None:
    path = Path(app.srcdir) / "generated" / "command_reference.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(reference(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
