"""Pictures of who is seen and when: delayed entry, visits."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import censcore as cs
from censcore.evaluation.report.style import new_figure, styled
from kit import GREY, INK, M0, names_of, picture

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


@picture
def delayed_entry() -> Figure:
    with styled(grid=False):
        figure = new_figure(9.0, 3.5)
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
        for i, (entry, end, event) in SEEN.items():
            left.plot([0, entry], [i, i], color=GREY, lw=1.2, ls=":")
            left.plot([entry, end], [i, i], color=M0, lw=2.4)
            left.plot(entry, i, "|", color=INK, ms=12, mew=2)
            left.plot(end, i, "o" if event else ">", mec=M0, mfc=M0 if event else "white", ms=7)
        for i, (entry, end) in NEVER_SEEN.items():
            left.plot([0, end], [i, i], color=GREY, lw=1.2, ls=":")
            left.plot(end, i, "o", mfc="white", mec=GREY, ms=6)
            left.plot(entry, i, "|", color=GREY, ms=12, mew=2)
            left.text(entry + 0.12, i, "never in the data: T < entry", va="center", fontsize=8, color=GREY)
        left.set(xlabel="time", yticks=[], xlim=(0, 7), ylim=(-0.7, 6.7))
        left.set_title("observed from entry ( | ),  event (●),  censored (▷)", fontsize=9.5)
        F, t = cs.Weibull(1.5, 3.0), np.linspace(0, 7, 400)[None, :]
        right.plot(t[0], F.sf(t)[0], color=GREY, lw=1.6, ls="--", label="forecast, P(T > t)")
        given = F.given_survival(2.0).sf(t)[0]
        right.plot(t[0], given, color=M0, lw=2.4, label="given survival to 2, P(T > t | T > 2)")
        right.axvline(2.0, color=INK, lw=0.8)
        right.text(2.06, 0.04, "entry", fontsize=8.5, color=INK)
        right.set(xlabel="time", xlim=(0, 7), ylim=(0, 1.03))
        right.set_title("what is scored if a subject enters at 2", fontsize=9.5)
        right.legend(frameon=False, fontsize=8.5)
        return figure


@picture
def interval_censoring() -> Figure:
    with styled(grid=False):
        figure = new_figure(9.6, 3.7)
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.15, 1]})
        for i, (visits, T) in SUBJECTS.items():
            before = [v for v in visits if v < T]
            after = [v for v in visits if v >= T]
            low, high = max(before, default=0.0), min(after, default=8.0)
            left.plot([0, 8], [i, i], color=GREY, lw=0.8, ls=":")
            left.plot([low, high], [i, i], color=M0, lw=5, solid_capstyle="butt", alpha=0.55)
            left.plot(visits, [i] * len(visits), "|", color=INK, ms=13, mew=1.8)
            left.plot(T, i, "o", mfc="white", mec=GREY, ms=6)
            left.text(0.05, i + 0.3, NAMES[i], fontsize=8, color=INK)
        left.set(xlabel="time", yticks=[], xlim=(0, 8), ylim=(-0.5, 4.8))
        left.set_title("visits ( | ),  known interval of T (bar),  T (○, not observed)", fontsize=9.5)
        F, t = cs.Weibull(1.5, 3.0), np.linspace(0, 8, 400)[None, :]
        visits = np.array([1.2, 2.4, 3.9, 5.2, 6.5])
        D = cs.Step(visits, cdf=F.cdf(visits[None, :]))
        right.plot(t[0], F.cdf(t)[0], color=GREY, lw=1.6, ls="--", label="forecast, F(t)")
        p, seen = D.cdf(t)[0], (t[0] >= 3.9).astype(float)
        right.fill_between(t[0], p, seen, where=t[0] < 6.5, step="mid", color=M0, alpha=0.15, lw=0)
        right.step(t[0], p, color=M0, lw=2.2, where="mid", label="forecast at the visits")
        right.step(t[0], seen, color=INK, lw=1.4, where="mid", label="detected (T in (2.4, 3.9])")
        right.plot(visits, np.full(len(visits), -0.03), "|", color=INK, ms=10, mew=1.6, clip_on=False)
        right.set(xlabel="time", xlim=(0, 8), ylim=(-0.06, 1.05))
        right.set_title("what is scored: both change only at visits", fontsize=9.5)
        right.legend(frameon=False, fontsize=8.5, loc="lower right", bbox_to_anchor=(1.0, 0.07))
        return figure


#: Ends of intervals, the covariate in each (0 or 1), and whether the last ends with the event.
CHANGING = {
    3: ([0.0, 2.2, 5.0], [0, 1], True),
    2: ([0.0, 1.6], [0], True),
    1: ([0.0, 3.6, 6.6], [0, 1], False),
    0: ([0.8, 1.4, 4.4], [0, 1], False),
}


@picture
def covariates_along_time() -> Figure:
    with styled(grid=False):
        figure = new_figure(9.0, 3.3)
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
        for i, (ends, values, event) in CHANGING.items():
            for start, stop, value in zip(ends[:-1], ends[1:], values, strict=True):
                left.plot([start, stop], [i, i], color=(GREY, M0)[value], lw=(2.4, 5)[value])
                left.plot(start, i, "|", color=INK, ms=12, mew=2)
            left.plot(ends[-1], i, "o" if event else ">", mec=M0, mfc=M0 if event else "white", ms=7)
        left.axvline(2.6, color=INK, lw=0.8, ls="--")
        left.text(2.66, 3.55, "landmark s", fontsize=8.5, color=INK)
        left.set(xlabel="time", yticks=[], xlim=(0, 7), ylim=(-0.6, 4.0))
        left.set_title("intervals ( | ): before the transplant, with it (thick)", fontsize=9.5)
        names = names_of("covariates_along_time", 3)
        model, X = names["cox"], names["X"]
        t = np.linspace(30, 365, 400)[None, :]
        for age, colour, name in ((-13.0, GREY, "new heart, aged 35"), (12.0, M0, "new heart, aged 60")):
            F = model.predict_distribution(X.iloc[:1].assign(age=age, transplant=1), given=30.0)
            right.step(t[0], F.sf(t)[0], color=colour, lw=2.2, where="post", label=name)
        right.set(xlabel="days", xlim=(0, 365), ylim=(0, 1.03))
        right.axvline(30.0, color=INK, lw=0.8, ls="--")
        right.set_title("forecasts given survival to s = 30", fontsize=9.5)
        right.legend(frameon=False, fontsize=8.5)
        return figure


@picture
def dependent_censoring() -> Figure:
    return names_of("robustness")["figure"]


@picture
def cross_validation() -> Figure:
    return names_of("cross_validation", 1)["found"].plot("folds")
