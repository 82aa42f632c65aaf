"""What the README and the page on installation promise after each install line."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import censcore as cs

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [ROOT / "README.md", ROOT / "docs" / "install.md"]

#: Imports of all packages that only extras bring raise an error.
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def packages(lines: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", line)[0] for line in lines} - {"censcore"}


def only_in_extras() -> set[str]:
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    names = packages(extras) - packages(PROJECT["dependencies"])
    return {{"scikit-survival": "sksurv"}.get(name, name.replace("-", "_")) for name in names}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_extra_is_named(page):
    text = page.read_text(encoding="utf-8")
    first_column = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"`([\w-]+)`", " ".join(first_column)))
    assert set(PROJECT["optional-dependencies"]) <= named
    commands = re.findall(r"pip install '\.\[([\w,]+)\]'", text)
    assert {extra for command in commands for extra in command.split(",")} <= named


#: Where the version of pyproject.toml is repeated, how, and how often.
VERSIONS = {
    "studies/pyproject.toml": (r'^version = "(.+)"$', 1),
    "CITATION.cff": (r"^version: (.+)$", 1),
    "docs/cite.md": (r"^\d\S*$|(?<=version = \{)[^}]+|(?<=censcore )\d\S*\w", 3),
    "docs/which_score.md": (r"(?<=censcore )\d\S*\w", 1),
}


@pytest.mark.parametrize("file", VERSIONS)
def test_the_version_is_that_of_the_project(file):
    if file.startswith("studies") and not (ROOT / file).exists():
        pytest.skip("an archive of the library alone")
    pattern, times = VERSIONS[file]
    found = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [PROJECT["version"]] * times


def test_the_installed_version_is_that_of_the_project():
    assert cs.__version__ == PROJECT["version"]


def test_the_workflow_calls_targets_that_exist():
    workflow = ROOT / ".github" / "workflows" / "tests.yml"
    if not workflow.exists():
        pytest.skip("an archive of the library alone")
    called = set(re.findall(r"run: make ([\w-]+)", workflow.read_text(encoding="utf-8")))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test", "lint"} <= called <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised():
    """Of what the tests install; torch is the one exception, which the file explains."""
    extras = PROJECT["optional-dependencies"]
    promised, todo = dict[str, str](), [*PROJECT["dependencies"], *extras["test"]]
    for line in todo:
        if (inner := re.fullmatch(r"censcore\[(.*)\]", line)) is not None:
            todo += [part for extra in inner[1].split(",") for part in extras[extra]]
        else:
            name, _, version = line.partition(">=")
            promised[name.partition("[")[0]] = version
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    del tested["torch"], promised["torch"]
    assert tested == promised


def test_pinned_versions_run_on_the_lowest_python():
    """Distributions of Linux have early releases of a Python, such as 3.11.2."""
    lowest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    pins = {
        line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line
    }
    found = {f"{d.name}=={d.version}": d.metadata.get("Requires-Python") for d in distributions()}
    if len(pins & set(found)) < 100:
        pytest.skip("an environment that constraints.txt does not describe")
    assert {pin for pin in pins & set(found) if lowest not in SpecifierSet(found[pin] or "")} == set()


def run(code: str) -> subprocess.CompletedProcess[str]:
    script = BLOCK.format(blocked=only_in_extras()) + code
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_the_readme_runs_on_the_base_installation_and_errors_name_missing_extras():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, _, after = text.partition("## Learn a joint distribution")
    examples = before.partition("## The idea")[2] + after.partition("## The paper's studies")[2]
    assert "CensoredEngression(" in text.removeprefix(before)
    assert "CensoredEngression(" not in examples
    found = run(
        "import doctest\n"
        f"test = doctest.DocTestParser().get_doctest({examples!r}, {{}}, 'README', None, 0)\n"
        "runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)\n"
        "runner.run(test)\n"
        "assert runner.tries > 10, runner.tries\n"
        "import censcore as cs\n"
        "y = cs.RightCensored([1.0, 2.0, 3.0], [1, 1, 0])\n"
        "comparison = cs.compare({'a': cs.Exponential(1.0)}, y, cs.Uniform(0.0, 5.0), scores='crps')\n"
        "for call in (comparison.plot, lambda: cs.CensoredEngression):\n"
        "    try:\n"
        "        call()\n"
        "    except cs.exceptions.MissingDependencyError as error:\n"
        "        print(error)\n"
        "sys.exit(runner.failures)\n"
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    assert "pip install 'censcore[plots]'" in found.stdout, found.stderr
    assert "pip install 'censcore[torch]'" in found.stdout


def test_the_version_needs_no_extra():
    found = run("sys.argv = ['censcore', '--version']\nfrom censcore.cli import main\nmain()\n")
    assert re.fullmatch(r"censcore \d+\.\d+\.\d+\S*\n", found.stdout), found.stderr
    other = run("sys.argv = ['censcore', 'demo']\nfrom censcore.cli import main\nmain()\n")
    assert "The command line needs typer: pip install 'censcore[cli]'." in other.stderr
