"""The picture of docs/delayed_entry.md: python docs/_static/delayed_entry.py."""

from pathlib import Path

import numpy as np

import censcore as cs
from censcore.evaluation.plots import COLOURS
from censcore.evaluation.style import GREY, INK, new_figure, styled

#: entry, end of observation and whether it is an event
SEEN = {
    6: (0.0, 4.2, True),
    5: (1.2, 3.1, True),
    4: (2.0, 6.0, False),
    3: (0.6, 5.1, True),
    1: (3.4, 6.6, False),
}
#: entry and an event before it
NEVER_SEEN = {2: (2.6, 1.7), 0: (1.9, 0.9)}

with styled(grid=False):
    figure = new_figure(9.0, 3.5)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
    for i, (entry, end, event) in SEEN.items():
        left.plot([0, entry], [i, i], color=GREY, lw=1.2, ls=":")
        left.plot([entry, end], [i, i], color=COLOURS[0], lw=2.4)
        left.plot(entry, i, "|", color=INK, ms=12, mew=2)
        left.plot(end, i, "o" if event else ">", mec=COLOURS[0], mfc=COLOURS[0] if event else "white", ms=7)
    for i, (entry, end) in NEVER_SEEN.items():
        left.plot([0, end], [i, i], color=GREY, lw=1.2, ls=":")
        left.plot(end, i, "o", mfc="white", mec=GREY, ms=6)
        left.plot(entry, i, "|", color=GREY, ms=12, mew=2)
        left.text(entry + 0.12, i, "never in the data: T < entry", va="center", fontsize=8, color=GREY)
    left.set(xlabel="time", yticks=[], xlim=(0, 7), ylim=(-0.7, 6.7))
    left.set_title("seen from the entry on ( | ),  event (●),  censored (▷)", fontsize=9.5)
    F, t = cs.Weibull(1.5, 3.0), np.linspace(0, 7, 400)[None, :]
    right.plot(t[0], F.sf(t)[0], color=GREY, lw=1.6, ls="--", label="forecast, P(T > t)")
    given = F.given_survival(2.0).sf(t)[0]
    right.plot(t[0], given, color=COLOURS[0], lw=2.4, label="given survival to 2, P(T > t | T > 2)")
    right.axvline(2.0, color=INK, lw=0.8)
    right.text(2.06, 0.04, "entry", fontsize=8.5, color=INK)
    right.set(xlabel="time", xlim=(0, 7), ylim=(0, 1.03))
    right.set_title("what is scored for a subject that enters at 2", fontsize=9.5)
    right.legend(frameon=False, fontsize=8.5)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=140)
