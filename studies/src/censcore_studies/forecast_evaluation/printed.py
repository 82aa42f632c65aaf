"""The published tables, shown beside ours as "printed".

Printed values come from one draw of 1000 subjects with an unknown seed, so that levels carry 3 to 4 % of
noise; compare ranks and ratios.
"""

from __future__ import annotations

__all__ = ["PRINTED_RANKS", "PRINTED_RAW", "PRINTED_SENSITIVITY"]

#: Rank of the oracle forecast by rule, regimes A to D.
PRINTED_RANKS: dict[str, tuple[int, int, int, int]] = {
    "CRPS, latent": (1, 1, 1, 1),
    "Pinball, latent": (1, 1, 1, 1),
    "Brier, latent": (1, 1, 1, 1),
    "NLL, latent": (1, 1, 1, 1),
    "NLL, Yanagisawa plug-in": (2, 1, 2, 2),
    "Brier MC, Yanagisawa plug-in": (1, 1, 1, 5),
    "Brier, Yanagisawa plug-in": (1, 1, 2, 5),
    "Pinball, Yanagisawa plug-in": (1, 1, 1, 1),
    "RPS, Yanagisawa plug-in": (2, 1, 2, 5),
    "NLL, Yanagisawa oracle": (1, 1, 1, 1),
    "Brier MC, Yanagisawa oracle": (1, 1, 1, 1),
    "Brier, Yanagisawa oracle": (1, 1, 1, 1),
    "Pinball, Yanagisawa oracle": (1, 1, 1, 1),
    "RPS, Yanagisawa oracle": (1, 1, 1, 1),
    "Censored NLL": (1, 1, 1, 1),
    "CRPS, ours": (1, 1, 1, 1),
    "Pinball, ours": (1, 1, 1, 1),
    "Brier, ours": (1, 1, 1, 1),
}

#: Mean score of the oracle and of the best competitor, regimes A to D.
PRINTED_RAW: dict[str, dict[str, tuple[float, float]]] = {
    "CRPS, latent": {
        "A": (0.7766, 0.7905),
        "B": (0.7766, 0.7905),
        "C": (0.7766, 0.7905),
        "D": (2.6189, 4.8200),
    },
    "Pinball, latent": {
        "A": (0.3030, 0.3057),
        "B": (0.3030, 0.3057),
        "C": (0.3030, 0.3057),
        "D": (0.9320, 1.8684),
    },
    "Brier, latent": {
        "A": (0.1016, 0.1021),
        "B": (0.1016, 0.1021),
        "C": (0.1016, 0.1021),
        "D": (0.0250, 0.0455),
    },
    "NLL, latent": {
        "A": (1.0745, 1.1389),
        "B": (1.0745, 1.1389),
        "C": (1.0745, 1.1389),
        "D": (-0.5448, 0.2944),
    },
    "NLL, Yanagisawa plug-in": {
        "A": (0.9841, 0.9800),
        "B": (1.5163, 1.5171),
        "C": (0.9086, 0.9056),
        "D": (0.6931, 0.6716),
    },
    "Brier MC, Yanagisawa plug-in": {
        "A": (0.7721, 0.7735),
        "B": (0.7689, 0.7694),
        "C": (0.7676, 0.7690),
        "D": (0.5000, 0.3683),
    },
    "Brier, Yanagisawa plug-in": {
        "A": (0.1041, 0.1045),
        "B": (0.1034, 0.1040),
        "C": (0.1020, 0.1019),
        "D": (0.0250, 0.0184),
    },
    "Pinball, Yanagisawa plug-in": {
        "A": (0.2947, 0.3400),
        "B": (0.3286, 0.3477),
        "C": (0.3935, 0.4197),
        "D": (1.1289, 1.4673),
    },
    "RPS, Yanagisawa plug-in": {
        "A": (1.6839, 1.4671),
        "B": (1.6877, 1.7565),
        "C": (1.6683, 1.4206),
        "D": (6.2500, 4.6039),
    },
    "NLL, Yanagisawa oracle": {
        "A": (0.9841, 0.9856),
        "B": (1.5163, 1.5193),
        "C": (0.9086, 0.9099),
        "D": (0.6931, 1.4235),
    },
    "Brier MC, Yanagisawa oracle": {
        "A": (0.7721, 0.7726),
        "B": (0.7689, 0.7695),
        "C": (0.7676, 0.7680),
        "D": (0.5000, 0.8438),
    },
    "Brier, Yanagisawa oracle": {
        "A": (0.1041, 0.1045),
        "B": (0.1034, 0.1039),
        "C": (0.1020, 0.1023),
        "D": (0.0250, 0.0422),
    },
    "Pinball, Yanagisawa oracle": {
        "A": (0.2947, 0.3400),
        "B": (0.3286, 0.3448),
        "C": (0.3935, 0.4178),
        "D": (1.1289, 1.5317),
    },
    "RPS, Yanagisawa oracle": {
        "A": (1.6839, 1.7096),
        "B": (1.6877, 1.7098),
        "C": (1.6683, 1.6938),
        "D": (6.2500, 10.5473),
    },
    "Censored NLL": {
        "A": (0.3811, 0.4036),
        "B": (0.7350, 0.7702),
        "C": (0.3445, 0.3688),
        "D": (-0.2050, 0.0832),
    },
    "CRPS, ours": {
        "A": (0.1129, 0.1133),
        "B": (0.3729, 0.3753),
        "C": (0.1268, 0.1278),
        "D": (1.0195, 1.6975),
    },
    "Pinball, ours": {
        "A": (0.0416, 0.0417),
        "B": (0.1418, 0.1429),
        "C": (0.0473, 0.0476),
        "D": (0.3741, 0.6843),
    },
    "Brier, ours": {
        "A": (0.0457, 0.0460),
        "B": (0.0873, 0.0880),
        "C": (0.0494, 0.0497),
        "D": (0.0099, 0.0167),
    },
}

_FORECASTS = ("F0", "F1", "F2", "F3", "F4")


def _by_forecast(**columns: tuple[float, ...]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(_FORECASTS, values, strict=True)) for name, values in columns.items()}


#: Continuous scores under an estimated censoring distribution: regime and estimator, score, forecast.
PRINTED_SENSITIVITY: dict[tuple[str, str], dict[str, dict[str, float]]] = {
    ("B", "kaplan-meier"): _by_forecast(
        CRPS=(0.3748, 0.4002, 0.6497, 0.5095, 0.3766),
        Pinball=(0.1420, 0.1524, 0.2427, 0.1931, 0.1432),
        Brier=(0.0875, 0.0926, 0.1819, 0.1269, 0.0881),
    ),
    ("B", "weibull"): _by_forecast(
        CRPS=(0.3752, 0.4037, 0.6456, 0.5061, 0.3786),
        Pinball=(0.1424, 0.1535, 0.2416, 0.1919, 0.1441),
        Brier=(0.0872, 0.0922, 0.1808, 0.1261, 0.0878),
    ),
    ("C", "kaplan-meier"): _by_forecast(
        CRPS=(0.1295, 0.1365, 0.2708, 0.1845, 0.1303),
        Pinball=(0.0482, 0.0510, 0.0998, 0.0679, 0.0486),
        Brier=(0.0496, 0.0516, 0.1073, 0.0716, 0.0499),
    ),
    ("C", "weibull"): _by_forecast(
        CRPS=(0.1281, 0.1334, 0.2701, 0.1838, 0.1288),
        Pinball=(0.0474, 0.0495, 0.0991, 0.0674, 0.0476),
        Brier=(0.0496, 0.0517, 0.1080, 0.0720, 0.0499),
    ),
}
