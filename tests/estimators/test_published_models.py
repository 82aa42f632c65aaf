"""Models from a paper: the numbers of R for a published example, every kind of term, and errors by name."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.exceptions import (
    ExtrapolationWarning,
    InvalidInputError,
    InvalidTypeError,
    UnknownCurveError,
)

X = pd.DataFrame(
    {"age": [50.0, 63.0, 75.0], "sex": ["f", "m", "f"], "grade": [1, 3, 2], "size": [20.0, 50.0, 51.0]}
)


def gbsg() -> pd.DataFrame:
    return pytest.importorskip("lifelines.datasets").load_gbsg2()


def rotterdam(time: float = 5.0) -> cs.PublishedCox:
    nodes = cs.column("pnodes").capped(high=19)
    return cs.PublishedCox(
        {
            cs.column("tsize").bands(20, 50): [0.342, 0.574],
            nodes.spline(0, 1, 9): [0.304, -0.811],
            "tgrade": {"I": 0.0, "II": 0.0, "III": 0.362},
        },
        baseline={time: 0.804},
    )


def outcome(data: pd.DataFrame) -> cs.RightCensored:
    return cs.RightCensored(data.time / 365.25, data.cens == 1)


class TestAgainstR:
    """The model of Rotterdam on gbsg: survival 3.5-3, rms 6.5-0 and riskRegression 2022.11.28."""

    def test_mean_risk_and_ratio(self):
        data = gbsg()
        risk = rotterdam().predict_distribution(data).cdf(5.0)
        assert risk.mean() == pytest.approx(0.499487194503257, abs=1e-14)
        observed = cs.KaplanMeier().fit(None, outcome(data)).predict_distribution().cdf(5.0)[0]
        assert observed / risk.mean() == pytest.approx(1.01775407918427, abs=1e-12)

    def test_slope_of_cox(self):
        data = gbsg()
        risk = rotterdam().predict_distribution(data).cdf(5.0)
        lp = np.log(-np.log1p(-risk))[:, None]
        model = cs.CoxRegression(ties="efron").fit(lp, outcome(data).censor_at(5.0))
        assert model.coef_[0] == pytest.approx(1.05535723812525, abs=1e-6)
        assert model.standard_errors_[0] == pytest.approx(0.122493205522802, abs=1e-6)

    def test_a_comparison_at_the_one_time(self):
        data = gbsg()
        comparison = cs.compare(
            {"published": rotterdam(4.99)}, outcome(data), cs.Censoring(cs.KaplanMeier()), X=data,
            times=[4.99], horizon=5.0, scores="brier_score:ipcw",
        )  # fmt: skip
        table = comparison.frame()
        line = table[table.model == "published"].set_index("score")
        assert line["mean"]["brier_score:ipcw"] == pytest.approx(0.224782183600401, abs=1e-12)
        assert line.skill["brier_score:ipcw"] == pytest.approx(0.100620129266155, abs=1e-12)
        assert line["mean"]["auc"] == pytest.approx(0.677463695119848, abs=1e-10)
        assert line["mean"]["concordance:harrell"] == pytest.approx(0.652370510396975, abs=1e-10)
        assert line["mean"]["concordance:uno"] == pytest.approx(0.635346324180864, abs=1e-10)


class TestOneTime:
    def test_what_needs_a_curve_is_not_invented(self):
        F = cs.PublishedCox({"age": 0.02}, baseline={5.0: 0.8}).predict_distribution(X)
        assert F.cdf(5.0) == pytest.approx(1 - 0.8 ** np.exp(0.02 * X.age), abs=1e-15)
        for question in (lambda: F.sf(3.0), lambda: F.icdf(0.5), lambda: F.integrated_sf(0.0, 5.0)):
            with pytest.raises(UnknownCurveError, match="t = 5 alone"):
                question()

    def test_the_time_may_be_the_horizon_and_other_models_have_curves(self):
        data = gbsg()
        models = {"published": rotterdam(), "cox": cs.CoxRegression()}
        columns = data[["tsize", "pnodes", "tgrade"]]
        comparison = cs.cross_validate(
            models,
            columns,
            outcome(data).censor_at(5.0),
            times=[5.0],
            horizon=5.0,
            scores=["brier_score", "crps"],
        )
        table = comparison.frame(discrimination=False).set_index(["score", "model"])
        assert table["mean"]["brier_score", "published"] == pytest.approx(0.0802, abs=5e-4)
        assert np.isnan(table["mean"]["crps", "published"])
        assert comparison.verdict.score == "brier_score"

    def test_it_equals_the_column_of_a_file(self, tmp_path):
        data = gbsg()
        S5 = rotterdam().predict_distribution(data).sf(5.0)
        as_column = cs.as_forecast(S5, times=5.0)
        assert type(as_column) is type(rotterdam().predict_distribution(data))
        assert (as_column.sf(5.0) == S5).all()


class TestBaselines:
    def test_several_times(self):
        model = cs.PublishedCox({"age": 0.02}, baseline={1: 0.95, 10: 0.6, 5: 0.8}, center={"age": 60})
        S = model.predict_distribution(X).sf(np.array([[1.0, 5.0, 10.0]]))
        expected = np.array([0.95, 0.8, 0.6]) ** np.exp(0.02 * (X.age.to_numpy() - 60))[:, None]
        assert pytest.approx(expected, abs=1e-14) == S
        assert model.baseline_at(5.0) == pytest.approx(0.8)
        assert model.baseline_at(3.0) == pytest.approx(0.875)  # lines between

    def test_a_curve_is_the_cox_model_that_it_came_from(self):
        rng = np.random.default_rng(0)
        Z = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150)})
        T = rng.exponential(np.exp(-Z.a + 0.5 * Z.b))
        fitted = cs.CoxRegression(ties="breslow").fit(Z, cs.RightCensored(T, np.ones(150)))
        curve = (fitted.baseline_times_, np.exp(-fitted.baseline_hazard_))
        coefficients = dict(zip("ab", fitted.coef_, strict=True))
        published = cs.PublishedCox(
            coefficients, baseline=curve, center=dict(zip("ab", fitted.center_, strict=True))
        )
        by_number = cs.PublishedCox(coefficients, baseline=curve, center=float(fitted.center_ @ fitted.coef_))
        F, G = fitted.predict_distribution(Z), published.predict_distribution(Z)
        assert isinstance(G, ProportionalHazards)
        t = np.array([[0.2, 1.0, 3.0]])
        assert G.sf(t) == pytest.approx(F.sf(t), abs=1e-12)
        assert by_number.predict_distribution(Z).sf(t) == pytest.approx(F.sf(t), abs=1e-12)

    @pytest.mark.parametrize("baseline", [cs.Weibull(1.3, 8.0), cs.Exponential(0.2)])
    def test_a_parametric_one(self, baseline):
        F = cs.PublishedCox({"age": 0.03}, baseline, center=1.5).predict_distribution(X)
        t = np.array([[0.5, 4.0, 20.0]])
        r = np.exp(0.03 * X.age.to_numpy() - 1.5)[:, None]
        assert F.sf(t) == pytest.approx(baseline.sf(t) ** r, rel=1e-11)

    def test_regressions_of_log_time_equal_the_fitted_ones(self):
        rng = np.random.default_rng(1)
        Z = pd.DataFrame({"a": rng.normal(size=200)})
        y = cs.RightCensored(np.exp(1 + 0.5 * Z.a) * rng.weibull(1.5, 200), np.ones(200)).censor_at(4.0)
        t = np.array([[0.5, 2.0]])
        for fitted, name in (
            (cs.WeibullRegression().fit(Z, y), "weibull"),
            (cs.LogNormalRegression().fit(Z, y), "log-normal"),
            (cs.LogLogisticRegression().fit(Z, y), "log-logistic"),
        ):
            scale = fitted.sigma_ if name == "log-normal" else 1 / fitted.shape_
            model = cs.PublishedAFT({"a": fitted.coef_[0]}, fitted.intercept_, scale, name)
            assert model.predict_distribution(Z).sf(t) == pytest.approx(
                fitted.predict_distribution(Z).sf(t), rel=1e-9
            )

    def test_causes_equal_the_fitted_ones(self):
        rng = np.random.default_rng(2)
        Z = pd.DataFrame({"a": rng.normal(size=200)})
        y = cs.CompetingRisks(rng.exponential(np.exp(-Z.a)), rng.integers(0, 3, 200), names=["r", "d"])
        fitted = cs.CauseSpecific(cs.CoxRegression(ties="breslow")).fit(Z, y)
        published = cs.PublishedCauses(
            {
                name: cs.PublishedCox(
                    {"a": part.coef_[0]},
                    (part.baseline_times_, np.exp(-part.baseline_hazard_)),
                    {"a": part.center_[0]},
                )
                for name, part in zip(y.names, fitted.estimators_, strict=True)
            }
        )
        t = np.array([0.3, 1.0])
        F, G = fitted.predict_distribution(Z), published.predict_distribution(Z)
        assert tuple(G.names) == ("r", "d")
        assert G.cif(t) == pytest.approx(F.cif(t), abs=1e-12)
        comparison = cs.compare(
            {"published": published},
            y,
            cs.Censoring(cs.KaplanMeier()),
            X=Z,
            times=[0.5],
            scores="brier_score",
        )
        assert np.isfinite(comparison.frame(discrimination=False)["mean"]).all()
        assert str(published).startswith("r: P(T > t | x) = S0(t)^exp(L)")


class TestTerms:
    def test_transformations_are_read_from_left_to_right(self):
        age = cs.column("age")
        coefficients = {
            (age / 10).power(-2): 2.0,
            (age - 40).log(): -0.5,
            age.capped(55, 70): 0.1,
            age.bands(50, 63): [0.2, 0.3],
            age.bands(50, 63, closed="left"): [0.4, 0.5],
            cs.column("sex").equals("m") * age: 0.05,
            ("age", "size"): 0.001,
            "sex": {"f": 0.0, "m": 1.0},
        }
        a, size, m = X.age.to_numpy(), X["size"].to_numpy(), np.array([0.0, 1.0, 0.0])
        expected = (
            2.0 * (a / 10) ** -2
            - 0.5 * np.log(a - 40)
            + 0.1 * np.clip(a, 55, 70)
            + 0.2 * ((a > 50) & (a <= 63))
            + 0.3 * (a > 63)
            + 0.4 * ((a >= 50) & (a < 63))
            + 0.5 * (a >= 63)
            + 0.05 * m * a
            + 0.001 * a * size
            + m
        )
        model = cs.PublishedCox(coefficients, {5: 0.9})
        assert model.linear_predictor(X) == pytest.approx(expected, abs=1e-12)
        assert "(age - 40)" in str(model)
        assert "[50 <= age < 63]" in str(model)

    def test_a_spline_is_linear_beyond_its_knots_and_smooth(self):
        x = np.linspace(-3, 14, 1701)[:, None]
        z = cs.column(0).spline(0, 1, 4, 9).values(x)
        assert z.shape == (1701, 3)
        assert (z[x[:, 0] <= 0, 1:] == 0).all()
        bend = np.diff(z, n=2, axis=0) / 0.01**2
        assert np.abs(bend[x[1:-1, 0] > 9.01]).max() < 1e-6
        assert np.abs(np.diff(bend, axis=0)).max() < 0.01  # the second derivative has no jump

    def test_the_spline_equals_truncated_powers_by_hand(self):
        x, t = 5.0, (0.0, 1.0, 9.0)
        by_hand = ((x - t[0]) ** 3 - (x - t[1]) ** 3 * (t[2] - t[0]) / (t[2] - t[1])) / (t[2] - t[0]) ** 2
        assert cs.column(0).spline(*t).values(np.array([[x]]))[0, 1] == pytest.approx(by_hand, rel=1e-15)

    def test_centers_of_levels_and_splines(self):
        spline = cs.column("age").spline(40, 60, 80)
        model = cs.PublishedCox(
            {spline: [0.1, 0.2], "grade": {1: 0.0, 2: 0.3, 3: 0.6}},
            {5: 0.9},
            center={spline: [60.0, 4.0], "grade": {2: 0.5, 3: 0.25}},
        )
        plain = cs.PublishedCox(model.coefficients, {5: 0.9})
        shift = 0.1 * 60 + 0.2 * 4 + 0.3 * 0.5 + 0.6 * 0.25
        assert model.linear_predictor(X) == pytest.approx(plain.linear_predictor(X) - shift, abs=1e-12)

    def test_columns_of_arrays_and_booleans(self):
        assert cs.PublishedCox({1: 2.0}, {5: 0.9}).linear_predictor(np.array([[0, 3.0]])) == pytest.approx(
            [6.0]
        )
        flags = pd.DataFrame({"smoker": [True, False]})
        assert (cs.PublishedCox({"smoker": 0.5}, {5: 0.9}).linear_predictor(flags) == [0.5, 0]).all()

    def test_other_coefficients_in_the_same_places(self):
        model = rotterdam()
        other = model.with_coefficients(np.arange(7.0), baseline={5.0: 0.7})
        assert (other.coef_ == np.arange(7.0)).all()
        assert other.terms_ == model.terms_
        assert other.baseline == {5.0: 0.7}
        assert (model.coef_[:2] == [0.342, 0.574]).all()

    def test_copies(self):
        model = rotterdam()
        for copy in (clone(model), pickle.loads(pickle.dumps(model))):
            assert str(copy) == str(model)


class TestErrors:
    @pytest.mark.parametrize(
        ("coefficients", "words"),
        [
            ({"weight": 0.1}, "no column 'weight'"),
            ({"sex": 0.1}, "'sex': got 'f', expected numbers"),
            (
                {"grade": {1: 0.0, 2: 0.3}},
                "'grade': got the level 3 for 1 subject \\(1\\), expected one of 1, 2",
            ),
            ({"grade": {"1": 0.0, "2": 0.3, "3": 0.1}}, "'grade': got the level 1"),
            ({(cs.column("age") - 60).log(): 0.1}, "'age': got -10 for 1 subject"),
        ],
    )
    def test_data_that_do_not_fit(self, coefficients, words):
        model = cs.PublishedCox(coefficients, {5: 0.9})
        with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
            model.predict_distribution(X)

    def test_missing_values_and_how_to_fill_them(self):
        gaps = X[["age", "size"]].mask(X[["age", "size"]] == 63.0)
        model = cs.PublishedCox({"age": 0.1}, {5: 0.9})
        with pytest.raises(InvalidInputError, match="'age': got missing values for 1 subject"):
            model.predict_distribution(gaps)
        pipeline = make_pipeline(SimpleImputer().set_output(transform="pandas"), model).fit(gaps)
        F = cs.as_forecast(pipeline, X=gaps)
        assert F.cdf(5.0)[1] == pytest.approx(1 - 0.9 ** np.exp(6.25))

    def test_no_covariates(self):
        with pytest.raises(InvalidInputError, match="X: got None"):
            rotterdam().predict_distribution()

    def test_values_outside_a_stated_range(self):
        given = {"coefficients": {"age": 0.1}, "baseline": {5: 0.9}, "ranges": {"age": (18, 70)}}
        with pytest.warns(ExtrapolationWarning, match=r"'age': got 75 .* 18 to 70, for 1 of 3 subjects"):
            cs.PublishedCox(**given).predict_distribution(X)
        with pytest.raises(InvalidInputError, match="outside the range"):
            cs.PublishedCox(**given, outside="raise").predict_distribution(X)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"coefficients": {}}, "expected a dict of at least one"),
            ({"coefficients": [0.1]}, "coefficients: got list"),
            ({"coefficients": {"age": "high"}}, "coefficients of age"),
            ({"coefficients": {"age": np.inf}}, "expected 1 finite"),
            ({"coefficients": {"age": [0.1, 0.2]}}, "got 2 numbers for age, expected 1"),
            ({"coefficients": {cs.column("age").spline(1, 2, 3): 0.1}}, "got 1 numbers"),
            ({"coefficients": {"age": {}}}, "expected levels and their coefficients"),
            ({"coefficients": {1.5: 0.1}}, "the name of a column"),
            ({"baseline": 0.8}, "baseline: got 0.8"),
            ({"baseline": {5: 1.2}}, "baseline"),
            ({"baseline": {5: 1.0}}, "from which the covariates cannot move it"),
            ({"baseline": {1: 0.8, 5: 0.9}}, "survival that does not rise"),
            ({"baseline": ([1, 2], [0.9])}, "got 2 times and 1 survival"),
            ({"baseline": cs.LogNormal(0.0, 1.0)}, "expected the survival at one time"),
            ({"center": {"wieght": 60}}, "expected keys of coefficients"),
            ({"center": "mean"}, "center"),
            ({"outside": "ignore"}, "outside"),
        ],
    )
    def test_models_that_cannot_be(self, change, words):
        given = {"coefficients": {"age": 0.1}, "baseline": {5: 0.9}} | change
        with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
            cs.PublishedCox(**given)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda c: c.spline(0, 1), "at least 3 numbers"),
            (lambda c: c.bands(50, 20), "each larger than the one before"),
            (lambda c: c.capped(), "expected one of them"),
            (lambda c: c.capped(5, 1), "low below high"),
            (lambda c: c / 0, "division by zero"),
            (lambda c: c.equals(), "got no level"),
            (lambda c: c.spline(0, 1, 2).log(), "expected it before"),
            (lambda c: c * 3, "expected another column"),
            (lambda c: c.bands(3, closed="both"), "closed"),
        ],
    )
    def test_columns_that_cannot_be(self, make, words):
        with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
            make(cs.column("age"))

    def test_causes_need_curves(self):
        one_time = cs.PublishedCox({"age": 0.1}, {5: 0.9})
        with pytest.raises(InvalidInputError, match="baseline of 'death' at one time, expected a curve"):
            cs.PublishedCauses({"death": one_time})
        with pytest.raises(InvalidTypeError, match="expected a PublishedCox"):
            cs.PublishedCauses({"death": cs.CoxRegression()})
        with pytest.raises(InvalidTypeError, match="expected a dict"):
            cs.PublishedCauses([one_time])

    def test_scales_of_log_time(self):
        with pytest.raises(InvalidInputError, match="scale"):
            cs.PublishedAFT({"age": 0.1}, 1.0, 0.0)
        with pytest.raises(InvalidInputError, match="distribution"):
            cs.PublishedAFT({"age": 0.1}, 1.0, 1.0, "gamma")
