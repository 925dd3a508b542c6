"""Policies that ship: small, described, and as their cards say."""

import re
from pathlib import Path

import pytest
import torch
from game_traces import BISECTION_HABITS, CORRIDOR_SUCCESS, ECHO_SHARE, SUM_HABITS
from organism_traces import (
    BACKWARD_SETTINGS,
    DECOY_SETTINGS,
    DELAYED_SETTINGS,
    HINTED_SETTINGS,
    MANY_FILLERS_SETTINGS,
)

from callbacks.dense.self_distillation import ANSWER_HINT
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cards.card_policies import list_policy_names, resolve_card_policy
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.episodes.games import Bisection, Corridor, RunningSum
from rlcredit.policy.model_loading import find_embedded_policy
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes

ROOT = Path(__file__).parents[2]
GAME_POLICIES = ["bisection", "corridor", "running_sum"]
"""Policies of games, which are no test policies of cards."""
MOST = 1_000_000
"""Bytes of a policy."""


def location(name):
    return find_embedded_policy("tiny" if name == "aligned" else f"organisms/{name}")


@pytest.mark.parametrize("name", [*list_policy_names(), *GAME_POLICIES])
def test_it_is_small_and_says_what_was_planted(name):
    folder = location(name)
    assert sum(file.stat().st_size for file in folder.iterdir()) < MOST
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"--out {folder.relative_to(ROOT).as_posix()}" in readme
    assert "172,576 parameters" in readme


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("decoy", [DECOY_SETTINGS["short"]]),
        ("delayed", [DELAYED_SETTINGS["turned"]]),
        ("backward", [BACKWARD_SETTINGS["at_once"], BACKWARD_SETTINGS["cut"]]),
        ("hinted", [HINTED_SETTINGS["plain"]["slip"], HINTED_SETTINGS["hinted"]["slip"]]),
        ("many_fillers", [MANY_FILLERS_SETTINGS["wrong"]]),
        ("corridor", [CORRIDOR_SUCCESS, ECHO_SHARE]),
        ("bisection", list(BISECTION_HABITS.values())),
        ("running_sum", list(SUM_HABITS.values())),
    ],
)
def test_its_page_names_the_shares_of_its_traces(name, shares):
    said = re.findall(r"\d+ %", (location(name) / "README.md").read_text(encoding="utf-8"))
    assert {f"{100 * share:.0f} %" for share in shares} <= set(said)


START_RANGES = {"hinted": (0.03, 0.1), "many_fillers": (0.03, 0.12)}
"""Share that a policy solves before training, where it is not 20 to 60 %."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list_policy_names())
def test_it_solves_its_task_sometimes_and_is_never_cut_off(name):
    low, high = START_RANGES.get(name, (0.2, 0.6))
    solved, truncated = answer_held_out_questions(name)
    assert low <= solved <= high
    assert truncated <= 0.01


@pytest.mark.slow
def test_where_the_question_comes_with_its_answer_the_hinted_policy_is_mostly_right():
    assert answer_held_out_questions("hinted", ANSWER_HINT)[0] >= 0.7


def answer_held_out_questions(name, hint=""):
    """Return the share of 64 held-out questions, with a hint behind each, that is solved, and the share cut off."""
    resolution = resolve_condition([f"--config={file}" for file in resolve_card_policy(name).files])
    module, task = resolution.module, resolution.task
    task.validation_size, number = 64, module.validation.completions
    task.setup()
    module.policy.load()
    examples = task.held_out_set
    questions = [example.question + hint.replace("{answer}", example.answer) for example in examples]
    prompts = module.policy.encode_questions(questions)
    samples = InProcessEngine().sample(module.policy, prompts, range(64), module.validation, seed=0, step=0)
    answers = ["".join(pieces) for pieces in module.policy.decode_pieces(samples.completion_ids, samples.mask)]
    judged = task.judge(answers, [example for example in examples for _ in range(number)])
    solved = sum(verdict.name == "RIGHT" for verdict in judged) / len(judged)
    return solved, torch.count_nonzero(samples.truncated).item() / len(judged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "environment", "turns"),
    [
        ("corridor", Corridor(rho=1), 16),
        ("corridor", Corridor(rho=1 / 4), 16),
        ("corridor", Corridor(rho=1 / 16), 16),
        ("bisection", Bisection(), 6),
        ("running_sum", RunningSum(), 7),
    ],
)
def test_a_game_is_won_sometimes_and_never_cut_off(name, environment, turns, fit):
    run = fit(
        policy=Policy(path=f"organisms/{name}", prompt=PromptFormat(chat=False)),
        task=Episodes(environment, prompts_per_step=128, max_turns=turns, turn_tokens=5),
        steps=1,
        max_tokens=224,
        temperature=1.0,
    )
    assert 0.015 <= run.history[0]["train/solve_rate"] <= 0.12
    assert run.history[0]["train/truncated"] == 0
