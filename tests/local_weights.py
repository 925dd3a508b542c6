"""The weights that a process holds of a module whose layers may lie in parts."""

from torch import nn
from torch.distributed.tensor import DTensor


def count_local_weights(module: nn.Module) -> int:
    """Return the number of weights that this process holds."""
    return sum((weight.to_local() if isinstance(weight, DTensor) else weight).numel() for weight in module.parameters())
