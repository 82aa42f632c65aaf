"""The picture of docs/interval_censoring.md: python docs/_static/interval_censoring.py."""

from pathlib import Path

import numpy as np

import censcore as cs
from censcore.evaluation.plots import COLOURS
from censcore.evaluation.style import GREY, INK, new_figure, styled

#: visits, and the time of the event, which nobody sees
SUBJECTS = {
    4: ([1.2, 2.4, 3.9, 5.2, 6.5], 3.1),
    3: ([0.8, 2.9, 4.4, 6.1], 0.5),
    2: ([1.6, 3.0, 5.8], 7.6),
    1: ([4.5], 3.4),
    0: ([3.2], 5.6),
}
NAMES = {4: "between two visits", 3: "before the first visit", 2: "after the last visit"}
NAMES |= {1: "current status: found", 0: "current status: not found"}

with styled(grid=False):
    figure = new_figure(9.6, 3.7)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.15, 1]})
    for i, (visits, T) in SUBJECTS.items():
        before = [v for v in visits if v < T]
        after = [v for v in visits if v >= T]
        low, high = max(before, default=0.0), min(after, default=8.0)
        left.plot([0, 8], [i, i], color=GREY, lw=0.8, ls=":")
        left.plot([low, high], [i, i], color=COLOURS[0], lw=5, solid_capstyle="butt", alpha=0.55)
        left.plot(visits, [i] * len(visits), "|", color=INK, ms=13, mew=1.8)
        left.plot(T, i, "o", mfc="white", mec=GREY, ms=6)
        left.text(0.05, i + 0.3, NAMES[i], fontsize=8, color=INK)
    left.set(xlabel="time", yticks=[], xlim=(0, 8), ylim=(-0.5, 4.8))
    left.set_title("visits ( | ),  what is known of T (bar),  T itself (○, never seen)", fontsize=9.5)
    F, t = cs.Weibull(1.5, 3.0), np.linspace(0, 8, 400)[None, :]
    visits = np.array([1.2, 2.4, 3.9, 5.2, 6.5])
    D = cs.Step(visits, cdf=F.cdf(visits[None, :]))
    right.plot(t[0], F.cdf(t)[0], color=GREY, lw=1.6, ls="--", label="forecast, F(t)")
    p, seen = D.cdf(t)[0], (t[0] >= 3.9).astype(float)
    right.fill_between(t[0], p, seen, where=t[0] < 6.5, step="mid", color=COLOURS[0], alpha=0.15, lw=0)
    right.step(t[0], p, color=COLOURS[0], lw=2.2, where="mid", label="sent through the visits")
    right.step(t[0], seen, color=INK, lw=1.4, where="mid", label="detected (T in (2.4, 3.9])")
    right.plot(visits, np.full(len(visits), -0.03), "|", color=INK, ms=10, mew=1.6, clip_on=False)
    right.set(xlabel="time", xlim=(0, 8), ylim=(-0.06, 1.05))
    right.set_title("what is scored: both jump at visits only", fontsize=9.5)
    right.legend(frameon=False, fontsize=8.5, loc="lower right", bbox_to_anchor=(1.0, 0.07))
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=140)
