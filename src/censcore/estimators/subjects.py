"""Whether two samples share subjects: keys of subjects, and when equal keys are the same subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._numerics import scramble
from censcore._validation import columns_of
from censcore.distributions.random_draws import keys_of
from censcore.outcomes.detection_times import DetectionTimes

NO_PAIRS = np.zeros((0, 2), dtype=np.intp)
CHANCE = 0.05  # largest share of equal pairs that may be expected by chance where pairs are believed
IMPOSSIBLE = 1e-6  # chance, at most, that one sample is within another one by itself where it is believed
COPIES = 20  # distinct subjects, at least, all of whom occur twice (k times) only if they were copied
FREQUENT = 0.1, 5.0  # share of copies among events, and ratio to what chance explains, that are told
HIDDEN = 0.2  # largest share of the smaller sample that ties may hide where the rest counts as certain


@dataclass(frozen=True)
class SubjectKeys:
    """Hashes (n,) of what was seen of every subject: its outcome, and its covariates where there are any.

    They stand in for the data, so that a fitted estimator recognises its training subjects without
    keeping their covariates.
    """

    outcome: np.ndarray
    covariates: np.ndarray | None
    n_columns: int

    @classmethod
    def of(cls, X: Any, y: Any) -> SubjectKeys:
        """Keys of the subjects with covariates X (an array, a frame or None) and outcomes y."""
        y = y.recorded() if isinstance(y, DetectionTimes) else y  # however far they are followed
        outcome, columns = keys_of([to_numpy(y.time), to_numpy(y.event)]), _columns(X)
        return cls(outcome, keys_of(columns) if columns else None, len(columns))

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def together(self) -> np.ndarray:
        """Hashes (n,) of outcome and covariates."""
        return self.outcome if self.covariates is None else self.outcome ^ scramble(self.covariates)


@dataclass(frozen=True)
class Shared:
    """Subjects that two samples share: ``pairs`` of numbers (m, 2), each subject in one pair at most.

    ``in_order`` where the samples are the same subjects in the same order. ``certain`` unless ties may hide
    more than a fifth of the smaller sample; ``undecided`` is about how many more there are, by the number of
    equal pairs, which cannot be identified.
    """

    pairs: np.ndarray
    in_order: bool = False
    certain: bool = True
    undecided: int = 0


def shared_subjects(a: SubjectKeys, b: SubjectKeys) -> Shared:
    r"""Find the subjects that two samples share.

    Samples with equal times and events in the same order are the same subjects. Otherwise subjects are equal
    if their covariates (where both samples have them), times and events are. Where all subjects of one
    sample a are in the other, and chance cannot bring that about, they are those subjects. Were the samples
    independent, a would have a binomial share of the :math:`s_v` subjects of both with the value v, and never
    more of them than b with the probability

    .. math:: \prod_vP\{\mathrm{Bin}(s_v,n_a/(n_a+n_b))\le s_v/2\}.

    Otherwise independent subjects may be equal by chance where the data are discrete. Chance makes pairs
    within a sample as it makes them between samples, so

    .. math:: E=n_an_b\,\tfrac12\Bigl\{\frac{\#\text{equal pairs in }a}{n_a(n_a-1)/2}
        +\frac{\#\text{equal pairs in }b}{n_b(n_b-1)/2}\Bigr\}

    equal pairs between the samples are expected of it. Pairs are believed where E is at most 5 % of what
    was found. Elsewhere it is unknown which of them are the same subject, and none are paired: those that
    chance does not explain are counted as ``undecided``, and the result is not ``certain`` if there may be
    many, the number found being E and three times its standard deviation or more.
    """
    if np.array_equal(a.outcome, b.outcome):
        return Shared(np.column_stack([np.arange(len(a))] * 2), in_order=True)
    comparable = a.covariates is not None and b.covariates is not None and a.n_columns == b.n_columns
    key_a, key_b = (a.together, b.together) if comparable else (a.outcome, b.outcome)
    _, number = np.unique(np.concatenate([key_a, key_b]), return_inverse=True)
    number = number.reshape(-1)
    of_a, of_b = number[: len(key_a)], number[len(key_a) :]
    count_a, count_b = (np.bincount(x, minlength=number.max() + 1).astype(np.float64) for x in (of_a, of_b))
    equal = float(count_a @ count_b)
    if not equal:
        return Shared(NO_PAIRS)
    expected = len(of_a) * len(of_b) * (_repeated(count_a) + _repeated(count_b)) / 2
    if expected <= CHANCE * equal or _within(count_a, count_b) or _within(count_b, count_a):
        return Shared(_pairs(of_a, of_b))
    excess, noise = equal - expected, np.sqrt(expected)
    certain = bool(excess + 3 * noise <= HIDDEN * min(len(a), len(b)))
    return Shared(NO_PAIRS, certain=certain, undecided=int(excess) if excess > 5 * noise else 0)


def copied_subjects(keys: SubjectKeys, event: np.ndarray) -> np.ndarray | None:
    r"""Count how often every distinct subject occurs, where some were copied; None where chance explains it.

    By chance a subject that occurs occurs an even number of times, or a multiple of another number, with a
    probability below one half, so that 20 distinct ones who all do were copied. Where some were, subjects
    with an event tell: they have equal times by chance whether their covariates are equal or not, so that
    :math:`P_xP_y` of their pairs are equal in both. Subjects without one do not: covariates such as the
    calendar year may determine how long they are followed.
    """
    count = np.unique(keys.together, return_counts=True)[1]
    if len(count) >= COPIES and np.gcd.reduce(count) > 1:
        return count
    if keys.covariates is None or event.sum() < COPIES:
        return None
    parts = (keys.together, keys.covariates, keys.outcome)
    both, x, y = (np.unique(part[event], return_counts=True)[1] for part in parts)
    share, ratio = FREQUENT
    copied = 1 - len(both) / both.sum() >= share and _repeated(both) >= ratio * _repeated(x) * _repeated(y)
    return count if copied else None


def _within(few: np.ndarray, many: np.ndarray) -> bool:
    """Whether one sample is within the other, and not by chance; both are counts of each distinct subject."""
    from scipy.special import betainc

    if not (few <= many).all():
        return False
    both = few + many
    half = np.floor(both / 2)
    chance = betainc(both - half, half + 1, many.sum() / both.sum())  # of at most half of them
    return bool(np.log(chance).sum() <= np.log(IMPOSSIBLE))


def _repeated(count: np.ndarray) -> float:
    """Probability that two subjects of one sample are equal."""
    n = count.sum()
    return float(count @ (count - 1) / (n * (n - 1))) if n > 1 else 0.0


def _pairs(of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """One-to-one pairs of equal subjects; which of several equal ones makes no difference."""
    rank_a, rank_b = _rank_within(of_a), _rank_within(of_b)
    size = int(max(rank_a.max(), rank_b.max())) + 1
    _, i, j = np.intersect1d(of_a * size + rank_a, of_b * size + rank_b, return_indices=True)
    order = np.argsort(i)
    return np.column_stack([i[order], j[order]])


def _rank_within(number: np.ndarray) -> np.ndarray:
    """0, 1, ... for the subjects of each number, in order."""
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    rank = np.empty(len(number), dtype=np.intp)
    rank[order] = np.arange(len(number)) - np.searchsorted(ordered, ordered)
    return rank


def _columns(X: Any) -> list[np.ndarray]:
    if X is None:
        return []
    if hasattr(X, "columns"):
        return [column.to_numpy() for _, column in columns_of(X)]
    array = X.toarray() if hasattr(X, "toarray") else to_numpy(X, "X")
    return list(np.asarray(array).reshape(len(array), -1).T)
