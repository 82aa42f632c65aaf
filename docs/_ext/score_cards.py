"""The pages' view of the registry of scores: a table of all, and a card with a picture for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sphinx.application import Sphinx

import censcore as cs
from censcore.evaluation.report.style import PALETTE, new_figure, styled, svg_of
from censcore.scores.registry import SCORES, ScoreInfo

FORECAST, CENSORING = cs.Weibull(1.5, 3.0), cs.Uniform(0.0, 8.0)
TIME, LEVEL, HORIZON, SECOND = 3.0, 0.5, 6.0, 4.0
TIMES = np.arange(0.02, HORIZON, 0.02)


def losses(info: ScoreInfo, event: bool) -> np.ndarray:
    """The loss of a subject with an event, or censored, at each of the times.

    A joint score has a second event time: seen at 4 if the first is seen, and censored with it otherwise.
    """
    y = cs.RightCensored(TIMES, np.full(len(TIMES), event))
    forecast: cs.Distribution = FORECAST
    if not info.univariate:
        second = np.full(len(TIMES), SECOND) if event else TIMES
        y = cs.RightCensored(np.stack([TIMES, second], axis=1), np.full((len(TIMES), 2), event))
        forecast = cs.Ensemble(cs.Independent([FORECAST, FORECAST]).sample(500, seed=0))
    found = info(y, forecast, CENSORING, times=[TIME], levels=[LEVEL], horizon=HORIZON)
    return np.asarray(found).reshape(len(TIMES))


def picture(info: ScoreInfo) -> bytes:
    """Loss against the observed time, for an event and for a censored subject."""
    with styled(grid=True):
        figure = new_figure(6.4, 2.9)
        axes = figure.subplots()
        axes.plot(TIMES, losses(info, True), color=PALETTE["m0"][0], lw=2.2, label="event at y")
        axes.plot(TIMES, losses(info, False), color=PALETTE["m1"][0], lw=2.2, ls="--", label="censored at y")
        if info.axis:
            median = float(FORECAST.icdf(LEVEL)[0])
            at, text = (TIME, " t") if info.axis == "time" else (median, " forecast median")
            axes.axvline(at, color=PALETTE["grey"][0], lw=1, ls=":")
            axes.annotate(text, (at, 1), xycoords=("data", "axes fraction"), va="top", fontsize=9)
        axes.set(xlabel="observed time y", ylabel="loss", xlim=(0, HORIZON))
        axes.margins(y=0.12)
        axes.legend()
        return svg_of(figure)


def call(info: ScoreInfo) -> str:
    """How the score is called in Python."""
    axis = {"time": ", times", "level": ", levels"}.get(info.axis, "")
    options = "".join(f", {name}={value!r}" for name, value in info.options).replace("'", '"')
    return f"{info.function.__name__}(y, F, C{axis}{options})"


def card(info: ScoreInfo) -> str:
    """The section of one score."""
    label, name = anchor(info), info.name
    rows = {
        "name": f"`{name}`",
        "call": f"{{func}}`{call(info)} <censcore.{info.function.__name__}>`",
        "unit": info.unit,
        "range": info.range,
        "propriety": info.proper,
        "forecast": "must have a density" if info.needs_density else "any",
        "event times": "several" if not info.univariate else "one or several" if info.joint else "one",
        "skill": "against a reference forecast" if info.has_skill else "none: zero has no meaning",
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    pitfalls = "\n".join(f"- {pitfall}" for pitfall in info.pitfalls)
    title = info.title[0].upper() + info.title[1:]
    if not info.univariate and info.axis == "time":
        title = f"{title} of a joint event"
    return f"""({label})=
## {title}

$${info.formula}$$

![{info.title}: loss against the observed time](generated/scores/{label}.svg)

| | |
|---|---|
{table}

**Pitfalls**

{pitfalls}

**Reference.** {info.reference}
"""


def anchor(info: ScoreInfo) -> str:
    """The label of a card, for links."""
    return "card-" + info.name.replace("_", "-").replace(":", "-")


def table() -> str:
    """All scores in one table."""
    lines = ["| name | axis | loss of a subject | card |", "|---|---|---|---|"]
    for info in SCORES.values():
        formula = info.formula.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        lines.append(f"| `{info.name}` | {info.axis or '-'} | ${formula}$ | [card](#{anchor(info)}) |")
    return "\n".join(lines) + "\n"


def write(app: Sphinx) -> None:
    """Write what pages include: generated/scores.md, generated/score_cards.md and the pictures."""
    folder = Path(app.srcdir) / "generated"
    (folder / "scores").mkdir(parents=True, exist_ok=True)
    for info in SCORES.values():
        (folder / "scores" / f"{anchor(info)}.svg").write_bytes(picture(info))
    (folder / "scores.md").write_text(table(), encoding="utf-8")
    (folder / "score_cards.md").write_text("\n".join(map(card, SCORES.values())), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
