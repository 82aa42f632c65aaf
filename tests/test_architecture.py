"""The shape of the code: packages meet in public names, each mechanism exists once, words are the field's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.sources import nodes_of, text_of

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "src" / "censcore"
STUDIES = ROOT / "studies" / "src" / "censcore_studies"
MODULES = sorted([*LIBRARY.rglob("*.py"), *STUDIES.rglob("*.py")])
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "studies" / "tests").rglob("*.py")])
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "studies").glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def found_in(paths: Iterable[Path], fault: Callable[[str], object]) -> dict[str, object]:
    """The faults of each file that has some."""
    return {named(path): found for path in paths if (found := fault(text_of(path)))}


def imports(source: str) -> Iterator[str]:
    """The dotted name of everything that a module imports absolutely."""
    for node in nodes_of(source):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def foreign_private_names(source: str, home: str) -> list[str]:
    """Private names of other packages that a module of the package ``home`` imports.

    ``home`` is ``"censcore.scores"``, or ``"censcore"`` for a module beside the packages. Modules of the
    library may use the private modules at its top, such as ``censcore._arrays``.
    """
    library = home.split(".")[0]
    found = []
    for name in imports(source):
        package, _, inside = name.partition(".")
        if package not in ("censcore", "censcore_studies") or not is_private(name):
            continue
        at_the_top = package == library and inside.startswith("_")
        within = home != library and name.startswith(f"{home}.")
        if not (at_the_top or within):
            found.append(name)
    return found


def home_of(path: Path) -> str:
    """``"censcore.scores"`` for a file in that package, ``"censcore"`` for one beside the packages."""
    root = LIBRARY if path.is_relative_to(LIBRARY) else STUDIES
    return ".".join([root.name, *path.relative_to(root).parts[:-1][:1]])


@pytest.mark.parametrize("home", sorted({home_of(path) for path in MODULES}))
def test_packages_import_public_names_of_each_other(home):
    paths = [path for path in MODULES if home_of(path) == home]
    assert found_in(paths, lambda source: foreign_private_names(source, home)) == {}


@pytest.mark.parametrize(
    ("line", "home", "allowed"),
    [
        ("from censcore.scores._pairs import pairs", "censcore.scores", True),
        ("from censcore.scores._pairs import pairs", "censcore.estimators", False),
        ("from censcore.scores import _pairs", "censcore.estimators", False),
        ("from censcore.scores.energy import _lags", "censcore.evaluation", False),
        ("import censcore.scores._pairs", "censcore", False),
        ("from censcore._arrays import to_numpy", "censcore.scores", True),
        ("from censcore._arrays import to_numpy", "censcore_studies.kit", False),
        ("from censcore import __version__", "censcore_studies.kit", True),
        ("from censcore.scores import crps", "censcore.estimators", True),
    ],
)
def test_private_imports_are_recognised(line, home, allowed):
    assert (foreign_private_names(line, home) == []) is allowed


def is_own(attribute: ast.Attribute) -> bool:
    return getattr(attribute.value, "id", "") in ("self", "cls")


def members(source: str) -> Iterator[str]:
    """Names that the classes of a module define, or set on themselves."""
    for node in nodes_of(source):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield part.name
                elif isinstance(part, ast.Assign | ast.AnnAssign):
                    targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                    yield from (
                        name.id for at in targets for name in ast.walk(at) if isinstance(name, ast.Name)
                    )
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node):
            yield node.attr


#: Functions that take the name of an attribute.
BY_NAME = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller"}


def private_attributes(source: str) -> Iterator[str]:
    """Attributes with an underscore that a module asks of any object, by a dot or by their name.

    Those of torch and sys, which have names like ours, do not count.
    """
    for node in nodes_of(source):
        names = []
        if isinstance(node, ast.Attribute):
            root: ast.expr = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            names = [] if getattr(root, "id", "") in ("torch", "sys") else [node.attr]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = node.args if called in BY_NAME else []
            names = [
                part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
        yield from (name for name in names if name.startswith("_") and not name.startswith("__"))


def foreign_private_attributes(sources: dict[str, list[str]]) -> dict[str, set[str]]:
    """Private attributes that each package asks for, and that classes of other packages alone have."""
    own = {home: {name for text in texts for name in members(text)} for home, texts in sources.items()}
    ours = set().union(*own.values())
    asked = {
        home: {name for text in texts for name in private_attributes(text)} for home, texts in sources.items()
    }
    return {home: found for home, names in asked.items() if (found := (names & ours) - own[home])}


def test_packages_ask_public_attributes_of_each_other():
    """What one package asks of the classes of another is public: a contract, not a habit."""
    sources: dict[str, list[str]] = {}
    for path in MODULES:
        sources.setdefault(home_of(path), []).append(text_of(path))
    assert foreign_private_attributes(sources) == {}


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("F._sf(t)", False),
        ("forecast.marginal(0)._sf(t)", False),
        ("getattr(F, '_levels', None)", False),
        ("F._levels = x", False),
        ("class Mine(Curve):\n    def sf(self, t):\n        return self._sf(t)", False),
        ("class Mine(Curve):\n    def _sf(self, t):\n        return self._sf(t)", True),
        ("F.sf_at(t)", True),
        ("torch._levels", True),
        ("model._of_another_library", True),
        ("def _sf(t):\n    return F._sf(t)", False),  # a function of the same name is not the attribute
    ],
)
def test_private_attributes_of_other_packages_are_recognised(line, allowed):
    curve = "class Curve:\n    _levels: Array\n    def _sf(self, t):\n        return self._levels"
    found = foreign_private_attributes({"censcore.distributions": [curve], "censcore.scores": [line]})
    assert (found == {}) is allowed


def of_other_tests(source: str) -> list[str]:
    """What a test imports that is no ordinary module: a conftest, a test, the folder of the studies.

    pytest names modules by their folders. A second copy under another name, or a folder that is taken for a
    package, breaks whoever meets both: ``inspect`` remembers files by the names of modules.
    """
    return [
        name
        for name in imports(source)
        if name.split(".")[0] == "studies" or re.search(r"(^|\.)(conftest|test_\w+)\b", name)
    ]


def test_tests_share_ordinary_modules():
    assert found_in(TESTS, of_other_tests) == {}


def test_imports_of_other_tests_are_recognised():
    lines = (
        "from tests.cli.conftest import run",
        "from tests.cli import test_compare",
        "from tests.cli.test_compare import run",
        "import studies.tests.aki.truth",
        "from studies import tests",
    )
    assert all(of_other_tests(line) for line in lines)
    assert of_other_tests("from tests.cli.commands import run\nfrom censcore_studies.kit import cells") == []


def word(name: str) -> str:
    """A word in prose and as a part of a name: ``word``, ``words``, ``some_word``, ``SomeWord``."""
    return rf"(?<![a-z]){name}s?(?![a-z])|(?-i:{name.title()}s?(?![a-z]))"


#: What is not said, and what is said instead; docs/glossary.md has the words.
WORDS = {
    word("law"): "distribution",
    r"\bcame[.;]|\bcame instead|\b(?:none|one) came\b": "got ..., expected ...",
    rf"(?:{word('world')})(?!_size)": "scenario",  # torch counts processes by its world size
    word("arena"): "scenario",
    word("rival"): "scores as published elsewhere, other forecasts",
    r"\brefuse_\w+": "check_...",
    r"\binverse reach\b": "inverse-probability weight",
    r"\bhangs? together\b": "dependence, joint distribution",
    r"\bweighted_time that\b|\bthe weighted_time\b": "time, integrated survival",
}


def strange_words(text: str) -> dict[str, str]:
    """Words that survival analysts do not use, and what to say instead."""
    found = {pattern: re.search(pattern, text, re.IGNORECASE) for pattern in WORDS}
    return {match.group(): WORDS[pattern] for pattern, match in found.items() if match}


def test_words_are_those_of_the_field():
    assert found_in([*MODULES, *PAGES], strange_words) == {}


def test_strange_words_are_recognised():
    assert set(strange_words("The law of C in this world; 3.5 came.")) == {"law", "world", "came."}
    assert set(strange_words("class TrainingLaw: lognormal_worlds = None")) == {"Law", "worlds"}
    assert strange_words("Where the flaw came from, and which came first.") == {}


SOURCES = sorted(
    path
    for folder in ("src", "studies", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
)


def without_encoding(source: str) -> list[str]:
    """Calls that read or write text in whatever encoding the system has; ruff sees ``open`` itself."""
    found = []
    for node in nodes_of(source):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        mode = (
            ast.literal_eval(node.args[0]) if node.args and isinstance(node.args[0], ast.Constant) else None
        )
        text = {
            "read_text": not node.args,
            "write_text": True,
            "open": not node.args or (isinstance(mode, str) and re.fullmatch(r"[rwaxt+]+", mode) is not None),
        }
        if text.get(node.func.attr, False) and "encoding" not in {key.arg for key in node.keywords}:
            found.append(ast.unparse(node))
    return found


def test_text_files_have_an_encoding():
    assert found_in(SOURCES, without_encoding) == {}


def test_a_missing_encoding_is_recognised():
    good = ["p.read_text('utf-8')", "p.open('rb')", "p.write_text(x, encoding='utf-8')", "gzip.open(path)"]
    assert [call for call in good if without_encoding(call)] == []
    bad = ["p.read_text()", "p.write_text(x)", "(p / 'a').open()", "p.open('w')"]
    assert [call for call in bad if not without_encoding(call)] == []


#: What exists once, and how to recognise it.
ONCE = {
    "atomic writer": r"\bos\.replace\(",
    "plot style": r"[\"'](?:axes|font)\.\w+[\"']:",
    "progress bar": r"from rich\.progress import",
    "page": r"(?i)<!doctype html",
    "LaTeX table": r"\\begin\{tabular\}",
    "command group": r"entry_points\(",
    "compiler of kernels": r"\bnumba\.njit\(",
}


@pytest.mark.parametrize("mechanism", ONCE)
def test_each_mechanism_exists_once(mechanism):
    found = [named(path) for path in MODULES if re.search(ONCE[mechanism], text_of(path))]
    assert len(found) == 1, f"{mechanism}: {found}"


#: Ways to write to a path that know nothing of links, devices, full disks and readers at the same time.
WRITES = r"\.write_(?:text|bytes)\(|open\([^()]*[\"'][wxa]b?[\"']|\bexport\.save\((?!\w+, content\b)"

#: Within a folder that appears when all of it is written; a lock, which has no content.
IN_STAGES = {"aki/arrays.py", "kit/store.py"}


def test_files_are_written_by_the_atomic_writer():
    found = {path for path in MODULES if re.search(WRITES, text_of(path))}
    in_stages = {STUDIES / name for name in IN_STAGES} if STUDIES.exists() else set()  # not in an archive
    assert found == {LIBRARY / "files.py", *in_stages}
