"""Training of small networks to convergence: L-BFGS on the loss of all subjects, in double precision."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import Data, blocks
from censcore.learning.training.checkpoints import Checkpoint, digests
from censcore.learning.training.cuda_graphs import fits_on_device
from censcore.learning.training.task import Callback, Epoch, History, Task
from censcore.progress import ProgressBar

_CHECKPOINT = "full-batch checkpoint"
_TOLERANCE = 1e-6  # of the largest component of the gradient of a mean loss, in standardised covariates
_NUMBERS_AT_ONCE = 2**24  # of covariates, on a GPU


class FullBatch:
    r"""The search for the smallest mean loss of ``task.network``, for a task without random numbers.

    .. math:: \frac{\sum_i w_i\,\ell_i(\theta)}{\sum_i w_i}+\frac{\rho}{2}\|W\|^2,

    by L-BFGS-B [1]_, with the penalty :math:`\rho` on the weights that decay. The weights of the first layer
    are searched in the directions of uncorrelated covariates. Ends when no component of the gradient exceeds
    1e-6, apart from parameters that a bound holds back.

    Parameters
    ----------
    penalty : float
        rho.
    bounds : array, (number of parameters, 2), optional
        Smallest and largest value of every parameter, in their order.
    task, rows, validation, device
        As of :func:`~censcore.learning.train`; validation data decide nothing.

    References
    ----------
    .. [1] R. H. Byrd, P. Lu, J. Nocedal and C. Zhu (1995). A limited memory algorithm for bound constrained
       optimization. SIAM Journal on Scientific Computing 16, 1190-1208.
    """

    def __init__(
        self,
        task: Task,
        rows: Data,
        validation: Data | None,
        penalty: float,
        device: torch.device,
        bounds: np.ndarray | None = None,
    ) -> None:
        self.task, self.penalty, self.device = task, penalty, device
        task.network.to(device).double()
        self.parameters = list(task.network.parameters())
        spared = {id(p) for p in getattr(task.network, "undecayed", list)()}
        self.decayed = [id(p) not in spared for p in self.parameters]
        self.rows, self.validation = rows, validation
        if device.type == "cuda" and fits_on_device(rows, device):
            self.rows = {name: value.to(device) for name, value in rows.items()}
        self.total = float(sum(self._weight(part).sum() for part in self._parts(self.rows)))
        self.bounds = bounds
        self.unmixing = self._unmixing()
        inputs = [tuple(p.shape[1:]) for p in self.parameters]
        self.first = inputs.index((len(self.unmixing),))  # the weight of the layer that sees the covariates
        self.best, self.gradient, self.loss = self.start(), np.zeros(0), np.inf
        self.history = History(converged=False)

    def train(
        self,
        max_iter: int,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> History:
        """Minimise the loss in place; the loss by iteration, ``converged`` and ``gradient_norm``.

        ``max_iter`` are the most iterations; a warning is issued where they do not suffice. A search that is
        resumed begins at the parameters of its last iteration.
        """
        file = None if checkpoint is None else Checkpoint(checkpoint, _CHECKPOINT, self._identity)
        if file is not None and file.path.exists():
            with file.state() as (tensors, _):
                self.place(tensors["phi"].numpy())
        with ProgressBar("L-BFGS", max_iter, 0, progress) as bar:

            def after(_: np.ndarray) -> None:
                epoch = self.record()
                bar.advance(f"loss {epoch.train_loss:.6f}")
                if file is not None:
                    file.save({"phi": torch.from_numpy(self.best)}, {})
                if sum(callback(epoch, self.task.network) is True for callback in callbacks):
                    raise StopIteration

            options = {
                "maxiter": max_iter,
                "maxfun": 10 * max_iter,
                "gtol": _TOLERANCE,
                "ftol": 0.0,
                "maxcor": 50,
            }
            try:
                minimize(
                    self,
                    self.start(),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=self.bounds,
                    callback=after,
                    options=options,
                )
            except KeyboardInterrupt:
                self.history.interrupted = True
        return self.finish()

    def _parts(self, rows: Data) -> Any:
        """Consecutive subjects on the device, in double precision."""
        options = {"at_once": _NUMBERS_AT_ONCE} if self.device.type == "cuda" else {}
        for rows_of_part in blocks(*rows["x"].shape, **options):
            part = {name: value[rows_of_part].to(self.device) for name, value in rows.items()}
            yield {n: v.double() if v.is_floating_point() else v for n, v in part.items()}

    def _weight(self, part: dict[str, Tensor]) -> Tensor:
        return part.get("weight", torch.ones(len(part["x"]), device=self.device, dtype=torch.float64))

    def _unmixing(self) -> Tensor:
        """The symmetric square root of the inverse covariance of the inputs, (d, d)."""
        moment = sum(part["x"].T @ part["x"] for part in self._parts(self.rows)) / len(self.rows["x"])
        values, vectors = torch.linalg.eigh(moment)
        floor = 1e-6 * values.max().clamp(min=1e-300)
        return (vectors / values.clamp(min=float(floor)).sqrt()) @ vectors.T

    def start(self) -> np.ndarray:
        """The parameters as one vector."""
        mixing = torch.linalg.inv(self.unmixing)
        values = [
            p.detach() @ mixing if i == self.first else p.detach() for i, p in enumerate(self.parameters)
        ]
        return np.concatenate([value.cpu().numpy().ravel() for value in values])

    @torch.no_grad()
    def place(self, phi: np.ndarray) -> None:
        """Give the network the parameters of the vector ``phi``."""
        theta = np.asarray(phi, dtype=np.float64)
        values = torch.from_numpy(theta).to(self.device).split([p.numel() for p in self.parameters])
        for i, (parameter, value) in enumerate(zip(self.parameters, values, strict=True)):
            value = value.reshape(parameter.shape)
            parameter.copy_(value @ self.unmixing if i == self.first else value)

    def __call__(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """The penalised mean loss and its gradient."""
        self.place(phi)
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        total = torch.zeros((), device=self.device, dtype=torch.float64)
        for part in self._parts(self.rows):
            summed = (self.task.loss(self.task.network, part, {}) * self._weight(part)).sum()
            summed.backward()
            total += summed.detach()
        loss, gradient = self._penalised(total)
        if not np.isfinite(loss):
            return np.inf, np.zeros_like(gradient)
        if loss <= self.loss:
            self.best, self.loss, self.gradient = phi.copy(), loss, gradient
        return loss, gradient

    @torch.no_grad()
    def _penalised(self, total: Tensor) -> tuple[float, np.ndarray]:
        """The mean loss and its gradient, with the penalty, from the sum of the losses."""
        loss, gradients = total / self.total, []
        for i, parameter in enumerate(self.parameters):
            assert parameter.grad is not None
            decay = self.penalty * self.decayed[i]
            loss = loss + 0.5 * decay * (parameter**2).sum()
            gradient = parameter.grad / self.total + decay * parameter
            gradients.append(gradient @ self.unmixing if i == self.first else gradient)
        return float(loss), torch.cat([g.ravel() for g in gradients]).cpu().numpy()

    def record(self) -> Epoch:
        """One more iteration in the history."""
        number = len(self.history.epochs)
        epoch = Epoch(number, self.loss, None, 1.0, True)
        self.history.epochs.append(epoch)
        self.history.best_epoch = self.history.kept_epoch = number
        return epoch

    def finish(self) -> History:
        """Keep the best point, in single precision as all networks, and say how good it is."""
        if not np.isfinite(self.loss):
            raise InvalidInputError(
                "The likelihood is not finite at the start. Look for extreme values among the covariates and "
                "times."
            )
        self.place(self.best)
        if not self.history.epochs:
            self.record()
        self.history.gradient_norm = float(np.abs(self._free_gradient()).max())
        self.history.converged = self.history.gradient_norm <= 10 * _TOLERANCE
        self._validate()
        self.task.network.float().eval()
        if not (self.history.converged or self.history.interrupted):
            self._warn()
        return self.history

    def _free_gradient(self) -> np.ndarray:
        """The gradient at the best point, without what only a bound prevents from being followed."""
        if self.bounds is None:
            return self.gradient
        low, high = self.bounds.T
        held = ((self.best <= low) & (self.gradient > 0)) | ((self.best >= high) & (self.gradient < 0))
        return np.where(held, 0.0, self.gradient)

    @torch.no_grad()
    def _validate(self) -> None:
        """The loss on validation data at the end, beside the last iteration."""
        if self.validation is None:
            return
        total = weight = 0.0
        for part in self._parts(self.validation):
            w = self._weight(part)
            total += float((self.task.loss(self.task.network, part, {}) * w).sum())
            weight += float(w.sum())
        last = self.history.epochs[-1]
        self.history.epochs[-1] = Epoch(last.epoch, last.train_loss, total / weight, 1.0, True)

    def _warn(self) -> None:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"L-BFGS stopped after {len(self.history.epochs)} iterations with a gradient of "
            f"{self.history.gradient_norm:.2g}, expected {_TOLERANCE:g}: the likelihood is not maximised. "
            "Raise max_iter, add weight_decay, or look for covariates that separate the subjects.",
            ConvergenceWarning,
            stacklevel=5,
        )

    @property
    def _identity(self) -> dict[str, Any]:
        """What must be equal for a search to be continued."""
        return {"total": self.total, "data": digests(self.rows), "size": len(self.start())}
