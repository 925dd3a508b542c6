"""Training on episodes: in process, by a server, ahead, with several updates, and continued."""

from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback

from callbacks.episode.rloo import RLOO
from rlcredit.decoding.vllm_server import VLLMServer
from rlcredit.formulas.turns import count_turns, find_read_lengths
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from tests.behaviour.test_own_engine import Elsewhere
from tests.rlcredit.decoding.fake_vllm import FakeVLLM, served
from tests.rlcredit.episodes.counting import Counting, SlowCounting
from tests.training_runs import assert_like_adapter


class Rollouts(Callback):
    """Keep every rollout."""

    def __init__(self):
        self.kept = []

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.kept.append(batch)


@pytest.fixture
def train(fit):
    def train(environment=None, **settings):
        rollouts = Rollouts()
        settings = {"policy": Policy(prompt=PromptFormat(chat=False)), "stack": [RLOO(), rollouts], **settings}
        task = Episodes(environment or Counting(), train_size=16, validation_size=4, turn_tokens=8, prompts_per_step=2)
        return fit(task=task, **settings), rollouts.kept

    return train


def test_a_rollout_of_episodes_holds_turns_rewards_and_states(train):
    run, (rollout, *_) = train(steps=1)
    assert run.history[0]["train/ratio_max"] == pytest.approx(1, abs=1e-3)
    assert count_turns(rollout.turn).tolist() == [3] * 16
    assert rollout.turn_rewards.shape == rollout.states.shape == (16, 3)
    torch.testing.assert_close(rollout.turn_rewards.sum(-1), rollout.rewards)
    assert not torch.equal(rollout.mask, torch.arange(rollout.mask.shape[1]) < find_read_lengths(rollout.mask)[:, None])
    assert (rollout.advantages == rollout.advantages[:, :1])[rollout.mask].all()


def test_tokens_that_are_read_are_counted_as_read(train):
    run, rollouts = train(steps=2)
    decoded = sum(int(rollout.mask.sum()) for rollout in rollouts)
    read = sum(int(find_read_lengths(rollout.mask).sum()) for rollout in rollouts)
    prompts = sum(int((rollout.prompt_ids[::8] >= 0).sum()) for rollout in rollouts)
    assert run.history[-1]["tokens/decoded"] == decoded
    assert run.history[-1]["tokens/prefill"] <= prompts + read - decoded
    assert run.history[-1]["tokens/prefill"] > read - decoded


def test_micro_batches_change_nothing_but_rounding(train):
    whole, _ = train(steps=2)
    parts, _ = train(steps=2, micro_batch_tokens=100)
    assert_like_adapter(parts.adapter, whole.adapter)


def test_an_environment_that_is_awaited_trains_the_same(train):
    own, _ = train(steps=2)
    awaited, _ = train(SlowCounting(), steps=2)
    assert [step["train/reward"] for step in own.history] == [step["train/reward"] for step in awaited.history]
    assert own.losses == pytest.approx(awaited.losses, abs=1e-4)


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_server_plays_by_prefix(train, ahead, tmp_path):
    fake = FakeVLLM()
    with served(fake) as url:
        run, rollouts = train(steps=3, engine=VLLMServer(url, folder=str(tmp_path / "shared"), ahead=ahead))
    assert ahead or all(step["train/mismatch_max"] < 1e-3 for step in run.history)
    assert all(count_turns(rollout.turn).tolist() == [3] * 16 for rollout in rollouts)
    assert all(torch.equal(rollout.turn_rewards.sum(-1), rollout.rewards) for rollout in rollouts)
    assert {tuple(body["stop"]) for body in fake.bodies} == {("\n",)}
    assert len({body["seed"] for body in fake.bodies}) == len(fake.bodies) >= 3 * 16 * 3


@pytest.mark.filterwarnings("ignore:Be aware that when", "ignore:You.re resuming from a checkpoint")
def test_a_continued_run_is_the_run_that_was_not_interrupted(train, tmp_path):
    whole, _ = train(steps=4)
    train(steps=2, enable_checkpointing=True)
    (checkpoint,) = Path(tmp_path).rglob("*.ckpt")
    continued, _ = train(steps=4, ckpt_path=checkpoint)
    assert all(torch.equal(weight, continued.adapter[name]) for name, weight in whole.adapter.items())


def test_an_engine_of_single_turns_is_refused(train):
    with pytest.raises(ValueError, match="Elsewhere answers single turns, and the task has an environment"):
        train(steps=1, engine=Elsewhere())
