"""The training loop: what it minimises, keeps, resumes and refuses."""

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from tests.learning.small_trainings import WITH_TESTS, Regression

from censcore.exceptions import InvalidInputError, MissingDependencyError, ModelFileError
from censcore.learning.training.cuda_graphs import fits_on_device
from censcore.learning.training.loop import train
from censcore.learning.training.task import Recipe, mix_seed


@pytest.fixture
def data():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(300, 3, generator=g)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(300, generator=g)
    return {"x": x[:200], "y": y[:200]}, {"x": x[200:], "y": y[200:]}


CPU = torch.device("cpu")
RECIPE = Recipe(epochs=12, batch_size=32, learning_rate=0.2, patience=None)


def run(data, recipe=RECIPE, **options):
    task = Regression()
    history = train(task, *data, recipe, seed=7, device=CPU, **options)
    return task.network, history


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_it_learns_and_is_deterministic(data):
    network, history = run(data)
    again, _ = run(data)
    assert history.epochs[-1].validation_loss < 0.2 < history.epochs[0].train_loss
    assert same(network, again)


def test_the_best_weights_are_kept(data):
    network, history = run(
        data, Recipe(epochs=12, batch_size=32, learning_rate=2.0, clip=None, patience=None)
    )
    losses = [e.validation_loss for e in history.epochs]
    assert history.best_epoch == int(np.argmin(losses)) == history.kept_epoch
    g = torch.Generator().manual_seed(mix_seed(7, -1))
    with torch.no_grad():
        kept = Regression().loss(network, data[1], Regression().draw(100, g, CPU))
    assert float(kept.mean()) == pytest.approx(min(losses), rel=1e-5)


def test_tolerance_keeps_later_weights_that_are_as_good(data):
    strict = run(data)[1]
    tolerant = run(data, Recipe(epochs=12, batch_size=32, learning_rate=0.2, patience=None, tolerance=3.0))[1]
    assert tolerant.best_epoch == strict.best_epoch
    assert tolerant.kept_epoch >= strict.kept_epoch


def test_patience_stops_and_callbacks_can_stop(data):
    recipe = Recipe(epochs=500, batch_size=200, learning_rate=0.5, patience=3)
    stopped = run(data, recipe)[1]
    assert len(stopped.epochs) < 500
    assert len(stopped.epochs) - 1 - stopped.best_epoch == 3
    seen = []
    run(data, callbacks=[lambda epoch, network: seen.append(epoch.epoch) or epoch.epoch == 2])
    assert seen == [0, 1, 2]


def test_ctrl_c_keeps_the_best_so_far(data):
    def interrupt(epoch, network):
        if epoch.epoch == 4:
            raise KeyboardInterrupt

    network, history = run(data, callbacks=[interrupt])
    assert history.interrupted
    assert len(history.epochs) == 5
    part, _ = run(data, callbacks=[lambda epoch, network: epoch.epoch == 4])
    assert same(network, part)


def test_resuming_ends_where_an_uninterrupted_run_ends(data, tmp_path):
    whole, full = run(data)
    path = tmp_path / "state"
    run(data, checkpoint=path, callbacks=[lambda epoch, network: epoch.epoch == 5])
    resumed, history = run(data, checkpoint=path)
    assert same(whole, resumed)
    assert history.epochs == full.epochs


def test_a_checkpoint_of_another_run_is_refused(data, tmp_path):
    run(data, checkpoint=tmp_path / "state")
    with pytest.raises(ModelFileError, match="other data, settings or seed"):
        run(data, Recipe(epochs=12, batch_size=16, patience=None), checkpoint=tmp_path / "state")


@pytest.mark.skipif(sys.platform == "win32", reason="a system without kill -9")
@pytest.mark.slow  # tests/faults kills the training of a model, in seconds
def test_resuming_after_kill_9(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys, torch
        from torch import nn
        from censcore.learning.training.loop import train
        from censcore.learning.training.task import Recipe
        from tests.learning.small_trainings import Regression
        torch.set_num_threads(1)
        g = torch.Generator().manual_seed(1)
        x = torch.randn(200, 3, generator=g)
        rows = {"x": x, "y": x.sum(1)}
        task = Regression()
        die = lambda e, n: os.kill(os.getpid(), signal.SIGKILL) if e.epoch == int(sys.argv[2]) else None
        train(task, rows, rows, Recipe(epochs=8, batch_size=32), seed=3, device=torch.device("cpu"),
              checkpoint=sys.argv[1], callbacks=[die])
        print([p.tolist() for p in task.network.parameters()])
        """
    )

    def execute(path, die_at):
        command = [sys.executable, "-c", script, str(path), str(die_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=WITH_TESTS)

    assert execute(tmp_path / "a", 4).returncode == -9
    resumed, whole = execute(tmp_path / "a", 99), execute(tmp_path / "b", 99)
    assert resumed.returncode == whole.returncode == 0, resumed.stderr + whole.stderr
    assert resumed.stdout == whole.stdout


def test_bad_settings_and_a_diverging_loss_are_refused(data):
    with pytest.raises(InvalidInputError, match="schedule"):
        Recipe(schedule="steps")
    with pytest.raises(InvalidInputError, match="learning_rate"):
        Recipe(learning_rate=0)
    rows = {"x": data[0]["x"], "y": data[0]["y"] * math.inf}
    with pytest.raises(InvalidInputError, match="training loss became"):
        train(Regression(), rows, None, RECIPE, seed=0, device=CPU)


def test_history_as_frame_and_plot(data):
    history = run(data)[1]
    assert list(history.frame().columns) == ["train_loss", "validation_loss", "learning_rate", "best"]
    assert len(history.plot().lines) == 3


def test_only_batches_travel_to_the_device():
    """The data stay where they are."""
    moved = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.to:
                moved.append(len(args[0]))
            return super().__torch_function__(function, types, args, kwargs or {})

    g = torch.Generator().manual_seed(1)
    x = torch.randn(300, 3, generator=g)
    rows = {"x": x, "y": x.sum(1)}
    watched = {name: value.as_subclass(Watched) for name, value in rows.items()}
    recipe = Recipe(epochs=3, batch_size=32, validation_batch=32)
    seen, plain = Regression(), Regression()
    train(seen, watched, watched, recipe, seed=1, device=CPU)
    train(plain, rows, rows, recipe, seed=1, device=CPU)
    assert moved
    assert max(moved) < 40
    assert same(seen.network, plain.network)


@pytest.mark.parametrize(("free", "fits"), [(10_000, True), (4_000, False)])
def test_data_fit_on_a_device_that_has_twice_their_size_free(monkeypatch, free, fits):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 80_000))
    rows = {"x": torch.zeros(100, 10), "y": torch.zeros(100)}  # 4,400 bytes
    assert fits_on_device(rows, torch.device("cuda")) is fits
    assert not fits_on_device(rows, CPU)


def test_a_progress_bar_changes_nothing_and_needs_rich(data, monkeypatch, capsys):
    plain, shown = run(data)[0], run(data, progress=True)[0]
    assert same(plain, shown)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingDependencyError, match="rich"):
        run(data, progress=True)
