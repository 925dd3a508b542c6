from types import SimpleNamespace

import pytest
import torch
from tiny_traces import CHAIN_SUM

from rlcredit.base.exit_status import RunStopped
from rlcredit.decoding.engine import Engine
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.supervision.no_reward import NoReward
from rlcredit.tasks import Episodes, ReasoningGym
from rlcredit.verification.rewards import Scores
from rlcredit.verification.verifiers import Verdict
from tests.rlcredit.episodes.counting import Counting


class Strict(ReasoningGym):
    """Find nothing right, but for the steps named."""

    def __init__(self, kind, rewarded=()):
        super().__init__("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
        self.kind, self.rewarded, self.asked = kind, rewarded, 0

    def judge(self, completions, examples):
        self.asked += 1
        return [Verdict.RIGHT if self.asked - 1 in self.rewarded else self.kind] * len(completions)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (Verdict.WRONG, "see docs/howto/verifier.md"),
        (Verdict.UNJUDGED, "data.init_args.answer_formats leaves out"),
        (Verdict.NO_ANSWER, "raise model.sampling.max_tokens|Ask for one in data.init_args.instruction"),
    ],
)
def test_a_run_that_earns_nothing_shows_a_completion_once(fit, capsys, kind, advice):
    fit(steps=5, task=Strict(kind), callbacks=[NoReward()])
    shown = capsys.readouterr().err
    assert shown.count("warning: none of the first 48 completions has earned a reward") == 1
    for name in ("prompt", "completion", "reference"):
        assert f"\n  {name}:" in shown
    assert f"verdict:    '{kind.value}'" in shown
    assert any(part in shown for part in advice.split("|"))


def test_one_reward_in_the_first_rollouts_is_enough(fit, capsys):
    fit(steps=5, task=Strict(Verdict.WRONG, rewarded=(2,)), callbacks=[NoReward()])
    assert "has earned a reward" not in capsys.readouterr().err


def test_a_run_that_is_continued_has_been_watched(fit, capsys):
    watching = NoReward()

    seen = []
    for step in (0, 7):
        watching.on_train_start(SimpleNamespace(global_step=step), None)
        seen.append(watching.watching)
    assert seen == [True, False]


class Silent(Strict):
    """Leave every reward untold, but for the steps named."""

    def __init__(self, rewarded=()):
        super().__init__(Verdict.UNJUDGED, rewarded)

    def score(self, completions, examples):
        verdicts = self.judge(completions, examples)
        judged = [1.0 if each is Verdict.RIGHT else float("nan") for each in verdicts]
        return Scores(verdicts, torch.tensor(judged))


def test_rewards_that_judge_nothing_in_three_rollouts_end_the_run(fit):
    with pytest.raises(
        RunStopped, match=r"Step 2: data.init_args.rewards left every completion of " r"3 rollouts in a row"
    ):
        fit(steps=5, task=Silent(), callbacks=[NoReward()])
    fit(steps=5, task=Silent(rewarded=(2,)), callbacks=[NoReward()])


class Hopeless(Counting):
    """Rewards no turn."""

    is_graded = False

    def step(self, action):
        return super().step(action)._replace(reward=0.0)


def test_episodes_that_earn_nothing_are_shown_with_what_was_answered(fit, capsys):
    task = Episodes(Hopeless(), train_size=16, validation_size=4, turn_tokens=8, prompts_per_step=2)
    policy = Policy(prompt=PromptFormat(chat=False))
    fit(steps=3, task=task, policy=policy, callbacks=[NoReward()])
    shown = capsys.readouterr().err
    assert shown.count("has earned a reward, so nothing is learnt") == 1
    assert "verdict:    'wrong'\nBegin with easier episodes" in shown


class Single(Engine):
    """Answers single turns."""

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        raise NotImplementedError


def test_an_engine_of_single_turns_is_refused_before_anything_is_sampled(fit):
    task = Episodes(Hopeless(), train_size=16, validation_size=4, turn_tokens=8, prompts_per_step=2)
    with pytest.raises(ValueError, match="Single answers single turns, and the task has an environment"):
        fit(steps=1, task=task, policy=Policy(prompt=PromptFormat(chat=False)), engine=Single())
