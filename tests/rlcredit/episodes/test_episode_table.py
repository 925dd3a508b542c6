"""The episodes of a rollout: rewards, observations and faults."""

import pytest
import torch

from rlcredit.base.exit_status import RunStopped
from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.episode_table import EpisodeTable, TurnLimits, hash_observation, open_episode
from rlcredit.episodes.replay import refuse_changing_environment
from rlcredit.tasks import Episodes, Example
from rlcredit.verification.verifiers import Verdict
from tests.rlcredit.episodes.counting import Counting, Failing, Forgetful, Silent


class Letters:
    """A format in which a token is a letter and an observation its letters; turns end with 0."""

    turn_ends = ()

    def has_ended(self, tokens):
        return tokens[-1] == 0

    def find_action(self, tokens):
        return "".join(map(chr, tokens)).rstrip("\0")

    def encode_observation(self, text, *, is_cut):
        return [*([0] if is_cut else []), *map(ord, text)]


def open_table(environment, rows=2, turns=3, tokens=None):
    examples = [Example("", "", {"seed": row}) for row in range(rows)]
    return EpisodeTable(environment, examples, Letters(), TurnLimits(turns, tokens))


def take_turn(table, row, text):
    (answer,) = table.answer_turns([row], [[*map(ord, text), 0]])
    return answer


def test_an_action_earns_what_the_environment_says_and_its_observation_follows():
    table = open_table(Counting(2))
    digit = table.episodes[0].observations[0][-1]
    assert take_turn(table, 0, f"it is {digit}") == [*map(ord, table.episodes[0].observations[1])]
    assert take_turn(table, 0, "?") is None
    assert take_turn(table, 1, "?") is not None
    assert table.list_rewards().tolist() == [[0.5, 0.0], [0.0, 0.0]]
    assert [episode.reward for episode in table.episodes] == [0.5, 0.0]


def test_states_are_hashes_of_what_turns_act_on():
    table = open_table(Counting(2))
    take_turn(table, 0, "x")
    first, second = table.episodes[0].observations
    (other,) = table.episodes[1].observations
    expected = [[hash_observation(first), hash_observation(second)], [hash_observation(other), -1]]
    assert table.list_states().tolist() == expected


def test_an_episode_ends_after_the_most_turns():
    table = open_table(Silent(), turns=2)
    assert take_turn(table, 0, "a") == []
    assert take_turn(table, 0, "b") is None
    assert not table.episodes[0].is_done


def test_a_turn_that_was_cut_is_closed_before_the_observation():
    table = open_table(Counting(2), tokens=2)
    assert table.has_ended([65, 66])
    (answer,) = table.answer_turns([0], [[65, 66]])
    assert answer[0] == 0


def test_a_failing_environment_leaves_its_row_unjudged_and_says_why(capsys):
    table, task = open_table(Failing(3), rows=8), Episodes(Failing(3), train_size=1)
    for turn in range(3):
        rows = [row for row in range(8) if len(table.episodes[row].turns) == turn and not table.episodes[row].is_done]
        table.answer_turns(rows, [[49, 0]] * len(rows))
    failed = [episode.fault is not None for episode in table.episodes]
    assert 0 < sum(failed) < 8
    scores = task.score_episodes(table, [Example("", "", {})] * 8)
    assert [verdict is Verdict.UNJUDGED for verdict in scores.verdicts] == failed
    assert scores.rewards.isnan().tolist() == failed
    said = capsys.readouterr().err
    assert f"{sum(failed)} of 8 episodes are not judged" in said
    assert "Failing.step raised ConnectionError: the table is closed" in said


class Haggling(Environment):
    """Gives a fraction, and declares verdicts."""

    def reset(self, example):
        return "buy"

    def step(self, action):
        return Turn("", 0.4, True)


def test_a_reward_that_is_no_verdict_must_be_declared():
    table = open_table(Haggling())
    take_turn(table, 0, "x")
    with pytest.raises(RunStopped, match=r"earned 0\.4, which is neither .* Write `is_graded = True`"):
        Episodes(Haggling(), train_size=1).score_episodes(table, [Example("", "", {})] * 2)


def test_an_environment_that_remembers_is_refused():
    with pytest.raises(ValueError, match=r"Forgetful said .* and, to the same actions in a second episode"):
        refuse_changing_environment(Forgetful(), Example("", "", {"seed": 0}))
    refuse_changing_environment(Counting(), Example("", "", {"seed": 0}))


class Broken(Counting):
    """Returns, or does, something else."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def step(self, action):
        return self.answer() if callable(self.answer) else self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "Broken.step returned None"),
        ("a", "Broken.step returned 'a'"),
        (Turn(7), "Broken.step returned the text 7"),
        (Turn("", float("nan")), "Broken.step returned the reward nan"),
        (Turn("", "one"), "Broken.step returned the reward 'one'"),
        (lambda: exit(3), "Broken.step raised SystemExit"),
        (lambda: 1 // 0, "Broken.step raised ZeroDivisionError"),
    ],
)
def test_what_is_no_turn_is_a_fault_in_one_sentence(answer, said):
    table = open_table(Broken(answer))
    assert take_turn(table, 0, "x") is None
    assert said in table.episodes[0].fault
    assert table.episodes[0].is_done


class Unready(Counting):
    """Cannot begin."""

    def reset(self, example):
        raise OSError("no board")


def test_an_environment_that_cannot_begin_is_refused_before_the_run():
    assert "Unready.reset raised OSError: no board" in open_episode(Unready(), Example("", "", {"seed": 0})).fault
    with pytest.raises(ValueError, match=r"data\.init_args\.environment: Unready\.reset raised OSError: no board"):
        Episodes(Unready(), train_size=2).setup()


class Asked(Episodes):
    """Episodes that have answers."""

    compares_answers = True


def test_without_rewards_the_last_turn_is_judged_where_a_task_can():
    table = open_table(Silent(), rows=2, turns=1)
    take_turn(table, 0, "so the answer is 7")
    take_turn(table, 1, "the answer is 8")
    examples = [Example("3 + 4", "7", {})] * 2
    task = Asked(Silent(), train_size=1, answer_formats=("phrase",))
    assert task.score_episodes(table, examples).verdicts == [Verdict.RIGHT, Verdict.WRONG]
    assert Episodes(Silent(), train_size=1).score_episodes(table, examples).verdicts == [Verdict.WRONG] * 2
    assert not table.has_rewards
    assert table.list_rewards().tolist() == torch.zeros(2, 1).tolist()
