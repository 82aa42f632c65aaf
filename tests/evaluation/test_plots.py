from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.murphy import elementary
from censcore.evaluation.report.plots import CHARTS, looks_of
from censcore.exceptions import InvalidInputError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def comparison(split):
    return cs.compare(
        split.forecasts, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train,
        scores=["crps", "brier_score"],
    )  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in CHARTS if kind != "folds"])  # of a cross-validation
def test_every_plot_is_drawn_and_labelled(comparison, kind, tmp_path):
    figure = comparison.plot(kind)
    figure.savefig(tmp_path / "plot.png", dpi=40)
    assert (tmp_path / "plot.png").stat().st_size > 2000
    assert figure._suptitle.get_text()
    words = " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))
    if kind != "censoring":
        assert "cox" in words


@pytest.mark.parametrize("scale", ["ipcw", "localized"])
def test_brier_curve_is_the_mean_score(comparison, scale):
    curve = comparison.plot("brier", scale=scale).axes[0].get_lines()[0]
    t, value = (np.asarray(part)[30] for part in curve.get_data())
    case = comparison.cases["cox"]
    expected = cs.brier_score(case.y, case.F, case.C, float(t), horizon=case.horizon, scale=scale).mean()
    assert value == pytest.approx(expected)


def test_many_models_differ_in_their_looks_and_the_legend_has_room(split):
    names = [f"a forecast with a long name, number {i} of $12$" for i in range(12)]
    forecasts = {name: cs.Weibull(1.5, 1 + 0.05 * i) for i, name in enumerate(names)}
    found = cs.compare(
        forecasts, split.y, cs.Uniform(0.0, 3.0), scores=["crps", "brier_score:ipcw"], horizon=2.0,
        discrimination=False, reference=None,
    )  # fmt: skip
    looks = {(look.colour, look.dashes, look.marker) for look in looks_of(found).values()}
    assert len(looks) == 12
    few = cs.compare(
        dict(list(forecasts.items())[:2]), split.y, cs.Uniform(0.0, 3.0), scores=["crps", "brier_score:ipcw"],
        horizon=2.0, discrimination=False, reference=None,
    )  # fmt: skip
    for kind in ("brier", "differences", "calibration"):
        figure = found.plot(kind)
        figure.canvas.draw()  # a layout that does not fit warns, and warnings are errors
        assert figure.get_figheight() > few.plot(kind).get_figheight() + 1


def test_the_unit_of_time_is_on_the_axes(split):
    found = cs.compare(
        split.forecasts, split.y, cs.Uniform(0.0, 3.0), X=split.x, scores="brier_score:ipcw", horizon=2.0,
        reference=None, discrimination=False, time_unit="years",
    )  # fmt: skip
    assert found.plot("brier").axes[0].get_xlabel() == "time (years)"
    assert "years" in found.plot("calibration")._suptitle.get_text()


def test_ipcw_scale_and_refusals(comparison):
    assert "ipcw" in comparison.plot("brier", scale="ipcw").axes[0].get_ylabel()
    with pytest.raises(InvalidInputError, match="scale"):
        comparison.plot("brier", scale="graf")
    with pytest.raises(InvalidInputError, match="no plot called 'pie'"):
        comparison.plot("pie")
    with pytest.raises(InvalidInputError, match="between 0 and the horizon"):
        comparison.plot("murphy", time=99.0)


def test_elementary_scores_integrate_to_the_brier_score(split):
    F = split.forecasts["cox"].predict_distribution(split.x)
    theta = (np.arange(20_000) + 0.5) / 20_000
    case = Case(split.y, F, cs.Uniform(0.0, 3.0), 2.5, np.array([1.0]), np.array([0.5]))
    found = elementary(1.0, theta).losses(case).mean(axis=1)
    expected = cs.brier_score(split.y, F, cs.Uniform(0.0, 3.0), 1.0, horizon=2.5)
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_elementary_scores_are_proper_under_censoring():
    """At every threshold the true probability has the smallest mean."""
    rng = np.random.default_rng(0)
    T, C = rng.exponential(1.0, 40_000), rng.uniform(0, 3, 40_000)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    theta = np.array([0.2, 0.4, 0.6, 0.8])
    means = [
        elementary(1.0, theta)
        .losses(Case(y, cs.Exponential(rate), cs.Uniform(0.0, 3.0), 2.9, np.ones(1), np.ones(1) / 2))
        .mean(axis=0)
        for rate in (1.0, 0.4, 2.5)
    ]
    assert (means[0] <= means[1] + 1e-12).all()
    assert (means[0] <= means[2] + 1e-12).all()
    assert (means[0] < means[1]).any()
    assert (means[0] < means[2]).any()


def test_plots_of_distributions_that_need_refits(split):
    comparison = cs.compare(
        {"weibull": split.forecasts["weibull"]},
        split.y,
        cs.Censoring(cs.WeibullRegression(), refits=3),
        X=split.x,
        train=split.train,
        scores="brier_score",
        times=[0.5],
    )
    curves = comparison.plot("brier").axes[0].get_lines()
    assert [curve.get_label() for curve in curves] == ["weibull", "kaplan-meier"]
    assert all(np.isfinite(curve.get_ydata()).all() for curve in curves)
    curve = comparison.plot("censoring").axes[0].get_lines()[0].get_ydata()
    assert curve[0] == 1.0
    assert (np.diff(curve) <= 0).all()


def test_the_brier_score_is_drawn_on_the_scale_that_there_is():
    """With known censoring times inverse weights are refused: the localized score is drawn."""
    rng = np.random.default_rng(0)
    T, c = rng.exponential(1.0, 100), rng.uniform(0.5, 3.0, 100)
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    found = cs.compare({"a": cs.Exponential(1.0), "b": cs.Exponential(2.0)}, y)
    drawn, asked = found.chart("brier"), found.chart("brier", scale="ipcw")
    assert list(drawn.legend) == ["a", "b", "kaplan-meier"]
    assert drawn.panels[0].ylabel == "Brier score"
    assert not asked.legend


def test_a_plot_shows_itself_in_a_notebook(comparison):
    """By a picture of its own, since a fresh notebook has no backend that knows the figure."""
    picture, size = comparison.plot()._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] > size["height"] > 300


def test_an_overview_has_four_panels(comparison):
    """The verdict, the Brier score as a difference from the reference, calibration and net benefit."""
    verdict, brier, calibration, decision = comparison.plot().axes
    assert [text.get_text() for text in verdict.get_yticklabels()] == ["cox", "weibull"]
    assert "kaplan-meier" in brier.get_ylabel()
    assert calibration.get_xlabel() == "forecast risk"
    assert decision.get_ylabel() == "net benefit"
