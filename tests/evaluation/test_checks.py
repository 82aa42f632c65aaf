"""What users hand to a comparison by mistake: an error or a note, never silence."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError

KM = cs.Censoring(cs.KaplanMeier())
FAST = {"scores": ["crps", "brier_score"], "discrimination": False}


def sample(seed: int, n: int = 200, events: int | None = None) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), rng.uniform(0.0, 4.0, n)
    event = T <= C if events is None else np.arange(n) < events
    return x, cs.RightCensored(np.minimum(T, C), event)


def forecasts(x: np.ndarray) -> dict[str, cs.Distribution]:
    return {"sharp": cs.Weibull(1.5, np.exp(0.5 * x[:, 0])), "blunt": cs.Weibull(1.5, 1.1)}


def compared(x, y, *, censoring=KM, models=None, **options) -> cs.evaluation.Comparison:
    return cs.compare(models or forecasts(x), y, censoring, **(FAST | options))


def noted(found: cs.evaluation.Comparison, words: str) -> bool:
    return any(words in note for note in found.notes)


@pytest.mark.parametrize("events", [0, 1, 4])
def test_too_few_events_are_announced_and_crown_nobody(events):
    (x, y), (_, train) = sample(0, events=events), sample(1)
    found = compared(x, y, train=(None, train))
    assert noted(found, "no forecast can be called better, since at least 5 are needed")
    assert found.frame()["rank"].isna().all()
    assert found.differences()["p_adjusted"].isna().all()
    assert "!" not in repr(found).split("\n\n")[1]
    assert not noted(compared(*sample(2)), "no forecast can be called better")


def test_training_subjects_without_events():
    (x, y), (_, train) = sample(0), sample(1, events=0)
    assert noted(compared(x, y, train=(None, train)), "The training subjects have no events")


@pytest.mark.parametrize("factor", [365.25, 52.0, 1 / 365.25, 1 / 30.4])
def test_training_times_in_another_unit_are_an_error(factor):
    (x, y), (_, train) = sample(0), sample(1)
    other = cs.RightCensored(train.time * factor, train.event)
    with pytest.raises(InvalidInputError, match=r"train: got times with median .* expected one unit of time"):
        compared(x, y, train=(None, other))


def test_a_week_for_a_day_is_a_note_and_samples_of_one_population_are_none():
    (x, y), (_, train) = sample(0), sample(1)
    weeks = cs.RightCensored(train.time * 7, train.event)
    assert noted(compared(x, y, train=(None, weeks)), "same unit of time")
    for seed in range(30):
        few = sample(seed, n=12)
        assert not noted(compared(*few, train=(None, train)), "unit of time")


def test_forecasts_in_another_unit():
    x, y = sample(0)
    for factor in (365.0, 1 / 365.0):
        found = compared(x, y, models={"days": cs.Weibull(1.5, factor), "years": cs.Weibull(1.5, 1.0)})
        assert noted(found, "Forecast 'days' expects")
        assert not noted(found, "Forecast 'years' expects")


def test_scored_training_subjects():
    x, y = sample(0)
    model = {"cox": cs.CoxRegression().fit(x, y)}
    words = "models that were fitted to them look better than they are"
    assert noted(compared(x, y, models=model, X=x, train=(x, y)), words)
    found = compared(x[:50], y[:50], models=model, X=x[:50], train=(x, y))
    assert noted(found, "The scored subjects are the training subjects")
    both = compared(x, y, models=model, X=x, train=(x[:120], y[:120]))
    assert noted(both, "120 of 200 scored subjects are training subjects")
    other, train = sample(1)
    assert not noted(compared(x, y, models=model, X=x, train=(other, train)), words)


@pytest.mark.parametrize("known", [False, True])
def test_a_horizon_beyond_follow_up(known):
    x, y = sample(0)
    if known:
        end = np.where(y.event, 4.0, y.time)
        y = cs.RightCensored(y.time, y.event, end)
    found = compared(x, y, censoring=None if known else KM, horizon=99_999.0)
    assert noted(found, "horizon 99999 lies beyond follow-up")
    assert not noted(compared(x, y, censoring=None if known else KM), "beyond follow-up")


def test_forecasts_that_are_named_like_the_reference():
    (x, y), (_, train) = sample(0), sample(1)
    models = forecasts(x)
    named = {"kaplan-meier": models["blunt"], "sharp": models["sharp"]}
    found = compared(x, y, models=named, train=(None, train))
    assert noted(found, "The forecast called 'kaplan-meier' is the reference")
    assert found.models == ["kaplan-meier", "sharp"]
    with pytest.raises(InvalidInputError, match="forecasts: got one called 'reference'"):
        compared(x, y, models={"reference": models["blunt"]}, reference=cs.Weibull(1.0, 1.0))
    with pytest.raises(InvalidInputError, match="forecasts: got one called 'reference'"):
        compared(x, y, models={"reference": models["blunt"]}, train=(None, train), reference=cs.KaplanMeier())


def test_a_regression_of_the_censoring_time_without_covariates():
    (x, y), (x_train, train) = sample(0), sample(1)
    cox = cs.Censoring(cs.CoxRegression())
    words = "fitted by CoxRegression without covariates"
    assert noted(compared(x, y, censoring=cox, train=(None, train)), words)
    assert noted(compared(x, y, censoring=cox, X=x, train=(None, train)), words)
    assert noted(compared(x, y, censoring=cs.CoxRegression()), words)
    assert not noted(compared(x, y, censoring=cox, X=x, train=(x_train, train)), words)
    assert not noted(compared(x, y, train=(None, train)), "without covariates")


def test_a_bare_matrix_with_times_is_told_what_times_are():
    x, y = sample(0)
    matrix = forecasts(x)["sharp"].sf(np.array([[1.0, 2.0]]))
    with pytest.raises(
        InvalidTypeError, match=r"Use as_forecast\(matrix, times=\.\.\.\).*of compare\(\) say where"
    ):
        compared(x, y, models={"matrix": matrix}, times=[1.0, 2.0])


@pytest.mark.parametrize(
    "options", [{"times": ["a"]}, {"levels": "half"}, {"times": [[1.0, 2.0]]}, {"levels": []}]
)
def test_times_and_levels_are_numbers(options):
    x, y = sample(0)
    with pytest.raises(
        (InvalidInputError, InvalidTypeError),
        match=f"{next(iter(options))}(: got .* expected| must hold num)",
    ):
        compared(x, y, **options)


def test_the_value_that_is_no_number_is_named():
    values = np.array([8328.0, "12 months", "3"], dtype=object)
    for time in (values, values.astype(str)):
        with pytest.raises(InvalidTypeError, match="time must hold numbers; got '12 months' in entry 1"):
            cs.RightCensored(time, [1, 0, 1])
    with pytest.raises(InvalidTypeError, match=r"got values such as \['dead', 'alive'\].*event == 'dead'"):
        cs.RightCensored([1.0, 2.0, 3.0], np.array(["dead", "alive", "dead"]))


def test_swapped_columns_are_not_called_competing_risks():
    event, time = np.array([1, 0, 1, 1, 0]), np.array([12, 305, 41, 7, 90])
    with pytest.raises(InvalidInputError, match=r"all times are 0 or 1\. Were time and event swapped"):
        cs.RightCensored(event, time)
    with pytest.raises(InvalidInputError, match="Were time and event swapped"):
        cs.RightCensored(np.arange(100), np.arange(100))
    with pytest.raises(UnsupportedOutcomeError, match="competing risks"):
        cs.RightCensored(time, np.array([0, 1, 2, 1, 0]))
