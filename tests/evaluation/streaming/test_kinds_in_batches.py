"""Competing risks and several event times in batches are those in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.streaming.tables import (
    JOINT,
    NAMES,
    assert_same,
    make_competing,
    make_pairs,
    said_in_batches,
)

import censcore as cs
from censcore.distributions.joint_events import in_order
from censcore.evaluation.decisions.forecast_columns import forecasts_of
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError

KM = cs.Censoring(cs.KaplanMeier())
BY_SITE = cs.Censoring(cs.KaplanMeier(stratify="site"))


@pytest.fixture(scope="module")
def risks():
    return make_competing()


def labels(table, options):
    """Names of columns as labels of subjects."""
    named = {name: table[options[name]].rename(options[name]) for name in ("groups", "sample_weight", "by")
             if name in options}  # fmt: skip
    return {**options, **named}


def in_memory(table, C=KM, entry=None, **options):
    since = None if entry is None else table[entry].to_numpy()
    y = cs.CompetingRisks(table["t"].to_numpy(), table["cause"].to_numpy(), names=NAMES, entry=since)
    forecasts = forecasts_of(table, risks=y)
    options = labels(table, options)
    return cs.compare(forecasts, y, C, X=table[["site"]], discrimination=False, **options)


def in_batches(table, C=KM, entry=None, rows=130, **options):
    data = cs.OutcomeTable(table, "t", cause="cause", names=NAMES, rows=rows, entry=entry)
    return cs.compare("columns", data, C, discrimination=False, **options)


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (KM, {"scores": "all"}),
        (BY_SITE, {"by": "site"}),
        (KM, {"groups": "clinic", "sample_weight": "w", "by": "site"}),
        (KM, {"entry": "since", "scores": ["crps", "brier_score:ipcw", "pinball_score"]}),
        (BY_SITE, {"entry": "since", "sample_weight": "w", "scores": ["crps", "log_score[death]"]}),
        (cs.Exponential(1 / 300), {"horizon": 250.0, "scores": ["crps", "binomial_log_score"]}),
    ],
    ids=["all scores", "strata", "clusters and weights", "entry", "entry, strata, weights", "known C"],
)
def test_competing_risks_are_those_in_memory(risks, C, options):
    memory, streamed = in_memory(risks, C, **options), in_batches(risks, C, **options)
    assert streamed.outcomes == memory.outcomes == ["all causes", *NAMES, "any cause"]
    assert_same(memory, streamed)
    for ours, theirs in zip(memory.verdicts, streamed.verdicts, strict=True):
        assert said_in_batches(ours) == theirs.sentences
    assert streamed.settings["events by cause"] == memory.settings["events by cause"]
    np.testing.assert_allclose(streamed.settings["times"], memory.settings["times"])
    np.testing.assert_allclose(streamed.settings["levels"], memory.settings["levels"])


def test_the_energy_score_of_all_causes(risks):
    """Without ties: subjects with equal times and causes take the next draws in their order."""
    table = risks.assign(t=risks["t"] + np.arange(len(risks)) / 1e4)
    options = {"scores": ["energy_score", "crps[death]"], "horizon": 200.0}
    assert_same(in_memory(table, **options), in_batches(table, **options))


@pytest.mark.parametrize(
    ("table", "options"),
    [(False, {"groups": "clinic", "by": "site"}), (True, {})],
    ids=["in memory, clusters", "table"],
)
def test_training_subjects_and_the_aalen_johansen_reference(risks, options, table):
    other = make_competing(200, seed=1).assign(t=lambda frame: frame["t"] + 0.5)
    y = cs.CompetingRisks(other["t"].to_numpy(), other["cause"].to_numpy(), names=NAMES)
    options = {"scores": ["crps", "pinball_score"], **options}
    memory = in_memory(risks, BY_SITE, train=(other[["site"]], y), **options)
    train = cs.OutcomeTable(other, "t", cause="cause", rows=70) if table else (other[["site"]], y)
    streamed = in_batches(risks, BY_SITE, train=train, **options)
    assert streamed.reference == "aalen-johansen"
    assert_same(memory, streamed)


def test_weights_of_training_subjects(risks):
    other = make_competing(200, seed=1).assign(t=lambda frame: frame["t"] + 0.5)
    y = cs.CompetingRisks(other["t"].to_numpy(), other["cause"].to_numpy(), names=NAMES)
    train = cs.Sample(other[["site"]], y, weight=other["w"].to_numpy())
    options = {"train": train, "scores": ["crps", "brier_score:ipcw"], "sample_weight": "w"}
    for C in (KM, BY_SITE):
        assert_same(in_memory(risks, C, **options), in_batches(risks, C, **options))


def test_a_cox_regression_of_the_censoring_time_of_competing_risks(risks):
    other = make_competing(200, seed=1).assign(t=lambda frame: frame["t"] + 0.5)
    y = cs.CompetingRisks(other["t"].to_numpy(), other["cause"].to_numpy(), names=NAMES)
    options = {"scores": ["crps", "brier_score"], "reference": None, "horizon": 200.0}
    cox = cs.Censoring(cs.CoxRegression())
    table = risks.assign(site=(risks["site"] == "a") * 1.0)
    train = ((other[["site"]] == "a") * 1.0, y)
    memory = in_memory(table, cox, train=train, **options)
    assert_same(memory, in_batches(table, cox, train=train, **options))


def test_a_cause_that_the_first_batches_do_not_have(risks):
    table = risks.sort_values("cause", ascending=True, ignore_index=True)
    y = cs.CompetingRisks(table["t"].to_numpy(), table["cause"].to_numpy())
    options = {"scores": "crps", "discrimination": False, "horizon": 200.0}
    memory = cs.compare(forecasts_of(table, risks=y), y, KM, **options)
    streamed = cs.compare("columns", cs.OutcomeTable(table, "t", cause="cause", rows=50), KM, **options)
    assert streamed.outcomes == ["all causes", "cause 1", "cause 2", "any cause"]
    assert_same(memory, streamed)


def test_tables_of_one_cause_page_and_json(risks):
    memory, streamed = in_memory(risks, scores="crps"), in_batches(risks, scores="crps")
    assert_same(memory.of("death"), streamed.of("death"))
    assert streamed.of("death").outcomes == []
    assert "death: " in repr(streamed)
    assert "Differences" in streamed.to_html()
    assert '"outcome": "relapse"' in streamed.to_json()
    assert streamed.censoring.events == memory.censoring.events
    with pytest.raises(InvalidInputError, match="needs the subjects in memory"):
        streamed.plot("calibration", outcome="death")
    with pytest.raises(InvalidInputError, match="outcome: got 'cure'"):
        streamed.of("cure")


# ---- several event times ---------------------------------------------------------------------------------


def both(table, C=KM, models=JOINT, rows=110, memory=None, **options):
    """The comparison in memory and that in batches."""
    y = cs.RightCensored(table[NAMES].to_numpy(), table[["r", "d"]].to_numpy())
    y = y.with_names(NAMES)
    if "train" not in options:
        options = {"reference": None} | options  # the draws of its energy score follow its batch
    given = {name: model(table) if callable(model) else model for name, model in models.items()}
    kept = cs.compare(given, y, C, X=table[["site"]], discrimination=False,
                      **labels(table, options | (memory or {})))  # fmt: skip
    data = cs.OutcomeTable(table, NAMES, ["r", "d"], rows=rows)
    return kept, cs.compare(models, data, C, discrimination=False, **options)


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (KM, {}),
        (KM, {"groups": "clinic", "sample_weight": "w", "by": "site"}),
        (BY_SITE, {"scores": ["crps", "brier_score", "brier_score:ipcw", "pinball_score"]}),
        (cs.Exponential(1 / 300), {"horizon": 250.0}),
    ],
    ids=["default scores", "clusters and weights", "strata", "known C"],
)
def test_several_event_times_are_those_in_memory(C, options):
    memory, streamed = both(make_pairs(), C, **options)
    assert streamed.outcomes == memory.outcomes
    assert_same(memory, streamed)
    for ours, theirs in zip(memory.verdicts, streamed.verdicts, strict=True):
        assert said_in_batches(ours) == theirs.sentences
    for name in ("events", "events by event time", "event times", "censoring"):
        assert streamed.settings[name] == memory.settings[name]


def test_the_joint_log_score_and_the_reference_of_every_time():
    smooth = {
        "near": cs.Independent([cs.Exponential(0.01), cs.Exponential(0.006)]),
        "far": cs.Independent([cs.Exponential(0.02), cs.Exponential(0.01)]),
    }
    other = make_pairs(200, seed=1)
    y = cs.RightCensored(other[NAMES].to_numpy(), other[["r", "d"]].to_numpy())
    options = {"scores": ["log_score", "log_score[death]", "brier_score"], "train": (None, y)}
    memory, streamed = both(make_pairs(), models=smooth, **options)
    assert streamed.reference == "kaplan-meier"
    assert_same(memory, streamed)
    train = cs.OutcomeTable(other, NAMES, ["r", "d"], rows=90)
    in_table = both(make_pairs(), models=smooth, **{**options, "train": train}, memory={"train": (None, y)})[
        1
    ]
    assert_same(memory, in_table)


def test_delayed_entry_of_several_event_times():
    """Of the joint events "either" needs no draws, of which subjects with equal times take the next."""
    table = make_pairs().assign(since=lambda f: np.minimum(20.0, f[NAMES].min(axis=1) * 0.5).round(3))
    time, event, since = (table[name].to_numpy() for name in (NAMES, ["r", "d"], "since"))
    options = {"scores": ["crps", "brier_score"], "events": "either", "discrimination": False}
    smooth = {"near": cs.Independent([cs.Exponential(0.01), cs.Exponential(0.006)])}
    memory = cs.compare(smooth, cs.RightCensored(time, event, entry=since), KM, names=NAMES, **options)
    data = cs.OutcomeTable(table, NAMES, ["r", "d"], entry="since", rows=110)
    streamed = cs.compare(smooth, data, KM, **options)
    assert streamed.horizon == memory.horizon
    for column in ("mean", "standard_error", "events"):
        np.testing.assert_allclose(streamed.frame()[column], memory.frame()[column], rtol=1e-9)


# ---- other kinds, by a function of rows ------------------------------------------------------------------


def test_the_event_of_one_cause(risks):
    def death(rows):
        return cs.CompetingRisks(rows["t"].to_numpy(), rows["cause"].to_numpy(), n_causes=2).cause(2)

    forecasts = {
        name: cs.CumulativeIncidence([50.0, 150.0, 300.0], [[0.1, 0.2, 0.3], [a, 2 * a, 3 * a]]).cause(2)
        for name, a in (("near", 0.1), ("far", 0.2))
    }
    options = {"scores": "all", "discrimination": False}
    memory = cs.compare(forecasts, death(risks), KM, train=(None, death(risks.iloc[:150])), **options)
    data, train = (cs.OutcomeTable(frame, outcome=death, rows=90) for frame in (risks, risks.iloc[:150]))
    streamed = cs.compare(forecasts, data, KM, train=train, **options)
    assert streamed.reference == memory.reference == "aalen-johansen"
    np.testing.assert_allclose(streamed.frame()["mean"], memory.frame()["mean"], rtol=1e-12)


def semi(rows):
    """Death ends the follow-up of the relapse."""
    time, event = rows[NAMES].to_numpy().copy(), rows[["r", "d"]].to_numpy().astype(bool)
    ended = event[:, 1] & (time[:, 0] > time[:, 1])
    event[:, 0] &= ~ended
    time[:, 0] = np.where(ended, time[:, 1], time[:, 0])
    return cs.SemiCompetingRisks(time, event, terminal=1)


def test_semi_competing_risks_are_those_in_memory():
    """With the default levels; their reference draws by the order of subjects with equal outcomes."""
    table = make_pairs()
    given = {name: model(table) for name, model in JOINT.items()}
    options = {"scores": ["energy_score", "crps", "brier_score", "pinball_score"], "discrimination": False}
    options["reference"] = None
    memory = cs.compare(given, semi(table), KM, **options)
    data = cs.OutcomeTable(table, outcome=semi, rows=110)
    assert_same(memory, cs.compare(JOINT, data, KM, **options))


# ---- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"event": None}, "got neither of event and cause"),
        ({"cause": "d"}, "got both event and cause"),
        ({"event": ["r"]}, "got 2 and 1 columns"),
        ({"outcome": semi}, "outcome: got time, event as well"),
    ],
)
def test_columns_that_are_no_outcome(change, match):
    with pytest.raises(InvalidInputError, match=match):
        cs.OutcomeTable(**{"data": make_pairs(20), "time": NAMES, "event": ["r", "d"], **change})


def test_what_is_not_a_sum_over_batches_says_so(risks):
    pairs = make_pairs()
    table = cs.OutcomeTable(pairs, NAMES, ["r", "d"])
    with pytest.raises(InvalidInputError, match="one C per event time: not available for a table"):
        cs.compare(JOINT, table, cs.Censoring(cs.KaplanMeier(), shared=False))
    apart = pairs.copy()
    apart.loc[:9, ["relapse", "r"]] = np.column_stack([apart.loc[:9, "death"] / 2, np.zeros(10)])
    with pytest.raises(InvalidInputError, match="event times with a censoring time each: not available"):
        cs.compare(JOINT, cs.OutcomeTable(apart, NAMES, ["r", "d"]), KM)
    y = cs.RightCensored(pairs[NAMES].to_numpy(), pairs[["r", "d"]].to_numpy())
    with pytest.raises(InvalidInputError, match="train: mask of training subjects: not available"):
        cs.compare(JOINT, table, KM, train=cs.Sample(None, y, mask=np.ones(y.shape, dtype=bool)))
    with pytest.raises(InvalidInputError, match=r"reference: got KaplanMeier\(\), .* 'aalen-johansen'"):
        in_batches(risks, reference=cs.KaplanMeier())
    visits = np.tile([50.0, 100.0, 400.0], (len(risks), 1))

    def intervals(rows):
        found = rows["t"].to_numpy()
        lower = np.select([found > 100, found > 50], [100.0, 50.0], 0.0)
        upper = np.select([found > 100, found > 50], [400.0, 100.0], 50.0)
        return cs.IntervalCensored(lower, upper, visits=visits[: len(rows)])

    with pytest.raises(UnsupportedOutcomeError, match="IntervalCensored: not available for a table"):
        cs.compare({"one": cs.Exponential(0.01)}, cs.OutcomeTable(risks, outcome=intervals), KM)
    with pytest.raises(InvalidInputError, match="cross_validate: not available for a table"):
        cs.cross_validate({"km": cs.KaplanMeier()}, None, table)


def test_processes_and_stored_sums(risks, tmp_path):
    pytest.importorskip("pyarrow")
    risks.to_parquet(tmp_path / "table.parquet", row_group_size=70)
    options = {"scores": ["crps", "brier_score"], "discrimination": False, "horizon": 200.0}

    def compared(**executed):
        data = cs.OutcomeTable(
            tmp_path / "table.parquet", "t", cause="cause", names=NAMES, rows=70, **executed
        )
        return cs.compare("columns", data, KM, **options)

    whole = compared()
    assert_same(whole, compared(store=tmp_path / "store", n_jobs=2))
    count = len(list((tmp_path / "store").iterdir()))
    assert count == 12
    assert_same(whole, compared(store=tmp_path / "store"))
    assert len(list((tmp_path / "store").iterdir())) == count


def test_stored_sums_of_joint_events_are_those_of_their_definition(tmp_path):
    pytest.importorskip("pyarrow")
    make_pairs(120).to_parquet(tmp_path / "table.parquet")
    data = cs.OutcomeTable(tmp_path / "table.parquet", NAMES, ["r", "d"], store=tmp_path / "store")

    def compared(event):
        options = {"scores": "brier_score", "events": {"in order": event}, "discrimination": False}
        return cs.compare(JOINT, data, KM, **options).frame().query("outcome == 'in order'")["mean"]

    first, again, other = (compared(in_order(*order)) for order in ((0, 1), (0, 1), (1, 0)))
    assert (first == again).all()
    assert (first != other).all()


def test_known_censoring_times_of_several_event_times():
    table = make_pairs()
    last, seen = table[NAMES].max(axis=1), table[["r", "d"]].all(axis=1)
    table = table.assign(c=np.where(seen, last + 30.0, last))
    time, event = table[NAMES].to_numpy(), table[["r", "d"]].to_numpy()
    options = {"scores": ["crps", "brier_score"], "discrimination": False, "names": NAMES}
    given = {name: model(table) for name, model in JOINT.items()}
    memory = cs.compare(given, cs.RightCensored(time, event, table["c"].to_numpy()), **options)
    streamed = cs.compare(JOINT, cs.OutcomeTable(table, NAMES, ["r", "d"], "c", rows=110), **options)
    assert_same(memory, streamed)
    assert_same(memory.of("death"), streamed.of("death"))
    assert streamed.settings["censoring"] == "one C shared by all event times"
