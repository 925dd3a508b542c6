"""Operations of a token: what a device would launch, counted on the processor."""

from collections import Counter

import pytest
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


def count_token(shape, monkeypatch, autocast, layers):
    """Return the operations of a token, and those of its draw."""
    policy = make_cut_policy(shape, monkeypatch, layers)
    rows, ids = torch.arange(16) % 2, torch.randint(3, 500, (2, 16), generator=torch.Generator().manual_seed(0))
    tokens, noise, forward, sampler = ids[rows, 0], torch.full((16,), 0.5).double(), OperationCount(), OperationCount()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast), monkeypatch.context() as patch:
        reader, draw = FusedForward(policy), TokenSampler(policy.head, 0.7, torch.tensor([2]))
        states = reader.read_contexts(ids, rows, 8)
        patch.setattr(fused_forward, "rms_norm", forward.rms_norm)
        with torch.autocast("cpu", enabled=False), forward:
            reader.read_token(tokens, reader.bias[..., :17], torch.tensor([16]))
        with sampler:
            draw(states, noise)
    return forward.names, sampler.names


@pytest.mark.parametrize(
    ("shape", "autocast", "expected"),
    [("smollm2_135m", True, 19), ("smollm2_135m", False, 35), ("qwen3_4b", True, 21), ("qwen3_4b", False, 37)],
)
def test_a_layer_takes_few_operations_a_token(shape, autocast, expected, monkeypatch):
    (two, _), (one, _) = (count_token(shape, monkeypatch, autocast, layers) for layers in (2, 1))
    # Two norms, and two of queries and keys in qwen3 (with its scale); a product and its adapter's for q, k and v, o,
    # gate and up, and down; rotation 3, cache 1, attention 1, residuals 2, SiLU 1 and its product 1.
    assert two.total() - one.total() == expected
    # Outside the layers: the embedding, the rotations of the places, the last norm.
    assert one.total() - expected == 3
    if autocast:  # as many products again for the adapters, one of them in place
        assert (one["mm"], one["addmm_"]) == (4, 4)


@pytest.mark.parametrize("autocast", [True, False])
def test_a_draw_takes_twenty_operations_none_of_which_rounds_its_factors(autocast, monkeypatch):
    _, sampler = count_token("smollm2_135m", monkeypatch, autocast, 1)
    assert sampler.total() == 19
    assert sampler["_to_copy"] == 1  # logits to float32
