"""A decorated formula is a score like those of the library."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case_scores import CASE_SCORES
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.scores import SCORES, ScoreInfo, register, score
from censcore.testing import check_score

RNG = np.random.default_rng(1)
N = 200
X = RNG.normal(size=N)
T, END = RNG.weibull(1.4, N) * np.exp(0.3 * X), RNG.uniform(0.0, 3.0, N)
Y = cs.RightCensored(np.minimum(T, END), T <= END)
F, C = cs.Weibull(1.4, np.exp(0.3 * X)), cs.Uniform(0.0, 3.0)
CAUSES = cs.CompetingRisks(Y.time, np.where(Y.event, 1 + (RNG.uniform(size=N) < 0.4), 0))
HAZARDS = cs.CauseSpecificHazards([cs.Weibull(1.4, 1.5 * np.exp(0.3 * X)), cs.Weibull(1.4, 2.0)])


def squares(inputs, times, *, scale="localized"):
    """The Brier score, anew."""
    event, free = inputs.known_at(times, scale).weights()
    S = inputs.F.sf(times)
    return event * S**2 + free * (1 - S) ** 2


mine = score(None, axis="time")(squares)


def test_it_is_called_as_the_scores_of_the_library_are():
    parts = inspect.signature(mine).parameters
    assert list(parts) == ["y", "forecast", "censoring", "times", "scale", "horizon"]
    assert parts["horizon"].kind is parts["scale"].kind is inspect.Parameter.KEYWORD_ONLY
    assert mine.__doc__ == squares.__doc__


@pytest.mark.parametrize("scale", ["localized", "ipcw"])
@pytest.mark.parametrize(
    ("y", "forecast", "censoring"),
    [
        (Y, F, C),
        (cs.RightCensored(Y.time, Y.event, entry=0.3 * Y.time), F, C),
        (CAUSES, HAZARDS, C),
        (CAUSES.cause(2), HAZARDS.cause(2), C),
        (
            cs.IntervalCensored([0.0, 1.0], [1.0, np.inf], visits=[1.0, 2.0]),
            cs.Weibull(1.4, [1.0, 2.0]),
            None,
        ),
    ],
    ids=["one time", "entry", "all causes", "one cause", "visits"],
)
def test_the_ritual_is_that_of_the_library(y, forecast, censoring, scale):
    for times in ([0.4, 0.9], 0.6):
        ours = mine(y, forecast, censoring, times, scale=scale, horizon=1.5)
        by_name = mine(y, forecast, censoring, times=times, scale=scale, horizon=1.5)
        theirs = cs.brier_score(y, forecast, censoring, times, scale=scale, horizon=1.5)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        np.testing.assert_array_equal(ours, by_name)


def test_torch_and_gradients():
    torch = pytest.importorskip("torch")
    shape = torch.tensor(1.4, dtype=torch.float64, requires_grad=True)
    like = torch.zeros(1, dtype=torch.float64)
    loss = mine(Y.like(like), cs.Weibull(shape, torch.ones(1, dtype=torch.float64)), C.like(like), [0.4, 0.9])
    assert loss.shape == (N, 2)
    (gradient,) = torch.autograd.grad(loss.sum(), shape)
    assert torch.isfinite(gradient)


def test_losses_of_one_subject_that_serve_all_are_repeated():
    constant = score(None)(lambda inputs: inputs.xp.ones((1,)))
    assert constant(Y, F, C).shape == (N,)
    wrong = score(None, axis="level")(lambda inputs, levels: inputs.xp.ones((N,)))
    with pytest.raises(InvalidInputError, match=r"got losses of shape \(200,\).*\(200, 2\)"):
        wrong(Y, F, C, [0.2, 0.4])


def test_formulas_of_their_own_for_causes_and_for_intervals():
    """What the library's scores do for other kinds of outcome, a custom score does as well."""

    def of_causes(inputs, times):
        event, free = inputs.known_at(times).weights()
        at = times + 0 * event
        F_j = inputs.of_its_cause(lambda F, rows: F.cdf(at[rows]), q=at.shape[1])
        return event * (1 - F_j) + free * inputs.F.cdf(times)

    def of_intervals(y, forecast, censoring, times, *, horizon=None):
        return np.full((len(y), 1), 7.0)

    absolute = score(None, axis="time", causes=of_causes, intervals=of_intervals)(squares)
    found = absolute(CAUSES, HAZARDS, C, [0.5])
    event, free = (
        cs.brier_score(Y, cs.PointMass(9.0), C, [0.5]),
        cs.brier_score(Y, cs.PointMass(0.1), C, [0.5]),
    )
    F_1, F_2 = (HAZARDS.cause(j).cdf(0.5)[:, None] for j in (1, 2))
    own = np.where(CAUSES.causes[:, None] == 1, F_1, F_2)
    np.testing.assert_allclose(found, event * (1 - own) + free * (F_1 + F_2), rtol=1e-12)
    assert absolute(CAUSES, HAZARDS, C, 0.5).shape == (N,)
    visits = cs.IntervalCensored([0.0, 1.0], [1.0, np.inf], visits=[1.0, 2.0])
    assert (absolute(visits, F, None, 0.5) == 7.0).all()
    refused = score(None, axis="time", causes=None, intervals=None)(squares)
    for y, forecast in ((CAUSES, HAZARDS), (visits, F)):
        with pytest.raises(UnsupportedOutcomeError):
            refused(y, forecast, C, 0.5)


def test_a_joint_score_gets_the_mask_that_leaves_coordinates_out():
    seen = {}

    @score(None, joint=True)
    def first_time(inputs, *, mask=None):
        seen["mask"] = mask
        return inputs.y.time[:, 0]

    y = cs.RightCensored([[1.0, 2.0], [3.0, 1.0]], [[1, 1], [1, 1]])
    F = cs.Independent([cs.Exponential(1.0), cs.Exponential(1.0)])
    loss = first_time(y, F, cs.Uniform(0.0, 4.0), mask=[[False, True], [True, True]])
    assert loss.tolist() == [0.0, 3.0]
    assert seen["mask"].tolist() == [[False, True], [True, True]]
    with pytest.raises(InvalidInputError, match="one entry per subject and coordinate"):
        first_time(y, F, cs.Uniform(0.0, 4.0), mask=[True])


def test_missing_and_superfluous_arguments():
    with pytest.raises(InvalidInputError, match=r"times=\.\.\. is missing"):
        mine(Y, F, C)
    with pytest.raises(InvalidTypeError, match="got 5 positional arguments"):
        mine(Y, F, C, [0.4], "ipcw")
    with pytest.raises(InvalidTypeError, match=r"@score\('name'"):
        score(squares)
    with pytest.raises(InvalidInputError, match="axis: got 'times'"):
        score(axis="times")


def test_the_numerical_derivative_of_several_columns_is_the_exact_one():
    """The standard errors of the same score, with and without knowledge of how its mean depends on C."""
    score("known", axis="time", uses_censoring="at times")(squares)
    score("unknown", axis="time")(squares)
    forecasts = {"a": F, "b": cs.Weibull(1.2, np.ones(N))}
    options = {"times": [0.4, 0.9], "horizon": 1.5, "discrimination": False}
    names = ["known", "unknown", "brier_score"]
    made = cs.compare(forecasts, Y, cs.Censoring(cs.KaplanMeier()), scores=names, **options).frame()
    known, unknown, brier = (made[made["score"] == name]["standard_error"].to_numpy() for name in names)
    np.testing.assert_allclose(known, brier, rtol=1e-12)
    np.testing.assert_allclose(unknown, brier, rtol=0.01)


def test_comparisons_see_scores_that_are_registered_later():
    assert "later" not in CASE_SCORES
    score("later", title="Later", axis="time")(squares)
    assert "later" in CASE_SCORES
    assert list(CASE_SCORES)[-1] == "later"
    assert len(CASE_SCORES) == len(list(CASE_SCORES))
    assert CASE_SCORES["later"].title == "Later"
    assert "energy_score" not in CASE_SCORES


def test_a_name_belongs_to_one_function():
    register(ScoreInfo("again", cs.crps, "again", "", ""))
    register(ScoreInfo("again", cs.crps, "again, renamed", "", ""))
    assert SCORES["again"].title == "again, renamed"
    with pytest.raises(InvalidInputError, match=r"'crps', the name of censcore\.scores\.rules\.crps\.crps"):
        score("crps", axis="time")(squares)


def test_a_near_name_is_proposed():
    with pytest.raises(InvalidInputError, match="Did you mean 'brier_score'"):
        cs.scores.score_info("brier_scor")
    with pytest.raises(InvalidInputError, match="Did you mean 'crps'"):
        cs.compare({"a": F}, Y, C, scores=["crsp"])


@score(None, axis="time")
def at_module_level(inputs, times):
    """A score that is found by its name."""
    return squares(inputs, times)


def test_pickles():
    again = pickle.loads(pickle.dumps(at_module_level))
    np.testing.assert_array_equal(again(Y, F, C, 0.5), at_module_level(Y, F, C, 0.5))


def test_the_contract_examines_times_levels_and_causes():
    check_score(mine)

    @score(None, axis="time")
    def forgets_other_causes(inputs, times):
        """Subjects with an event of another cause are taken for censored ones."""
        xp, S = inputs.xp, inputs.F.sf(times)
        weight = (
            xp.astype(inputs.event, S.dtype) / inputs.C.sf_left(inputs.y.time)[:, None] * inputs.C.sf(times)
        )
        return xp.where(inputs.time > times, (1 - S) ** 2, weight * S**2)

    with pytest.raises(AssertionError, match=r"One cause.*wins by"):
        check_score(forgets_other_causes)
