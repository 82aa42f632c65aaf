"""Joint densities after naive and after censored training, beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.simulation import LogNormalScenario
from censcore_studies.kit.figures import GREY, INK, RED, TEAL, new_figure, picture
from censcore_studies.multivariate.methods import fit_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_joint_densities", "sample_joint_forecasts"]

TITLES = {
    "DGP": "the truth",
    "Naive observed engression": "naive training",
    "MLP Clayton-Weibull": "Clayton copula, network margins",
    "Censored engression": "censored training",
}
#: Two patients: early events are likely for one, both regimes for the other.
PATIENTS = np.array([[-1.0, 0.8, -0.5, 0.0], [0.4, -0.2, 0.3, 0.2]])
_END = 5.0


def sample_joint_forecasts(
    n_train: int = 4000, members: int = 4000, seed: int = 0, methods: tuple[str, ...] = tuple(TITLES)
) -> dict[str, np.ndarray]:
    """Samples (patients, members, 2) of every method in the mixture scenario under uniform censoring."""
    scenario = LogNormalScenario(2, True, "uniform")
    train, valid = scenario.sample(n_train, [seed, 0]), scenario.sample(max(50, n_train // 4), [seed, 1])
    options: dict[str, Any] = {"seed": seed, "members": members}
    found = {}
    for method in methods:
        F = fit_method(method, scenario, train, valid, options).predict(PATIENTS)
        samples = getattr(F, "samples", None)
        found[method] = np.asarray(F.sample(members, seed) if samples is None else samples)
    return found


@picture
def draw_joint_densities(samples: dict[str, np.ndarray]) -> Figure:
    """A row per patient, a column per method: density of the two event times on logarithmic axes."""
    figure = new_figure(3.1 * len(samples) + 0.6, 6.4)
    grid = figure.subplots(len(PATIENTS), len(samples), sharex=True, sharey=True, squeeze=False)
    for row, axes_of_row in enumerate(grid):
        for axes, (method, drawn) in zip(axes_of_row, samples.items(), strict=True):
            _draw_density(axes, drawn[row])
            if row == 0:
                colour = {"Naive observed engression": RED, "Censored engression": TEAL}.get(method, INK)
                axes.set_title(TITLES.get(method, method), color=colour)
        axes_of_row[0].set_ylabel(f"patient {row + 1}: second event")
    for axes in grid[-1]:
        axes.set_xlabel("first event")
    figure.suptitle("Nobody is followed beyond time 5 (dashed)", x=0.02, ha="left", fontsize=11, color=GREY)
    return figure


def _draw_density(axes: Axes, samples: np.ndarray) -> None:
    edges = np.geomspace(0.04, 60.0, 55)
    density, _, _ = np.histogram2d(samples[:, 0], samples[:, 1], bins=(edges, edges))
    axes.pcolormesh(edges, edges, np.sqrt(_smoothed(density)).T, cmap="GnBu", shading="flat")
    for line in (axes.axvline, axes.axhline):
        line(_END, color=GREY, lw=1, ls="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [0.1, 1, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_aspect("equal")


def _smoothed(density: np.ndarray) -> np.ndarray:
    """A light blur, so that the shape is seen and not the noise of the samples."""
    kernel = np.array([0.25, 0.5, 0.25])
    for axis in (0, 1):
        density = np.apply_along_axis(np.convolve, axis, density, kernel, mode="same")
    return density
