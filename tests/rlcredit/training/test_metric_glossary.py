"""Every metric of a real short run has its line, and no line is left over."""

import pytest

from rlcredit import read_run
from rlcredit.training.metric_glossary import METRIC_MEANINGS
from tests.small_runs import finish_small_run

LIGHTNING = {"epoch"}
"""What Lightning adds to every step."""


@pytest.mark.slow
def test_the_glossary_has_every_metric_of_a_default_run_and_no_other(tmp_path):
    status, _, errors = finish_small_run(tmp_path, "--trainer.max_steps=2", "--trainer.logger=false")
    assert status == 0, errors
    logged = set(read_run(tmp_path / "runs" / "grpo-seed0").metrics.columns)
    assert logged - LIGHTNING == METRIC_MEANINGS.keys()


@pytest.mark.parametrize("name", METRIC_MEANINGS)
def test_a_line_is_one_sentence_without_its_full_stop(name):
    each = METRIC_MEANINGS[name]
    assert each.meaning
    assert "\n" not in "".join(each)
    assert not each.meaning.endswith(".")


def test_results_come_first_and_clocks_last():
    heads = list(dict.fromkeys(name.partition("/")[0] for name in METRIC_MEANINGS))
    assert (heads[0], heads[-1]) == ("val", "time")
