import itertools
import math

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.dense.branches import Branches
from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.episode.rloo import RLOO
from rlcredit.credit.continuations import Continuations
from rlcredit.formulas.turns import find_read_lengths, number_turns
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from tests.callbacks.rollouts import TabularPolicy, numbers, rollout_of
from tests.callbacks.turns.episodes import make_episodes
from tests.conftest import make_rollout
from tests.rlcredit.episodes.counting import Counting
from tests.slow_cases import mark_others_slow
from tests.spy import RolloutSpy

NAN = torch.nan


class LastDigit(Counting):
    """Right if the last digit was said."""

    is_graded = False

    def step(self, action):
        turn = super().step(action)
        return turn._replace(reward=float(turn.done and turn.reward > 0))


class Told:
    """An oracle that is told tokens and verdict of each continuation, prefix by prefix."""

    decoded = 0

    def __init__(self, *answers):
        self.answers = answers

    def continue_prefixes(self, rollout, rows, places, samples):
        self.rows, self.places = rows.tolist(), places.tolist()
        told = self.answers[: len(rows) * samples]
        self.decoded += sum(len(tokens) for tokens, _ in told)
        width = max((len(tokens) for tokens, _ in told), default=0)
        ids = (
            torch.tensor([[*tokens, *[0] * (width - len(tokens))] for tokens, _ in told]).view(len(told), width).long()
        )
        mask = torch.tensor([[t < len(tokens) for t in range(width)] for tokens, _ in told]).view(ids.shape).bool()
        rows, places = (values.repeat_interleave(samples) for values in (rows, places))
        verdicts = torch.tensor([verdict for _, verdict in told], dtype=torch.float64)
        zeros = torch.zeros(ids.shape)
        return Continuations(rows, places, ids, mask, zeros, zeros), verdicts.view(-1, samples)


def worked_example():
    """Two wrong completions; before the third token of the first, two right continuations leave."""
    rollout = rollout_of([0.0, 0.0], 2, [[0.9, 0.1, 0.8, 0.9], [0.9, 0.1, 0.1, 0.1]])
    rollout.oracle = Told(([5], 1.0), ([6, 7], 1.0))
    return rollout


def test_the_worked_example_with_equal_weights():
    rollout = worked_example()
    metrics = numbers(Branches(train="equal").assign(rollout))
    assert (rollout.oracle.rows, rollout.oracle.places) == ([0], [2])
    expected = [[2 / 3, 2 / 3, -1.0, -1.0], [-2 / 3] * 4]
    assert_close(rollout.advantages, torch.tensor(expected))
    assert_close(rollout.continuations.credit, torch.tensor([[0.5, 0.0], [0.5, 0.5]]))
    assert rollout.continuations.rows.tolist() == [0, 0]
    assert metrics == pytest.approx({"decoded_tokens": 3, "forks": 0.5, "value": 1 / 3, "credited_fraction": 1.0})


def test_the_worked_example_with_the_weights_of_the_policy():
    rollout = worked_example()
    Branches().assign(rollout)
    expected = [[2 / 3, 2 / 3, -1 / 3, -1 / 3], [-2 / 3] * 4]
    assert_close(rollout.advantages, torch.tensor(expected))
    assert_close(rollout.continuations.credit, torch.tensor([[1 / 6, 0.0], [1 / 6, 1 / 6]]))


def test_a_second_fork_splits_what_the_first_has_left():
    rollout = rollout_of([1.0, 0.0], 2, [[0.9, 0.9, 0.1, 0.9], [0.9, 0.1, 0.1, 0.1]])
    rollout.oracle = Told(([5], 0.0), ([6], 1.0))
    Branches(forks=2, width=1, spacing=2).assign(rollout)
    assert rollout.oracle.places == [1, 3]
    # Behind the second fork 1 against 1, before it 1 against 0, and the prompt is worth (0 + 1) / 2.
    assert_close(rollout.advantages, torch.tensor([[0.5, 0.5, 0.5, 0.0], [-0.5] * 4]))
    assert_close(rollout.continuations.credit, torch.tensor([[-0.5], [0.0]]))


@pytest.mark.parametrize("arguments", [{"width": 0}, {"forks": 0}, {"level": 9.0}, {"rule": "random", "rate": 0.0}])
def test_without_forks_it_is_rloo(arguments):
    ours, theirs = make_rollout(), make_rollout()
    for rollout in (ours, theirs):
        rollout.judged = torch.tensor([True, False, True, True, True, True, True, False])
    operator = Branches(**arguments)
    assert numbers(operator.assign_checked(ours))["forks"] == 0
    RLOO().assign(theirs)
    assert torch.equal(ours.advantages[ours.mask], theirs.advantages[theirs.mask])
    assert len(ours.continuations.rows) == 0


def test_each_rule_forks_where_it_says():
    entropy = torch.tensor([[0.9, 0.2, 0.5, 0.4, 0.6, 0.8, 0.7]] * 4)
    rollout = rollout_of([1.0, 0.0, 0.0, 1.0], 4, entropy.tolist())
    rollout.mask = torch.arange(7) < torch.tensor([[7], [5], [3], [7]])
    rollout.turn = number_turns(rollout.mask)
    rollout.judged = torch.tensor([True, True, True, False])
    first = Branches(forks=2, level=0.3, spacing=2).choose_forks(rollout)
    assert first.tolist() == [[2, 4], [2, 4], [2, -1], [-1, -1]]
    ranked = Branches(forks=2, rule="entropy_rank", spacing=2).choose_forks(rollout)
    assert ranked.tolist() == [[2, 5], [2, 4], [2, -1], [-1, -1]]
    drawn = Branches(forks=3, rule="random", rate=0.5, spacing=1).choose_forks(rollout)
    assert not drawn[3].ge(0).any()
    assert (drawn != 0).all()


def test_random_forks_are_drawn_by_seed_and_step_at_their_rate():
    rollout = make_rollout([1.0, 0.0] * 200, group_size=4, width=12)
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.turn = number_turns(rollout.mask)
    operator = Branches(forks=12, rule="random", rate=0.2, spacing=1)
    forks = operator.choose_forks(rollout)
    assert (forks >= 0).double().sum().item() == pytest.approx(0.2 * 11 * 400, rel=0.1)
    assert torch.equal(forks, operator.choose_forks(rollout))
    rollout.step += 1
    assert not torch.equal(forks, operator.choose_forks(rollout))
    operator.run_seed, rollout.step = 1, rollout.step - 1
    assert not torch.equal(forks, operator.choose_forks(rollout))


ANSWERS = list(itertools.product(range(2), repeat=3))


def enumerate_gradient(operator, policy, reward, forks=None):
    """Return the expected gradient of pairs of completions and all that may be decoded behind their forks.

    Every case is a group of one rollout.

    Args:
        operator: Operator with one continuation per fork.
        policy: Policy whose completions have three tokens.
        reward: Reward of each completion.
        forks: Forks of the two completions of a pair, in place of those that the operator chooses.

    """
    logprobs = {answer: policy.logprobs(answer).tolist() for answer in ANSWERS}
    states = {answer: [policy.logits(answer[:t]).log_softmax(-1) for t in range(3)] for answer in ANSWERS}
    entropies = {answer: [-(each.exp() * each).sum().item() for each in own] for answer, own in states.items()}
    pairs, cases = list(itertools.product(ANSWERS, repeat=2)), []

    def make_group_rollout(groups):
        rows = [answer for pair in groups for answer in pair]
        return rollout_of([reward[answer] for answer in rows], 2, [entropies[answer] for answer in rows])

    chosen = operator.choose_forks(make_group_rollout(pairs)) if forks is None else torch.tensor(forks * len(pairs))
    for pair, places in zip(pairs, chosen.view(len(pairs), 2, -1).tolist()):
        leaving = [(row, place) for row, own in enumerate(places) for place in own if place >= 0]
        for behind in itertools.product(*(itertools.product(range(2), repeat=3 - place) for _, place in leaving)):
            whole = [(place, (*pair[row][:place], *own)) for (row, place), own in zip(leaving, behind)]
            chance = sum(map(sum, (logprobs[answer] for answer in pair)))
            chance += sum(sum(logprobs[answer][place:]) for place, answer in whole)
            cases.append((pair, places, whole, math.exp(chance)))
    assert sum(case[-1] for case in cases) == pytest.approx(1)
    rollout = make_group_rollout([case[0] for case in cases])
    rollout.oracle = Told(*((answer[place:], reward[answer]) for case in cases for place, answer in case[2]))
    operator.choose_forks = lambda _: torch.tensor([own for case in cases for own in case[1]])
    operator.assign(rollout)
    assert rollout.oracle.places == [place for case in cases for place, _ in case[2]]
    edges = [(answer, 0, case[-1]) for case in cases for answer in case[0]]
    edges += [(answer, place, case[-1]) for case in cases for place, answer in case[2]]
    credit, coefficients = [*rollout.advantages.tolist(), *rollout.continuations.credit.tolist()], {}
    for (answer, place, chance), own in zip(edges, credit, strict=True):
        for t in range(place, 3):
            state = answer[: t + 1]
            coefficients[state] = coefficients.get(state, 0.0) + chance * own[t - place] / 2
    return policy.gradient(
        sum(credit * policy.logits(state[:-1]).log_softmax(-1)[state[-1]] for state, credit in coefficients.items())
    )


def small_policy():
    """Return a policy, the reward of each of its answers, and the gradient of the expected reward."""
    policy = TabularPolicy(words=2, seed=1)
    reward = {answer: float(sum(answer) == 2) + 0.5 * answer[0] - answer[1] * answer[2] for answer in ANSWERS}
    true = policy.gradient(sum(reward[answer] * policy.logprobs(answer).sum().exp() for answer in ANSWERS))
    return policy, reward, true


def level_between(policy):
    """Return an entropy that some states exceed and others of the same length do not."""
    entropies = []
    for state in itertools.product(range(2), repeat=1):
        logits = policy.logits(state).log_softmax(-1)
        entropies.append(-(logits.exp() * logits).sum().item())
    return sum(entropies) / 2


def test_the_expected_gradient_of_threshold_forks_is_that_of_the_expected_reward():
    policy, reward, true = small_policy()
    operator = Branches(forks=2, width=1, level=level_between(policy), spacing=1)
    assert_close(enumerate_gradient(operator, policy, reward), true.double(), atol=1e-6, rtol=1e-5)


def test_the_expected_gradient_of_random_forks_is_that_of_the_expected_reward():
    # Whatever forks are drawn, the gradient is right: each of these is a draw.
    policy, reward, true = small_policy()
    operator = Branches(forks=2, width=1, rule="random", spacing=1)
    for drawn in ([[1, 2], [-1, -1]], [[2, -1], [1, -1]], [[1, -1], [1, 2]]):
        assert_close(enumerate_gradient(operator, policy, reward, drawn), true.double(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("arguments", [{"train": "equal"}, {"rule": "entropy_rank"}], ids=str)
def test_equal_weights_and_ranks_of_the_whole_completion_are_biased(arguments):
    policy, reward, true = small_policy()
    operator = Branches(**{"forks": 1, "width": 1, "level": level_between(policy), "spacing": 1, **arguments})
    found = enumerate_gradient(operator, policy, reward)
    assert (found - true).norm() > 0.03 * true.norm()


def test_with_equal_weights_the_states_behind_a_fork_count_twice():
    policy, reward, true = small_policy()
    operator = Branches(forks=1, width=1, train="equal", spacing=1)
    found = enumerate_gradient(operator, policy, reward, [[1, -1], [1, -1]])
    size = policy.words  # the first state's logits come first
    assert_close(found[:size], true[:size].double(), atol=1e-6, rtol=1e-5)
    assert_close(found[size:], 2 * true[size:].double(), atol=1e-6, rtol=1e-5)


def test_no_advantage_exceeds_its_bound():
    assert Branches().bound(math.inf, 4) == 1.0
    assert Branches(width=0).bound(math.inf, 1) == 0.0
    rollout = rollout_of([1.0], 1, [[0.9, 0.9]])
    rollout.oracle = Told(([5], 0.0), ([5], 0.0))
    Branches(train="equal").assign(rollout)
    assert rollout.advantages.tolist() == [[0.0, 1.0]]
    assert Branches().bound(math.inf, 1) == 1.0


@pytest.mark.parametrize(
    "arguments", [{"forks": -1}, {"width": -1}, {"level": -0.1}, {"spacing": 0}, {"rate": 1.5}, {"rate": NAN}]
)
def test_refused_arguments(arguments):
    with pytest.raises(ValueError, match="Branches expects forks, width and level >= 0"):
        Branches(**arguments)


def test_refused_choices():
    with pytest.raises(ValueError, match="rule to be one of threshold, random, entropy_rank, got 'surprise'"):
        Branches(rule="surprise")
    with pytest.raises(ValueError, match="train to be one of on_policy, equal, got 'none'"):
        Branches(train="none")


class Save(Callback):
    """Write a checkpoint after step 2."""

    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == 2:
            trainer.save_checkpoint(self.path)


STACKS = {
    "threshold": lambda: Branches(forks=2, spacing=2),
    "random": lambda: Branches(rule="random"),
    "sentences": lambda: MonteCarloCredit(samples=2, cuts="sentence", train="on_policy"),
}


@pytest.mark.filterwarnings("ignore:.*your dataloader is not resumable")  # its order is a function of the step
@pytest.mark.parametrize("name", mark_others_slow(STACKS, fast=2))
def test_a_run_goes_on_bit_for_bit(fit, tmp_path, name):
    path, spy = str(tmp_path / "half.ckpt"), RolloutSpy()
    how = {"lr": 3e-3, "completions": 4, "max_tokens": 32}
    whole = fit(steps=4, stack=[STACKS[name](), spy, Save(path)], **how)
    rest = fit(steps=4, stack=[STACKS[name]()], ckpt_path=path, **how)
    for weight_name, weight in whole.adapter.items():
        assert torch.equal(rest.adapter[weight_name], weight)
    for one, two in zip(whole.history[2:], rest.history, strict=True):
        known = {key: value for key, value in one.items() if not key.startswith(("time/", "train/tokens_per_second"))}
        assert known == {key: two[key] for key in known}
    assert sum(len(rollout.continuations.rows) for rollout in spy.seen[2:]) > 4


def test_a_run_decodes_judges_and_counts_what_it_trains_on(fit):
    spy = RolloutSpy()
    run = fit(steps=2, stack=[Branches(forks=2, spacing=2), spy], completions=4, max_tokens=32)
    decoded = 0
    for rollout, logged in zip(spy.seen, run.history, strict=True):
        extra = rollout.continuations
        assert 0 < len(extra.rows) == 2 * logged["credit/Branches/forks"] * len(rollout.mask)
        assert torch.equal(extra.mask.sum(), torch.tensor(int(logged["credit/Branches/decoded_tokens"])))
        assert (rollout.entropy[extra.rows, extra.places] > 0.3).all()
        assert int((extra.places + extra.mask.sum(-1)).max()) <= 32
        decoded += int(rollout.mask.sum() + extra.mask.sum())
        assert logged["tokens/decoded"] == decoded


def test_in_episodes_forks_are_where_turns_begin():
    rollout = make_episodes([[0.0, 0.0, 1.0], [0.0], [0.0, 1.0]])  # two tokens a turn and one of an observation
    rollout.entropy = torch.full_like(rollout.entropy, 0.5)
    assert Branches(forks=2, spacing=1, cuts="turn").choose_forks(rollout).tolist() == [[3, 6], [-1, -1], [3, -1]]
    assert Branches(forks=2, spacing=1).choose_forks(rollout).tolist() == [[1, 3], [1, -1], [1, 3]]


class Scored(Callback):
    """Score the continuations of a batch once more, as an update does."""

    def on_before_backward(self, trainer, pl_module, loss):
        rollout = pl_module.select_minibatch(self.rollout)
        self.scores = pl_module.scorer.score_for_update(rollout, torch.arange(len(rollout.mask))).continuations.detach()

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.rollout = batch


def test_rests_of_episodes_are_trained_on_without_what_the_environment_has_said(fit):
    scored = Scored()
    task = Episodes(LastDigit(), train_size=16, validation_size=4, turn_tokens=8, prompts_per_step=2)
    stack = [Branches(rule="random", rate=1.0, cuts="turn"), scored]
    run = fit(steps=1, stack=stack, task=task, policy=Policy(prompt=PromptFormat(chat=False)))
    rests = scored.rollout.continuations
    gap_mask = ~rests.mask & (torch.arange(rests.mask.shape[1]) < find_read_lengths(rests.mask)[:, None])
    assert gap_mask.any()
    assert not rests.credit[gap_mask].any()
    assert rests.credit.any()
    credited = rests.find_credited(scored.rollout.judged)
    assert_close(scored.scores[credited], rests.logprobs[credited], atol=1e-4, rtol=0)
    assert torch.isfinite(torch.tensor(run.losses)).all()
    assert run.history[0]["tokens/decoded"] == int(scored.rollout.mask.sum()) + int(rests.mask.sum())
