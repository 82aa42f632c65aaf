"""Censored engression as an estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator

from censcore._arrays import ArrayLike, Covariates
from censcore._validation import as_count, check_flag, check_kind, is_auto
from censcore.distributions import Distribution
from censcore.estimators.covariates import check_weights
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES
from censcore.estimators.tails import end_of_follow_up
from censcore.exceptions import InvalidInputError
from censcore.learning.data.checks import as_past, check_mask, check_order, warn_of_ties
from censcore.learning.data.standardised import Data, Fold, Subjects
from censcore.learning.engression.loss import TimeScale, is_worse
from censcore.learning.engression.sampling import FittedGenerators
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.settings import Network, Training
from censcore.learning.training.devices import pick_device
from censcore.learning.training.side_by_side import stacked
from censcore.learning.training.task import Callback, History
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks, as_followed

# Up to so many subjects "auto" is five generators, each validated on another fifth; up to so many one, which
# is trained again on all subjects.
_FEW, _SOME, _FOLDS = 1_000, 4_000, 5
_MOST_NETWORKS = 1000

_log = logging.getLogger("censcore")


@dataclass(kw_only=True, eq=False, repr=False)
class CensoredEngression(FittedGenerators):
    r"""Joint distribution of several event times given covariates, learned from right-censored data.

    A generator :math:`g_\theta(x,\varepsilon)` with random input :math:`\varepsilon` (engression [1]_) is
    trained by the censored energy score: its samples are censored the way the data were, at draws of C that
    each observation allows, and compared with the censored outcome. The expected loss is minimised by the
    true distribution of T given x as far as follow-up reaches. Beyond it, where P(C >= t | x) = 0, the data
    carry no information and the generator extrapolates. Assumes that C is independent of T given x.

    Parameters
    ----------
    ordered : bool
        The event times of a subject come in the order of the coordinates, :math:`T_1\le\dots\le T_k` (first
        and second infection); every draw fulfils it. Events that a terminal one prevents (recurrence and
        death) need no setting: pass the outcome as :class:`~censcore.SemiCompetingRisks`. Neither do the
        causes of a :class:`~censcore.CompetingRisks` outcome, see Notes.
    n_networks : int or "auto"
        Generators trained from different seeds, whose samples are pooled; :meth:`by_network` shows how far
        they disagree. Each is validated on another part of the subjects. ``"auto"`` is 5 up to 1,000
        subjects. Otherwise it is 1; up to 4,000 subjects that one is trained again on all of them, by as many
        steps as before (with ``patience``, as were kept by validation); if it then forecasts those who were
        held out worse than before, the first is kept.
    epochs : int
        Most epochs.
    patience : int or None
        Epochs without a better validation loss before training stops.
    n_samples : int
        Samples per subject in predictions, unless a method is given another number.
    random_state : int, RandomState or None
        Everything random follows from it; on a CPU the same seed gives the same model to the last bit, with
        the same version of torch and the same number of threads.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
    progress : bool, optional
        Show a progress bar; by default in terminals and notebooks, where training takes over two seconds.
    checkpoint : path, optional
        File for the state of training after every epoch; training continues from it if it exists.
    network : Network, optional
        Size and shape of the generator, see :class:`~censcore.learning.Network`.
    training : Training, optional
        Loss, optimiser and precision, see :class:`~censcore.learning.Training`.

    Attributes
    ----------
    history_ : History
        Losses by epoch, as a frame and a plot (of the first generator).
    censoring_ : Distribution
        The censoring distribution that training used.
    censoring_choice_ : str
        Where that distribution came from, in words.
    histories_ : list of History
        Losses of every generator.
    follow_up_ : float or array, (k,)
        The end of follow-up: quantiles and means beyond it are returned as infinite, unless a tail is named.
    k_ : int
        Number of event times.

    Notes
    -----
    Competing risks: fitted to a :class:`~censcore.CompetingRisks` outcome, the generator draws a time and a
    cause. Its loss is the energy score of :math:`(\min(T_1,C),\dots,\min(T_m,C))` with :math:`T_j=T` for the
    cause of the event and infinity for the others, at draws of C given the observation: :math:`C\ge y`
    after an event, of whatever cause. The energy score is strictly proper, and given :math:`C=c` these
    times determine time and cause up to c; so the expected loss is minimised by the cumulative incidences
    as far as follow-up reaches. ``predict_distribution`` gives a :class:`~censcore.CauseEnsemble`.

    See Also
    --------
    censcore.BestForecast : The generator and other models in one stack, for the best forecast.
    censcore.energy_score : The loss, as a score.
    CopulaWeibull, JointGridModel : Joint models that are trained by the censored log score.

    References
    ----------
    .. [1] X. Shen and N. Meinshausen (2024). Engression: extrapolation through the lens of distributional
       regression. Journal of the Royal Statistical Society, Series B.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> scenario = LogNormalScenario(k=2, censoring="uniform")
    >>> data = scenario.sample(400, seed=0)
    >>> model = cs.CensoredEngression(epochs=3, random_state=0)
    >>> model = model.fit(data.X, data.y, censoring=scenario.censoring_distribution(data.X))
    >>> model.predict_distribution(data.X[:5], n_samples=100)
    Ensemble(shape=(5, 2), m=100)
    """

    _kind: ClassVar[str] = "CensoredEngression"
    _takes_causes: ClassVar[bool] = True
    _eval_parts: ClassVar[tuple[str, ...]] = ("X", "y", "censoring", "mask")

    ordered: bool = False
    n_networks: int | str = "auto"
    epochs: int = 80
    patience: int | None = None
    n_samples: int = 1024
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"
    progress: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None
    network: Network | None = None
    training: Training | None = None

    # ---- training ------------------------------------------------------------------------------

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        censoring: Distribution | BaseEstimator | str | None = None,
        eval_set: tuple[Any, ...] | None = None,
        groups: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train the generator.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, CompetingRisks, SemiCompetingRisks, structured array or frame
            The outcome, (n,) or (n, k).
        sample_weight : array, (n,), optional
            Weights of the subjects.
        censoring : Distribution, estimator or "auto", optional
            The censoring distribution: given, or an estimator that is fitted to the flipped outcome, apart
            from the generator. Without it, it is what is known (no censoring, or ``y.censoring_time``), and
            otherwise a pooled Kaplan-Meier estimate. ``"auto"`` chooses between that and a penalised Cox
            regression by a test of the covariates. A pooled estimate warns where the covariates predict
            censoring, by the test of :func:`~censcore.censoring_diagnostic`; ``censoring_choice_`` says what
            was used.
        eval_set : (X, y), (X, y, censoring) or (X, y, censoring, mask), optional
            Validation data; otherwise ``validation_fraction`` of the subjects is held out.
        groups : array, (n,), optional
            Subjects of one group (visits of a patient) never share a minibatch, and the validation split
            does not separate them.
        mask : array of bool, (n, k), optional
            False where an event time does not count: it is already past, or was not looked for. Whatever
            is in its place plays no part.
        callbacks : sequence of callables
            Called after every epoch with ``(epoch, network)``; True stops the training.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, censoring, groups, mask, eval_set, callbacks)
        return self

    def cross_fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        sample_weight: ArrayLike | None = None,
        *,
        censoring: Distribution | BaseEstimator | str | None = None,
        groups: ArrayLike | None = None,
    ) -> list[tuple[Self, ...]]:
        """Train one network for every fold, and pool them; for use by :class:`~censcore.Stacking`.

        One fold alone is held out as in :meth:`fit`, which has the parameters ``censoring`` and ``groups``.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        folds : sequence of (array of int, array of int)
            Training and held-out subjects.

        Returns
        -------
        list of tuples of estimators
            For every fold the model of it alone, which has not seen the held-out subjects, and those that it
            is pooled or averaged with, if any.
        """
        self._fit(X, y, sample_weight, censoring, groups, folds=folds)
        if any(history.interrupted for history in self.histories_):
            raise KeyboardInterrupt
        models = [self._with(network) for network in self._fold_networks[: len(folds)]]
        if len(models) == 1:
            return [(models[0],)]
        return [(model, models[(i + 1) % len(models)]) for i, model in enumerate(models)]

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        censoring: Any,
        groups: Any,
        mask: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        callbacks: Sequence[Callback] = (),
        folds: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self._check_settings()
        matrix, outcome, labels = self._in_memory(X, y, groups, mask)
        counts = check_mask(mask, outcome)
        outcome = as_past(outcome, counts)
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        self._learn_units(X, outcome, counts, labels, censoring, weight)
        self._fit_scaling(matrix)
        everything = self._tensors(
            self._standardised(matrix), self._as_seen(outcome), self.censoring_, counts, sample_weight
        )
        others = None if eval_set is None else Subjects(self._eval_rows(eval_set))
        self._fit_generators(self._folds(everything, others, labels, folds), callbacks)

    def _folds(
        self,
        everything: Data,
        others: Subjects | None,
        groups: np.ndarray | None,
        folds: Sequence[tuple[np.ndarray, np.ndarray]] | None,
    ) -> list[Fold]:
        """The subjects of every generator, and those that validate it."""
        n, automatic = len(everything["x"]), self.n_networks == "auto"
        everybody = Fold.of(everything, held_out=others, groups=groups)

        def fold(rows: np.ndarray | slice, held_out: np.ndarray | None) -> Fold:
            return Fold.of(everything, rows, held_out, groups)

        if folds is not None:
            return [fold(*rows) for rows in folds] + ([everybody] if len(folds) == 1 and n <= _SOME else [])
        if others is not None or self._held_out_share == 0:
            return [everybody] * (1 if automatic else int(self.n_networks))
        if automatic and _FEW < n <= _SOME:
            return [fold(*self._split(n, groups, False)), everybody]
        count = (_FOLDS if n <= _FEW else 1) if automatic else int(self.n_networks)
        return [fold(*self._split(n, groups, False, i)) for i in range(count)]

    def _check_settings(self) -> None:
        check_kind(self._shape, "network", Network, "Network(width=..., ...)")
        self._shape.check()
        self._training.check()
        check_flag(self.ordered, "ordered")
        as_count(self._training.samples, "samples", least=2, most=MOST_SAMPLES)
        as_count(self.n_samples, "n_samples", most=MOST_SAMPLES)
        if not is_auto(self.n_networks):
            as_count(self.n_networks, "n_networks", most=_MOST_NETWORKS)

    def _learn_units(
        self, X: Any, y: Any, mask: Any, groups: Any, censoring: Any, weight: np.ndarray | None = None
    ) -> None:
        """Learn the censoring distribution, the end of follow-up and the unit of time."""
        if isinstance(y, RightCensored) and not self.ordered:
            warn_of_ties(y, mask)
        chosen = TrainingCensoring.choose(
            self._training.objective, X, as_followed(y), censoring, groups, weight
        )
        assert chosen.distribution is not None  # only a model read from a file has none
        self._training_censoring = chosen
        _log.info("censoring distribution for censored engression: %s", chosen.words)
        self._follow_up = end_of_follow_up(y, chosen.distribution)
        self._times = TimeScale.of(self._as_seen(y), self._training.transform(self._structure))

    # ---- outcomes ------------------------------------------------------------------------------

    def _check_outcome(self, y: Any, mask: Any = None) -> Any:
        outcome = super()._check_outcome(y, mask)
        if isinstance(outcome, RightCensored):
            if self.ordered:
                check_order(outcome, check_mask(mask, outcome))
            return outcome
        objective, transform = self._training.objective, self._training.time_transform
        if objective == "naive" or self.ordered or transform not in ("auto", "bounded"):
            raise InvalidInputError(
                f"{type(y).__name__} needs objective 'censored' or 'latent', ordered=False and "
                "time_transform 'auto' or 'bounded', where an event that never happens is an ordinary point; "
                f"got {objective!r}, {self.ordered} and {transform!r}."
            )
        return outcome

    # ---- generators ----------------------------------------------------------------------------

    def _fit_generators(self, folds: Sequence[Fold], callbacks: Sequence[Callback]) -> None:
        """Train a generator on every fold, side by side where they share data in memory."""
        held_out = folds[0].validation
        again = len(folds) > 1 and held_out is not None and folds[-1].validation is None
        device = pick_device(self.device)
        self._networks = self._new_networks(self._seeds(len(folds)))
        # on a GPU, recorded steps of one network after the other are faster
        if device.type == "cpu" and not again and len(folds) > 1:
            sparsity = torch.tensor([self._penalty(fold.training) for fold in folds])
            stack: Any = stacked(self._networks)
            recipe = self._recipe(min(fold.training.n for fold in folds))
            task = self._task(stack, device, sparsity)
            self.histories_ = self._train(task, self._networks, folds, recipe, callbacks)
        else:
            self.histories_ = self._train_in_turn(folds, device, callbacks, again)
            self._networks = self._networks[: len(self.histories_)]
        self._fold_networks = self._networks  # before one that failed is left out
        if again and held_out is not None and len(self._networks) > 1:
            first, whole = (self._task(network, device) for network in self._networks)
            failed = is_worse(whole, first, held_out, self._seed)
            self._networks = self._networks[:1] if failed else self._networks[1:]
            if failed:
                _log.info("censored engression: the generator trained on four fifths of the subjects is kept")
        self.history_ = self.histories_[0]

    def _train_in_turn(
        self, folds: Sequence[Fold], device: torch.device, callbacks: Sequence[Callback], again: bool
    ) -> list[History]:
        """One after the other; the last one again on all subjects, by as many steps as the first took."""
        histories: list[History] = []
        seeds = self._seeds(len(folds))
        for i, (fold, network, seed) in enumerate(zip(folds, self._networks, seeds, strict=True)):
            recipe, own = self._recipe(fold.training.n), dict[str, Any](seeds=[seed])
            if self.checkpoint is not None and i:
                own["checkpoint"] = Path(f"{self.checkpoint}.{i}")
            if again and i:
                epochs = self.epochs if self.patience is None else histories[0].kept_epoch + 1
                recipe = replace(recipe, epochs=max(1, round(epochs * folds[0].training.n / fold.training.n)))
            task = self._task(network, device, self._penalty(fold.training))
            histories += self._train(task, [network], [fold], recipe, callbacks, **own)
            if histories[-1].interrupted:
                break
        return histories
