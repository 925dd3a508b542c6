"""A rollout in a file comes back as it was, with its credit."""

import pytest
import torch
from safetensors.torch import save_file

from callbacks import GRPO, GTPO, HICRA, SEPA, ConstantLambda, Entropy, StrategicGrams
from rlcredit import CreditStack, Rollout, credit_heatmap
from rlcredit.credit.rollout import FACT_FIELDS, NEUTRAL_VALUES
from rlcredit.credit.rollout_file import UNSAVED_FIELDS
from tests.callbacks.rollouts import episodes_of
from tests.conftest import make_rollout

STACK = [GRPO(), StrategicGrams(), ConstantLambda(0.5), Entropy(), SEPA(), GTPO(beta=0.5), HICRA()]


def test_facts_and_credit_come_back_and_neutral_fields_stay_neutral(tmp_path):
    credited = CreditStack(STACK).assign(make_rollout([1.0, 0.0, 1.0, 1.0], group_size=2))
    credited.save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    for name in (FACT_FIELDS | NEUTRAL_VALUES.keys()) - UNSAVED_FIELDS:
        one, two = getattr(credited, name), getattr(loaded, name)
        assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two, name
    assert loaded.unwritten == credited.unwritten
    assert [label for label, _ in loaded.trail] == ["GRPO", "GTPO", "HICRA"]
    for (_, one), (_, two) in zip(loaded.trail, credited.trail, strict=True):
        assert torch.equal(one, two)
    assert credit_heatmap(loaded) == credit_heatmap(credited)
    again = CreditStack(STACK).assign(loaded)
    assert torch.equal(again.advantages, credited.advantages)


def test_episodes_come_back_with_their_turns(tmp_path):
    credited = CreditStack([GRPO(), GTPO()]).assign(episodes_of(["abXYcZd", "aXb"], [0.0, 1.0]))
    credited.save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    for name in ("mask", "turn", "turn_rewards", "states", "advantages"):
        assert torch.equal(getattr(loaded, name), getattr(credited, name)), name
    assert credit_heatmap(loaded) == credit_heatmap(credited)
    bare = episodes_of(["abXYcZd", "aXb"], [0.0, 1.0])
    bare.turn_rewards = bare.states = None
    bare.save(tmp_path / "batch.safetensors")
    assert Rollout.load(tmp_path / "batch.safetensors").turn_rewards is None


def test_fields_that_share_their_memory_are_saved_each_for_itself(tmp_path):
    credited = CreditStack([GRPO(), Entropy(), GTPO()]).assign(make_rollout([1.0, 0.0], group_size=2))
    credited.ref_logprobs = credited.old_logprobs
    credited.save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    assert torch.equal(loaded.signal, credited.entropy)
    assert torch.equal(loaded.ref_logprobs, credited.old_logprobs)


def test_shaped_rewards_are_not_lost(tmp_path):
    rollout = make_rollout([1.0, 0.0], group_size=2)
    rollout.rewards = torch.tensor([0.3, -2.0])
    rollout.save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    assert loaded.rewards.tolist() == pytest.approx([0.3, -2.0])
    assert torch.equal(loaded.advantages, rollout.advantages)


def test_other_files_are_refused_by_name(tmp_path):
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(ValueError, match="text is no file of safetensors"):
        Rollout.load(tmp_path / "text")
    save_file({"weight": torch.zeros(1)}, tmp_path / "model")
    with pytest.raises(ValueError, match="model is no rollout"):
        Rollout.load(tmp_path / "model")
    save_file({"weight": torch.zeros(1)}, tmp_path / "newer", metadata={"format": "rlcredit rollout 1", "fields": "{}"})
    with pytest.raises(ValueError, match="holds weight, which no rollout has"):
        Rollout.load(tmp_path / "newer")


def test_rewards_of_the_task_come_back(tmp_path):
    rollout = make_rollout([1.0, 0.0], group_size=2)
    rollout.task_rewards = torch.tensor([0.3, -2.0])
    CreditStack(STACK).assign(rollout).save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    assert loaded.rewards.tolist() == loaded.task_rewards.tolist() == pytest.approx([0.3, -2.0])
    assert loaded.correct.tolist() == [1, 0]
