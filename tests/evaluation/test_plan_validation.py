"""Planned sizes: closed forms, published worked examples, and studies that meet what was promised."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation import planned_measures as m
from censcore.evaluation.plan_validation import Population
from censcore.evaluation.planned_measures import Validated
from censcore.exceptions import InvalidInputError, InvalidTypeError

AT = Population((0.0, 0.8), cs.Exponential(0.1), 5.0, 2.0, 4.0, 0.05, 0.6)
MEASURES = {
    "O/E": m.log_observed_over_expected,
    "slope": m.calibration_slope,
    "AUC": m.auc,
    "net benefit": lambda data: m.net_benefit(data, 0.4),
    "standardised net benefit": lambda data: m.standardised_net_benefit(data, 0.4),
    "brier_score": lambda data: m.score_difference(data, "brier_score"),
    "binomial_log_score": lambda data: m.score_difference(data, "binomial_log_score"),
}


def error(estimate) -> float:
    return float(np.sqrt((estimate.influence**2).sum()))


class TestMeasures:
    @pytest.mark.parametrize("name", MEASURES)
    def test_errors_are_those_of_the_jackknife(self, name):
        data = AT.draw(500, np.random.default_rng(0))
        arrays = data.time, data.event, data.risk, data.versus

        def without(i):
            time, event, risk, versus = (np.delete(values, i) for values in arrays)
            return MEASURES[name](Validated(time, event, risk, data.t, versus)).value[0]

        left_out = np.array([without(i) for i in range(500)])
        jackknife = np.sqrt(499 / 500 * ((left_out - left_out.mean()) ** 2).sum())
        assert error(MEASURES[name](data)) == pytest.approx(jackknife, rel=0.06 if name == "slope" else 0.03)

    def test_they_are_those_of_a_comparison(self):
        data = AT.draw(400, np.random.default_rng(1))
        y = cs.RightCensored(data.time, data.event)
        forecasts = {
            name: cs.as_forecast(1 - p, times=5.0) for name, p in (("a", data.risk), ("b", data.versus))
        }
        comparison = cs.compare(
            forecasts, y, cs.Censoring(cs.KaplanMeier()), times=[5.0], horizon=5.5, scores="brier_score:ipcw",
            reference=None,
        )  # fmt: skip
        pairs = comparison.differences("none").set_index("score")
        mine = m.score_difference(data, "brier_score")
        assert abs(pairs.difference["brier_score:ipcw"]) == pytest.approx(abs(mine.value[0]), rel=1e-9)
        assert pairs.standard_error["brier_score:ipcw"] == pytest.approx(error(mine), rel=0.01)
        line = comparison.frame().set_index(["score", "model"]).loc["auc", "a"]
        assert line["mean"] == pytest.approx(m.auc(data).value[0], rel=1e-9)
        assert line.standard_error == pytest.approx(error(m.auc(data)), rel=0.01)
        benefit = comparison.net_benefit(5.0, [0.4]).set_index("model").loc["a"]
        assert benefit.net_benefit == pytest.approx(m.net_benefit(data, 0.4).value[0], rel=1e-9)

    def test_the_observed_risk_is_kaplan_meier(self):
        data = AT.draw(300, np.random.default_rng(2))
        ratio = np.exp(m.log_observed_over_expected(data).value[0])
        curve = cs.KaplanMeier().fit(None, cs.RightCensored(data.time, data.event)).predict_distribution()
        assert ratio * data.risk.mean() == pytest.approx(curve.cdf(5.0)[0], abs=1e-12)

    def test_follow_up_that_ends_at_the_time(self):
        data = Validated(
            np.array([1.0, 3.0, 3.0, 2.0]), np.array([True, False, False, False]), np.full(4, 0.4), 3.0
        )
        assert data.free.tolist() == [False, True, True, False]
        assert data.weight == pytest.approx([1.0, 1.5, 1.5, 0.0])


class TestPopulation:
    def test_closed_forms_are_those_of_a_large_study(self):
        data = AT.draw(200_000, np.random.default_rng(3))
        assert AT.mean_risk == pytest.approx(data.risk.mean(), rel=0.005)
        assert AT.event_share == pytest.approx(data.case.mean(), rel=0.02)
        large = error(m.log_observed_over_expected(data)) * np.sqrt(200_000)
        assert AT.error_of_log_ratio() == pytest.approx(large, rel=0.01)
        assert (data.time >= 4.5).mean() > 0

    def test_without_censoring_it_is_the_binomial_variance(self):
        at = Population((0.0, 0.0), cs.Exponential(0.05), 3.0, 0.0, 3.0, 0.0)
        phi = at.mean_risk
        assert at.error_of_log_ratio() == pytest.approx(np.sqrt((1 - phi) / phi), rel=1e-4)

    def test_values_of_development_data(self):
        lp = np.random.default_rng(0).gamma(2.0, 0.5, 400)
        plan = cs.plan_validation(
            time=5.0, linear_predictor=lp, risk=0.3, width={"O/E": 0.2}, assurance=None, versus=lp * 0.5,
            power=0.9, simulations=50,
        )  # fmt: skip
        assert plan.population.mean_risk == pytest.approx(0.3, abs=1e-9)
        assert set(plan.frame().measure) == {"O/E", "brier_score"}

    def test_the_other_model_is_calibrated(self):
        data = AT.draw(200_000, np.random.default_rng(4))
        assert data.versus.mean() == pytest.approx(data.risk.mean(), rel=0.005)
        top = data.versus > np.quantile(data.versus, 0.8)
        assert data.versus[top].mean() == pytest.approx(data.risk[top].mean(), rel=0.01)


class TestWorkedExamples:
    """Published numbers: pmvalsampsize 0.1.0 for 2021, the code of the authors for 2022."""

    def test_observed_over_expected_of_2021(self):
        plan = cs.plan_validation(
            time=1.0,
            linear_predictor=(0.0, 0.0),
            risk=0.018,
            width={"O/E": 1.0},
            assurance=None,
            simulations=20,
        )
        assert plan.n == pytest.approx(905, abs=2)  # the published search goes in steps of 0.0001

    @pytest.mark.parametrize(
        ("n", "published", "events"), [(5000, 0.08738, 513), (4000, 0.09745, 403), (3400, 0.1079, 366)]
    )
    def test_calibration_slope_of_2022(self, n, published, events):
        at = Population((0.0, 0.699), cs.Exponential(0.052), 3.0, 0.0, 3.0, 0.418)
        errors = [error(m.pseudo_slope(at.draw(n, np.random.default_rng([n, i])))) for i in range(60)]
        # the published ones are of 50 studies drawn from one sample of 100,000
        assert np.mean(errors) == pytest.approx(published, rel=0.04)
        assert n * at.event_share == pytest.approx(events, rel=0.08)


GIVEN = {
    "time": 5.0, "linear_predictor": (0.0, 0.8), "baseline": {5.0: 0.7}, "accrual": 2.0, "follow_up": 4.0,
    "dropout": 0.2,
}  # fmt: skip
WIDTH = {
    "O/E": 0.25, "calibration slope": 0.5, "AUC": 0.1, "net benefit": 0.08, "standardised net benefit": 0.3,
}  # fmt: skip


class TestPromises:
    def again(self, plan, name, n, studies=300):
        at = plan.population
        width = {"O/E": m.log_observed_over_expected, "calibration slope": m.calibration_slope, "AUC": m.auc}
        measure = width.get(name) or (
            lambda data: (m.net_benefit if name == "net benefit" else m.standardised_net_benefit)(data, 0.2)
        )
        estimates = [measure(at.draw(n, np.random.default_rng([77, i]))) for i in range(studies)]
        z = 1.959964
        if name == "O/E":
            return np.array([np.exp(e.value[0]) * 2 * np.sinh(z * error(e)) for e in estimates])
        return np.array([2 * z * error(e) for e in estimates])

    def test_mean_widths_hold_within_5_percent(self):
        plan = cs.plan_validation(**GIVEN, width=WIDTH, assurance=None, simulations=200)
        for line in plan.frame().itertuples():
            assert self.again(plan, line.measure, line.n).mean() == pytest.approx(line.target, rel=0.05)
            assert line.mean == pytest.approx(line.target, rel=0.05)
            assert 0 < line.monte_carlo_error < 0.02 * line.mean
        assert plan.n == plan.frame().n.max()

    def test_assurance_holds_within_5_points(self):
        width = {name: WIDTH[name] for name in ("O/E", "calibration slope", "AUC")}
        plan = cs.plan_validation(**GIVEN, width=width, assurance=0.8, simulations=300)
        for line in plan.frame().itertuples():
            reached = (self.again(plan, line.measure, line.n, 500) <= line.target).mean()
            assert reached == pytest.approx(0.8, abs=0.05 + 2 * np.sqrt(0.16 / 500))
            assert line.assurance == pytest.approx(0.8, abs=0.05)

    def test_power_holds(self):
        plan = cs.plan_validation(**GIVEN, width={}, versus=0.6, power=0.8, simulations=300)
        (line,) = plan.frame().itertuples()
        data = [plan.population.draw(line.n, np.random.default_rng([78, i])) for i in range(400)]
        found = [m.score_difference(study, "brier_score") for study in data]
        power = np.mean([abs(e.value[0]) > 1.96 * error(e) for e in found])
        assert power == pytest.approx(0.8, abs=0.07)
        assert line.mean == pytest.approx(0.8, abs=0.06)

    def test_more_is_needed_for_less_width_and_more_censoring(self):
        def size(**change):
            given = GIVEN | {"width": {"O/E": 0.25}, "assurance": None, "simulations": 20} | change
            return cs.plan_validation(**given).n

        assert size(width={"O/E": 0.125}) == pytest.approx(4 * size(), rel=0.02)
        assert size(dropout=0.6) > 1.3 * size()
        assert size(confidence=0.8) < 0.5 * size()

    def test_the_picture_and_the_words(self):
        plan = cs.plan_validation(**GIVEN, width={"AUC": 0.1}, assurance=None, simulations=30)
        assert repr(plan).startswith(f"{plan.n:,} subjects, about {plan.events:,} events by time 5")
        axis = plan.plot().axes[0]
        assert axis.get_xscale() == "log"
        assert axis.get_legend().get_texts()[0].get_text() == "AUC"

    def test_the_seed_decides(self):
        given = GIVEN | {"width": {"AUC": 0.12}, "simulations": 30}
        assert cs.plan_validation(**given).n == cs.plan_validation(**given).n


class TestErrors:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"risk": 0.3}, "either baseline"),
            ({"baseline": None}, "either baseline"),
            ({"baseline": {5.0: 1.2}}, "survival between 0 and 1 that falls"),
            ({"baseline": 0.7}, "baseline"),
            ({"linear_predictor": [0.1, 0.2]}, "at least 20"),
            ({"linear_predictor": (0.0, -1.0)}, "sd"),
            ({"width": {"ICI": 0.1}}, "width"),
            ({"width": {"AUC": 0.0}}, "width of AUC"),
            ({"width": [0.1]}, "width"),
            ({"follow_up": 2.0}, "some are followed to the time"),
            ({"dropout": 1.0}, "dropout"),
            ({"power": 0.8}, "got no versus"),
            ({"versus": 1.5, "power": 0.8}, "versus"),
            ({"assurance": 1.5}, "assurance"),
            ({"score": "crps"}, "score"),
            ({"simulations": 5}, "simulations"),
            ({"simulations": 10**9}, "simulations"),
            ({"confidence": 0.1}, "confidence"),
            ({"baseline": None, "risk": 1e-90}, "risk"),
            ({"time": -1.0}, "time"),
            ({"thresholds": 1.0}, "thresholds"),
        ],
    )
    def test_each_says_what_to_do(self, change, words):
        given = {
            "time": 5.0,
            "linear_predictor": (0.0, 0.8),
            "baseline": {5.0: 0.7},
            "simulations": 20,
        } | change
        with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
            cs.plan_validation(**given)

    def test_another_model_of_development_data_has_as_many_values(self):
        with pytest.raises(InvalidInputError, match="versus: got 30 values, expected 40"):
            cs.plan_validation(
                time=5.0, linear_predictor=np.linspace(0, 1, 40), risk=0.2, versus=np.zeros(30), power=0.8
            )

    def test_a_linear_predictor_that_does_not_vary_has_no_slope(self):
        for measure in ("calibration slope", "AUC"):
            with pytest.raises(InvalidInputError, match=f"{measure}: got no estimate"):
                cs.plan_validation(
                    time=5.0, linear_predictor=(0.0, 0.0), risk=0.2, width={measure: 0.1}, simulations=20
                )

    def test_nothing_to_plan(self):
        with pytest.raises(InvalidInputError, match="nothing to plan"):
            cs.plan_validation(time=5.0, linear_predictor=(0.0, 0.8), risk=0.2, width={})
