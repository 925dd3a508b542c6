"""Episodes: what is drawn does not depend on how; what the environment says is read, and neither drawn nor scored."""

import pytest
import torch

from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.turns import count_turns, find_read_lengths
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from tests.rlcredit.episodes.counting import Counting, Silent, SlowCounting

PROMPTS, GROUP, TOKENS = 3, 6, 64


@pytest.fixture(scope="module")
def policy():
    policy = Policy(prompt=PromptFormat(chat=False))
    policy.load()
    return policy


def play(policy, environment, engine=None, tokens=TOKENS, prompts=PROMPTS, **settings):
    """Return samples and episodes of some prompts."""
    task = Episodes(environment, train_size=8, validation_size=1, **{"turn_tokens": 8, **settings})
    task.setup()
    examples = task.train_set[:prompts]
    table = task.open_episodes(policy, [example for example in examples for _ in range(GROUP)])
    prompt_ids = policy.encode_questions([task.build_conversation(example) for example in examples])
    sampling = Sampling(GROUP, tokens, 1.0)
    engine = engine or InProcessEngine()
    return engine.sample(policy, prompt_ids, list(range(prompts)), sampling, seed=0, step=0, episodes=table), table


@pytest.fixture(scope="module")
def counted(policy):
    return play(policy, Counting())


def assert_alike(samples, others):
    assert torch.equal(samples.completion_ids, others.completion_ids)
    assert torch.equal(samples.turn, others.turn)
    assert torch.equal(samples.mask, others.mask)
    torch.testing.assert_close(samples.logprobs, others.logprobs, atol=1e-4, rtol=0)
    torch.testing.assert_close(samples.entropy, others.entropy, atol=1e-4, rtol=0)


@pytest.mark.parametrize("engine", [InProcessEngine(5), InProcessEngine(fused=False), InProcessEngine(merge=True)])
def test_episodes_are_the_same_however_they_are_decoded(policy, counted, engine):
    samples, table = play(policy, Counting(), engine)
    assert_alike(counted[0], samples)
    assert torch.equal(counted[1].list_rewards(), table.list_rewards())


def test_rows_that_wait_for_each_other_draw_the_same(policy, counted):
    samples, _ = play(policy, SlowCounting())
    assert_alike(counted[0], samples)
    assert SlowCounting.together > PROMPTS * GROUP / 2


def test_fewer_prompts_draw_the_same_rows(policy, counted):
    samples, _ = play(policy, Counting(), prompts=1)
    width = samples.mask.shape[1]
    assert torch.equal(samples.completion_ids, counted[0].completion_ids[:GROUP, :width])
    assert torch.equal(samples.logprobs, counted[0].logprobs[:GROUP, :width])


def test_a_row_reads_as_prompt_actions_and_observations(policy, counted):
    samples, table = counted
    for row, episode in enumerate(table.episodes):
        text = policy.tokenizer.decode(samples.completion_ids[row, : find_read_lengths(samples.mask)[row]])
        lines = text.split("\n")
        for observation in episode.observations[1:]:
            assert observation in lines
        drawn = policy.tokenizer.decode(samples.completion_ids[row][samples.mask[row]])
        assert not any(observation in drawn for observation in episode.observations[1:])
        assert episode.turns[-1].done


def test_what_the_environment_says_has_no_score(counted):
    samples, _ = counted
    outside = ~samples.mask
    assert (samples.turn[outside] == -1).all()
    assert not samples.logprobs[outside].any()
    assert not samples.entropy[outside].any()
    assert (samples.logprobs[samples.mask] < 0).all()


def test_logprobs_are_those_of_the_whole_text(policy, counted):
    samples, table = counted
    prompt = policy.tokenizer.encode(table.episodes[0].observations[0], add_special_tokens=False)
    length = int(find_read_lengths(samples.mask)[0])
    ids = torch.tensor([prompt + samples.completion_ids[0, :length].tolist()])
    with torch.no_grad():
        logits = policy.lm(input_ids=ids).logits[0, len(prompt) - 1 : -1]
    expected = logits.log_softmax(-1).gather(1, ids[0, len(prompt) :, None]).squeeze(1)
    torch.testing.assert_close(
        samples.logprobs[0, :length], expected.where(samples.mask[0, :length], 0), atol=1e-4, rtol=0
    )


def test_turns_end_at_their_limit_and_episodes_at_theirs(policy):
    samples, table = play(policy, Silent(), max_turns=2, turn_tokens=3)
    assert count_turns(samples.turn).tolist() == [2] * PROMPTS * GROUP
    assert all((samples.turn == turn).sum(-1).max() == 3 for turn in range(2))
    assert not samples.truncated.any()
    assert [len(episode.actions) for episode in table.episodes] == [2] * PROMPTS * GROUP


def test_a_row_without_room_for_another_turn_is_cut(policy):
    samples, _ = play(policy, Counting(30), tokens=20, max_turns=30)
    lengths = find_read_lengths(samples.mask)
    assert samples.truncated.all()
    assert int(lengths.max()) <= 20
    assert (lengths > 10).all()


def test_turns_are_counted_by_hand(policy):
    samples, table = play(policy, Counting(2))
    assert table.list_rewards().shape == (PROMPTS * GROUP, 2)
    assert table.list_states().shape == (PROMPTS * GROUP, 2)
    said = [[("say " in text) for text in episode.observations] for episode in table.episodes]
    assert said == [[True, True]] * PROMPTS * GROUP
    assert table.list_states()[:GROUP, 0].unique().numel() == 1
    assert samples.turn.max() == 1
