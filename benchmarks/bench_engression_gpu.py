"""Censored engression on a GPU at the size of the ICU study: training steps, epochs, and all-pairs scores.

22 covariates, two event times, batches of 1,024 rows with 16 samples, noise and width 500, two hidden
layers. The step as a captured graph, with and without compilation, against the plain loop of the same
task; then an epoch of 4.8 million rows in groups, and the localized energy score of 835,661 rows with 1,024
samples against ``torch.cdist``. Prints why it does nothing where there is no GPU.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch

import censcore as cs
from censcore.learning.data.standardised import Fold, Subjects
from censcore.learning.engression import Generator
from censcore.learning.engression.loss import EngressionTask
from censcore.learning.training.loop import Run
from censcore.learning.training.task import Recipe

CUDA = torch.device("cuda")
RECIPE = Recipe(
    epochs=2, batch_size=1024, learning_rate=2e-4, weight_decay=1e-5, clip=1.0, averaging=0.999, compile=False
)


def task() -> EngressionTask:
    network = Generator(
        22,
        2,
        width=500,
        depth=2,
        noise_dim=500,
        activation="relu",
        residual=False,
        layer_norm=False,
        skip=False,
        output="softplus",
    )
    return EngressionTask(network.to(CUDA), torch.ones(2, device=CUDA), samples=16, beta=1.0, mixed=True)


def data(n: int, device: torch.device) -> dict[str, torch.Tensor]:
    g = torch.Generator(device).manual_seed(0)
    t = torch.empty(n, 2, device=device).exponential_(generator=g)
    c = torch.empty(n, 1, device=device).exponential_(generator=g)
    x = torch.randn(n, 22, generator=g, device=device)
    return {"x": x, "y": torch.minimum(t, c), "c": c[:, None]}


def milliseconds(run: Run, epochs: int = 2) -> float:
    """Time of a step, over whole epochs after the first."""
    run.epoch()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(epochs):
        run.epoch()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / epochs / len(run.batches)


def prepared(rows: dict[str, torch.Tensor], recipe: Recipe, groups: np.ndarray | None = None) -> Run:
    """A run that is ready for its first epoch."""
    ready = task()
    return Run(ready, [ready.network], [Fold(Subjects(rows), None, groups)], recipe, [0], CUDA)


def steps() -> None:
    rows = data(512 * 1024, CUDA)
    recipe = replace(RECIPE, epochs=4)
    with patch("censcore.learning.training.loop.fits_on_device", lambda *_: False):
        plain = prepared(rows, recipe)
    print(f"step, eager loop          {milliseconds(plain, 1):6.3f} ms", flush=True)
    print(f"step, captured            {milliseconds(prepared(rows, recipe)):6.3f} ms", flush=True)
    try:
        compiled = milliseconds(prepared(rows, replace(recipe, compile=True)))
        print(f"step, compiled, captured  {compiled:6.3f} ms", flush=True)
    except Exception as error:  # a missing compiler is a finding, not a failure
        print(f"step, compiled: not available ({type(error).__name__}: {str(error)[:200]})", flush=True)


def epoch(compiled: bool) -> None:
    n = 4_831_810
    groups = np.random.default_rng(0).integers(0, 60_000, size=n)
    run = prepared(data(n, CUDA), replace(RECIPE, epochs=3, compile=compiled), groups)
    each, words = milliseconds(run), "compiled" if compiled else "captured"
    print(
        f"epoch of {n:,} grouped rows, {words}: {each * len(run.batches) / 1e3:.2f} s ({each:.3f} ms a step)",
        flush=True,
    )


def scores() -> None:
    n, m = 835_661, 1024
    rows = data(n, CUDA)
    y = cs.RightCensored(rows["y"], rows["y"] < rows["c"][:, 0], censoring_time=rows["c"][:, 0, 0])
    z = torch.empty(n, m, 2, device=CUDA).exponential_()
    few = slice(0, 2000)
    small = cs.energy_score(y[few], cs.Ensemble(z[few]), fair=True)
    torch.cuda.synchronize()
    start = time.perf_counter()
    losses = cs.energy_score(y, cs.Ensemble(z), fair=True)
    torch.cuda.synchronize()
    ours = time.perf_counter() - start
    start = time.perf_counter()
    peer = _cdist_loop(z[few], y[few])
    torch.cuda.synchronize()
    theirs = (time.perf_counter() - start) * n / 2000
    error = float((small - peer).abs().max())
    print(
        f"all-pairs localized energy score of {n:,} x {m:,} x 2: {ours:.1f} s; torch.cdist loop about "
        f"{theirs:.0f} s (ratio {theirs / ours:.0f}); largest difference "
        f"{error:.1e}; mean {float(losses.mean()):.5f}",
        flush=True,
    )


def _cdist_loop(z: torch.Tensor, y: cs.RightCensored) -> torch.Tensor:
    """The plain way: rows one by one, distances by torch.cdist."""
    out = []
    for i in range(len(z)):
        psi = torch.minimum(z[i], y.censoring_time[i])
        m = len(psi)
        first = torch.linalg.vector_norm(psi - y.time[i], dim=1).mean()
        out.append(
            first
            - torch.cdist(psi, psi, compute_mode="donot_use_mm_for_euclid_dist").sum() / (2 * m * (m - 1))
        )
    return torch.stack(out)


def main() -> None:
    if not torch.cuda.is_available():
        print("no GPU here: nothing was measured")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    chosen = sys.argv[1:] or ["steps", "epoch", "scores"]
    if "steps" in chosen:
        steps()
    if "epoch" in chosen:
        epoch(compiled=False)
        epoch(compiled=True)
    if "scores" in chosen:
        scores()


if __name__ == "__main__":
    main()
