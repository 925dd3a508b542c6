"""The oracle of episodes against exact values, with a policy and an environment that can be enumerated."""

import copy
import itertools

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from rlcredit.base.exit_status import RunStopped
from rlcredit.credit.contract import StackError
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import sampling_uniforms
from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.formulas.turns import find_read_lengths, find_turn_starts
from rlcredit.oracle import ContinuationCost, EpisodeOracle
from rlcredit.oracle.credit_agreement import mark_decisive_turns
from rlcredit.tasks import Episodes, Example
from rlcredit.verification.rewards import judged_mask, verdict_mask
from rlcredit.verification.verifiers import Verdict
from tests.rlcredit.oracle.test_oracle import END, A, B, Chain, probability

LETTERS, TURN_TOKENS, MOST_TURNS, GROUP = "-AB.", 2, 3, 6


class Gates(Environment):
    """Says B, then whether the last action held an A; an action that begins with another letter than was said earns.

    Each such action earns a half. An empty one ends the episode.
    """

    is_graded = True

    def reset(self, example):
        self.said, self.right = "B", 0
        return self.said

    def step(self, action):
        is_right = action[:1] not in ("", self.said)
        self.right += is_right
        self.said = "A" if "A" in action else "B"
        return Turn(self.said, 0.5 * is_right, not action)


class Verdicts(Gates):
    """The same, judged at the end: right if two actions began as they should."""

    is_graded, turns = False, 0

    def step(self, action):
        turn = super().step(action)
        self.turns += 1
        done = turn.done or self.turns == MOST_TURNS
        return Turn(turn.text, float(done and self.right > 1), done)


class Letters:
    """A token is a letter; a turn ends with a full stop, and an observation is its letter."""

    turn_ends = ()

    def has_ended(self, tokens):
        return tokens[-1] == END

    def find_action(self, tokens):
        return "".join(LETTERS[token] for token in tokens).partition(".")[0]

    def encode_observation(self, text, *, is_cut):
        return [LETTERS.index(text)]


class LetterEpisodes(Episodes):
    """Episodes that are written in letters."""

    def open_episodes(self, policy, examples):
        return EpisodeTable(self.environment, examples, Letters(), self.turn_limits)


def list_futures(environment, last, length, limit, tokens=(), turns=0, earned=0.0):
    """Every way on: its probability, and what the whole episode earns."""
    for token in range(4):
        chance, taken = probability(last, token, 1.0), [*tokens, token]
        if token != END and len(taken) < TURN_TOKENS:
            if length + 1 == limit:
                yield chance, earned
                continue
            rest = list_futures(environment, token, length + 1, limit, taken, turns, earned)
        else:
            world = copy.deepcopy(environment)
            turn = world.step(Letters().find_action(taken))
            total = earned + (turn.reward or 0.0)
            if turn.done or turns + 1 == MOST_TURNS or length + 2 >= limit:
                yield chance, total
                continue
            rest = list_futures(world, LETTERS.index(turn.text), length + 2, limit, (), turns + 1, total)
        for further, result in rest:
            yield chance * further, result


def find_moments(kind, rollout, row, number, limit):
    """The exact mean and variance of the reward of an episode from the beginning of a turn on."""
    environment, earned = kind(), 0.0
    environment.reset(None)
    for past in range(number):
        turn = environment.step(Letters().find_action(rollout.completion_ids[row][rollout.turn[row] == past].tolist()))
        earned += turn.reward or 0.0
    place = int((rollout.turn[row] == number).nonzero()[0])
    last = rollout.completion_ids[row, place - 1].item() if place else A
    chances, rewards = zip(*list_futures(environment, last, place, limit, turns=number, earned=earned))
    chances, rewards = (torch.tensor(values, dtype=torch.float64) for values in (chances, rewards))
    assert chances.sum().item() == pytest.approx(1)
    mean = (chances * rewards).sum()
    return mean.item(), (chances * (rewards - mean).square()).sum().item()


def play(kind=Gates, limit=8, engine=None, seed=2):
    """Two groups of episodes, and an oracle."""
    task = LetterEpisodes(kind(), train_size=2, max_turns=MOST_TURNS, turn_tokens=TURN_TOKENS)
    examples = [Example("B", "", {"seed": seed}) for seed in (7, 9)]
    rows = [example for example in examples for _ in range(GROUP)]
    table, engine = task.open_episodes(None, rows), engine or InProcessEngine(fused=False)
    prompt_ids, numbers = torch.tensor([[B, A], [B, A]]), [7] * GROUP + [9] * GROUP
    noise = sampling_uniforms(seed, 0, numbers, list(range(GROUP)) * 2, limit)
    contexts = torch.arange(2).repeat_interleave(GROUP)
    samples = engine.continue_episodes(Chain(), prompt_ids, noise, contexts, 1.0, table)
    scores = task.score_episodes(table, rows)
    rollout = Rollout(
        step=0,
        group_size=GROUP,
        prompt_ids=prompt_ids.repeat_interleave(GROUP, 0),
        completion_ids=samples.completion_ids,
        mask=samples.mask,
        old_logprobs=samples.logprobs,
        entropy=samples.entropy,
        correct=verdict_mask(scores.verdicts, Verdict.RIGHT).float(),
        judged=judged_mask(scores.verdicts),
        tokens=[[] for _ in rows],
        turn=samples.turn,
        turn_rewards=table.list_rewards(),
        states=table.list_states(),
        task_rewards=scores.rewards,
    )
    rollout.sources = ((7, examples[0]), (9, examples[1]))
    return rollout, EpisodeOracle(Chain(), engine, task, 1.0, limit)


def test_there_are_episodes_of_one_turn_and_of_three():
    rollout, _ = play()
    assert set((rollout.turn.amax(-1) + 1).tolist()) == {1, 2, 3}
    assert len(rollout.given_rewards.unique()) >= 3


@pytest.mark.parametrize(("kind", "limit"), [(Gates, 8), (Gates, 5), (Verdicts, 8)])
def test_values_are_the_expected_reward_of_the_whole_episode(kind, limit):
    rollout, oracle = play(kind, limit)
    truth, samples, errors = oracle.credit(rollout, range(2 * GROUP), 1000), 1000, []
    assert torch.equal(truth.mask.sum(-1), rollout.turn.amax(-1) + 1)
    for row in range(2 * GROUP):
        turns = int(truth.mask[row].sum())
        moments = [find_moments(kind, rollout, row, number, limit) for number in range(turns)]
        moments.append((rollout.given_rewards[row].item(), 0.0))
        for number, ((mean, variance), (next_mean, next_variance)) in enumerate(itertools.pairwise(moments)):
            assert abs(truth.values[row, number].item() - mean) < 4 * (variance / samples) ** 0.5 + 1e-6
            error = ((variance + next_variance) / samples) ** 0.5
            assert abs(truth.credit[row, number].item() - (next_mean - mean)) < 4 * error + 1e-6
            errors.append((truth.error[row, number].item(), error))
        assert truth.values[row, turns].item() == rollout.given_rewards[row].item()
        assert truth.credit[row].sum().item() == pytest.approx(moments[-1][0] - truth.values[row, 0].item())
    stated, exact = torch.tensor(errors).T
    assert_close(stated, exact, rtol=0.1, atol=2e-3)


def test_squares_of_few_samples_are_unbiased():
    rollout, oracle = play()
    row = int(rollout.turn.amax(-1).argmax())
    values = [find_moments(Gates, rollout, row, number, 8)[0] for number in range(3)] + [rollout.given_rewards[row]]
    exact, squares = torch.tensor(values, dtype=torch.float64).diff().square(), []
    for _ in range(300):
        squares.append(oracle.credit(rollout, [row], samples=8).square[0])
        oracle = oracle.with_fresh_noise()
    error = torch.stack(squares).std(0) / 300**0.5
    assert ((torch.stack(squares).mean(0) - exact).abs() < 4 * error + 1e-6).all()


def test_turns_that_decide_are_those_beyond_noise_and_threshold():
    rollout, oracle = play()
    truth = oracle.credit(rollout, range(2 * GROUP), 400)
    exact = torch.zeros_like(truth.credit)
    for row, number in truth.mask.nonzero().tolist():
        is_last = number + 1 == truth.mask[row].sum()
        end = rollout.given_rewards[row] if is_last else find_moments(Gates, rollout, row, number + 1, 8)[0]
        exact[row, number] = end - find_moments(Gates, rollout, row, number, 8)[0]
    decisive = mark_decisive_turns(truth, threshold=0.1)
    assert decisive[exact.abs() > 0.2].all()
    assert not decisive[exact.abs() < 0.05].any()
    assert not mark_decisive_turns(truth, threshold=2.0).any()
    assert truth.information is None


def test_episodes_with_the_same_history_have_one_value_and_others_noise_of_their_own():
    rollout, oracle = play()
    rewards = oracle.outcomes(rollout, range(2 * GROUP), find_turn_starts(rollout.turn), 40)
    assert (rewards[:GROUP, 0] == rewards[0, 0]).all()
    assert not torch.equal(rewards[0, 0], rewards[GROUP, 0]), "another prompt"
    again = play()[1].outcomes(rollout, [3], find_turn_starts(rollout.turn)[[3]], 40)
    assert torch.equal(again[0].nan_to_num(9), rewards[3].nan_to_num(9)), "whatever else is asked"
    _, small = play(engine=InProcessEngine(decode_batch_size=16, fused=False))
    parts = small.outcomes(rollout, range(2 * GROUP), find_turn_starts(rollout.turn), 40)
    assert torch.equal(parts.nan_to_num(9), rewards.nan_to_num(9))
    fresh = oracle.with_fresh_noise().outcomes(rollout, [0], find_turn_starts(rollout.turn)[[0]], 40)
    assert not torch.equal(fresh[0, 0], rewards[0, 0])


def test_cost_is_known_before_and_tokens_are_counted_as_decoded_and_as_read():
    rollout, oracle = play()
    starts, rows = oracle.mark_places(rollout, range(2 * GROUP)), range(2 * GROUP)
    histories = {
        (row // GROUP, *rollout.completion_ids[row, :place].tolist()) for row, place in starts.nonzero().tolist()
    }
    cost = oracle.estimate_cost(rollout, rows, starts, samples=5)
    most = sum(8 - len(history) + 1 for history in histories)
    assert cost == ContinuationCost(len(histories), 5 * len(histories), 5 * most)
    seen = []

    class Watched(InProcessEngine):
        def continue_episodes(self, policy, prompt_ids, *rest):
            answers = super().continue_episodes(policy, prompt_ids, *rest)
            seen.append((prompt_ids, answers))
            return answers

    oracle.engine = Watched(fused=False)
    oracle.outcomes(rollout, rows, starts, samples=5)
    decoded = sum(int(answers.mask.sum()) for _, answers in seen)
    read = sum(int(find_read_lengths(answers.mask).sum()) for _, answers in seen) - decoded
    # Both prompts read the same, and where a batch holds both, they are read once.
    contexts = sum(int((ids.unique(dim=0) >= 0).sum()) for ids, _ in seen)
    assert read > 0
    assert oracle.decoded == rollout.token_counts.decoded == decoded <= cost.tokens
    assert rollout.token_counts.prefill == contexts + read
    assert oracle.estimate_cost(rollout, rows, starts, samples=5) == ContinuationCost(0, 0, 0)


def test_credit_by_turns_is_the_difference_of_values_on_every_token_of_a_turn():
    rollout, oracle = play(Verdicts)
    rollout.oracle = oracle
    MonteCarloCredit(samples=16, cuts="turn").assign_checked(rollout)
    truth = oracle.credit(rollout, range(2 * GROUP), 16)
    assert_close(rollout.advantages, truth.spread_units(truth.credit).float())
    assert_close(truth.average_units(rollout.advantages), truth.credit, atol=1e-6, rtol=0)


def test_continuations_that_are_trained_on_are_rests_of_episodes_with_gaps():
    rollout, oracle = play(Verdicts)
    rows, places = find_turn_starts(rollout.turn).nonzero(as_tuple=True)
    continued, verdicts = oracle.continue_prefixes(rollout, rows, places, samples=300)
    ids, mask = continued.completion_ids, continued.mask
    assert mask[:, 0].all()
    assert (mask[:, 1:] & ~mask[:, :-1]).any(), "an environment has spoken"
    joined, _ = continued.join_prefixes(rollout.completion_ids, rollout.mask)
    for number in range(0, len(ids), 89):
        place = int(continued.places[number])
        for column in mask[number].nonzero().squeeze(-1).tolist():
            last = joined[number, place + column - 1].item() if place + column else A
            expected = torch.tensor(probability(last, ids[number, column].item(), 1.0)).log()
            assert_close(continued.logprobs[number, column], expected, atol=1e-5, rtol=0)
    for prefix, (row, place) in enumerate(zip(rows.tolist(), places.tolist())):
        mean, variance = find_moments(Verdicts, rollout, row, int(rollout.turn[row, place]), 8)
        assert abs(verdicts[prefix].mean().item() - mean) < 4 * (variance / 300) ** 0.5 + 1e-6
    assert not torch.equal(verdicts[0], verdicts[int((rows == 1).nonzero()[0])]), "no two share noise"


def test_the_oracle_refuses_to_be_asked_inside_of_a_turn_and_late():
    rollout, oracle = play()
    with pytest.raises(StackError, match=r"asked inside of a turn\. Let operators cut there"):
        oracle.outcomes(rollout, range(2), rollout.mask[:2], 4)
    inside = (rollout.mask & ~find_turn_starts(rollout.turn)).nonzero()[0]
    with pytest.raises(StackError, match="asked inside of a turn"):
        oracle.continue_prefixes(rollout, inside[:1], inside[1:], 2)
    rollout.update = 1
    with pytest.raises(ValueError, match="Ask before it"):
        oracle.credit(rollout, [0], samples=2)


def test_an_environment_that_says_something_else_when_it_is_replayed_is_refused():
    rollout, oracle = play()
    row = int(rollout.turn.amax(-1).argmax())
    rollout.states = rollout.states.clone()
    rollout.states[row, 1] += 1
    with pytest.raises(RunStopped, match=r"Gates said \['[AB]'\] before turn 2 when an episode was replayed, and"):
        oracle.credit(rollout, [row], samples=2)


def test_an_environment_that_cannot_be_copied_in_mid_episode_is_refused():
    class Generating(Gates):
        def step(self, action):
            self.rest = (letter for letter in action)
            return super().step(action)

    rollout, oracle = play(Generating)
    row = int(rollout.turn.amax(-1).argmax())
    with pytest.raises(RunStopped, match=r"Generating.copy raised TypeError: cannot pickle .* after 1 turns\."):
        oracle.credit(rollout, [row], samples=2)


def test_what_cannot_be_judged_counts_as_nothing_and_has_no_verdict():
    class Failing(Gates):
        def step(self, action):
            if action.startswith("BB"):
                raise ConnectionError("closed")
            return super().step(action)

    rollout, oracle = play(Failing)
    row = int((rollout.turn.amax(-1).where(rollout.judged, -1)).argmax())
    rewards = oracle.outcomes(rollout, [row], find_turn_starts(rollout.turn)[[row]], 200)
    assert not rewards[0, 0].isnan().any()
    _, verdicts = oracle.continue_prefixes(rollout, torch.tensor([row]), torch.tensor([0]), 200)
    share = probability(A, B, 1.0) * probability(B, B, 1.0)  # in the first turn alone
    assert verdicts.isnan().double().mean().item() > 0.5 * share


def test_an_environment_that_rows_wait_for_is_worth_the_same():
    class Slow(Gates):
        async def step(self, action):
            return super().step(action)

    rollout, oracle = play()
    starts = find_turn_starts(rollout.turn)
    rewards = oracle.outcomes(rollout, range(2 * GROUP), starts, 20)
    slow_rollout, slow_oracle = play(Slow)
    assert torch.equal(slow_rollout.completion_ids, rollout.completion_ids)
    slow_rewards = slow_oracle.outcomes(slow_rollout, range(2 * GROUP), starts, 20)
    assert torch.equal(slow_rewards.nan_to_num(9), rewards.nan_to_num(9))
