"""Every Python block of the README, the guides and the documentation runs and prints what it shows."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import censcore as cs
from censcore.scores.registry import SCORES
from tests.chromium import in_a_browser

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]
#: Pages that draw a picture of their own, and show it.
GALLERY = [
    page
    for page in PAGES
    if page.parent.name == "gallery" and f"]({page.stem}.svg)" in page.read_text(encoding="utf-8")
]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
README = ROOT / "README.md"
#: Pages whose networks train for long: in full they run in ``make test-slow``.
TRAINED = [
    README,
    ROOT / "docs" / "censored_engression.md",
    ROOT / "docs" / "gallery" / "naive_against_censored.md",
    ROOT / "docs" / "gallery" / "two_complications.md",
]
EPOCHS = re.compile(r"""(\bepochs"?[=:] ?)\d+""")


def blocks(page: Path, *languages: str) -> list[tuple[int, str, str]]:
    """(line, language, source) of each fenced block in one of the languages, in the order of the page."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(2)), match.group(1), match.group(2))
        for match in FENCE.finditer(text)
        if match.group(1) in languages
    ]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """(line, source) of each fenced block marked ``python``."""
    return [(line, source) for line, _, source in blocks(page, "python")]


class Session(doctest.DocTestRunner):
    """Runs a session; the error of a missing package is raised, so that the page may be skipped."""

    def report_unexpected_exception(self, out, test, example, exc_info):
        if isinstance(exc_info[1], ImportError):
            raise exc_info[1]
        super().report_unexpected_exception(out, test, example, exc_info)


class AnyOutput(doctest.OutputChecker):
    """Takes what is printed, whatever it is."""

    def check_output(self, want, got, optionflags):
        return True


def run_block(source: str, names: dict, page: Path, line: int, checker=None) -> None:
    """Run one block in the page's namespace: an interactive session is compared with its output."""
    if ">>>" not in source:
        exec(compile("\n" * line + source, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line)
    said: list[str] = []
    Session(checker, optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def run_console(source: str) -> None:
    """Run the commands of the library whose output a console block shows, and compare the output."""
    from typer.testing import CliRunner

    from censcore.cli.app import app

    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", source, re.MULTILINE)
    for command, shown in commands:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if words[0] != "censcore" or not shown.strip():
            continue
        if words[1] in ("reproduce", "aki"):
            pytest.importorskip("censcore_studies")
        found = CliRunner().invoke(app, words[1:])
        assert found.exit_code == 0, found.output
        assert doctest.OutputChecker().check_output(shown, found.output, OPTIONS), found.output


def run_page(page: Path, tmp_path, monkeypatch, edit=str, checker=None) -> None:
    """Run all blocks of a page in one namespace, after an edit of the source."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__page__")
    monkeypatch.setitem(sys.modules, "__page__", module)  # so that classes of a page can be pickled
    for line, language, source in blocks(page, "python", "console"):
        if language == "python":
            run_block(edit(source), module.__dict__, page, line, checker)
        else:
            run_console(source)
    if page in GALLERY:
        assert hasattr(module.figure, "savefig"), "the picture of the page is what it draws as figure"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page in TRAINED)) for page in PAGES], ids=name_of
)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    if page in TRAINED:
        pytest.importorskip("torch", reason="networks need the extra 'torch'")
    run_page(page, tmp_path, monkeypatch)


@pytest.mark.usefixtures("brief_members")
@pytest.mark.parametrize("page", TRAINED, ids=name_of)
def test_code_blocks_run_with_networks_of_one_epoch(page, tmp_path, monkeypatch):
    """They print other numbers then, from fewer draws; the README shows none of a network."""
    assert EPOCHS.search(page.read_text(encoding="utf-8"))
    checker = None
    if page != README:
        checker = AnyOutput()
        for model in (cs.BestForecast, cs.CensoredEngression, cs.MixtureDensityNetwork):
            monkeypatch.setitem(model.__init__.__kwdefaults__, "n_samples", 64)
    run_page(page, tmp_path, monkeypatch, edit=lambda source: EPOCHS.sub(r"\g<1>1", source), checker=checker)


def test_an_error_is_caught_whatever_is_printed():
    run_block(">>> 1 + 1\n3\n", {}, Path("page.md"), 0, AnyOutput())
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_block(">>> 1 / 0\n0\n", {}, Path("page.md"), 0, AnyOutput())


def test_a_wrong_output_is_caught():
    with pytest.raises(AssertionError, match="Expected"):
        run_block(">>> 1 + 1\n3\n", {}, Path("page.md"), 0)


def test_a_wrong_output_of_a_command_is_caught():
    run_console(f"$ censcore --version\ncenscore {cs.__version__}\n")
    with pytest.raises(AssertionError):
        run_console("$ censcore --version\ncensore 0.0.0\n")


#: Pages of the navigation that need no picture: lists, tables, references, installation.
WITHOUT_PICTURE = {
    "api", "bibliography", "changelog", "cite", "conformance", "contributing", "faq", "glossary", "install",
    "releasing", "what_works", "user_guide", "evidence", "guarantees", "guide_start", "guide_scores",
    "guide_comparing", "guide_data", "guide_models", "guide_project", "guide_validating",
}  # fmt: skip


def listed_in(name: str) -> list[str]:
    """The pages that a page lists, and those that they list."""
    page = ROOT / "docs" / f"{name}.md"
    trees = (
        re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        if page.exists()
        else []
    )
    names = [line for tree in trees for line in tree.split() if not line.startswith(":")]
    return [each for name in names for each in (name, *listed_in(name))]


def guide() -> list[Path]:
    """Pages of the navigation in docs/ itself; those of the gallery and the results have their own rules."""
    listed = [ROOT / "docs" / f"{name}.md" for name in listed_in("index")]
    return [page for page in listed if page.exists()]


def test_every_page_has_one_place_in_the_navigation():
    """Four doors, at most 20 entries in a side bar: those of a chapter, and the other chapters."""
    assert listed_in("index")[0] == "user_guide"
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    (doors,) = re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL)
    assert [line for line in doors.split() if not line.startswith(":")] == [
        "user_guide",
        "gallery/index",
        "api",
        "evidence",
    ]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages - set(listed_in("index")) == set()
    chapters = [name for name in listed_in("user_guide") if name.startswith("guide_")]
    assert max(len(listed_in(name)) for name in chapters) + len(chapters) <= 20
    assert len(listed_in("evidence")) <= 20


def test_every_guarantee_names_tests_that_exist():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    rows = [row for row in text.split("## What is not")[0].splitlines() if row.startswith("| **")]
    assert len(rows) >= 10
    for row in rows:
        named = re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", row)
        assert named, row
        assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_page_of_the_guide_has_a_picture():
    pages = [page for page in guide() if page.parent.name == "docs" and page.stem not in WITHOUT_PICTURE]
    assert len(pages) > 20
    picture = re.compile(r"!\[.+\]\(|:file: \S+\.svg|include} generated/score_cards")
    assert [page.stem for page in pages if not picture.search(page.read_text(encoding="utf-8"))] == []


def test_every_page_of_the_guide_opens_with_what_it_is_for():
    files = {"changelog", "contributing"}  # files of the repository, included as they are
    for page in guide():
        if page.parent.name != "docs" or page.stem in files:
            continue
        title, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith("# "), page
        assert re.match(r"[\w\[{*]|`[^`]", first), f"{page.name} does not begin with a sentence"


def test_pictures_and_their_text_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for alt, target in re.findall(r"!\[(.*?)\]\(([^)]+)\)", text):
            if page.parent.name != "generated":
                assert alt, f"{page.name}: {target} has no description for those who cannot see it"
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_drawn_picture_is_committed_and_shown():
    drawn = {
        name
        for script in (ROOT / "docs" / "_figures").glob("*.py")
        for name in re.findall(r"^@picture\ndef (\w+)", script.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert drawn == {path.stem for path in (ROOT / "docs" / "_static" / "figures").glob("*.svg")}
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in sorted(drawn) if f"figures/{name}.svg" not in text] == []


#: Imports the modules that draw, in the first folder, and draws some pictures: prints the names of all, and
#: of the figures among those that were drawn.
DRAWING = """
import json, sys
from importlib import import_module
sys.path.insert(0, sys.argv[1])
modules, some = map(json.loads, sys.argv[2:])
for name in modules:
    import_module(name)
pictures = import_module("kit").PICTURES
print(json.dumps([list(pictures), [name for name in some if hasattr(pictures[name](), "savefig")]]))
"""


def test_the_pictures_can_be_drawn_again():
    pytest.importorskip("censcore_studies", reason="some pictures are those of the studies")
    # in a process of its own: the modules that draw have names that others may have, too
    folder = ROOT / "docs" / "_figures"
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    listed = sources.pop("__main__")
    for name, source in sources.items():
        if "PICTURES" in source or "@picture" in source:
            assert name == "kit" or f"import {name} " in listed
    some = ["delayed_entry", "results/multivariate/dimension", "results/forecast_evaluation/oracle_ranks"]
    command = [sys.executable, "-c", DRAWING, str(folder), json.dumps(list(sources)), json.dumps(some)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    pictures, drawn = json.loads(done.stdout.splitlines()[-1])
    assert drawn == some
    assert {f"gallery/{page.stem}" for page in GALLERY} <= set(pictures)
    for name in pictures:
        assert (ROOT / "docs" / ("" if "/" in name else "_static/figures") / f"{name}.svg").exists(), name


@pytest.mark.slow  # in make test-docs, too
@in_a_browser
def test_the_pictures_of_the_report_can_be_drawn_again(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "_figures" / "report_page.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"report.png", "report_dark.png"}


#: Pictures that are no drawings: screenshots, densities, and curves of which the table has the summary only.
PIXELS = {"calibration.png", "joint_densities.png", "report.png", "report_dark.png"}


def test_pictures_are_drawings_where_they_can_be():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.parent.name != "generated")
    assert {Path(found).name for found in re.findall(r"!\[.+?\]\(([^)]+\.png)\)", text)} <= PIXELS
    beside = [*(ROOT / "docs" / "gallery").glob("*.svg"), *(ROOT / "docs" / "results").rglob("*.svg")]
    assert [
        path.name for path in beside if f"/{path.name})" not in text and f"({path.name})" not in text
    ] == []


def test_the_gallery_shows_every_page_with_its_picture():
    folder = ROOT / "docs" / "gallery"
    index = (folder / "index.md").read_text(encoding="utf-8")
    cards = dict(re.findall(r":link: (\w+)\n:link-type: doc\n:img-top: (\S+)\n", index))
    assert set(cards) == {page.stem for page in folder.glob("*.md")} - {"index"}
    assert all((folder / picture).exists() for picture in cards.values())
    assert len(GALLERY) >= 12
    assert [page.stem for page in GALLERY if cards[page.stem] != f"{page.stem}.svg"] == []
    listed = re.findall(r"^\w+$", index.split("{toctree}")[1], re.MULTILINE)
    assert listed == list(cards)


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_a_page_of_the_gallery_is_a_notebook(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    made = import_module("notebooks").notebook(page)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        if not cell["source"].startswith("!"):
            compile(cell["source"], page.name, "exec")
    assert made["cells"][0]["source"].startswith("# ")
    assert any(cell["outputs"] for cell in code)
    assert code[-1]["outputs"][0]["data"]["image/svg+xml"].startswith("<?xml")
    assert not re.search(r"\]\([^)]*\.md", "".join(cell["source"] for cell in made["cells"]))
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_what_links_to_the_reference_and_what_is_darkened(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    target_of = import_module("api_links").target_of
    assert target_of("cs.Censoring(KaplanMeier())") == "censcore.Censoring"
    assert target_of('comparison.plot("brier")') == "censcore.Comparison.plot"
    for text in ("horizon=", "comparison", "y.time", "scores", "np.array([1])"):
        assert target_of(text) is None
    darkened = import_module("dark_figures").darkened
    assert darkened("fill: #ffffff; stroke: #0F766E") == "fill: #14181e; stroke: #2dd4bf"


def test_results_begin_with_a_picture_and_five_lines():
    names = (
        "forecast_evaluation",
        "multivariate",
        "real_data",
        "coverage",
        "engression_ablations",
        "public_data",
    )
    for name in names:
        text = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
        first = re.split(r"\n(?:## |:::)", text)[0]
        assert "![" in first.splitlines()[2], name
        assert 4 <= len(re.findall(r"^- ", first, re.MULTILINE)) <= 6, name
        unfolded = re.sub(r":::\{dropdown\}.*?\n:::", "", text, flags=re.DOTALL)
        assert "{include}" not in unfolded, name


@pytest.mark.parametrize("info", SCORES.values(), ids=SCORES)
def test_every_score_has_what_its_card_shows(info):
    assert info.unit
    assert info.range
    assert info.proper.endswith(".")
    assert info.pitfalls
    assert all(pitfall.endswith(".") for pitfall in info.pitfalls)
    assert re.search(r"\(\d{4}\)", info.reference)


def test_formulas_keep_their_bars_in_a_table(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    rows = import_module("score_cards").table().splitlines()
    energy = next(row for row in rows if row.startswith("| `energy_score` |"))
    assert energy.count(r"\Vert") == 4
    assert r"\\" not in "".join(rows)  # a bar after a backslash would break the line
    assert {row.count("|") for row in rows} == {5}


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("sksurv", "coming_from"),
        ("cite", "cite"),
        ("C-index", "discrimination"),
        ("competing risks", "competing_risks"),
        ("horizon", "choosing_a_horizon"),
        ("BibTeX", "cite"),
    ],
)
def test_a_search_finds_its_page(words, page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    headings = " ".join(re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    assert words.lower() in (headings if words != "BibTeX" else text).lower()


def test_the_bibliography_has_every_reference_of_the_scores_and_the_guide():
    listed = " ".join(
        (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8").replace("*", "").split()
    )
    assert [info.name for info in SCORES.values() if title_of(info.reference) not in listed] == []
    for page in guide():
        _, _, references = page.read_text(encoding="utf-8").partition("\n## References\n")
        for entry in re.findall(r"^- (.*?)(?=^- |\Z)", references, re.MULTILINE | re.DOTALL):
            text = " ".join(entry.replace("*", "").split())
            assert title_of(text) in listed, f"{page.name}: {text}"


def title_of(reference: str) -> str:
    """The title: what stands between the year and the next stop or comma."""
    return re.split(r"\(\d{4}\)\. ", reference)[1].split(".")[0].split(",")[0]


def test_every_page_of_the_guide_shows_code():
    pages = [ROOT / "README.md", ROOT / "docs" / "getting_started.md", ROOT / "docs" / "concepts.md"]
    assert set(pages) <= set(PAGES)
    assert all(python_blocks(page) for page in pages)


def test_no_python_hides_in_another_fence():
    hidden = {"py", "pycon", "python3", "ipython"}
    for page in PAGES:
        fences = {match.group(1) for match in FENCE.finditer(page.read_text(encoding="utf-8"))}
        assert not fences & hidden, f"{page.name}: mark these blocks python, so that they are run"


def test_the_entries_for_a_paper_are_those_of_the_citation_file():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    titles = re.findall(r'title: "(.+)"', cff)
    names = re.findall(r"family-names: (.+)", cff)
    assert len(titles) == 2
    assert len(names) == 4
    assert [text for text in (*titles, *names) if text not in page] == []


@pytest.mark.parametrize("address", ["", "https://example.org/{kind}/main"])
def test_the_readme_of_a_package_index_has_no_relative_target(address, monkeypatch):
    hatchling = ModuleType("hatchling.metadata.plugin.interface")
    hatchling.MetadataHookInterface = object  # the build alone has the real one
    monkeypatch.setitem(sys.modules, hatchling.__name__, hatchling)
    for package in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    build = import_module("hatch_build")
    text = build.for_an_index((ROOT / "README.md").read_text(encoding="utf-8"), address)
    targets = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text)
    assert all(target.startswith(("https://", "#")) for _, target in targets)
    assert [target for picture, target in targets if picture] == []  # an index would not find it


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
