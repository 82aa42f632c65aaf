"""The tables as they are read: few columns of short strings."""

from __future__ import annotations

from math import isnan

import pandas as pd

__all__ = ["convergence_view", "rank_view", "raw_view", "sensitivity_view"]

LAWS = {
    "true": "true",
    "kaplan-meier": "Kaplan-Meier",
    "weibull": "Weibull",
    "cox": "Cox | x",
    "weibull-x": "Weibull | x",
    "kaplan-meier-cv": "Kaplan-Meier, cross-fitted",
    "weibull-cv": "Weibull, cross-fitted",
    "cox-cv": "Cox | x, cross-fitted",
    "weibull-x-cv": "Weibull | x, cross-fitted",
}


def rank_view(table: pd.DataFrame) -> pd.DataFrame:
    """Per rule and regime the printed rank, and the share of replications that reproduce it."""
    rows = []
    for rule, block in table.groupby("rule", sort=False):
        row = {"rule": rule}
        for line in block.to_dict(orient="records"):
            share = line[f"rank {line['printed']}"]
            row[line["regime"]] = (
                f"{line['printed']} ({100 * share:.0f} %){'' if line['reproduced'] else ' *'}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def raw_view(table: pd.DataFrame) -> pd.DataFrame:
    """Oracle score: mean and spread of one draw, printed, difference in such spreads, and at large n."""
    rows = []
    for line in table.to_dict(orient="records"):
        row = {
            "rule": line["rule"],
            "regime": line["regime"],
            "oracle ± sd": _plus_minus(line["oracle"], line["oracle sd"]),
            "printed": f"{line['printed oracle']:.4f}",
            "z": "" if isnan(line["z"]) else f"{line['z']:+.1f}",
            "gap to the next": _plus_minus(line["gap"], line["gap sd"]),
            "printed gap": f"{line['printed gap']:+.4f}",
        }
        if "large-n oracle" in line:
            row["large n ± se"] = _plus_minus(line["large-n oracle"], line["large-n oracle se"])
            row["large-n gap"] = _plus_minus(line["large-n gap"], line["large-n gap se"])
        rows.append(row)
    return pd.DataFrame(rows)


def sensitivity_view(table: pd.DataFrame) -> pd.DataFrame:
    """How often the oracle is first, and what the estimate does to its score."""
    return pd.DataFrame(
        [
            {
                "law of C": LAWS.get(line["law of C"], line["law of C"]),
                "regime": line["regime"],
                "score": line["score"],
                "oracle first": f"{100 * line['oracle first']:.0f} %",
                "oracle ± sd": _plus_minus(line["F0"], line["F0 sd"]),
                "printed": _number(line.get("printed F0")),
                "z": _number(line.get("z"), "+.1f"),
                "bias": f"{line['bias %']:+.1f} %",
            }
            for line in table.to_dict(orient="records")
        ]
    )


def convergence_view(table: pd.DataFrame) -> pd.DataFrame:
    """Share of replications with the oracle first, by number of rows; one line per regime and rule."""
    sizes = table[table["severity"] == 1.0]
    wide = sizes.pivot_table(index=["regime", "rule"], columns="n", values="oracle first", sort=False)
    view = wide.map(lambda share: "" if isnan(share) else f"{100 * share:.0f} %").reset_index()
    view.columns = [f"n = {name:,}" if isinstance(name, int) else str(name) for name in view.columns]
    return view


def _plus_minus(value: float, error: float) -> str:
    return f"{value:.4f}" if isnan(error) else f"{value:.4f} ± {error:.4f}"


def _number(value: float | None, form: str = ".4f") -> str:
    return "" if value is None or isnan(value) else f"{value:{form}}"
