"""A small network that learns rewards from features of prefixes; all it holds is tensors, so that a checkpoint can."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, silu

MIN_FEATURE_DEVIATION = 0.1
"""Smallest deviation that a feature is divided by; features are of order one."""


@dataclass
class ValueNetwork:
    """Weights of a network with two hidden layers, and the scale of its features.

    Attributes:
        center: Mean of each feature, shape ``(F,)``.
        scale: Deviation of each feature, shape ``(F,)``.
        weights: Weight and bias of each of three layers in turn.
        moments: State of the optimizer; empty before the first step.

    """

    center: Tensor
    scale: Tensor
    weights: list[Tensor]
    moments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def for_features(cls, features: Tensor, width: int, outputs: int, noise: torch.Generator) -> "ValueNetwork":
        """Return a network with random weights.

        Args:
            features: Features whose mean and deviation are taken, shape ``(N, F)``.
            width: Units of each hidden layer.
            outputs: Units of the last layer.
            noise: Source of the weights, on the CPU.

        """
        weights = []
        for inputs, units in ((features.shape[1], width), (width, width), (width, outputs)):
            reach = inputs**-0.5
            for shape in ((units, inputs), (units,)):
                weights.append((reach * (2 * torch.rand(shape, generator=noise) - 1)).to(features.device))
        return cls(features.mean(0), features.std(0, correction=0).clamp(min=MIN_FEATURE_DEVIATION), weights)

    def outputs(self, features: Tensor, weights: Sequence[Tensor] | None = None) -> Tensor:
        """Return the outputs for features, shapes ``(N, K)`` and ``(N, F)``; of other weights if given."""
        layers = list(weights or self.weights)
        values = (features - self.center) / self.scale
        for layer in range(0, len(layers), 2):
            values = linear(silu(values) if layer else values, layers[layer], layers[layer + 1])
        return values

    def improve(
        self,
        features: Tensor,
        targets: Tensor,
        steps: int,
        batch: int,
        rate: float,
        decay: float,
        noise: torch.Generator,
    ) -> Tensor:
        """Take some steps of AdamW on the cross-entropy; rebinds weights and moments, so that copies stay.

        Args:
            features: Features, shape ``(N, F)``.
            targets: Share of each bin, shape ``(N, K)``.
            steps: Number of steps.
            batch: Rows drawn for each, with replacement.
            rate: Learning rate.
            decay: Weight decay.
            noise: Source of the draws, on the CPU.

        Returns:
            Loss of the last step.

        """
        weights = [weight.clone().requires_grad_() for weight in self.weights]
        optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=decay)
        if self.moments:
            optimizer.load_state_dict(copy.deepcopy(self.moments))  # which it would change in place
        loss = features.new_zeros(())
        with torch.enable_grad():
            for _ in range(steps):
                indices = torch.randint(len(features), (batch,), generator=noise).to(features.device)
                loss = cross_entropy(self.outputs(features[indices], weights), targets[indices])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self.weights = [weight.detach() for weight in weights]
        self.moments = optimizer.state_dict()
        return loss.detach()
