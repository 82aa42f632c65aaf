"""A kind of outcome that the library does not know, added by its users: the second of two events."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.streaming.tables import assert_same

import censcore as cs
from censcore.evaluation.kinds import kind_of, register_kind
from censcore.evaluation.kinds.kind import KINDS
from censcore.evaluation.kinds.one_time import OneTime
from censcore.exceptions import InvalidInputError

KM = cs.Censoring(cs.KaplanMeier())


@dataclass(frozen=True)
class SecondOfTwo:
    """Two event times of which the later one counts."""

    pair: cs.RightCensored

    def __len__(self):
        return len(self.pair)

    def take(self, rows):
        """Some of the subjects."""
        return SecondOfTwo(self.pair.take(rows))


class SecondEvent(OneTime):
    """Joint forecasts of both times are judged by what they say of the later one."""

    @classmethod
    def read_outcome(cls, y):
        """As it is."""
        return y

    def events_of(self, y):
        """The later of both times."""
        return y.pair.last()

    def settled(self, forecasts, train, horizon, notes):
        """The later of the times of each member."""
        return {name: later(F) for name, F in forecasts.items()}

    def reference_model(self, train):
        """The members that were seen, without regard to censoring: any function of the training subjects."""
        return lambda X, y, X_test, sample_weight=None: cs.Ensemble(np.asarray(y.pair.time)[None])


def later(F):
    """The distribution of the later of two times."""
    return cs.Ensemble(np.asarray(F.samples).max(axis=2)) if F.k == 2 else F


@pytest.fixture(autouse=True)
def _registered():
    register_kind(SecondEvent, lambda y: isinstance(y, SecondOfTwo))
    yield
    KINDS.pop(0)


def data(n=160, seed=0):
    rng = np.random.default_rng(seed)
    T, c = rng.exponential(1.0, (n, 2)), rng.uniform(0.5, 4.0, (n, 1))
    truth = cs.Ensemble(rng.exponential(1.0, (1, 400, 2)))
    late = cs.Ensemble(rng.exponential(2.0, (1, 400, 2)))
    return cs.RightCensored(np.minimum(T, c), c >= T), {"truth": truth, "late": late}


def of_one_time(forecasts):
    return {name: later(F) for name, F in forecasts.items()}


def test_it_is_compared_as_the_time_itself():
    y, forecasts = data()
    found = cs.compare(forecasts, SecondOfTwo(y), KM, reference=None)
    known = cs.compare(of_one_time(forecasts), y.last(), KM, reference=None)
    columns = ["score", "at", "model", "mean", "standard_error", "low", "high"]
    pd.testing.assert_frame_equal(found.frame()[columns], known.frame()[columns], rtol=1e-12)
    assert kind_of(SecondOfTwo(y)) is SecondEvent


def test_it_is_reported():
    y, forecasts = data()
    found = cs.compare(forecasts, SecondOfTwo(y), KM)
    assert found.verdict.best == "truth"
    assert "truth" in found.to_html()
    assert len(found.calibration("truth").binned) > 0
    assert found.plot("brier").axes


def test_it_is_cross_validated():
    y, forecasts = data()
    models = {name: (lambda X, train, X_test, F=F: F) for name, F in forecasts.items()}
    found = cs.cross_validate(models, None, SecondOfTwo(y), cv=3, reference=None, scores="crps")
    known = cs.cross_validate(
        {name: (lambda X, train, X_test, F=F: F) for name, F in of_one_time(forecasts).items()},
        None,
        y.last(),
        cv=3,
        reference=None,
        scores="crps",
    )
    np.testing.assert_allclose(found.frame()["mean"], known.frame()["mean"], rtol=1e-12)
    assert len(found.folds()) == known.folds().shape[0]


def test_it_is_streamed():
    y, forecasts = data()
    table = pd.DataFrame(np.column_stack([y.time, y.event]), columns=["a", "b", "seen a", "seen b"])

    def second(rows):
        return SecondOfTwo(
            cs.RightCensored(rows[["a", "b"]].to_numpy(), rows[["seen a", "seen b"]].to_numpy())
        )

    streamed = cs.compare(
        forecasts, cs.OutcomeTable(table, outcome=second, rows=50), KM, discrimination=False
    )
    memory = cs.compare(forecasts, SecondOfTwo(y), KM, discrimination=False, reference=None)
    assert_same(memory, streamed)
    in_memory = {"train": (None, SecondOfTwo(data(120, seed=1)[0])), "discrimination": False}
    memory = cs.compare(forecasts, SecondOfTwo(y), KM, **in_memory)
    assert memory.reference == "kaplan-meier"
    streamed = cs.compare(forecasts, cs.OutcomeTable(table, outcome=second, rows=50), KM, **in_memory)
    assert_same(memory, streamed)
    train = cs.OutcomeTable(table, outcome=second)
    with pytest.raises(
        InvalidInputError, match="reference: got 'kaplan-meier', which is not fitted to the counts"
    ):
        cs.compare(forecasts, cs.OutcomeTable(table, outcome=second), KM, train=train)
