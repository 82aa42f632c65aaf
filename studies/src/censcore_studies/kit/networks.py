"""Settings of networks that several studies share."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from censcore.learning.engression import CensoredEngression

__all__ = ["ONE_NETWORK", "engression", "likelihood_model"]

#: The method of the paper: one network, and all covariates alike.
ONE_NETWORK: dict[str, Any] = {"n_networks": 1, "sparsity": 0.0}


def engression(**settings: Any) -> CensoredEngression:
    """Censored engression with settings by their names, whether of the estimator, the network or training.

    >>> engression(width=8, learning_rate=0.01, epochs=3).network.width
    8
    """
    from censcore.learning import Network, Training
    from censcore.learning.engression import CensoredEngression

    network, training = Network(**_taken(Network, settings)), Training(**_taken(Training, settings))
    return CensoredEngression(network=network, training=training, **settings)


def likelihood_model(kind: Any, *args: Any, **settings: Any) -> Any:
    """A likelihood model with settings by their names, whether of the estimator or of its training."""
    training = replace(kind.default_training, **_taken(kind.default_training, settings))
    return kind(*args, training=training, **settings)


def _taken(make: Any, settings: dict[str, Any]) -> dict[str, Any]:
    return {part.name: settings.pop(part.name) for part in fields(make) if part.name in settings}
