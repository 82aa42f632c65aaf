"""Names of models, columns, groups, files and causes are text wherever they are shown, whatever they hold."""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.report.export import LATEX, latex_text, markdown_table
from censcore.plain_text import html_text, one_line, visible
from censcore.progress import ProgressBar

HOSTILE = {
    "tags": "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "quotes": "'\"`' onload='x' \"",
    "entities": "&lt;b&gt; &amp; <b>",
    "lines": "cox\n\n\r\nforest\x0b\x85\u2028x",
    "right to left": "\u202egnissoc\u2066 \u200f\u061c x",
    "terminal": "\x1b[2J\x1b[31mred\x07\x9b1m \x00 \x7f \r\b",
    "LaTeX": r"\input{/etc/passwd} $x_1^2$ 5% #1 & ~ {x} \\",
    "formula": r"$\frac{1}{$ a $b$",
    "markup": "[bold]x[/bold] [/] {task.nothing} :smile: | *a* _b_ ![i](u) `c`",
    "hidden": "_nolegend_",
    "half a letter": "\ud800 x",
}
PLAIN = [f"model {i}" for i in range(len(HOSTILE))]


def comparison_of(names: list[str]):
    rng = np.random.default_rng(0)
    T, C = rng.exponential(1.0, 60), rng.uniform(0, 3, 60)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {name: cs.Exponential(np.linspace(0.5, 1.5 + i / 9, 60)) for i, name in enumerate(names)}
    return cs.compare(
        forecasts, y, cs.Uniform(0.0, 3.0), horizon=2.0, scores=["crps", "brier_score:ipcw"], times=[1.0],
        by={names[0]: np.array([names[i % 3] for i in range(60)])}, time_unit=names[1],
        discrimination=False,
    )  # fmt: skip


def risks_of(names: list[str]):
    rng = np.random.default_rng(1)
    time, cause = rng.exponential(1.0, 60), rng.integers(0, len(names) + 1, 60)
    y = cs.CompetingRisks(np.minimum(time, 2.0), np.where(time < 2.0, cause, 0), names=names)
    forecasts = {
        "a": cs.CauseSpecificHazards([cs.Exponential(0.2) for _ in names], names=names),
        "b": cs.CauseSpecificHazards([cs.Exponential(0.3) for _ in names], names=names),
    }
    return cs.compare(
        forecasts, y, cs.Uniform(0.0, 9.0), horizon=1.5, scores=["brier_score"], times=[1.0],
        discrimination=False,
    )  # fmt: skip


@pytest.fixture(scope="module", params=["models, groups, columns and units", "causes"])
def both(request):
    """What is shown of a comparison with hostile names and of the same one with plain names."""
    if request.param == "causes":
        some = ["tags", "lines", "right to left", "terminal", "LaTeX"]
        return risks_of([HOSTILE[name] for name in some]), risks_of(PLAIN[: len(some)])
    return comparison_of(list(HOSTILE.values())), comparison_of(PLAIN)


def obeyed(text: str) -> set[str]:
    """Characters that a terminal or a page would obey."""
    return {letter for letter in text if not letter.isprintable()} - set("\n\xa0")


class Tags(HTMLParser):
    """All tags of a page with the names of their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[tuple[str, ...]] = Counter()
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[(tag, *(name for name, _ in attrs))] += 1

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("page", ["to_html", "_repr_html_"])
def test_pages(both, page):
    shown, harmless = (getattr(found, page)() for found in both)
    hostile = Tags(shown)
    assert hostile.tags == Tags(harmless).tags
    assert obeyed(shown) == set()
    assert shown.encode()
    assert "alert(1)" in "".join(hostile.text)


def test_terminal(both):
    hostile, plain = (repr(found) for found in both)
    assert obeyed(hostile) == set()
    assert hostile.encode()
    assert len(re.findall(r"(?m)^note:|^warning:", hostile)) == len(
        re.findall(r"(?m)^note:|^warning:", plain)
    )


def test_json(both):
    text = both[0].to_json()
    assert text.isascii()
    assert obeyed(text) == set()
    found = json.loads(text)
    names = {line["model"] for line in found["means"]} | {line["outcome"] for line in found["means"]}
    assert set(both[0].models) <= names


BACK = {escaped: letter for letter, escaped in LATEX.items()}
PIECES = re.compile("|".join(re.escape(escaped) for escaped in sorted(BACK, key=len, reverse=True)))


def plain_of_latex(text: str) -> str:
    """What LaTeX prints of a text that uses the escapes of LATEX alone; anything else would be a command."""
    rest = PIECES.sub("", text)
    assert not re.search(r"[\\{}$^~%&_#]", rest), rest
    return PIECES.sub(lambda match: BACK[match.group()], text)


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_prints_the_name(name):
    text = latex_text(HOSTILE[name])
    assert plain_of_latex(text) == one_line(HOSTILE[name])
    assert obeyed(text) == set()


def test_latex(both):
    hostile, plain = (found.to_latex() for found in both)
    assert obeyed(hostile) == set()
    assert hostile.count("\n") == plain.count("\n")
    assert re.findall(r"(?m)\\\\$", hostile) == re.findall(r"(?m)\\\\$", plain)
    for line in hostile.splitlines():
        if line.endswith(r" \\"):
            assert all(plain_of_latex(cell) for cell in line.removesuffix(r" \\").split(" & ")[:1])


def test_markdown(both):
    hostile, plain = (found.to_markdown() for found in both)
    assert obeyed(hostile) == set()
    bars = [[len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()] for text in (hostile, plain)]
    assert bars[0] == bars[1]
    assert not re.search(r"(?<!\\)[<`$]", hostile)
    assert markdown_table(["x"], [["-0.25"], ["1.5"], ["1. a"], ["- b"]]).splitlines()[2:] == [
        "| -0.25 |", "| 1.5   |", r"| 1\. a |", r"| \- b  |",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["brier", "differences"])
def test_figures(both, kind):
    pytest.importorskip("matplotlib")
    from matplotlib.cbook import is_math_text
    from matplotlib.text import Text

    figure = both[0].plot(kind)
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert not any(is_math_text(text) for text in texts)
    assert not any(obeyed(text) for text in texts)
    assert not any(text.get_usetex() for text in figure.findobj(Text))
    stream = io.BytesIO()
    figure.savefig(stream, format="svg")
    tags = {element.tag.split("}")[-1] for element in ElementTree.fromstring(stream.getvalue()).iter()}
    assert tags <= {"svg", "metadata", "RDF", "Work", "type", "date", "format", "creator", "Agent", "title",
                    "defs", "style", "g", "path", "use", "clipPath", "rect"}  # fmt: skip


def test_a_name_with_a_leading_underscore_is_in_the_legend(both):
    pytest.importorskip("matplotlib")
    if "_nolegend_" not in both[0].models:
        pytest.skip("about models")
    figure = both[0].plot("brier")
    legend = [text.get_text().strip() for text in figure.axes[0].get_legend().get_texts()]
    assert "_nolegend_" in legend
    assert len(legend) == len(both[0].models)


def test_what_latex_is_set_to_does_not_matter(both, monkeypatch):
    mpl = pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    assert not any(text.get_usetex() for text in both[1].plot("brier").findobj(Text))


@pytest.mark.parametrize("name", HOSTILE)
def test_progress_bars(name):
    from rich.console import Console

    with ProgressBar(HOSTILE[name], total=2) as bar:
        bar.advance(note=HOSTILE[name])
        stream = io.StringIO()
        Console(file=stream, width=400, emoji=False).print(bar._progress.get_renderable())
    assert stream.getvalue().count(one_line(HOSTILE[name])) == 2


def test_tables_of_studies_are_printed_as_they_are(capsys):
    pd = pytest.importorskip("pandas")
    tables = pytest.importorskip("censcore_studies.kit.tables")
    from censcore_studies.cli.reproduce import _show

    view = pd.DataFrame({"score": ["brier_score[either]", "[bold]x[/bold] :smile:"]})
    _show(tables.StudyTable("t", view, view, "[red]Caption[/red]"))
    shown = capsys.readouterr().out
    assert all(
        text in shown for text in ("brier_score[either]", "[bold]x[/bold] :smile:", "[red]Caption[/red]")
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_shown_text_is_stable(name):
    """What is shown once is shown the same again, and distinct characters stay distinct."""
    assert visible(visible(HOSTILE[name])) == visible(HOSTILE[name])
    assert obeyed(html_text(HOSTILE[name])) == set()
    assert "<" not in html_text(HOSTILE[name])


def test_names_of_people_stay_as_they_are():
    for name in ("Größe", "مدل", "می\u200cخواهم", "模型", "👩\u200d⚕️ x", "a\tb"):
        assert visible(name) == name


@pytest.mark.parametrize("names", [("tags", "terminal"), ("right to left", "lines")])
def test_objects_show_their_names(names):
    names = [HOSTILE[name] for name in names]
    risks = risks_of(names)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), cs.RightCensored(rng.exponential(size=60), np.ones(60))
    pd = pytest.importorskip("pandas")
    cox = cs.CoxRegression().fit(pd.DataFrame(X, columns=names), y)
    shown = [repr(risks.outcome), repr(risks.cases["a"].F), str(cox.summary())]
    shown += [repr(cs.CumulativeIncidence([1.0], np.full((1, 2, 1), 0.2), names=names))]
    for text in shown:
        assert obeyed(text) == set()


def run(monkeypatch, *words: str) -> str:
    """What the command line says when it ends with an error."""
    pytest.importorskip("typer")
    from censcore.cli import main

    monkeypatch.setattr(sys, "argv", ["censcore", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, str)
    assert end.value.code.startswith("censcore: ")
    return end.value.code


@pytest.mark.parametrize("name", ["terminal", "right to left", "tags"])
def test_errors_of_the_command_line(monkeypatch, tmp_path, name):
    pd = pytest.importorskip("pandas")
    file = tmp_path / "table.csv"
    pd.DataFrame({re.sub("[\x00\r]", "", HOSTILE[name]): [1.0], "t": [1.0]}).to_csv(file, index=False)
    said = run(monkeypatch, "compare", str(file), "--time", "t", "--event", "\x1b[31mdied")
    assert obeyed(said) == set()
    assert r"\x1b[31mdied" in said


@pytest.mark.parametrize("option", ["--censoring-time", "--entry", "--time"])
def test_words_where_numbers_are_expected_are_one_sentence(monkeypatch, tmp_path, option):
    pd = pytest.importorskip("pandas")
    file = tmp_path / "table.csv"
    pd.DataFrame({"t": [1.0, 2.0], "d": [1, 0], "w": ["soon", "late"], "f__sf@1": [0.5, 0.5]}).to_csv(
        file, index=False
    )
    options = {"--time": "t", "--event": "d"} | {option: "w"}
    said = run(monkeypatch, "compare", str(file), *(word for pair in options.items() for word in pair))
    assert option in said
    assert "\n" not in said


def test_a_file_with_a_hostile_name_has_an_inert_page(tmp_path):
    pd = pytest.importorskip("pandas")
    from typer.testing import CliRunner

    from censcore.cli.app import app

    file = tmp_path / "<b onload='x'>\x1b[31m\u202e.csv"
    rng = np.random.default_rng(0)
    table = {"t": rng.exponential(size=40), "d": np.ones(40, dtype=int), "f__sf@1": np.full(40, 0.4)}
    pd.DataFrame(table).to_csv(file, index=False)
    page = tmp_path / "\x1b[31mpage.html"
    words = ["compare", file, "--time", "t", "--event", "d", "--censoring", "none", "--scores", "crps"]
    words += ["--reference", "none", "--html", page]
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    assert obeyed(result.stdout) == set()
    assert r"written: " in result.stdout
    shown = page.read_text("utf-8")
    assert obeyed(shown) == set()
    assert not any(tag == "b" for tag, *_ in Tags(shown).tags)
