"""Commands of other packages: found by entry point, loaded when needed, never with a traceback."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from censcore.cli import main
from censcore.cli.app import app

WORKS = """
import typer
app = typer.Typer()
@app.command()
def say(word: str) -> None:
    "Say a word."
    typer.echo(f"said {word}")
@app.command()
def other() -> None:
    "Another."
"""
UNFIT = """
from typing import Annotated
app.info.help = "What is said."
@app.command()
def unfit(number: Annotated[int, typer.Argument(), typer.Argument()]) -> None:
    "One argument twice."
"""
FUNCTION = """
def shout(word: str) -> None:
    "Shout a word."
    print(word.upper())
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package with these modules and commands, as an installer would."""

    def install(commands: dict[str, str], **modules: str) -> None:
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        info = tmp_path / "visitor-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: visitor\nVersion: 1.0\n", encoding="utf-8"
        )
        lines = "".join(f"{name} = {value}\n" for name, value in commands.items())
        (info / "entry_points.txt").write_text(f"[censcore.commands]\n{lines}", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def plain(text: str) -> str:
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def test_a_list_of_commands_makes_none_of_those_of_a_group(package):
    package({"listed": "listed:app"}, listed=WORKS + UNFIT)
    text = run("--help")
    assert text.exit_code == 0
    assert "listed What is said." in plain(text.output)
    assert type(run("listed", "say", "x").exception).__name__ == "MultipleTyperAnnotationsError"


def test_a_group_and_a_function_become_commands(package):
    package(
        {"visit": "visit_app:app", "shout": "visit_function:shout"}, visit_app=WORKS, visit_function=FUNCTION
    )
    assert run("visit", "say", "hello").output == "said hello\n"
    assert run("shout", "hello").output == "HELLO\n"
    text = plain(run("--help").output)
    assert "Shout a word." in text
    assert "completion" not in plain(run("visit", "--help").output)


def test_only_the_command_that_is_run_is_loaded(package):
    package({"shout": "loud:shout", "visit": "not_loaded:app"}, loud=FUNCTION, not_loaded=WORKS)
    run("shout", "hello")
    assert "loud" in sys.modules
    assert "not_loaded" not in sys.modules


@pytest.mark.parametrize("words", [["fragile"], ["fragile", "--any", "option"]])
def test_a_broken_package_gives_one_sentence(package, monkeypatch, words):
    package({"fragile": "breaks:app"}, breaks="raise RuntimeError('a part is missing')")
    monkeypatch.setattr(sys, "argv", ["censcore", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == (
        "censcore: The command 'fragile' (breaks:app of visitor) cannot be loaded: "
        "RuntimeError: a part is missing."
    )
    listed = run("--help")
    assert listed.exit_code == 0
    assert "cannot be loaded" in plain(listed.output)


def test_the_library_keeps_its_own_commands(package):
    package({"score": "thief:shout"}, thief=FUNCTION)
    assert "one loss per subject" in plain(run("score", "--help").output)


def test_the_studies_are_named_where_they_are_missing(monkeypatch):
    monkeypatch.setattr("censcore.cli.plugins.entry_points", lambda **_: [])
    result = run("reproduce", "oracle-ranks")
    assert result.exit_code == 2
    assert "No such command 'reproduce'" in plain(result.output)
    assert "pip install ./studies" in plain(result.output)
    assert "pip install" not in plain(run("no-such-thing").output)


def test_importing_the_library_looks_for_no_commands():
    code = "import sys, censcore; print('censcore.cli' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_version_is_told():
    import censcore

    assert run("--version").output.strip() == f"censcore {censcore.__version__}"


def test_a_module_missing_from_the_library_itself_is_no_missing_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "censcore.cli.app")
    monkeypatch.delitem(sys.modules, "censcore.cli.compare_command")
    monkeypatch.setitem(sys.modules, "censcore.cli.predictions", None)
    with pytest.raises(ModuleNotFoundError, match=r"censcore\.cli\.predictions"):
        main()
