"""Networks that are trained side by side are trained as each alone would be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import censcore as cs
from censcore.learning import Network, Recipe, train
from censcore.learning.data.standardised import Fold, Subjects
from censcore.learning.engression import Generator
from censcore.learning.mixture_density_network import DensityTask, LogNormalComponents
from censcore.learning.training import cuda_graphs
from censcore.learning.training.loop import Run
from censcore.learning.training.side_by_side import stacked
from censcore.simulation import LogNormalScenario

CPU = torch.device("cpu")


def some_data(n: int, seed: int = 0) -> dict[str, Any]:
    draw = torch.Generator().manual_seed(seed)
    return {
        "x": torch.randn(n, 3, generator=draw),
        "u": torch.randn(n, 2, generator=draw),
        "event": torch.rand(n, 2, generator=draw) < 0.7,
        "counts": torch.ones(n, 2, dtype=torch.bool),
        "weight": torch.rand(n, generator=draw) + 0.5,
    }


def networks_of(count: int) -> list[LogNormalComponents]:
    torch.manual_seed(0)
    return [LogNormalComponents(3, 2, components=2, width=8, networks=2) for _ in range(count)]


@pytest.mark.parametrize("sizes", [(40, 40), (40, 37)])
@pytest.mark.parametrize("validated", [False, True])
def test_trained_side_by_side_is_trained_alone(sizes: tuple[int, int], validated: bool) -> None:
    data = some_data(60)
    rows = [np.arange(size) + 5 * i for i, size in enumerate(sizes)]
    held_out = [np.arange(48, 60), np.arange(50, 58)]
    recipe = Recipe(epochs=6, batch_size=10, learning_rate=0.02, patience=2 if validated else None)
    seeds, sparsity = [3, 4], [0.05, 0.02]
    folds = [
        Fold(Subjects(data, r), Subjects(data, v) if validated else None)
        for r, v in zip(rows, held_out, strict=True)
    ]
    networks = networks_of(2)
    task = DensityTask(stacked(networks), torch.tensor(sparsity))
    histories = Run(task, networks, folds, recipe, seeds, CPU).train()
    for i, alone in enumerate(networks_of(2)):
        validation = folds[i].validation
        history = train(
            DensityTask(alone, sparsity[i]),
            folds[i].training.taken,
            None if validation is None else validation.taken,
            recipe,
            seed=seeds[i],
            device=CPU,
        )
        assert histories[i].kept_epoch == history.kept_epoch
        assert len(histories[i].epochs) == len(history.epochs)
        for one, other in zip(networks[i].parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        for one, other in zip(histories[i].epochs, history.epochs, strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, rel=1e-4)
            assert (one.validation_loss is None) == (other.validation_loss is None)
            if validated:
                assert one.validation_loss == pytest.approx(other.validation_loss, rel=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_step_that_a_gpu_captures_is_the_step_of_the_loop(
    grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_recorded(steps: Any) -> Any:
        return SimpleNamespace(replay=steps._step)

    monkeypatch.setattr(cuda_graphs.CapturedEpochs, "_captured", not_recorded)
    data = some_data(60)
    recipe = Recipe(epochs=5, batch_size=10, learning_rate=0.02, patience=None, compile=False)
    held_out = Subjects(data, np.arange(50, 60))
    folds = [
        Fold(Subjects(data, np.arange(size)), held_out, np.arange(size) // 3 if grouped else None)
        for size in (40, 37)
    ]
    found = []
    for captured in (False, True):
        networks = networks_of(2)
        run = Run(DensityTask(stacked(networks), 0.01), networks, folds, recipe, [3, 4], CPU)
        if captured:
            for group in run.optimizer.param_groups:
                group["lr"] = torch.tensor(group["lr"])
            run.captured = cuda_graphs.CapturedEpochs(run)
        epochs = [epoch for history in run.train() for epoch in history.epochs]
        found.append([(e.train_loss, e.validation_loss, e.learning_rate) for e in epochs])
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_subjects_beyond_the_room_of_their_batch_take_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "_ROOM", 0.1)
    data, networks = some_data(60), networks_of(2)
    parts = [np.arange(40), np.arange(20, 57)]
    folds = [Fold(Subjects(data, part), None, np.arange(len(part)) // 3) for part in parts]
    recipe = Recipe(epochs=2, batch_size=10, compile=False)
    run = Run(DensityTask(stacked(networks), 0.01), networks, folds, recipe, [3, 4], CPU)
    steps = cuda_graphs.CapturedEpochs(run)
    most = max(rows.shape[1] for rows, _ in run.batches.epoch(0))
    index, share = steps._arranged(0)
    assert most > index.shape[2]
    for i, part in enumerate(parts):
        assert sorted(index[:, i][share[:, i] > 0]) == part.tolist()


@pytest.mark.parametrize(
    "more", [{}, {"noise_everywhere": True, "residual": False, "skip": False, "logits": 1}]
)
def test_a_stack_of_generators_computes_what_each_does(more: dict[str, Any]) -> None:
    torch.manual_seed(1)
    networks = [Generator(3, 2, width=8, depth=3, noise_dim=4, **more) for _ in range(3)]
    for network in networks:
        for parameter in network.parameters():
            nn.init.normal_(parameter)
    x, noise = torch.randn(15, 3), torch.randn(15, 7, networks[0].noise_size)
    stack: Any = stacked(networks)
    alone = [f(x[5 * i : 5 * i + 5], noise[5 * i : 5 * i + 5]) for i, f in enumerate(networks)]
    torch.testing.assert_close(stack(x, noise), torch.cat(alone), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(stack.input_norms(), torch.stack([f.input_norms() for f in networks]))
    spared = [len(module.undecayed()) for module in (stack, networks[0])]
    assert spared[0] == spared[1]


def test_an_interrupted_fit_keeps_the_weights_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    data, calls = some_data(60), iter(range(100))

    def loss(self: DensityTask, network: nn.Module, rows: Any, random: Any) -> torch.Tensor:
        if next(calls) == 30:
            raise KeyboardInterrupt
        return whole(self, network, rows, random)

    whole = DensityTask.loss
    monkeypatch.setattr(DensityTask, "loss", loss)
    networks = networks_of(2)
    folds = [Fold(Subjects(data)), Fold(Subjects(data))]
    task = DensityTask(stacked(networks), 0.0)
    recipe = Recipe(epochs=50, batch_size=10)
    histories = Run(task, networks, folds, recipe, [0, 1], CPU).train()
    assert all(history.interrupted and len(history.epochs) == 5 for history in histories)


def test_dropout_follows_the_random_state() -> None:
    data = LogNormalScenario(k=1, censoring="uniform").sample(80, seed=0)
    for count in (1, 2):
        draws = []
        for global_seed in (1, 2):
            torch.manual_seed(global_seed)
            before = torch.random.get_rng_state()
            model = cs.CensoredEngression(
                epochs=2,
                n_networks=count,
                random_state=0,
                network=Network(width=8, dropout=0.3),
                device="cpu",
            )
            draws.append(model.fit(data.X, data.y).sample(data.X[:4], 8))
            assert torch.equal(before, torch.random.get_rng_state())
        np.testing.assert_array_equal(*draws)


def test_the_density_networks_of_all_folds_are_fitted_at_once() -> None:
    data = LogNormalScenario(k=2, censoring="uniform").sample(200, seed=0)
    folds = [(np.arange(40, 200), np.arange(40)), (np.arange(160), np.arange(160, 200))]
    model = cs.MixtureDensityNetwork(random_state=0, device="cpu")
    held_out = model.cross_fit(data.X, data.y, folds)
    alone = cs.MixtureDensityNetwork(random_state=0, device="cpu").fit(data.X, data.y)
    losses = [cs.log_score(data.y, fitted.predict_distribution(data.X)) for fitted in (model, alone)]
    np.testing.assert_allclose(*losses, rtol=0.02, atol=0.02)
    for (fitted,), (rows, _) in zip(held_out, folds, strict=True):
        some = cs.MixtureDensityNetwork(random_state=1, device="cpu").fit(data.X[rows], data.y.take(rows))
        one, other = (cs.log_score(data.y, m.predict_distribution(data.X)).mean() for m in (fitted, some))
        assert one == pytest.approx(other, abs=0.3)
