"""Layers in parts: the same hidden states, and how much of the model a process keeps."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.testing import assert_close

from rlcredit.policy.policy import Policy
from rlcredit.policy.sharding import find_decoder_layers, shard_frozen_weights
from rlcredit.training.recomputation import recompute_in_backward
from tests.local_weights import count_local_weights


@pytest.fixture
def alone(tmp_path):
    """A process group of this process."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def load_policy():
    policy = Policy()
    policy.load()
    return policy


def test_the_layers_of_a_model_are_those_of_its_largest_list():
    small = nn.ModuleList([nn.Linear(2, 2)])
    large = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
    assert find_decoder_layers(nn.ModuleDict({"heads": small, "layers": large})) == list(large)
    with pytest.raises(ValueError, match=r"trainer\.strategy: sharded_base found no list of layers in Linear. Use ddp"):
        find_decoder_layers(nn.Linear(2, 2))


@pytest.mark.usefixtures("alone")
def test_a_policy_in_parts_reads_as_a_whole_one_and_its_adapter_stays_whole():
    whole, parts = load_policy(), load_policy()
    shard_frozen_weights(parts, init_device_mesh("cpu", (1,)))
    assert parts.is_sharded
    kinds = {type(weight.data).__name__ for weight in parts.parameters() if weight.requires_grad}
    assert kinds == {"Tensor"}
    layer = find_decoder_layers(parts.lm.get_base_model().base_model)[0]
    frozen = {type(weight.data).__name__ for weight in layer.parameters() if not weight.requires_grad}
    assert frozen == {"DTensor"}
    assert count_local_weights(parts) == count_local_weights(whole) == sum(w.numel() for w in whole.parameters())
    prompts, completions = torch.arange(20, 36).view(2, 8), torch.arange(40, 50).view(2, 5)
    for width in (5, 1):  # one token is predicted by the prompt, and read nevertheless
        ids = completions[:, :width]
        found = [policy.score_prompts(prompts, ids) for policy in (whole, parts)]
        for expected, actual in zip(*found, strict=True):
            assert_close(actual, expected)
        gradients = []
        for policy, scores in zip((whole, parts), found, strict=True):
            weights = [weight for weight in policy.parameters() if weight.requires_grad]
            gradients.append(torch.autograd.grad(scores.logprobs.sum(), weights))
        assert any(part.any() for part in gradients[0])
        for expected, actual in zip(*gradients, strict=True):
            assert_close(actual, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.usefixtures("alone")
def test_a_policy_in_parts_reads_a_completion_of_one_token_too(monkeypatch):
    policy, passes = load_policy(), []
    shard_frozen_weights(policy, init_device_mesh("cpu", (1,)))
    read = policy.hidden_states
    monkeypatch.setattr(policy, "hidden_states", lambda *a, **k: passes.append(1) or read(*a, **k))
    for width in (3, 1):
        policy.score_prompts(torch.arange(20, 28)[None], torch.arange(30, 30 + width)[None])
    assert len(passes) == 4


@pytest.mark.usefixtures("alone")
def test_layers_are_dropped_after_they_were_read_again_inside_a_backward_pass():
    policy = load_policy()
    shard_frozen_weights(policy, init_device_mesh("cpu", (1,)))
    layers = find_decoder_layers(policy.lm.get_base_model().base_model)
    prompts, completions, whole = torch.arange(20, 28)[None], torch.arange(40, 45)[None], []
    for layer in layers:
        layer.register_forward_pre_hook(lambda *_: whole.append(sum(map(is_whole, layers))))
    weights = [weight for weight in policy.parameters() if weight.requires_grad]
    (logprobs,) = recompute_in_backward(lambda: policy.score_prompts(prompts, completions)[:1], weights)
    before = len(whole)
    torch.autograd.grad(logprobs.sum(), weights)
    assert len(whole) == 2 * before == 2 * 2 * len(layers)
    assert max(whole) == 1


def is_whole(layer):
    return not any(isinstance(weight, DTensor) for weight in layer.parameters())
