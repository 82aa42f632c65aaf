"""Training that two processes of torch.distributed share: the step of one, and every subject in one share."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need the extra 'torch'")

import torch.distributed as dist  # noqa: E402
from tests.learning.small_trainings import WITH_TESTS, Regression  # noqa: E402

from censcore.learning.training import loop as training  # noqa: E402
from censcore.learning.training.exchange import same_everywhere  # noqa: E402
from censcore.learning.training.loop import train  # noqa: E402
from censcore.learning.training.task import Recipe  # noqa: E402

# ---- what a process does -------------------------------------------------------------------------------


def of_arrays(rank):
    """Training on arrays: a batch of all subjects, and twice small batches of groups."""
    g = torch.Generator().manual_seed(1)
    x = torch.randn(200, 3, generator=g)
    y = x.sum(1) + 0.1 * torch.randn(200, generator=g)
    rows = {"x": x, "y": y, "weight": torch.rand(200, generator=g)}
    groups = np.arange(200) // 5
    visited, gather = [], training.gather

    def watched(data, index, device):
        visited.append(index.tolist())
        return gather(data, index, device)

    training.gather = watched
    found = {"seed": same_everywhere(5 + rank)}
    for name, size, own in (("whole", 200, None), ("batches", 20, groups), ("again", 20, groups)):
        task = Regression(seed=rank)  # weights of the first process count
        if name == "whole":  # every process has other noise, so none here
            task.draw = lambda n, generator, device: {"noise": torch.zeros(n, 3)}
        recipe = Recipe(epochs=6, batch_size=size, clip=1.0, learning_rate=0.02)
        visited.clear()
        history = train(task, rows, None, recipe, seed=3, device=torch.device("cpu"), groups=own)
        found[name] = {
            "losses": [e.train_loss for e in history.epochs],
            "weights": [p.tolist() for p in task.network.parameters()],
            "visited": visited.copy(),
        }
    return found


def answer(function, folder):
    """Call ``function`` as a process of torchrun would, and write down what it found."""
    torch.set_num_threads(1)
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if size > 1:
        dist.init_process_group("gloo")
    found = function(rank)
    (Path(folder) / f"{function.__name__}-{size}-{rank}").write_text(json.dumps(found), encoding="utf-8")
    if size > 1:
        dist.destroy_process_group()


def answer_in_forks(folder):
    """All the answers, each process a fork of this one: what is imported is imported once."""
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # the first optimizer imports much, too
    for function, size in ((of_arrays, 1), (of_arrays, 2)):
        address = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        children = []
        for rank in range(size):
            children.append(os.fork())
            if children[-1] == 0:
                os.environ |= address | {"RANK": str(rank)}
                answer(function, folder)
                os._exit(0)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children), function.__name__


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# ---- tests ---------------------------------------------------------------------------------------------


def answers_of(folder, *command):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=WITH_TESTS
    )
    assert done.returncode == 0, done.stderr
    return lambda function, size: [
        json.loads((folder / f"{function.__name__}-{size}-{rank}").read_text(encoding="utf-8"))
        for rank in range(size)
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("a system without fork")
    folder = tmp_path_factory.mktemp("processes")
    return answers_of(folder, "-c", f"from {__name__} import answer_in_forks as run; run({str(folder)!r})")


def expect_the_step_of_one(one, two):
    """A batch of all subjects has the same gradient, weights and clipping, however it is shared."""
    assert [process["seed"] for process in two] == [5, 5]
    for process in two:
        np.testing.assert_allclose(process["whole"]["losses"], one["whole"]["losses"], rtol=1e-5)
        for weights, expected in zip(process["whole"]["weights"], one["whole"]["weights"], strict=True):
            np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)


def test_two_processes_take_the_step_of_one(found):
    expect_the_step_of_one(found(of_arrays, 1)[0], found(of_arrays, 2))


@pytest.mark.slow  # the same processes as above, started by the launcher of torch
def test_processes_of_torchrun(found, tmp_path):
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    script = tmp_path / "script.py"
    script.write_text(
        f"from {__name__} import answer, of_arrays\nanswer(of_arrays, {str(tmp_path)!r})\n", encoding="utf-8"
    )
    expect_the_step_of_one(found(of_arrays, 1)[0], answers_of(tmp_path, *launcher, str(script))(of_arrays, 2))


def test_every_process_has_its_share_of_the_subjects(found):
    (one,), two = found(of_arrays, 1), found(of_arrays, 2)
    assert all(process["batches"] == process["again"] for process in two)  # deterministic
    shares = [{i for batch in process["batches"]["visited"] for i in batch} for process in two]
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] == set(range(200))
    assert [len(share) for share in shares] == [100, 100]
    assert not {i // 5 for i in shares[0]} & {i // 5 for i in shares[1]}  # whole groups
    epochs = len(one["batches"]["losses"])
    for process in two:
        steps = process["batches"]["visited"]
        assert len(steps) == len(one["batches"]["visited"]) == 10 * epochs
        assert all(len({i // 5 for i in batch}) == len(batch) for batch in steps)
        assert process["batches"]["weights"] == two[0]["batches"]["weights"]
        # other batches, the same behaviour
        np.testing.assert_allclose(process["batches"]["losses"], one["batches"]["losses"], rtol=0.3)
