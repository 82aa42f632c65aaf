"""What censored engression recovers of the true distribution: margins, dependence, joint probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from censcore.distributions.joint_events import JointEvent, all_before, either_before
from censcore.simulation import LogNormalScenario
from censcore_studies.kit.figures import AMBER, FAINT, GREY, INK, TEAL, new_figure, picture
from censcore_studies.kit.networks import ONE_NETWORK, engression
from censcore_studies.kit.tables import StudyTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Recovery", "draw_recovery", "kendall_tau", "recover", "report_recovery"]

SCENARIO = LogNormalScenario(k=2, mixture=False, censoring="uniform")
#: Questions about both times, answered from times cut at the end of follow-up.
QUESTIONS: dict[str, JointEvent] = {
    "either before 1": either_before(1.0),
    "both before 2": all_before(2.0),
    "first before second, by 4": lambda t: (t[..., 0] < t[..., 1]) & (t[..., 0] <= 4.0),
}
TIMES = np.linspace(0.0, 8.0, 33)
CUTS = np.linspace(1.0, 8.0, 8)
# Kendall's tau compares all pairs; so many samples of each subject suffice.
_TAU_SAMPLES = 512


@dataclass(frozen=True)
class Recovery:
    """Samples of both event times for new covariates: the truth's, and those of models by name.

    Attributes
    ----------
    X : array, (n, 4)
        Covariates that no model was trained on.
    samples : dict of arrays, (n, m, 2)
        By name; ``"truth"`` among them.
    """

    X: np.ndarray
    samples: dict[str, np.ndarray]

    def survival(self, name: str) -> np.ndarray:
        """P(T_j > t | x) at ``TIMES``, (n, q, 2)."""
        return np.stack([(self.samples[name] > t).mean(axis=1) for t in TIMES], axis=1)

    def probabilities(self, name: str) -> dict[str, np.ndarray]:
        """P(question | x) for each of ``QUESTIONS``, (n,)."""
        return {q: event(self.samples[name]).mean(axis=1) for q, event in QUESTIONS.items()}

    def tau(self, name: str, cut: float) -> np.ndarray:
        """Kendall's tau given x of the two times cut at ``cut``, (n,)."""
        return np.array([kendall_tau(np.minimum(z[:_TAU_SAMPLES], cut)) for z in self.samples[name]])

    def errors(self) -> pd.DataFrame:
        """Mean absolute errors over x, inside what follow-up reaches and beyond it."""
        seen = SCENARIO.c_max > TIMES
        survival, probabilities = self.survival("truth"), self.probabilities("truth")
        tau = self.tau("truth", 4.0)
        table = {}
        for name in [name for name in self.samples if name != "truth"]:
            gap = np.abs(self.survival(name) - survival).mean(axis=(0, 2))
            row = {"P(T > t), t < 5": gap[seen].mean(), "P(T > t), t > 5": gap[~seen].mean()}
            for question, p in self.probabilities(name).items():
                row[question] = np.abs(p - probabilities[question]).mean()
            row["Kendall's tau, by 4"] = np.abs(self.tau(name, 4.0) - tau).mean()
            row["mean tau, by 4"] = self.tau(name, 4.0).mean()
            table[name] = row
        return pd.DataFrame(table).T


def kendall_tau(z: np.ndarray) -> float:
    """Concordant less discordant pairs of points (m, 2), over all pairs; ties count for neither."""
    first, second = (np.sign(z[:, None, j] - z[None, :, j]) for j in (0, 1))
    m = len(z)
    return float((first * second).sum() / (m * (m - 1)))


def recover(
    n_train: int = 4000,
    n_test: int = 100,
    members: int = 1024,
    seed: int = 0,
    objectives: Sequence[str] = ("censored", "naive"),
    **settings: Any,
) -> Recovery:
    """Train on censored data of the unimodal scenario and sample at new covariates.

    Two log-normal times with correlation 0.45 given x, one C uniform on [0, 5] for both: the distribution is
    identifiable on [0, 5] in both coordinates, and nothing beyond is observed.

    Parameters
    ----------
    n_train, n_test, members : int
        Training subjects, new subjects and samples for each.
    seed : int
        Of everything.
    objectives : sequence of str
        Models to train, see :class:`~censcore.CensoredEngression`.
    settings
        Other settings of the estimator.

    Examples
    --------
    >>> from censcore_studies.engression.recovery import recover
    >>> small = {"width": 16, "depth": 2, "noise_dim": 8, "epochs": 2}
    >>> recover(200, 5, 50, objectives=["censored"], **small).errors().shape
    (1, 7)
    """
    train = SCENARIO.sample(n_train, seed=[seed, 0])
    X = SCENARIO.sample(n_test, seed=[seed, 1]).X
    C = SCENARIO.censoring_distribution(train.X)
    samples = {"truth": np.asarray(SCENARIO.event_distribution(X).sample(members, [seed, 2]))}
    for objective in objectives:
        model = engression(objective=objective, random_state=seed, device="cpu", **(ONE_NETWORK | settings))
        samples[objective] = model.fit(train.X, train.y, censoring=C).sample(X, members)
    return Recovery(X, samples)


def report_recovery(found: Recovery) -> StudyTable:
    """The errors as a table, a line per quantity."""
    errors = found.errors().T
    truth = found.tau("truth", 4.0).mean()
    view = errors.map("{:.3f}".format).rename_axis("mean absolute error of").reset_index()
    caption = (
        f"Errors of what was learned, means over new x; the true mean tau of times cut at 4 is {truth:.3f}."
    )
    return StudyTable("recovery", errors.rename_axis("quantity").reset_index(), view, caption)


@picture
def draw_recovery(found: Recovery) -> Figure:
    """Margins of three subjects, joint probabilities of all, and Kendall's tau of times cut at a limit."""
    figure = new_figure(10.2, 3.5)
    margins, joint, dependence = figure.subplots(1, 3)
    _draw_margins(margins, found)
    _draw_joint(joint, found)
    _draw_dependence(dependence, found)
    return figure


def _draw_margins(axes: Axes, found: Recovery) -> None:
    order = np.argsort(np.median(found.samples["truth"][:, :, 0], axis=1))
    chosen = order[[len(order) // 8, len(order) // 2, -len(order) // 8]]
    for row in chosen:
        axes.plot(TIMES, found.survival("truth")[row, :, 0], color=INK, lw=3.2, alpha=0.25)
        axes.plot(TIMES, found.survival("censored")[row, :, 0], color=TEAL, lw=1.3)
        if "naive" in found.samples:
            axes.plot(TIMES, found.survival("naive")[row, :, 0], color=AMBER, lw=1, ls=":")
    _shade(axes)
    axes.set(xlabel="t", ylabel="P(T₁ > t | x)", title="Three subjects", xlim=(0, 8), ylim=(0, 1))
    axes.plot([], [], color=INK, lw=3.2, alpha=0.25, label="truth")
    axes.plot([], [], color=TEAL, lw=1.3, label="censored engression")
    if "naive" in found.samples:
        axes.plot([], [], color=AMBER, lw=1, ls=":", label="naive training")
    axes.legend(loc="upper right", fontsize=8)


def _draw_joint(axes: Axes, found: Recovery) -> None:
    truth, model = found.probabilities("truth"), found.probabilities("censored")
    for (question, p), colour in zip(truth.items(), (TEAL, AMBER, GREY), strict=True):
        axes.plot(p, model[question], "o", ms=3.2, mew=0, alpha=0.75, color=colour, label=question)
    axes.plot([0, 1], [0, 1], color=INK, lw=0.8, zorder=0)
    axes.set(xlabel="true probability", ylabel="learned probability", title="Joint probabilities")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", fontsize=8, handletextpad=0.1)


def _draw_dependence(axes: Axes, found: Recovery) -> None:
    colours = {"truth": INK, "censored": TEAL, "naive": AMBER}
    for name in found.samples:
        tau = np.array([found.tau(name, cut).mean() for cut in CUTS])
        thick = name == "truth"
        style: dict[str, Any] = {"lw": 3.2, "alpha": 0.25} if thick else {"lw": 1.3}
        axes.plot(CUTS, tau, color=colours.get(name, GREY), ls=":" if name == "naive" else "-", **style)
    _shade(axes)
    axes.set(xlabel="times cut at", ylabel="Kendall's tau given x", title="Dependence", xlim=(1, 8))


def _shade(axes: Axes) -> None:
    """The times beyond follow-up."""
    axes.axvspan(SCENARIO.c_max, 8, color=FAINT, lw=0, zorder=0)
    axes.annotate("not observed", (6.5, 0.45), xycoords=("data", "axes fraction"), ha="center", color=GREY)
