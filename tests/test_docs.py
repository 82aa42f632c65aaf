"""Every Python block of the README, the guides and the documentation runs and prints what it shows."""

from __future__ import annotations

import doctest
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import censcore as cs

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """(line, source) of each fenced block marked ``python``."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(2)), match.group(2))
        for match in FENCE.finditer(text)
        if match.group(1) == "python"
    ]


def run_block(source: str, names: dict, page: Path, line: int) -> None:
    """Run one block in the page's namespace: an interactive session is compared with its output."""
    if ">>>" not in source:
        exec(compile("\n" * line + source, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__page__")
    monkeypatch.setitem(sys.modules, "__page__", module)  # so that classes of a page can be pickled
    for line, source in python_blocks(page):
        run_block(source, module.__dict__, page, line)


def test_a_wrong_output_is_caught():
    with pytest.raises(AssertionError, match="Expected"):
        run_block(">>> 1 + 1\n3\n", {}, Path("page.md"), 0)


def test_every_page_of_the_guide_shows_code():
    guide = [ROOT / "README.md", ROOT / "docs" / "getting_started.md", ROOT / "docs" / "concepts.md"]
    assert set(guide) <= set(PAGES)
    assert all(python_blocks(page) for page in guide)


def test_no_python_hides_in_another_fence():
    hidden = {"py", "pycon", "python3", "ipython"}
    for page in PAGES:
        fences = {match.group(1) for match in FENCE.finditer(page.read_text(encoding="utf-8"))}
        assert not fences & hidden, f"{page.name}: mark these blocks python, so that they are run"


def test_the_entries_for_a_paper_are_those_of_the_citation_file():
    cff, page = (ROOT / "CITATION.cff").read_text(), (ROOT / "docs" / "cite.md").read_text()
    titles = re.findall(r'title: "(.+)"', cff)
    names = re.findall(r"family-names: (.+)", cff)
    assert len(titles) == 2
    assert len(names) == 4
    assert [text for text in (*titles, *names) if text not in page] == []
    assert f"version: {cs.__version__}\n" in cff
    assert set(re.findall(r"version = \{(.+)\}|censcore (\d[\d.]*\d)", page)) == {
        (cs.__version__, ""),
        ("", cs.__version__),
    }


def documented() -> set[str]:
    """Dotted names in the reference: entries of summaries, and the members of whole modules."""
    module, names = "censcore", set()
    for line in (ROOT / "docs" / "api.md").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match.group(1)
        elif match := re.fullmatch(r"\.\. automodule:: (\S+)", line):
            names |= public_names(match.group(1))
        elif match := re.fullmatch(r"   ([\w.]+)", line):
            names.add(f"{module}.{match.group(1)}")
    return names


def public_names(module: str) -> set[str]:
    """Dotted names of the classes and functions that a module exports."""
    found = import_module(module)
    names = getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")])
    return {f"{module}.{name}" for name in names if callable(getattr(found, name))}


def resolve(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


@pytest.mark.parametrize("module", ["censcore", *(f"censcore.{name}" for name in cs._SUBMODULES)])
def test_the_reference_lists_every_public_name(module):
    listed = {id(resolve(name)) for name in documented()}
    assert [name for name in sorted(public_names(module)) if id(resolve(name)) not in listed] == []
