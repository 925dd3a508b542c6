"""Episodes whose environment fails have no verdict, whoever judges the others."""

import pytest

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from rlcredit.tasks.example import Example
from rlcredit.verification.verifiers import Verdict


class Silent(Environment):
    """Gives no reward, and fails where it is told to."""

    def reset(self, example):
        return "what is 4 + 3?"

    def step(self, action):
        if action == "fail":
            raise ConnectionError("closed")
        return Turn(done=True)


class Graded(Silent):
    is_graded = True


class Asked(Episodes):
    """Episodes that have answers."""

    compares_answers = True


@pytest.fixture
def play(policy):
    policy = Policy(prompt=PromptFormat(chat=False))
    policy.load()

    def play(environment, actions):
        examples = [Example("what is 4 + 3?", "7", {"seed": 0})] * len(actions)
        task = Asked(environment, train_size=2, validation_size=2)
        table = task.open_episodes(policy, examples)
        encode = policy.tokenizer.encode
        table.answer_turns(range(len(actions)), [encode(f"{text}\n", add_special_tokens=False) for text in actions])
        return task.score_episodes(table, examples)

    return play


def test_a_verifier_judges_the_last_turns_of_sound_episodes_only(play):
    scores = play(Silent(), ["the answer is 7", "the answer is 8", "fail"])
    assert list(scores.verdicts) == [Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED]
    assert scores.rewards is None


def test_a_graded_environment_that_fails_everywhere_gives_rewards_all_the_same(play):
    scores = play(Graded(), ["fail", "fail"])
    assert list(scores.verdicts) == [Verdict.UNJUDGED] * 2
    assert scores.rewards is not None
    assert scores.rewards.isnan().all()
