"""The quantities of the conformance cases from their definitions, in exact fractions and by enumeration.

Nothing of the library is used here: a Kaplan-Meier curve is built by redistribution to the right, a score is
the average of the uncensored score of min(T, C) over the values of C that the observation allows, a
concordance is a loop over pairs. Other conventions (``rules``) are formulas of their own.
"""

from __future__ import annotations

import ast
import json
import math
from fractions import Fraction
from importlib import resources
from itertools import pairwise, product

INF = math.inf
FINE = 4000  # midpoints that stand for a continuous distribution of C


def files(parse=Fraction) -> list[dict]:
    """The files of cases, with fractions for numbers."""
    folder = resources.files("conformance") / "cases"
    names = sorted(path.name for path in folder.iterdir())
    return [
        json.loads((folder / name).read_text(encoding="utf-8"), parse_float=parse, parse_int=parse)
        for name in names
        if name not in ("schema.json", "conventions.json")
    ]


def entries() -> list[dict]:
    """Cases as they stand in the files."""
    return [case for file in files() for case in file["cases"]]


def fraction(value):
    """A number of a case: a fraction, a string with one, or infinity."""
    if isinstance(value, list):
        return [fraction(each) for each in value]
    return INF if value == "inf" else Fraction(value)


# ---- arithmetic of the derivations ---------------------------------------------------------------------

_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def arithmetic(text: str):
    """The value of an expression of numbers, + - * / **, log, exp and sqrt; fractions as long as possible."""

    def value(node):
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant):
            return Fraction(str(node.value))
        if isinstance(node, ast.Name) and node.id == "inf":
            return INF
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Call) and node.func.id in ("log", "exp", "sqrt"):
            return getattr(math, node.func.id)(value(node.args[0]))
        raise ValueError(f"not arithmetic: {text}")

    return value(ast.parse(text, mode="eval"))


# ---- curves --------------------------------------------------------------------------------------------


class Atoms:
    """A discrete distribution: times (perhaps infinite) and masses."""

    def __init__(self, mass: dict):
        self.mass = mass

    def above(self, t):
        return sum((m for u, m in self.mass.items() if u > t), Fraction(0))

    def from_(self, t):
        return sum((m for u, m in self.mass.items() if u >= t), Fraction(0))


def redistributed(time, seen, weight, first) -> Atoms:
    """Efron's redistribution to the right: the mass of who is not seen goes to all who come later.

    ``first`` says who of a tied time comes first: True for those seen, False for the others.
    """
    total = sum(weight)
    mass = [w / total for w in weight]
    key = [(t, s != first) for t, s in zip(time, seen, strict=True)]
    atoms: dict = {}
    for level in sorted(set(key)):
        group = [i for i, k in enumerate(key) if k == level]
        here = sum(mass[i] for i in group)
        if seen[group[0]]:
            atoms[level[0]] = atoms.get(level[0], Fraction(0)) + here
            continue
        later = [i for i, k in enumerate(key) if k > level]
        if not later:
            atoms[INF] = atoms.get(INF, Fraction(0)) + here
        ahead = sum(weight[i] for i in later)
        for i in later:
            mass[i] += here * weight[i] / ahead
    return Atoms(atoms)


def product_limit(time, seen, weight, entry, tie_leaves) -> Atoms:
    """1 - d / n at every time; ``tie_leaves`` excludes from n who is not seen and ends at the same time."""
    level, atoms = Fraction(1), {}
    for u in sorted({t for t, s in zip(time, seen, strict=True) if s}):
        n = sum(
            w
            for t, s, w, a in zip(time, seen, weight, entry, strict=True)
            if a < u and (t > u or (t == u and (s or not tie_leaves)))
        )
        d = sum(w for t, s, w in zip(time, seen, weight, strict=True) if s and t == u)
        atoms[u] = level * d / n
        level -= atoms[u]
    if level:
        atoms[INF] = level
    return Atoms(atoms)


def booleans(values):
    return [booleans(value) if isinstance(value, list) else bool(value) for value in values]


class Data:
    """Lists of fractions of what was observed."""

    def __init__(self, entry: dict):
        self.time = fraction(entry["time"])
        self.cause = [int(c) for c in entry["cause"]] if "cause" in entry else None
        self.event = [c > 0 for c in self.cause] if self.cause is not None else booleans(entry["event"])
        self.n = len(self.time)
        self.weight = fraction(entry["weight"]) if "weight" in entry else [Fraction(1)] * self.n
        self.entry = fraction(entry["entry"]) if "entry" in entry else None
        self.known = fraction(entry["censoring_time"]) if "censoring_time" in entry else None

    def kaplan_meier(self) -> Atoms:
        if self.entry is None:
            return redistributed(self.time, self.event, self.weight, first=True)
        return product_limit(self.time, self.event, self.weight, self.entry, tie_leaves=False)

    def censoring(self, ties="events first") -> Atoms:
        censored = [not e for e in self.event]
        if self.entry is None:
            return redistributed(self.time, censored, self.weight, first=ties != "events first")
        return product_limit(self.time, censored, self.weight, self.entry, ties == "events first")


def aalen_johansen(data: Data, cause: int) -> Atoms:
    """S(u-) d_j / n at every time, with the risk set of the definition."""
    entry = data.entry or [Fraction(-1)] * data.n
    S, atoms = Fraction(1), {}
    for u in sorted({t for t, e in zip(data.time, data.event, strict=True) if e}):
        risk = [i for i in range(data.n) if entry[i] < u <= data.time[i]]
        n = sum(data.weight[i] for i in risk)
        of = [
            sum(data.weight[i] for i in risk if data.time[i] == u and data.cause[i] == j) for j in range(10)
        ]
        atoms[u] = S * of[cause] / n
        S *= 1 - sum(of[1:]) / n
    return Atoms(atoms)


# ---- forecasts and censoring distributions ---------------------------------------------------------------


def steps(times, sf) -> Atoms:
    """The distribution with P(T > t) = sf at and after each time."""
    times, sf = fraction(times), [Fraction(1), *fraction(sf)]
    atoms = {t: sf[k] - sf[k + 1] for k, t in enumerate(times)}
    atoms[INF] = sf[-1]
    return Atoms({t: m for t, m in atoms.items() if m})


def forecast(case: dict, i: int) -> Atoms:
    """The forecast of subject i, for those that have atoms only."""
    given = case["forecast"]
    if given["kind"] == "steps":
        sf = given["sf"]
        found = steps(given["times"], sf[i if len(sf) > 1 else 0] if isinstance(sf[0], list) else sf)
    elif given["kind"] == "ensemble":
        members = fraction(given["members"][i])
        atoms: dict = {}
        for x in members:
            x = tuple(x) if isinstance(x, list) else x
            atoms[x] = atoms.get(x, Fraction(0)) + Fraction(1, len(members))
        found = Atoms(atoms)
    elif given["kind"] == "cumulative incidence":
        cif = given["cif"][int(case["arguments"]["cause"]) - 1]
        found = steps(given["times"], [1 - p for p in fraction(cif)])
    else:
        raise NotImplementedError(given["kind"])
    entry = Data(case["outcome"]).entry
    if entry is None:
        return found
    reach = found.above(entry[i])
    return Atoms({t: m / reach for t, m in found.mass.items() if t > entry[i]})


def censoring(case: dict, i: int, ties="events first") -> Atoms:
    """The censoring distribution of subject i, cut at the horizon."""
    given = case["censoring"]
    kind = given["kind"]
    if kind == "kaplan-meier":
        C = Data(case.get("train", case["outcome"])).censoring(ties)
    elif kind == "none":
        C = Atoms({INF: Fraction(1)})
    elif kind == "known":
        time = fraction(given["time"])
        C = Atoms({time[i] if isinstance(time, list) else time: Fraction(1)})
    elif kind == "steps":
        C = steps(given["times"], given["sf"])
    elif kind == "uniform":
        high = fraction(given["high"])
        C = Atoms({high * (2 * k + 1) / (2 * FINE): Fraction(1, FINE) for k in range(FINE)})
    else:
        raise NotImplementedError(kind)
    end = case.get("arguments", {}).get("horizon")
    if end is None:
        return C
    cut: dict = {}
    for t, m in C.mass.items():
        cut[min(t, end)] = cut.get(min(t, end), Fraction(0)) + m
    return Atoms(cut)


def compatible(C: Atoms, y, event) -> dict:
    """Values of C that the observation allows: C >= y after an event, C = y else; and their probabilities."""
    if not event:
        return {y: Fraction(1)}
    allowed = {c: m for c, m in C.mass.items() if c >= y}
    total = sum(allowed.values())
    return {c: m / total for c, m in allowed.items()}


def seen_by_horizon(case: dict, i: int):
    """Time and event of subject i, cut at the horizon; what happens there does not count."""
    data, end = Data(case["outcome"]), case.get("arguments", {}).get("horizon")
    y, event = data.time[i], data.event[i]
    return (y, event) if end is None or y < end else (Fraction(end), False)


# ---- scores: the uncensored score of min(T, C), averaged over compatible C --------------------------------


def mean(values, weight):
    return sum(w * v for w, v in zip(weight, values, strict=True) if w) / sum(weight)


def at_times(case: dict, loss):
    """Weighted means over subjects of ``loss(i, t)`` at the times of the case."""
    data = Data(case["outcome"])
    return [
        mean([loss(i, t) for i in range(data.n)], data.weight) for t in fraction(case["arguments"]["times"])
    ]


def happened(case: dict, i: int, t) -> tuple[bool, bool]:
    """Whether the event (of the cause) is known to have happened by t, and whether this is known at all."""
    data = Data(case["outcome"])
    y, event = seen_by_horizon(case, i)
    wanted = event and (data.cause is None or data.cause[i] == int(case["arguments"]["cause"]))
    return wanted and y <= t, event or y > t


def localized(case: dict, i: int, t, penalty):
    """The mean over compatible C of 1{C > t} penalty(F(t), happened)."""
    y, event = seen_by_horizon(case, i)
    p = 1 - forecast(case, i).above(t)
    by_t, _ = happened(case, i, t)
    allowed = compatible(censoring(case, i), y, event)
    return sum((m * penalty(p, by_t) for c, m in allowed.items() if c > t), Fraction(0))


def square(p, happened):
    return (happened - p) ** 2


def minus_log(p, happened):
    chance = p if happened else 1 - p
    return INF if chance == 0 else -math.log(chance)


def ipcw(case: dict, i: int, t, penalty):
    """The localized score over P(C > t), given C > entry where there is one."""
    C, entry = censoring(case, i), Data(case["outcome"]).entry
    since = Fraction(1) if entry is None or entry[i] == 0 else C.above(entry[i])
    return localized(case, i, t, penalty) / C.above(t) * since


def brier_score(case):
    return at_times(case, lambda i, t: localized(case, i, t, square))


def brier_score_ipcw(case):
    return at_times(case, lambda i, t: ipcw(case, i, t, square))


def binomial_log_score(case):
    return at_times(case, lambda i, t: localized(case, i, t, minus_log))


def binomial_log_score_ipcw(case):
    return at_times(case, lambda i, t: ipcw(case, i, t, minus_log))


def pieces(case, i, end):
    """Intervals on which F, C and the outcome are constant, up to an end."""
    y, _ = seen_by_horizon(case, i)
    marks = {Fraction(0), end, y, *forecast(case, i).mass, *censoring(case, i).mass}
    marks = sorted(m for m in marks if m <= end and m != INF)
    return pairwise(marks)


def last_of(case):
    """A time beyond which nothing changes."""
    end = case.get("arguments", {}).get("horizon")
    if end is not None:
        return Fraction(end)
    data = Data(case["outcome"])
    marks = [*data.time]
    for i in range(data.n):
        marks += [m for m in (*forecast(case, i).mass, *censoring(case, i).mass) if m != INF]
    return max(marks)


def crps(case):
    data, end = Data(case["outcome"]), last_of(case)
    if case["censoring"]["kind"] == "uniform":
        return [mean([crps_by_draws(case, i) for i in range(data.n)], data.weight)]

    def loss(i):
        return sum(((b - a) * localized(case, i, a, square) for a, b in pieces(case, i, end)), Fraction(0))

    return [mean([loss(i) for i in range(data.n)], data.weight)]


def crps_by_draws(case, i):
    """E|min(Z, c) - y| - E|min(Z, c) - min(Z', c)| / 2, averaged over compatible c."""
    y, event = seen_by_horizon(case, i)
    F = forecast(case, i)
    total = 0.0
    for c, m in compatible(censoring(case, i), y, event).items():
        cut = [(min(z, c), p) for z, p in F.mass.items()]
        first = sum(p * abs(z - y) for z, p in cut)
        second = sum(p * q * abs(z - x) for (z, p), (x, q) in product(cut, cut))
        total += float(m) * float(first - second / 2)
    return total


def integrated_brier_score_ipcw(case):
    """The mean over [0, h] of the ipcw score."""
    data, end = Data(case["outcome"]), Fraction(case["arguments"]["horizon"])

    def loss(i):
        return sum(((b - a) * ipcw(case, i, a, square) for a, b in pieces(case, i, end)), Fraction(0)) / end

    return [mean([loss(i) for i in range(data.n)], data.weight)]


def pinball_score(case):
    data = Data(case["outcome"])

    def loss(i, level):
        F = forecast(case, i)
        below = Fraction(0)
        for q in sorted(F.mass):
            below += F.mass[q]
            if below >= level:
                break
        y, event = seen_by_horizon(case, i)
        total = Fraction(0)
        for c, m in compatible(censoring(case, i), y, event).items():
            cut = min(q, c)
            total += m * (level * (y - cut) if y > cut else (1 - level) * (cut - y))
        return total

    return [
        mean([loss(i, level) for i in range(data.n)], data.weight)
        for level in fraction(case["arguments"]["levels"])
    ]


def energy_score(case):
    data = Data(case["outcome"])

    def distance(a, b):
        return math.sqrt(sum((x - z) ** 2 for x, z in zip(a, b, strict=True)))

    def loss(i):
        members = [tuple(x) for x in fraction(case["forecast"]["members"][i])]
        y, event = data.time[i], data.event[i]
        C = censoring(case, i)
        if all(event):
            allowed = compatible(C, max(y), True)
        else:
            allowed = {max(y): Fraction(1)}
        total = 0.0
        for c, m in allowed.items():
            cut = [tuple(min(z, c) for z in x) for x in members]
            first = sum(distance(z, y) for z in cut) / len(cut)
            second = sum(distance(z, x) for z, x in product(cut, cut)) / len(cut) ** 2
            total += float(m) * (first - second / 2)
        return total

    return [float(mean([Fraction(loss(i)) for i in range(data.n)], data.weight))]


def log_score(case):
    data, given = Data(case["outcome"]), case["forecast"]
    end = case.get("arguments", {}).get("horizon")

    def loss(i):
        y, event = data.time[i], data.event[i]
        if end is not None and y > end:
            y, event = Fraction(end), False
        if given["kind"] == "exponential":
            rate = fraction(given["rate"])
            rate = rate[i] if isinstance(rate, list) else rate
            value = -math.log(rate) * event + float(rate * y)
            return value - (float(rate * data.entry[i]) if data.entry else 0.0)
        high = fraction(given["high"])
        start = data.entry[i] if data.entry else 0
        chance = 1 / (high - start) if event else (high - y) / (high - start)
        return INF if y > high or chance <= 0 else -math.log(chance)

    return [mean([loss(i) for i in range(data.n)], data.weight)]


# ---- pairs, calibration, curves -------------------------------------------------------------------------


def risks(case, column=None):
    values = fraction(case["forecast"]["values"])
    return [v[column] for v in values] if isinstance(values[0], list) else values


def share(pairs):
    total = sum((w for w, _ in pairs), Fraction(0))
    return sum((w * won for w, won in pairs), Fraction(0)) / total if total else math.nan


def won(a, b):
    return Fraction(1) if a > b else Fraction(1, 2) if a == b else Fraction(0)


def concordance(case, weight_of=lambda y: Fraction(1)):
    data, r = Data(case["outcome"]), risks(case)
    end = case.get("arguments", {}).get("horizon", INF)
    pairs = []
    for i, j in product(range(data.n), repeat=2):
        later = data.time[j] > data.time[i] or (data.time[j] == data.time[i] and not data.event[j])
        if data.event[i] and data.time[i] < end and later and i != j:
            pairs.append((data.weight[i] * data.weight[j] * weight_of(data.time[i]), won(r[i], r[j])))
    return [share(pairs)]


def concordance_ipcw(case):
    without = dict(case, arguments={})
    C = censoring(without, 0)
    return concordance(case, lambda y: 1 / C.from_(y) ** 2)


def dynamic_auc(case):
    data = Data(case["outcome"])
    C, found = censoring(case, 0), []
    for k, t in enumerate(fraction(case["arguments"]["times"])):
        r = risks(case, k)
        cases = [i for i in range(data.n) if data.event[i] and data.time[i] <= t]
        controls = [j for j in range(data.n) if data.time[j] > t]
        pairs = [
            (data.weight[i] * data.weight[j] / C.from_(data.time[i]), won(r[i], r[j]))
            for i, j in product(cases, controls)
        ]
        found.append(share(pairs))
    return found


def d_calibration(case):
    """Shares of U = S(T), with the mass of a censored subject uniform below S(y), by many small parts."""
    data, bins = Data(case["outcome"]), int(case["arguments"]["bins"])
    parts = 2 * bins * 360  # divides every width that occurs
    counts = [Fraction(0)] * bins
    for i in range(data.n):
        low, high = forecast(case, i).above(data.time[i]), forecast(case, i).from_(data.time[i])
        if not data.event[i]:
            low, high = Fraction(0), low
        if low == high:
            where = [min(int(high * bins), bins - 1)]
        else:
            middle = [low + (high - low) * (2 * k + 1) / (2 * parts) for k in range(parts)]
            where = [min(int(u * bins), bins - 1) for u in middle]
        for place in where:
            counts[place] += data.weight[i] / len(where)
    return [count / sum(data.weight) for count in counts]


def kaplan_meier(case):
    curve = Data(case["outcome"]).kaplan_meier()
    return [curve.above(t) for t in fraction(case["arguments"]["times"])]


def censoring_kaplan_meier(case):
    curve = Data(case["outcome"]).censoring()
    return [curve.above(t) for t in fraction(case["arguments"]["times"])]


def cumulative_incidence(case):
    data = Data(case["outcome"])
    curve = aalen_johansen(data, int(case["arguments"]["cause"]))
    return [
        sum((m for u, m in curve.mass.items() if u <= t), Fraction(0))
        for t in fraction(case["arguments"]["times"])
    ]


cause_brier_score_ipcw = brier_score_ipcw


def compute(case: dict):
    """The quantity of a case, from its definition."""
    return globals()[case["quantity"]](case)


# ---- other conventions -----------------------------------------------------------------------------------


def weighted(case: dict, names: list[str], penalty=square):
    """The Brier score (or its logarithmic kin) with single choices replaced."""
    data = Data(case["outcome"])
    ties = "censorings first" if "censorings first" in names else "events first"
    C = censoring(case, 0, ties)
    small = Fraction(1, 20) if "G at least 0.05" in names else Fraction(0)
    found = []
    for t in fraction(case["arguments"]["times"]):
        losses, weights = [], []
        for i in range(data.n):
            y, event = data.time[i], data.event[i]
            at_t = y == t and not event and "censored at t survives" in names
            if y > t or at_t:
                G = C.from_(t) if "survivors over G(t-)" in names else C.above(t)
            elif event:
                G = C.above(y) if "events over G(y)" in names else C.from_(y)
            else:
                losses.append(Fraction(0))
                weights.append(Fraction(0))
                continue
            G = max(G, small)
            w = Fraction(0) if G == 0 and "no weight where G = 0" in names else 1 / G
            p = 1 - forecast(case, i).above(t)
            by_t, _ = happened(case, i, t)
            losses.append(w * penalty(p, by_t))
            weights.append(w)
        over = sum(weights) if "mean over weights" in names else data.n
        found.append(sum(losses) / over)
    return found


RULES = {
    "events over G(y)",
    "censorings first",
    "mean over weights",
    "G at least 0.05",
    "survivors over G(t-)",
    "censored at t survives",
    "no weight where G = 0",
    "trapezoid over the times",
    "ties not comparable",
    "tied events count",
    "event at the horizon counts",
    "bins closed on the right",
}


def variant(case: dict, names: list[str]):
    """The number of other conventions, or NotImplementedError where only its arithmetic is given."""
    if set(names) - RULES:
        raise NotImplementedError
    quantity = case["quantity"]
    if quantity in ("brier_score_ipcw", "cause_brier_score_ipcw"):
        return weighted(case, names)
    if quantity == "binomial_log_score_ipcw":
        return weighted(case, names, minus_log)
    if quantity == "integrated_brier_score_ipcw":
        times = fraction(case["arguments"]["times"])
        scores = weighted(case, names)
        parts = [
            (b - a) * (s + r) / 2 for a, b, s, r in zip(times, times[1:], scores, scores[1:], strict=False)
        ]
        return [sum(parts) / (times[-1] - times[0])]
    if quantity == "censoring_kaplan_meier" and names == ["censorings first"]:
        curve = Data(case["outcome"]).censoring("censorings first")
        return [curve.above(t) for t in fraction(case["arguments"]["times"])]
    if quantity in ("concordance_ipcw", "dynamic_auc"):
        return weighted_pairs(case, names)
    if quantity == "concordance":
        return counted_pairs(case, names)
    if quantity == "d_calibration" and names == ["bins closed on the right"]:
        data, bins = Data(case["outcome"]), int(case["arguments"]["bins"])
        shares = [Fraction(0)] * bins
        for i in range(data.n):
            s = forecast(case, i).above(data.time[i])
            shares[max(math.ceil(s * bins) - 1, 0)] += Fraction(1, data.n)
        return shares
    raise NotImplementedError


def weighted_pairs(case, names):
    data = Data(case["outcome"])
    ties = "censorings first" if "censorings first" in names else "events first"
    C = censoring(dict(case, arguments={}), 0, ties)
    end = case.get("arguments", {}).get("horizon", INF)

    def weight(y):
        G = C.above(y) if "events over G(y)" in names else C.from_(y)
        if "G at least 0.05" in names:
            G = max(G, Fraction(1, 20))
        return Fraction(0) if G == 0 else 1 / G

    if case["quantity"] == "concordance_ipcw":
        r = risks(case)
        pairs = []
        for i, j in product(range(data.n), repeat=2):
            tied = data.time[j] == data.time[i] and not data.event[j] and "ties not comparable" not in names
            before = data.time[i] <= end if "event at the horizon counts" in names else data.time[i] < end
            if data.event[i] and before and (data.time[j] > data.time[i] or tied):
                pairs.append((weight(data.time[i]) ** 2, won(r[i], r[j])))
        return [share(pairs)]
    found = []
    for k, t in enumerate(fraction(case["arguments"]["times"])):
        r = risks(case, k)
        pairs = [
            (weight(data.time[i]), won(r[i], r[j]))
            for i, j in product(range(data.n), repeat=2)
            if data.event[i]
            and data.time[i] <= t
            and (
                data.time[j] > t
                or ("censored at t survives" in names and data.time[j] == t and not data.event[j])
            )
        ]
        found.append(share(pairs))
    return found


def counted_pairs(case, names):
    data, r = Data(case["outcome"]), risks(case)
    pairs = []
    for i, j in product(range(data.n), repeat=2):
        if i == j or not data.event[i]:
            continue
        tied = data.time[j] == data.time[i]
        comparable = data.time[j] > data.time[i] or (
            tied and not data.event[j] and "ties not comparable" not in names
        )
        if tied and data.event[j] and "tied events count" in names:
            pairs.append((Fraction(1), Fraction(1) if r[i] == r[j] else Fraction(1, 2)))
        elif comparable:
            pairs.append((Fraction(1), won(r[i], r[j])))
    return [share(pairs)]
