"""Codes of causes may be large, or come from another list: they are counted, or refused at once."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT = RNG.weibull(1.3, N) + 0.01, np.arange(N) % 3 > 0


@pytest.fixture
def soon():
    """End a test that enumerates what nobody has: an error in its words, not a wait."""

    def stop(*_):
        raise AssertionError("no end after 10 s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("code", [10_001, 10**7, 2**62, 1e30, 1e300])
def test_large_codes_of_causes_end_at_once(soon, code):
    codes = np.where(EVENT, np.where(np.arange(N) % 2, 1, code), 0)
    words = "expected numbers from 1 to at most 10000.*return_inverse"
    for call in (
        lambda: cs.CompetingRisks(TIME, codes),
        lambda: cs.CompetingRisks.from_frame(pd.DataFrame({"time": TIME, "cause": codes})),
        lambda: cs.AalenJohansen().fit(None, pd.DataFrame({"time": TIME, "cause": codes})),
        lambda: cs.CauseEnsemble(np.ones((2, 3)), np.array([[1, code, 1]] * 2)),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()


def test_the_advice_on_large_codes_works():
    codes = np.where(EVENT, np.where(np.arange(N) % 2, 410, 10**7), 0)
    found, cause = np.unique(codes, return_inverse=True)
    y = cs.CompetingRisks(TIME, cause, names=[f"code {code}" for code in found[1:]])
    assert y.names == ("code 410", "code 10000000")
    np.testing.assert_array_equal(y.causes == 2, codes == 10**7)


def test_many_causes_are_summed_up_in_words(soon):
    y = cs.CompetingRisks(TIME, np.where(EVENT, np.where(np.arange(N) % 2, 3, 9_999), 0))
    assert repr(y).startswith(f"CompetingRisks(n={N}, events: cause 3 ")
    assert len(repr(y)) < 200
    for call in (lambda: cs.AalenJohansen().fit(None, y), lambda: y.cause(10_000), lambda: y.cause("x")):
        with pytest.raises(InvalidInputError) as error:
            call()
        assert len(str(error.value)) < 600
