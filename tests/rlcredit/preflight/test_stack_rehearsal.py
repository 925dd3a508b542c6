"""What a rehearsal on made-up completions can try, and what it leaves to the run."""

import pytest

from callbacks.episode.grpo import GRPO
from rlcredit.credit.operator import CreditOperator
from rlcredit.preflight.stack_rehearsal import rehearse_stack


@pytest.mark.parametrize("fact", ["hidden", "lookahead", "oracle", "task_rewards"])
def test_an_operator_that_reads_what_only_a_run_has_is_left_to_it(fact):
    class Reader(CreditOperator, reads=f"{fact} advantages", writes="advantages"):
        def assign(self, rollout):
            raise AssertionError("tried")

    assert rehearse_stack([GRPO(), Reader()], 4) == ["Reader"]
