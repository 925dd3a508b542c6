import copy

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.episode.tracked_baseline import TrackedBaseline, prompt_key
from tests.callbacks.rollouts import numbers
from tests.conftest import make_rollout


def batch(rewards, prompts, group_size=2):
    """A batch of prompts that are one token each, padded on the left."""
    rollout = make_rollout(rewards, group_size)
    ids = torch.tensor(prompts).repeat_interleave(group_size)[:, None]
    rollout.prompt_ids = torch.cat([torch.full_like(ids, -1), ids], -1)
    return rollout


def credit(operator, rollout):
    metrics = numbers(operator.assign(rollout))
    return rollout.advantages[:, 0].tolist(), metrics


def test_a_prompt_is_judged_against_what_it_earned_before():
    tracker = TrackedBaseline(rate=0.5)
    first, metrics = credit(tracker, batch([1.0, 0.0, 1.0, 1.0], [5, 6]))
    assert first == [0.5, -0.5, 0, 0]  # new: the group's mean
    assert metrics == {"seen_fraction": 0, "baseline_mean": 0.75, "tracked_prompts": 2}
    second, metrics = credit(tracker, batch([1.0, 1.0, 0.0, 0.0], [5, 7]))
    assert second == [0.5, 0.5, 0, 0]
    assert metrics["seen_fraction"] == 0.5
    third, _ = credit(tracker, batch([1.0, 0.0, 0.0, 0.0], [5, 6]))
    assert third == [0.25, -0.75, -1, -1]  # 5 has moved from 0.5 to 0.75; 6 stands at 1


def test_a_group_of_one_teaches_nothing_at_first_and_then_what_is_new():
    tracker = TrackedBaseline(rate=0.25)
    assert [credit(tracker, batch([reward], [5], 1))[0] for reward in (0.0, 1.0, 1.0)] == [[0.0], [1.0], [0.75]]


def test_new_prompts_get_what_grpo_gives():
    ours, theirs = (batch([1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0], [5, 6], 4) for _ in range(2))
    TrackedBaseline().assign(ours)
    GRPO().assign(theirs)
    torch.testing.assert_close(ours.advantages, theirs.advantages)


def test_padding_on_the_left_does_not_make_another_prompt():
    wide, narrow = torch.tensor([-1, -1, 3, 4]), torch.tensor([3, 4])
    assert prompt_key(wide) == prompt_key(narrow)
    assert prompt_key(narrow) != prompt_key(torch.tensor([4, 3]))
    assert 0 <= prompt_key(narrow) < 2**63


def test_a_prompt_twice_in_a_batch_moves_once_by_the_mean_of_both():
    tracker = TrackedBaseline(rate=1.0)
    tracker.assign(batch([1.0, 1.0, 0.0, 0.0], [5, 5]))
    assert list(tracker.means.values()) == [0.5]


def test_what_was_tracked_comes_back_from_a_checkpoint_bit_for_bit(tmp_path):
    one, two = TrackedBaseline(rate=0.3), TrackedBaseline(rate=0.3)
    for rewards in ([1.0, 0.0, 1 / 3, 0.0], [0.0, 0.0, 1.0, 1 / 3]):
        one.assign(batch(rewards, [5, 6]))
    torch.save(one.state_dict(), tmp_path / "state.pt")
    one.check_state()
    two.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert two.means == one.means
    batches = [batch([1.0, 1 / 3, 0.0, 1.0], [6, 5]) for _ in range(2)]
    assert credit(one, batches[0]) == credit(two, batches[1])


def test_processes_hold_one_table(monkeypatch):
    parts = [batch([1.0, 0.0], [5]), batch([1.0, 1.0], [6]), batch([0.0, 0.0], [5])]
    whole = batch([1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [5, 6, 5])
    alone, shared = TrackedBaseline(), []
    alone.assign(whole)
    sent = {"calls": 0}
    every = [
        torch.tensor([prompt_key(part.prompt_ids[0]) for part in parts]),
        torch.tensor([1.0, 2.0, 0.0]).double(),
        torch.tensor([2, 2, 2]),
    ]

    def gathered(values):
        sent["calls"] += 1
        return every[(sent["calls"] - 1) % 3], slice(None)

    monkeypatch.setattr("callbacks.episode.tracked_baseline.gather_over_processes", gathered)
    for part in parts:
        tracker = TrackedBaseline()
        tracker.assign(part)
        shared.append(copy.deepcopy(tracker.means))
    assert shared == [alone.means] * 3
    joined = torch.cat([part.advantages for part in parts])
    assert torch.equal(joined, whole.advantages)


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match=rf"TrackedBaseline expects rate in \(0, 1\], got {rate}"):
        TrackedBaseline(rate=rate)
