"""Outcomes of subjects whose covariates change: who counts, what is learned, and what is forecast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.distributions import PiecewiseWeibull
from censcore.exceptions import InvalidInputError, InvalidTypeError, RepairWarning, UnsupportedOutcomeError
from tests.start_stop_data import histories

KM = cs.Censoring(cs.KaplanMeier())
LEARNERS = {
    "cox": lambda: cs.CoxRegression(),
    "weibull": lambda: cs.WeibullRegression(),
    "pieces": lambda: cs.PiecewiseExponentialRegression(3),
    "trees": lambda: cs.BoostedHazards(random_state=0, max_iter=20),
    "landmarks": lambda: cs.LandmarkCox([0.0, 1.0, 2.5], 1.5, degree=1),
}


def data(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, cs.StartStop, pd.DataFrame]:
    """Covariates, intervals, and the whole table."""
    table = histories(n, seed)[0].reset_index(drop=True)
    X = pd.DataFrame({"log_rate": np.log(table["rate"]), "noise": np.sin(np.arange(len(table)))})
    return X, cs.StartStop.from_frame(table), table


def forecast(model, X, s: float = 1.0):
    return model.predict_distribution(X, given=s).sf(np.array([[1.5, 2.4]]))


# ---- intervals and subjects -------------------------------------------------------------------------


def test_a_subject_is_an_id():
    _, y, table = data()
    first = table.sort_values(["id", "start"]).groupby("id")
    whole = y.of_subjects()
    assert "200 subjects" in repr(y)
    assert np.array_equal(whole.time, first["stop"].last())
    assert np.array_equal(whole.event, first["event"].last() == 1)
    assert np.array_equal(y.subjects, np.arange(200))
    rows, late = y.at(2.6)
    known, same = cs.at_landmark(table, 2.6)
    assert np.array_equal(table["rate"].to_numpy()[rows], known["rate"])
    assert np.array_equal(late.time, same.time)
    assert set(late.entry) == {2.6}


def test_the_order_of_rows_and_cuts_of_intervals_change_nothing():
    X, y, table = data()
    order = np.random.default_rng(1).permutation(len(table))
    cut = np.repeat(np.arange(len(table)), 2)  # each interval in two
    middle = (y.start + y.stop) / 2
    start = np.where(np.arange(len(cut)) % 2, middle[cut], y.start[cut])
    stop = np.where(np.arange(len(cut)) % 2, y.stop[cut], middle[cut])
    twice = cs.StartStop(y.id[cut], start, stop, y.event[cut] & (np.arange(len(cut)) % 2 == 1))
    for name in ("cox", "weibull", "pieces", "landmarks"):
        models = [
            LEARNERS[name]().fit(X, y),
            LEARNERS[name]().fit(X.iloc[order], y.take(order)),
            LEARNERS[name]().fit(X.iloc[cut], twice),
        ]
        for other in models[1:]:
            assert other.coef_ == pytest.approx(models[0].coef_, rel=1e-6)
            assert other.robust_covariance() == pytest.approx(models[0].robust_covariance(), rel=1e-5)


def test_intervals_without_changes_are_subjects():
    """Fits to subjects, their histories cut at visits: the same models, errors and censoring distribution."""
    rng = np.random.default_rng(3)
    x, T, C = rng.normal(size=150), rng.weibull(1.5, 150) * 3, rng.uniform(0.5, 5, 150)
    whole = cs.RightCensored(np.minimum(T, C), T <= C)
    i, j = np.nonzero(np.arange(5) < whole.time[:, None])
    last = whole.time[i] <= j + 1
    y = cs.StartStop(i, j, np.minimum(whole.time[i], j + 1), whole.event[i] & last)
    X = x[:, None]
    for name in ("cox", "weibull", "pieces"):
        a, b = LEARNERS[name]().fit(X, whole), LEARNERS[name]().fit(X[i], y)
        assert b.coef_ == pytest.approx(a.coef_, rel=1e-6)
        assert b.robust_covariance() == pytest.approx(a.robust_covariance(), rel=1e-5)
        assert b.coefficient_influence() == pytest.approx(a.coefficient_influence(), rel=1e-4, abs=1e-7)
    t = np.array([[0.7, 1.0, 2.5, 4.0]])
    for estimator in (cs.KaplanMeier(), cs.CoxRegression(), cs.WeibullRegression()):
        a, b = cs.Censoring(estimator).fit(X, whole), cs.Censoring(estimator).fit(X[i], y)
        assert b.predict_distribution(X[:5]).sf(t) == pytest.approx(
            a.predict_distribution(X[:5]).sf(t), rel=1e-6
        )
        assert np.array_equal(a.trained_on_.outcome, b.trained_on_.outcome)
    assert len(b.subjects_[0]) == 150
    a, b = cs.KaplanMeier().fit(None, whole), cs.KaplanMeier().fit(None, y)
    assert b.standard_errors([1.0], robust=True) == pytest.approx(a.standard_errors([1.0], robust=True))
    held = cs.BoostedHazards(random_state=0, max_iter=20).fit(X[i], y).held_out_hazard_
    assert held.shape == (150,)
    out = cs.Censoring(cs.KaplanMeier(), cv=3)
    out.fit_predict_distribution(None, y)
    assert all(len(set(out.fold_[i == k])) == 1 for k in range(150))  # folds are of subjects


def test_gaps_say_what_they_mean():
    parts = ([1, 1, 2], [0.0, 3.0, 0.0], [2.0, 5.0, 4.0], [0, 1, 0])
    with pytest.raises(InvalidInputError, match=r'interval 0 to 2.*gap="not at risk".*"unobserved"'):
        cs.StartStop(*parts)
    away, unseen = (cs.StartStop(*parts, gap=gap) for gap in ("not at risk", "unobserved"))
    for y in (away, unseen):
        assert y.at(2.5)[0].tolist() == [2]  # nobody is at risk in a gap
        assert y.at(3.0)[0].tolist() == [1, 2]
    assert away.at(1.0)[1].time.tolist() == [5.0, 4.0]
    assert unseen.at(1.0)[1].time.tolist() == [2.0, 4.0]
    assert unseen.at(1.0)[1].event.tolist() == [False, False]
    # C: follow-up goes on in a gap that is not at risk, and ends with one that is unobserved
    assert away.flip().stop[0] == 3.0
    assert away.flip().event.tolist() == [False, False, True]
    assert unseen.flip().event.tolist() == [True, False, True]
    assert cs.KaplanMeier().fit(None, away).event_table_["at_risk"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1, 1], [0, 1], [2, 3], [0, 0]), "must not overlap.*first id = 1, interval 0 to 2"),
        (([1, 1], [0, 2], [2, 3], [1, 0]), "only the last interval may end with the event"),
        (([1], [2.0], [2.0], [0]), "start < stop"),
        (([1, None], [0, 0], [1, 1], [0, 0]), "missing label in row 1"),
        (([], [], [], []), "one label per row"),
        (([1], [-1.0], [2.0], [0]), "start must be"),
        (([1], [0.0], [np.inf], [0]), "stop must be"),
        (([1], [0.0], [2.0], [3]), "competing risks"),
        (([1, 2], [0.0], [2.0], [1]), "one value per row"),
        (([1], [0.0], [2.0], [0, 1]), "one value per row"),
    ],
)
def test_wrong_intervals(parts, message):
    with pytest.raises((InvalidInputError, UnsupportedOutcomeError), match=message):
        cs.StartStop(*parts)


def test_intervals_are_not_subjects_and_say_so():
    X, y, _ = data(60)
    left = cs.StartStop(y.id, y.start, y.stop - (y.id % 17) * (y.stop == 6) / 20, y.event)
    F = cs.Exponential(1.0)
    for call in (
        lambda: cs.crps(y, F),
        lambda: cs.log_score(y, F),
        lambda: cs.compare({"F": F}, y),
        lambda: cs.cross_validate({"cox": cs.CoxRegression()}, X, y),
        lambda: cs.LogNormalRegression().fit(X, y),
        lambda: cs.Turnbull().fit(None, y),
        lambda: cs.CauseSpecific(cs.CoxRegression()).fit(X, y),
        lambda: cs.Stacking([("a", cs.CoxRegression()), ("b", cs.KaplanMeier())]).fit(X, y),
        lambda: cs.Censoring(cs.LogNormalRegression()).fit(X, left),
    ):
        with pytest.raises(UnsupportedOutcomeError, match=r"StartStop.*compare_landmarks.*landmarks="):
            call()
    with pytest.raises(InvalidInputError, match="some of the rows of a subject"):
        y[:5]
    weight = np.arange(1.0, len(y) + 1)
    with pytest.raises(InvalidInputError, match=r"sample_weight: got several values of one subject"):
        cs.CoxRegression().fit(X, y, weight)
    with pytest.raises(InvalidInputError, match=r"groups: got several values of one subject"):
        cs.CoxRegression().fit(X, y).robust_covariance(groups=np.arange(len(y)))
    with pytest.raises(InvalidInputError, match=r"window: got one without landmarks"):
        cs.cross_validate({"cox": cs.CoxRegression()}, X, y.intervals, window=1.0)


def test_weights_are_of_subjects_and_counts_repeat_them():
    X, y, _ = data(80)
    count = 1.0 + (y.subject % 3 == 0)
    again = np.concatenate([np.arange(len(y)), np.nonzero(count == 2)[0]])
    ids = np.where(np.arange(len(again)) < len(y), y.subject[again], 1000 + y.subject[again])
    twice = cs.StartStop(ids, y.start[again], y.stop[again], y.event[again])
    for name in ("cox", "weibull", "pieces"):
        a, b = LEARNERS[name]().fit(X, y, count), LEARNERS[name]().fit(X.iloc[again], twice)
        assert a.coef_ == pytest.approx(b.coef_, rel=1e-6)


def test_robust_errors_hold_where_subjects_differ():
    """Copies of the rows of a subject under its own id add no information: errors do not shrink."""
    X, y, _ = data(150)
    model = cs.CoxRegression().fit(X, y)
    pairs = y.subject // 2
    by_pairs = cs.CoxRegression().fit(X, y).robust_covariance(groups=pairs)
    parts = model.coefficient_influence()
    sums = np.zeros((75, 2))
    np.add.at(sums, np.arange(150) // 2, parts)
    assert by_pairs == pytest.approx(sums.T @ sums)
    assert model.influence(np.zeros((len(model.baseline_times_), 1))).shape == (150, 1)


# ---- forecasts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_forecasts_use_nothing_from_the_future(name):
    """Covariates after s are exchanged between subjects: forecasts given s are equal, fits aside."""
    X, y, _ = data()
    model = LEARNERS[name]().fit(X, y)
    s = 1.0
    rows, _ = y.at(s)
    later = np.nonzero(y.start > s)[0]
    shuffled = X.copy()
    shuffled.iloc[later] = X.iloc[np.random.default_rng(0).permutation(later)].to_numpy()
    assert np.array_equal(forecast(model, shuffled.iloc[rows]), forecast(model, X.iloc[rows]))
    for landmarks in ([s],):
        losses = [
            cs.compare_landmarks(
                {"a": model}, y, KM, X=part, landmarks=landmarks, window=1.5, scores="brier_score"
            )
            for part in (X, shuffled)
        ]
        assert losses[0].frame().equals(losses[1].frame())


@pytest.mark.parametrize("name", ["cox", "efron", "strata", "weibull", "pieces", "trees"])
def test_a_path_multiplies_survival_over_its_intervals(name):
    X, y, table = data(100)
    X = X.assign(side=np.where(table["id"] % 2, "left", "right"))
    make = {
        "efron": lambda: cs.CoxRegression(ties="efron"),
        "strata": lambda: cs.CoxRegression(strata="side"),
    } | LEARNERS
    model = make[name]().fit(X if name == "strata" else X[["log_rate", "noise"]], y)
    X = X if name == "strata" else X[["log_rate", "noise"]]
    path = cs.StartStop(y.id, y.start, y.stop)
    F = model.predict_distribution(X, path=path)
    assert len(F) == 100
    t = np.linspace(0.05, 8.0, 60)
    for i in range(0, 100, 7):
        rows = np.nonzero(y.subject == i)[0]
        rows = rows[np.argsort(y.start[rows])]
        parts = model.predict_distribution(X.iloc[rows])
        starts, ends = y.start[rows], np.append(y.stop[rows][:-1], np.inf)
        sf = np.ones(len(t))
        for j in range(len(rows)):
            inside = np.clip(t, starts[j], ends[j])
            sf = sf * parts[j].sf(inside[None])[0] / parts[j].sf(np.array([[starts[j]]]))[0]
        assert F[i].sf(t[None])[0] == pytest.approx(sf, abs=1e-12)
    later = model.predict_distribution(X, path=path, given=0.5)
    assert later.sf(2.0) == pytest.approx(F.sf(2.0) / F.sf(0.5))


def test_forecasts_along_a_planned_path_are_calibrated():
    """A dose is stopped at a known time: the forecast along the path has no bias, held covariates have."""
    rng = np.random.default_rng(5)
    n, stop = 4000, rng.uniform(0.5, 3.0, 4000)
    T = cs.PiecewiseExponential(stop[:, None], np.column_stack([np.full(n, 0.2), np.full(n, 0.8)])).icdf(
        rng.random((n, 1))
    )[:, 0]
    C = rng.uniform(1.0, 6.0, n)
    end, event = np.minimum(T, C), T <= C
    baseline = pd.DataFrame({"id": np.arange(n), "time": end, "event": event, "dose": 1.0})
    change = pd.DataFrame({"id": np.arange(n), "time": stop, "dose": 0.0})[stop < end]
    rows, y = cs.StartStop.merge(baseline, change)
    model = cs.CoxRegression().fit(rows, y)
    assert model.coef_[0] == pytest.approx(np.log(0.2 / 0.8), abs=4 * model.standard_errors_[0])
    path = cs.StartStop(np.repeat(np.arange(n), 2), np.column_stack([np.zeros(n), stop]).ravel(),
                        np.column_stack([stop, stop + 10]).ravel())  # fmt: skip
    X = pd.DataFrame({"dose": np.tile([1.0, 0.0], n)})
    truth = (T > 3.0).mean()
    along = model.predict_distribution(X, path=path).sf(3.0)
    assert along.mean() == pytest.approx(truth, abs=0.025)
    held = model.predict_distribution(X[::2]).sf(3.0)
    assert held.mean() > truth + 0.1


def test_forecasts_of_covariates_that_stay_are_calibrated_given_survival():
    """The mean of forecasts given s is the share that survives, among those at risk; over 200 data sets.

    The marker moves once, at 1, and stays; at landmarks from there on it is held by right. Tested on four
    standard errors of the mean error.
    """
    errors = {name: [] for name in ("cox", "landmarks")}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first, later = rng.normal(size=(2, 300))
        rates = 0.4 * np.exp(np.column_stack([first, later]))
        T = cs.PiecewiseExponential([1.0], rates).icdf(rng.random((300, 1)))[:, 0]
        C = rng.uniform(0.5, 5.0, 300)
        end, event = np.minimum(T, C), T <= C
        moved = end > 1
        i = np.concatenate([np.arange(300), np.nonzero(moved)[0]])
        start = np.where(np.arange(len(i)) < 300, 0.0, 1.0)
        stop = np.where((start == 0) & moved[i], 1.0, end[i])
        y = cs.StartStop(i, start, stop, event[i] & (stop == end[i]))
        x = np.where(start == 0, first[i], later[i])[:, None]
        new = rng.normal(size=(400, 1))
        true = np.exp(-0.4 * np.exp(new[:, 0]) * 0.8)  # P(T > 2.3 | T > 1.5)
        cox = cs.CoxRegression().fit(x, y).predict_distribution(new, given=1.5)
        stacked = (
            cs.LandmarkCox([1.0, 1.5, 2.0], 0.8, degree=0).fit(x, y).predict_distribution(new, given=1.5)
        )
        for name, F in (("cox", cox), ("landmarks", stacked)):
            errors[name].append((F.sf(2.3) - true).mean())
    for values in errors.values():
        assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200) + 0.002
        assert np.std(values) < 0.06


def test_clustered_errors_cover():
    """95 % intervals by subject, in 300 data sets whose subjects share a frailty over their intervals."""
    inside = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150, 3))
        T = cs.PiecewiseExponential([1.0, 2.0], 0.3 * np.exp(0.5 * x)).icdf(rng.random((150, 1)))[:, 0]
        end, event = np.minimum(T, 4.0), T <= 4.0
        i, j = np.nonzero(np.arange(3) < end[:, None])
        stop = np.where(j < 2, np.minimum(end[i], j + 1.0), end[i])
        y = cs.StartStop(i, j, stop, event[i] & (stop == end[i]))
        low, high = cs.CoxRegression().fit(x[i, j][:, None], y).confidence_interval(robust=True)[0]
        inside += low < 0.5 < high
    assert 0.91 <= inside / 300 <= 0.985


def test_wrong_paths_and_times():
    X, y, _ = data(40)
    model = cs.CoxRegression().fit(X, y)
    path = cs.StartStop(y.id, y.start, y.stop)
    with pytest.raises(InvalidInputError, match=r"path: got \d+ events"):
        model.predict_distribution(X, path=y)
    with pytest.raises(InvalidInputError, match="one per subject of y"):
        model.predict_distribution(X[:3], path=path)
    with pytest.raises(InvalidTypeError, match=r"path.*StartStop"):
        model.predict_distribution(X, path=y.id)
    gap = cs.StartStop([1, 1], [0, 2], [1, 3], gap="unobserved")
    with pytest.raises(InvalidInputError, match="expected covariates at all times"):
        model.predict_distribution(X[:2], path=gap)
    with pytest.raises(InvalidInputError, match="path: got one for KaplanMeier"):
        cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(X, path=path)
    with pytest.raises(InvalidInputError, match="No subject is at risk at 9"):
        y.at(9.0)


def test_a_weibull_hazard_in_pieces():
    F = PiecewiseWeibull([[1.0, 2.0]], [[0.3, 0.0, 0.9]], 1.7)
    t = np.linspace(0.01, 4, 400)
    H = 0.3 * np.minimum(t, 1) ** 1.7 + 0.9 * (np.maximum(t, 2) ** 1.7 - 2**1.7)
    assert F.logsf(t[None])[0] == pytest.approx(-H)
    assert F.icdf(F.cdf(t[[20, 350]][None]))[0] == pytest.approx(t[[20, 350]])
    same = PiecewiseWeibull([1.0], [[0.4, 0.4]], 1.7)
    assert same.integrated_sf(0.0, 3.0) == pytest.approx(
        cs.Weibull(1.7, 0.4 ** (-1 / 1.7)).integrated_sf(0.0, 3.0)
    )


# ---- merging -------------------------------------------------------------------------------------------


def test_merge_keeps_text_and_missing_values_and_any_library():
    baseline = pd.DataFrame(
        {"id": ["b", "a"], "time": [5.0, 4.0], "event": [1, 0], "site": ["x", "y"], "stage": ["I", "II"]}
    )
    dated = pd.DataFrame(
        {
            "id": ["a", "b", "b", "b"],
            "time": [1.0, 2.0, 3.0, 3.5],
            "stage": ["III", None, "II", None],
            "bmi": [20.0, 21.0, np.nan, 23.0],
        }
    )
    rows, y = cs.StartStop.merge(baseline, dated)
    table = rows.assign(id=y.id, start=y.start)
    assert table.loc[table["id"] == "b", "stage"].tolist() == ["I", "I", "II", "II"]
    assert table.loc[table["id"] == "b", "bmi"].tolist()[1:] == [21.0, 21.0, 23.0]
    assert table.loc[table["id"] == "a", "stage"].tolist() == ["II", "III"]
    assert np.isnan(table.loc[table["start"] == 0, "bmi"]).all()
    pl = pytest.importorskip("polars")
    again, z = cs.StartStop.merge(pl.from_pandas(baseline), dated)
    assert isinstance(again, pl.DataFrame)
    assert again["stage"].to_list() == rows["stage"].tolist()
    assert np.array_equal(z.stop, y.stop)


def test_measurements_before_the_entry_hold_at_the_entry():
    baseline = pd.DataFrame({"id": [1], "since": [3.0], "end": [9.0], "died": [1]})
    dated = pd.DataFrame({"id": [1, 1, 1, 1], "day": [-2.0, 1.0, 3.0, 5.0], "a": [1.0, 2.0, np.nan, 4.0]})
    options = {"time": "end", "event": "died", "entry": "since", "at": "day"}
    rows, y = cs.StartStop.merge(baseline, dated, **options)
    assert y.start.tolist() == [3.0, 5.0]
    assert rows["a"].tolist() == [2.0, 4.0]
    with pytest.raises(InvalidInputError, match="start < stop"):  # a subject without an interval
        cs.StartStop.merge(baseline.assign(end=3.0), dated[:2], **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b, d: (pd.concat([b, b]), d), "several rows of id = 1"),
        (lambda b, d: (b, d.assign(id=7)), r"1 subjects that are not in baseline \(7\)"),
        (lambda b, d: (b.drop(columns="event"), d), r"baseline: columns \['event'\] are not there"),
        (lambda b, d: (b, d.assign(time=np.nan)), r"measurements: columns \['time'\] have missing values"),
        (
            lambda b, d: (b, pd.concat([d, d.assign(marker=9.0)])),
            "two values of 'marker' of one subject at time 2",
        ),
        (lambda b, d: (b, d[:0]), "got no rows"),
    ],
)
def test_wrong_measurements(change, message):
    baseline = pd.DataFrame({"id": [1, 2], "time": [5.0, 4.0], "event": [1, 0]})
    dated = pd.DataFrame({"id": [1], "time": [2.0], "marker": [3.0]})
    with pytest.raises(InvalidInputError, match=message):
        cs.StartStop.merge(*change(baseline, dated))


def test_measurements_after_the_end_are_told():
    baseline = pd.DataFrame({"id": [1], "time": [5.0], "event": [1]})
    dated = pd.DataFrame({"id": [1, 1], "time": [2.0, 7.0], "marker": [3.0, 4.0]})
    with pytest.warns(RepairWarning, match="1 of 2 are after the end"):
        _, y = cs.StartStop.merge(baseline, dated)
    assert y.stop.tolist() == [2.0, 5.0]


# ---- landmarks -----------------------------------------------------------------------------------------


def test_landmarks_take_the_rows_in_force():
    """The same numbers as one comparison per landmark by hand, with C of the training subjects."""
    X, y, _ = data(300)
    train, test = (np.nonzero((y.subject < 150) == side)[0] for side in (True, False))
    model = cs.CoxRegression().fit(X.iloc[train], y.take(train))
    found = cs.compare_landmarks(
        {"cox": model}, y.take(test), cs.Censoring(cs.KaplanMeier()), X=X.iloc[test].reset_index(drop=True),
        train=(X.iloc[train], y.take(train)), landmarks=[0.5, 1.0], window=1.0, scores="brier_score",
    )  # fmt: skip
    for i, s in enumerate((0.5, 1.0)):
        rows, outcome = y.take(test).at(s)
        mine, later = y.take(train).at(s)
        alone = cs.compare(
            {"cox": model.predict_distribution(X.iloc[test].iloc[rows], given=s)}, outcome,
            cs.Censoring(cs.KaplanMeier()), train=(X.iloc[train].iloc[mine], later), times=[s + 1.0],
            scores="brier_score",
        )  # fmt: skip
        a, b = found[i].estimate("cox", "brier_score"), alone.estimate("cox", "brier_score")
        assert a.value == pytest.approx(b.value, rel=1e-12)
        assert a.standard_error == pytest.approx(b.standard_error, rel=1e-9)
    subjects = y.take(test).subject
    assert np.array_equal(found.at_risk[1], subjects[y.take(test).at(1.0)[0]])
    total = found.average()
    assert total["standard_error"].iloc[0] > 0
    assert found[0].censoring is not None


def test_averages_over_landmarks_count_a_subject_once():
    """Two landmarks between which nothing happens are the same sample: the error is that of one of them."""
    X, y, _ = data(200)
    model = cs.CoxRegression().fit(X, y)
    early = float(y.of_subjects().time.min())
    found = cs.compare_landmarks(
        {"cox": model}, y, KM, X=X, landmarks=[early / 3, early / 2], times=[2.0], scores="brier_score",
        reference=None,
    )  # fmt: skip
    means = found.average()
    assert means["standard_error"].iloc[0] == pytest.approx(
        found[0].frame()["standard_error"].iloc[0], rel=1e-3
    )


class Current:
    """The true hazards of the covariates in force, held."""

    def predict_distribution(self, X):
        return cs.Exponential(0.35 * np.exp(X["x"].to_numpy()))


def test_intervals_of_averages_over_landmarks_cover():
    """95 % intervals of a difference of ipcw Brier scores in 150 data sets; 95.3 % of 400 in a longer run."""
    landmarks = [0.5, 1.5, 2.2]

    def drawn(seed, n):
        rng = np.random.default_rng(seed)
        x = np.cumsum(rng.normal(0, 0.6, (n, 3)), axis=1)
        T = cs.PiecewiseExponential([1.0, 2.0], 0.35 * np.exp(x)).icdf(rng.random((n, 1)))[:, 0]
        return x, T, rng.uniform(0.5, 6.0, n)

    x, T, _ = drawn(999, 200_000)
    means = []
    for s in landmarks:
        alive, value = T[s < T] > s + 1, x[s < T, int(s)]
        means.append(np.mean((alive - np.exp(-0.35 * np.exp(value))) ** 2 - (alive - np.exp(-0.45)) ** 2))
    truth, inside = np.mean(means), 0
    for seed in range(150):
        x, T, C = drawn(seed, 250)
        end = np.minimum(T, C)
        i, j = np.nonzero(np.arange(3) < end[:, None])
        stop = np.where(j < 2, np.minimum(end[i], j + 1.0), end[i])
        y = cs.StartStop(i, j, stop, (T <= C)[i] & (stop == end[i]))
        found = cs.compare_landmarks(
            {"now": Current(), "flat": cs.Exponential(0.45)}, y, KM, X=pd.DataFrame({"x": x[i, j]}),
            landmarks=landmarks, window=1.0, scores="brier_score:ipcw", reference=None, discrimination=False,
        )  # fmt: skip
        line = found.average_differences().iloc[0]
        inside += line["low"] < truth < line["high"]
    assert 0.89 <= inside / 150 <= 0.99


def test_cross_validation_fits_each_fold_without_its_subjects():
    X, y, _ = data(120)
    folds = [
        (np.nonzero(np.arange(120) % 3 != k)[0], np.nonzero(np.arange(120) % 3 == k)[0]) for k in range(3)
    ]
    found = cs.cross_validate(
        {
            "cox": cs.CoxRegression(), "normal": cs.LogNormalRegression(),
            "line": make_pipeline(StandardScaler(), cs.CoxRegression()),
        },
        X, y, cv=folds, landmarks=[1.0], window=1.0, scores="brier_score:ipcw", reference=None,
    )  # fmt: skip
    here, outcome = y.at(1.0)
    losses = {"cox": np.zeros(len(here)), "normal": np.zeros(len(here))}
    for train, test in folds:
        rows = np.nonzero(np.isin(y.subject, train))[0]
        at_train, at_test = (np.nonzero(np.isin(y.subject[here], part))[0] for part in (train, test))
        fits = {
            "cox": cs.CoxRegression().fit(X.iloc[rows], y.take(rows)),
            "normal": cs.LogNormalRegression().fit(X.iloc[here[at_train]], outcome[at_train]),
        }
        C = cs.Censoring(cs.KaplanMeier()).fit(None, outcome[at_train]).predict_distribution()
        for name, model in fits.items():
            F = model.predict_distribution(X.iloc[here[at_test]])
            losses[name][at_test] = cs.brier_score(outcome[at_test], F, C, 2.0, scale="ipcw").ravel()
    for name, loss in losses.items():
        assert found[0].estimate(name, "brier_score:ipcw").value[0] == pytest.approx(loss.mean(), rel=1e-9)
    assert found.average()["model"].tolist() == ["cox", "normal", "line"]
    with pytest.raises(InvalidInputError, match="expected one set of folds"):
        cs.cross_validate({"cox": cs.CoxRegression()}, X, y, cv=cs.Folds(3, repeats=2), landmarks=[1.0])


def test_landmark_models_are_judged_within_their_window():
    X, y, _ = data(150)
    model = cs.LandmarkCox([0.0, 1.0, 2.5], 1.0, degree=1).fit(X, y)
    for window in (None, 1.5):
        with pytest.raises(
            InvalidInputError, match="forecasts survival from a landmark to the end of its window"
        ):
            cs.compare_landmarks({"lm": model}, y, KM, X=X, landmarks=[1.0], window=window)
    found = cs.compare_landmarks(
        {"lm": model}, y, KM, X=X, landmarks=[1.0], window=1.0, scores=["crps", "brier_score"]
    )
    assert found[0].horizon == pytest.approx(2.0)
    with pytest.raises(InvalidInputError, match="between the first and the last landmark"):
        model.predict_distribution(X[:2], given=3.0)
    with pytest.raises(InvalidInputError, match="expected given=s"):
        model.predict_distribution(X[:2])
    with pytest.raises(InvalidInputError, match="degree"):
        cs.LandmarkCox([1.0], 1.0).fit(X, y)
    several = model.predict_distribution(X[:3], given=[0.0, 1.0, 1.7])
    assert several.sf(1.9)[1] == model.predict_distribution(X[1:2], given=1.0).sf(1.9)[0]


def test_subgroups_at_a_landmark_are_those_of_its_rows():
    X, y, _ = data(150)
    X = X.assign(high=X["log_rate"] > -1.9)
    model = cs.CoxRegression().fit(X[["log_rate"]], y)
    found = cs.compare_landmarks(
        {"cox": (model, X[["log_rate"]])},
        y,
        KM,
        X=X,
        landmarks=[2.5],
        window=1.0,
        by="high",
        scores="brier_score",
    )
    rows, _ = y.at(2.5)
    table = found[0].frame(discrimination=False)
    assert set(table["by"]) >= {"high"}
    labels = next(s for s in found[0].subsets if s.by == "high" and s.label == "True")
    assert np.array_equal(labels.weight > 0, X["high"].to_numpy()[rows])


def test_a_censoring_distribution_along_observed_paths_has_no_bias():
    """T and C depend on a marker that goes on changing after s; complete data give the ipcw Brier score.

    A pooled C is biased there, by far more than its error, as is C given the marker at s alone.
    """
    errors = {"pooled": [], "along": []}
    F, s, t = cs.Exponential(0.45), 1.0, 2.8
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(500, 3))
        T, C = (
            cs.PiecewiseExponential([1.0, 2.0], 0.3 * np.exp(0.9 * x)).icdf(rng.random((500, 1)))[:, 0]
            for _ in range(2)
        )
        end, event = np.minimum(T, C), T <= C
        i, j = np.nonzero(np.arange(3) < end[:, None])
        stop = np.where(j < 2, np.minimum(end[i], j + 1.0), end[i])
        y, X = cs.StartStop(i, j, stop, event[i] & (stop == end[i])), x[i, j][:, None]
        truth = np.mean(((T[end > s] > t) - np.exp(-0.45 * (t - s))) ** 2)
        path = cs.StartStop(y.id, y.start, y.stop)
        along = cs.Censoring(cs.CoxRegression()).fit(X, y).predict_distribution(X, path=path)
        for name, censoring in (("pooled", KM), ("along", along)):
            found = cs.compare_landmarks(
                {"F": F}, y, censoring, X=X, landmarks=[s], times=[t], scores="brier_score:ipcw",
                reference=None, discrimination=False, horizon=np.nextafter(t, np.inf),
            )  # fmt: skip
            errors[name].append(found[0].estimate("F", "brier_score:ipcw").value[0] - truth)
    mean, error = ({k: f(v) for k, v in errors.items()} for f in (np.mean, lambda v: np.std(v) / 60**0.5))
    assert abs(mean["along"]) < 3 * error["along"] + 5e-4
    assert mean["pooled"] > 0.003
    assert mean["pooled"] > 6 * error["pooled"]


def test_other_models_are_fitted_at_each_landmark():
    """Survival forests of scikit-survival, which know neither intervals nor entries; weights reach them."""
    ensemble = pytest.importorskip("sksurv.ensemble")
    X, y, _ = data(150)
    forest = ensemble.RandomSurvivalForest(n_estimators=5, random_state=0)
    weight, pairs = 1.0 + y.subject % 2, y.subject // 2
    found = cs.cross_validate(
        {"forest": forest, "cox": cs.CoxRegression()}, X, y, cv=2, landmarks=[1.0], window=1.0,
        scores="brier_score", sample_weight=weight, groups=pairs,
    )  # fmt: skip
    assert found.average()["model"].tolist()[:2] == ["forest", "cox"]
    assert len(found[0].groups) == len(found.at_risk[0])


# ---- other libraries -------------------------------------------------------------------------------------


def test_the_time_varying_cox_of_lifelines():
    lifelines = pytest.importorskip("lifelines")
    X, y, _ = data(150)
    model = cs.Adapted(lifelines.CoxTimeVaryingFitter()).fit(X, y)
    ours = cs.CoxRegression(ties="efron").fit(X, y)
    assert model.model_.params_.to_numpy() == pytest.approx(ours.coef_, abs=1e-4)
    rows, _ = y.at(1.0)
    t = np.array([[1.5, 2.0, 3.0]])
    a = model.predict_distribution(X.iloc[rows]).given_survival(1.0).sf(t)
    assert a == pytest.approx(ours.predict_distribution(X.iloc[rows], given=1.0).sf(t), abs=2e-3)
    found = cs.compare_landmarks(
        {"lifelines": model, "cox": ours}, y, KM, X=X, landmarks=[1.0], window=1.0, scores="brier_score"
    )
    assert len(found) == 1
    with pytest.raises(InvalidInputError, match="fitted to intervals of covariates that change"):
        cs.Adapted(lifelines.CoxTimeVaryingFitter()).fit(X, cs.RightCensored(y.stop, y.event))
    with pytest.raises(UnsupportedOutcomeError, match="landmarks="):
        cs.Adapted(lifelines.CoxPHFitter()).fit(X, y)
    with pytest.raises(UnsupportedOutcomeError, match="landmarks="):
        cs.Adapted(make_pipeline(StandardScaler(), LinearRegression())).fit(X, y)
