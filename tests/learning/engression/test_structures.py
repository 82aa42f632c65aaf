"""Event times in order, and events that a terminal one prevents: constraints hold, and the loss is right."""

import warnings

import numpy as np
import pytest
import torch
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.distributions.joint_events import first_is
from censcore.exceptions import CensoringWarning, InvalidInputError, UnsupportedOutcomeError
from censcore.learning.engression.loss import EngressionTask
from censcore.learning.structures import Ordered, Semicompeting
from censcore.scores.kernels.energy_pairs import energy_loss

SMALL = {
    "width": 16,
    "depth": 2,
    "noise_dim": 8,
    "n_samples": 256,
    "n_networks": 1,
    "random_state": 0,
    "device": "cpu",
}


def recurrence_and_death(n, seed):
    """Chance of recurrence 0.7 or 0.3, by a covariate; C uniform on [1, 6]."""
    rng = np.random.default_rng(seed)
    x = rng.integers(2, size=n)
    recurs = rng.random(n) < np.where(x == 1, 0.7, 0.3)
    first, gap, alone = rng.gamma(2, 0.4, n), rng.gamma(2, 0.5, n), rng.gamma(3, 0.4, n)
    t = np.column_stack([np.where(recurs, first, np.inf), np.where(recurs, first + gap, alone)])
    c = rng.uniform(1, 6, n)
    end = np.minimum(t[:, 1], c)
    y = cs.SemiCompetingRisks(
        np.column_stack([np.minimum(t[:, 0], end), end]), np.column_stack([t[:, 0] <= end, t[:, 1] <= c])
    )
    return x[:, None].astype(float), y


@pytest.fixture(scope="module")
def fitted():
    X, y = recurrence_and_death(600, 0)
    return engression(**SMALL, epochs=20).fit(X, y, censoring=cs.Uniform(1.0, 6.0)), X, y


def test_chances_of_the_first_event_are_learned(fitted):
    model, _, _ = fitted
    chance = model.probability(np.array([[0.0], [1.0]]), first_is(0))
    np.testing.assert_allclose(chance, [0.3, 0.7], atol=0.12)


def test_no_draw_has_an_event_after_the_terminal_one(fitted):
    model, X, _ = fitted
    z = model.sample(X[:50])
    assert np.isinf(z[..., 0]).any()
    assert np.isfinite(z[..., 1]).all()
    assert (np.isinf(z[..., 0]) | (z[..., 0] <= z[..., 1])).all()


def test_predictions_and_files_know_never(fitted, tmp_path):
    model, X, y = fitted
    assert np.isinf(model.predict_quantile(X[:4], 0.99)[:, 0]).all()
    assert not np.isnan(model.predict_quantile(X[:4], [0.2, 0.5, 0.9])).any()
    model.save(tmp_path / "model")
    again = cs.CensoredEngression.load(tmp_path / "model")
    np.testing.assert_array_equal(again.sample(X[:5]), model.sample(X[:5]))
    assert np.isfinite(again.score(X, y, censoring=cs.Uniform(1.0, 6.0)))
    with pytest.raises(InvalidInputError, match="SemiCompetingRisks"):
        model.score(X, cs.RightCensored(y.time, y.event))


def test_a_draw_belongs_to_its_subject(fitted):
    model, X, _ = fitted
    np.testing.assert_array_equal(model.sample(X[:20])[5:9], model.sample(X[5:9]))


def test_never_without_any_censoring():
    """On the bounded scale never is an ordinary point, so that no end of follow-up is needed."""
    rng = np.random.default_rng(0)
    death = rng.exponential(size=200)
    recurs = rng.random(200) < 0.5
    time = np.column_stack([np.where(recurs, 0.5 * death, death), death])
    y = cs.SemiCompetingRisks(time, np.column_stack([recurs, np.ones(200)]))
    model = engression(**SMALL, epochs=3).fit(None, y)
    assert np.isfinite(model.history_.epochs[-1].train_loss)
    assert np.isfinite(model.score(None, y[:1]))


def test_the_loss_sums_over_patterns_and_leaves_out_pairs_of_one_draw():
    generator = torch.Generator().manual_seed(0)
    n, m, structure = 3, 4, Semicompeting(3, terminal=1)
    out = torch.rand(n, m, structure.outputs + structure.logits, generator=generator).requires_grad_()
    z, w = structure.members(out)
    y = torch.tensor([[torch.inf, 0.4, 0.3]]).expand(n, 3)
    c = (torch.rand(n, 1, 1, 1, generator=generator) + 0.5).expand(n, 1, 4 * m, 1)
    loss = energy_loss(z, y, c, weights=w, branches=4)

    times, p = structure._values(out)
    expected = torch.zeros(n)
    for r in range(n):
        for i in range(m):
            limit = c[r, 0, i]
            for a in range(4):
                psi = torch.minimum(times[r, a, i], limit)
                expected[r] += p[r, a, i] * (psi - torch.minimum(y[r], limit)).norm() / m
                for j in range(m):
                    if i != j:
                        others = torch.minimum(times[r, :, j], limit)
                        share = p[r, a, i] * p[r, :, j] / (m * (m - 1))
                        expected[r] -= 0.5 * (share * (psi - others).norm(dim=1)).sum()
    torch.testing.assert_close(loss, expected)
    assert torch.isfinite(torch.autograd.grad(loss.sum(), out)[0]).all()


def test_patterns_are_drawn_with_their_probabilities():
    structure = Semicompeting(3, terminal=0)
    out = torch.ones(1, 20_000, structure.outputs + structure.logits)
    out[..., -3:] = torch.tensor([1.0, 0.0, -1.0])
    uniform = torch.rand(1, 20_000, generator=torch.Generator().manual_seed(0))
    times = structure.draw(out, uniform)
    _, weights = structure.members(out)
    never = torch.isinf(times[0, :, 1:]).float()
    shares = torch.stack([(never == torch.tensor(p)).all(1).float().mean() for p in [[1, 1], [1, 0], [0, 1]]])
    torch.testing.assert_close(shares, weights.reshape(4, -1).sum(1)[:3], atol=0.01, rtol=0)


def test_ordered_times_are_in_order():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.exponential(size=(200, 3)), axis=1)
    y = cs.RightCensored(t, np.ones((200, 3)))
    z = engression(**SMALL, epochs=2, ordered=True).fit(None, y).sample(None, 100)
    assert (np.diff(z, axis=2) >= 0).all()
    with pytest.raises(InvalidInputError, match="another order"):
        engression(**SMALL, ordered=True).fit(None, cs.RightCensored(t[:, ::-1], np.ones((200, 3))))
    assert Ordered(2).scale((1.0, 1.0)) == [1.0, 0.1]


def test_a_death_coded_as_censoring_warns_and_gives_no_estimate_of_censoring():
    _, y = recurrence_and_death(100, 0)
    model = engression(**SMALL, epochs=1)
    coded = cs.RightCensored(y.time, y.event)
    with pytest.warns(CensoringWarning, match="coded as censoring"):
        model.fit(None, coded, censoring=cs.Uniform(0.0, 6.0))
    with (
        pytest.warns(CensoringWarning, match="coded as censoring"),
        pytest.raises(UnsupportedOutcomeError, match="SemiCompetingRisks"),
    ):
        model.fit(None, coded)
    both = np.column_stack([y.event[:, 0] | (y.time[:, 0] == y.time[:, 1]) & y.event[:, 1], y.event[:, 1]])
    composite = cs.RightCensored(y.time, both)
    with pytest.warns(CensoringWarning, match="from_first_event"):
        model.fit(None, composite)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(None, cs.SemiCompetingRisks.from_first_event(composite))


def test_settings_that_cannot_hold_never_are_errors():
    _, y = recurrence_and_death(50, 0)
    for setting in ({"time_transform": "scale"}, {"objective": "naive"}, {"ordered": True}):
        with pytest.raises(InvalidInputError, match="SemiCompetingRisks needs"):
            engression(**SMALL, **setting).fit(None, y)
    with pytest.raises(InvalidInputError, match="mask"):
        engression(**SMALL).fit(None, y, mask=np.ones((50, 2), dtype=bool))
    with pytest.raises(InvalidInputError, match="beside the terminal"):
        Semicompeting(5, terminal=0)


def test_a_task_without_structure_is_free():
    class Network(torch.nn.Module):
        noise_size = 1

    assert EngressionTask(Network(), torch.ones(2), 4, 1.0).structure.branches == 1


def test_an_interrupted_training_with_never_goes_on(tmp_path):
    X, y = recurrence_and_death(80, 0)

    def fit(checkpoint=None, callbacks=()):
        model = engression(**SMALL, epochs=3, checkpoint=checkpoint)
        return model.fit(X, y, censoring=cs.Uniform(1.0, 6.0), callbacks=callbacks)

    fit(tmp_path / "state", [lambda epoch, network: epoch.epoch == 0])
    np.testing.assert_array_equal(fit(tmp_path / "state").sample(X[:3]), fit().sample(X[:3]))
