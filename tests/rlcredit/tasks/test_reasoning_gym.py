import csv
from collections import Counter
from pathlib import Path

import pytest
from reasoning_gym.factory import DATASETS

from rlcredit.tasks import ReasoningGym
from tests.slow_cases import mark_others_slow

TABLE = Path(__file__).parents[3] / "studies" / "machinery" / "results" / "reasoning_gym.csv"


NAMES = ("leg_counting", "number_sorting", "coin_flip", "time_intervals", "base_conversion")


@pytest.mark.parametrize("name", mark_others_slow(NAMES))
def test_the_embedded_policy_takes_two_steps_with_a_data_set(fit, name):
    task = ReasoningGym(name, train_size=8, validation_size=2, prompts_per_step=2)
    history = fit(steps=2, completions=2, max_tokens=8, task=task).history
    assert [step["train/unjudged"] for step in history] == [0.0, 0.0]
    assert all(step["train/completion_length"] > 0 for step in history)


def tried():
    with TABLE.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


QUICKEST = sorted((float(row["seconds"]), name) for name, row in tried().items() if row["outcome"] == "runs")[:24]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for _, name in QUICKEST])
def test_data_sets_that_the_table_says_run_do_so(fit, name):
    task = ReasoningGym(name, train_size=8, validation_size=2, prompts_per_step=2)
    assert len(fit(steps=2, completions=2, max_tokens=8, task=task).history) == 2


def test_every_data_set_was_tried_and_runs_or_says_why_not():
    rows = tried()
    assert rows.keys() == DATASETS.keys()
    assert Counter(row["outcome"] for row in rows.values()) == {"runs": 92, "refused": 14}
    assert all(row["message"] for row in rows.values() if row["outcome"] == "refused")


def test_a_data_set_that_needs_a_configuration_says_so():
    with pytest.raises(
        ValueError, match=r"data.init_args.config: composite cannot be made of \{\}: " r"Must specify at least one"
    ):
        ReasoningGym("composite")


def test_a_tolerance_that_would_do_nothing_is_refused():
    with pytest.raises(
        ValueError, match=r"data.init_args.tolerance is 0.1, but .* their own " r"scorers. Leave it out, or name"
    ):
        ReasoningGym("chain_sum", tolerance=0.1)
