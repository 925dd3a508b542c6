"""Operations of a token: what a device would launch, counted on the processor."""

from collections import Counter

import torch
from model_shapes import MODEL_SHAPES, make_random_model
from torch.utils._python_dispatch import TorchDispatchMode

from rlcredit.decoding import fused_forward
from rlcredit.decoding.decoding_loop import TokenSampler
from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.policy.policy import LoRA, Policy, add_lora_adapter

FREE_OPERATIONS = {"aten::detach", "aten::alias", "aten::_unsafe_view", "aten::empty", "aten::new_empty"}
"""Operations without a kernel, beside the views."""


class OperationCount(TorchDispatchMode):
    """Counts operations by name; a norm is one, as it is on a GPU, whatever the processor makes of it."""

    def __init__(self):
        super().__init__()
        self.names, self.is_paused = Counter(), False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation._schema.name
        if not (self.is_paused or operation.is_view or name in FREE_OPERATIONS):
            self.names[name.removeprefix("aten::")] += 1
        return operation(*args, **(kwargs or {}))

    def rms_norm(self, *args):
        self.names["rms_norm"] += 1
        self.is_paused = True
        norm = torch.nn.functional.rms_norm(*args)
        self.is_paused = False
        return norm


def make_cut_policy(shape, monkeypatch, layers):
    """Return a policy of a published shape in bfloat16, with few layers and words, and a random adapter."""
    monkeypatch.setitem(MODEL_SHAPES, shape, {**MODEL_SHAPES[shape], "vocab_size": 512, "num_hidden_layers": layers})
    policy = Policy(dtype="bfloat16")
    policy.lm = add_lora_adapter(make_random_model(shape, torch.device("cpu")), LoRA(64))
    for name, weight in policy.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(std=0.02)
    return policy


def count_token(shape, monkeypatch, autocast, layers=2):
    """Return the operations of a token, and those of its draw."""
    policy = make_cut_policy(shape, monkeypatch, layers)
    rows, ids = torch.arange(16) % 2, torch.randint(3, 500, (2, 16), generator=torch.Generator().manual_seed(0))
    counts = OperationCount(), OperationCount()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        reader, draw = FusedForward(policy), TokenSampler(policy.head, 0.7, torch.tensor([2]))
        states = reader.read_contexts(ids, rows, 8)
        monkeypatch.setattr(fused_forward, "rms_norm", counts[0].rms_norm)
        with torch.autocast("cpu", enabled=False), counts[0]:
            reader.read_token(ids[rows, 0], reader.bias[..., :17], torch.tensor([16]))
        with counts[1]:
            draw(states, torch.rand(16, dtype=torch.float64))
    return [count.names for count in counts]
