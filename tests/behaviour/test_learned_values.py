"""Whole runs with a critic: they go on where they were, and several processes train as one."""

from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.critics.adapter_critic import AdapterCritic
from callbacks.critics.head_critic import HeadCritic
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.dense.gae import GAE
from callbacks.dense.implicit_reward import ImplicitReward
from callbacks.episode.grpo import GRPO
from callbacks.episode.rloo import RLOO
from callbacks.schedules.calibration_weight import CalibrationWeight
from callbacks.schedules.skill_weight import SkillWeight
from rlcredit.formulas.reward_histogram import RewardHistogram
from tests.behaviour.two_critics import train_with_critic
from tests.slow_cases import mark_others_slow
from tests.small_runs import run_test_script


def small_head(**arguments):
    return HeadCritic(width=8, fits=5, batch=64, rollouts=3, warmup=1, **arguments)


STACKS = {
    "head": lambda: [GRPO(), small_head(), SkillWeight(), ExpectedGradient()],
    "adapter": lambda: [AdapterCritic(), GAE()],
    "ridge": lambda: [GRPO(), RidgeCritic(), GAE(lam=0.9)],
    "implicit": lambda: [RLOO(), ImplicitReward()],
    "hl_gauss": lambda: [
        GRPO(),
        small_head(target=RewardHistogram(51, 0.75), lam=0.9),
        CalibrationWeight(strength=0.0),
        GAE(),
    ],
}


class Save(Callback):
    """Write a checkpoint after step 3."""

    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == 3:
            trainer.save_checkpoint(self.path)


def list_states(stack):
    """Return the state of each operator that has one, as numbers and lists of tensors."""
    return [operator.state_dict() for operator in stack if operator.state]


def require_equal(one, two):
    """Require two states to be equal bit for bit."""
    assert type(one) is type(two)
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, two)
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            require_equal(one[key], two[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for pair in zip(one, two):
            require_equal(*pair)
    else:
        assert one == two


@pytest.mark.filterwarnings("ignore:.*your dataloader is not resumable")  # its order is a function of the step
@pytest.mark.parametrize("name", mark_others_slow(STACKS))
def test_a_run_goes_on_with_what_its_critic_had_learned(fit, tmp_path, name):
    path, stack, restored = str(tmp_path / "half.ckpt"), STACKS[name](), STACKS[name]()
    how = {"lr": 3e-3, "completions": 4, "max_tokens": 32}
    whole = fit(steps=6, stack=[*stack, Save(path)], **how)
    rest = fit(steps=6, stack=restored, ckpt_path=path, **how)
    for weight_name, weight in whole.adapter.items():
        assert torch.equal(rest.adapter[weight_name], weight)
    require_equal(list_states(restored), list_states(stack))
    assert len(list_states(stack)) == sum(bool(operator.state) for operator in stack) > 0
    for one, two in zip(whole.history[3:], rest.history, strict=True):
        known = {key: value for key, value in one.items() if not key.startswith(("time/", "train/tokens_per_second"))}
        assert known == {key: two[key] for key in known}
    used = next(key for key in rest.history[-1] if key.endswith(("Gradient/weight", "GAE/weight", "Reward/size")))
    assert all(step[used] > 0 for step in (whole.history[2], *rest.history))  # what was learned by step 3 is remembered


@pytest.mark.slow
def test_two_processes_have_the_gradients_and_the_critic_of_one(tmp_path):
    done = run_test_script(Path(__file__).with_name("two_critics.py"), tmp_path)
    assert done.returncode == 0, done.stderr
    gradients, weights, network = train_with_critic(tmp_path)
    assert weights == [0.0, 0.0, 0.5, 0.5]
    assert min(max(part.abs().max() for part in gradient.values()) for gradient in gradients) > 1e-3
    for rank in (0, 1):
        of_rank, weights_of_rank, network_of_rank = torch.load(tmp_path / f"rank{rank}.pt", weights_only=True)
        assert weights_of_rank == weights
        for one, two in zip(network_of_rank, network, strict=True):
            assert_close(one, two, atol=1e-4, rtol=1e-3)
        for one, two in zip(of_rank, gradients, strict=True):
            for name in two:
                assert_close(one[name], two[name], atol=5e-6, rtol=1e-3)
