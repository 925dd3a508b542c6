"""The frozen weights of a policy in parts, one in each process; adapter, embeddings and head stay whole."""

from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rlcredit.policy.policy import Policy


def shard_frozen_weights(policy: Policy, mesh: DeviceMesh) -> None:
    """Keep one part of every decoder layer in this process; a layer is gathered while it computes, then dropped.

    From here on every forward and backward pass is an exchange between all processes: each must make as many.

    Args:
        policy: Policy, loaded, its weights on the CPU or on the device of the mesh. Layers move to that device one by
            one, so that it never holds the whole model.
        mesh: All processes, in one dimension.

    Raises:
        ValueError: the model has no list of layers.

    """
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    transformer = policy.lm.get_base_model().base_model
    for layer in find_decoder_layers(transformer):
        adapter = {weight for weight in layer.parameters() if weight.requires_grad}
        fully_shard(layer, mesh=mesh, reshard_after_forward=True, ignored_params=adapter)
        layer.register_forward_hook(_drop_other_parts)
    # The root gathers nothing of its own; it has the layers of one pass know of each other.
    fully_shard(transformer, mesh=mesh, ignored_params=set(transformer.parameters()))
    policy.is_sharded = True


def _drop_other_parts(layer: nn.Module, inputs: Any, output: Any) -> None:
    """Keep one part after a forward pass, also inside a backward pass, where torch keeps the whole layer.

    Micro-batches are read again there, and all layers would be whole at one time.
    """
    layer.reshard()  # pyright: ignore[reportCallIssue]


def find_decoder_layers(transformer: nn.Module) -> list[nn.Module]:
    """Return the decoder layers of a transformer: the modules of its longest list.

    Raises:
        ValueError: it has no list of modules.

    """
    lists = [module for module in transformer.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        raise ValueError(
            f"trainer.strategy: sharded_base found no list of layers in {type(transformer).__name__}. Use ddp."
        )
    return list(max(lists, key=lambda layers: sum(weight.numel() for weight in layers.parameters())))
