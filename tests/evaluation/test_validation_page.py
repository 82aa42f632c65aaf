"""The page, the tables and the pictures of a validation."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.validations import T0, drawn, of_two_causes, two_causes

import censcore as cs
from censcore.evaluation.measures.risk_groups import risk_groups
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import InvalidInputError, MissingPackageError


@pytest.fixture(scope="module")
def found() -> cs.Validation:
    x, y = drawn(300, 50)
    X = pd.DataFrame({"age": 60 + 10 * x, "sex": np.where(np.arange(300) % 2, "f", "m")})
    return cs.validate(
        {"<b>model</b>": cs.Exponential(np.exp(x))}, y, time=T0, X=X, thresholds=[0.5], by="sex",
        sites=np.arange(300) % 3, development={"age": "58 (9)"}, time_unit="years",
    )  # fmt: skip


def test_the_page_answers_in_order(found):
    page = found.to_html()
    ids = re.findall(r"<h2 id='(\w+)'>", page)
    assert ids == ["found", "measures", "calibration", "decision", "groups", "subjects", "subgroups", "sites",
                   "methods", "checklist"]  # fmt: skip
    links = set(re.findall(r"href='#(\w+)'", page))
    assert links <= set(ids)
    assert "<b>model</b>" not in page
    assert "What remains to be judged" in page
    assert "median follow-up (reverse Kaplan-Meier)" in page
    assert "58 (9)" in page
    assert "the author must supply it" in page
    assert not re.search(r"(src|href)='https?:", page)
    for word in ("best", "rank "):
        assert word not in re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)


def test_sentences_hold_the_numbers_of_the_table(found):
    said = re.search(r"<div class='verdict'>(.*?)</div>", found.to_html(), re.DOTALL)[1]
    for name in ("O/E", "calibration slope", "net benefit at 0.5"):
        line = found.line(name)
        assert f"{line['value']:.3f}" in said
        assert f"{line['low']:.3f} to {line['high']:.3f}" in said.replace("−", "-")


def test_tables_have_every_measure(found, tmp_path):
    names = set(found.frame().measure)
    for text in (found.to_markdown(), found.to_latex(), found.to_csv(), repr(found)):
        plain = text.replace("\\", "")
        assert all(name in plain for name in names)
    found.to_markdown(tmp_path / "table.md")
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == found.to_markdown()


def test_a_word_document(found, tmp_path):
    docx = pytest.importorskip("docx")
    found.to_word(tmp_path / "table.docx")
    table = docx.Document(str(tmp_path / "table.docx")).tables[0]
    assert table.rows[0].cells[0].text == "measure"
    assert len(table.rows) == len(found.lines) + 1


def test_without_python_docx_an_error_says_what_to_install(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(MissingPackageError, match="python-docx"):
        found.to_word(tmp_path / "table.docx")


def test_pictures(found):
    for kind in ("calibration", "risks", "decision", "groups", "sites"):
        assert found.plot(kind).axes
    with pytest.raises(InvalidInputError, match="kind"):
        found.plot("other")


@pytest.mark.parametrize("causes", [False, True])
def test_risk_groups_have_curves_and_numbers_at_risk(causes):
    x, y = two_causes(300, 51) if causes else drawn(300, 51)
    F = of_two_causes(x) if causes else cs.Exponential(np.exp(x))
    found = cs.validate({"model": F}, y, time=T0)
    one = found.of("relapse" if causes else "")
    groups = risk_groups(RiskOfModel(one, "model", T0))
    p = one.cases["model"].risk_at(T0).p
    assert len(groups) == 4
    assert sum(group.at_risk(0.0) for group in groups) == 300
    for group in groups:
        rows = np.nonzero((p >= group.lowest) & (p <= group.highest))[0]
        if causes:
            curve = cs.AalenJohansen().fit(None, y[rows]).predict_distribution()
            expected = float(np.ravel(curve.cif(T0))[0])
        else:
            expected = 1 - float(cs.KaplanMeier().fit(None, y[rows]).predict_distribution().sf(T0)[0])
        assert group.incidence[-1] == pytest.approx(expected, abs=1e-12)
        assert group.predicted == pytest.approx(p[rows].mean())
        assert group.at_risk(0.5) == (np.asarray(y.time)[rows] >= 0.5).sum()


def test_pages_of_causes_and_of_several_models():
    x, y = two_causes(300, 52)
    models = {"a": of_two_causes(x), "b": of_two_causes(x[::-1])}
    page = cs.validate(models, y, time=T0).to_html()
    assert "Relapse: by 1" in page
    assert "Death: by 1" in page
    assert "Paired differences between models" in page


def test_a_page_where_nothing_can_be_told():
    x, y = drawn(60, 53)
    few = cs.RightCensored(y.time, np.where(np.arange(60) < 3, y.event, False))
    page = cs.validate(cs.Exponential(np.exp(x)), few, time=T0).to_html()
    assert "cannot tell" in page
    assert "unknown" in page
