"""The strategy ``sharded_base``: each process holds a part of the frozen weights, and the whole adapter."""

import torch
import torch.distributed as dist
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy, StrategyRegistry
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.policy.policy import Policy
from rlcredit.policy.sharding import shard_frozen_weights
from rlcredit.training.nan_and_mismatch import trainable_weights

SHARDED_BASE = "sharded_base"


class ShardedBaseStrategy(DDPStrategy):
    """Train as ``ddp`` does where one process cannot hold the model.

    Decoder layers lie in parts and are gathered one at a time while they compute. The adapter, and with it optimizer,
    gradient, checks, probes and checkpoints, is whole in every process; its gradient is averaged once a step.
    """

    strategy_name = SHARDED_BASE

    def setup(self, trainer: Trainer) -> None:
        """Cut the frozen weights into parts, and set up the optimizer."""
        assert self.accelerator is not None
        assert self.model is not None
        self.accelerator.setup(trainer)
        self.precision_plugin.convert_module(self.model)
        self.model_to_device()
        if trainer.state.fn == TrainerFn.FITTING:
            self.setup_optimizers(trainer)
        self.setup_precision_plugin()

    def model_to_device(self) -> None:
        """Move layer by layer what this process keeps, then whatever is whole; the adapter is that of the first."""
        assert self.model is not None
        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        for policy in [module for module in self.model.modules() if isinstance(module, Policy)]:
            if not policy.is_sharded:
                shard_frozen_weights(policy, mesh)
        self.model.to(self.root_device)
        for weight in trainable_weights(self.model).values():
            dist.broadcast(weight.data, src=0)

    def post_backward(self, closure_loss: Tensor) -> None:
        """Average the gradient of the adapter over all processes, in one exchange."""
        assert self.model is not None
        gradients = list[Tensor]()
        for weight in trainable_weights(self.model).values():
            if weight.grad is None:  # where other processes may have one
                weight.grad = torch.zeros_like(weight)
            gradients.append(weight.grad)
        vector_to_parameters(sum_over_processes(parameters_to_vector(gradients) / self.world_size), gradients)


StrategyRegistry.register(
    SHARDED_BASE,
    ShardedBaseStrategy,
    description="DDP whose frozen weights lie in parts, adapters whole",
    override=True,
)
