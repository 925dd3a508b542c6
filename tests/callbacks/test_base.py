import pytest
from lightning.pytorch import Callback

from callbacks.base import CreditOperator, StackError, check_stack
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL


def operator(name, reads="", writes=""):
    """An operator with a contract and nothing else; kept out of the search for usual writers."""
    return type(name, (CreditOperator,), {}, reads=reads, writes=writes)()


PLANNER = operator("StrategicGrams", reads="tokens", writes="plan_mask")
SCHEDULE = operator("LinearLambda", reads="step", writes="sepa_lambda")
SEPA = operator("SEPA", reads="signal plan_mask sepa_lambda", writes="signal")
GTPO = operator("GTPO", reads="signal advantages", writes="advantages")
HICRA = operator("HICRA", reads="advantages plan_mask", writes="advantages")
PROBE = operator("GradientProbe", reads="advantages")


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (
            [GRPO(), HICRA],
            "HICRA reads `plan_mask`, which no callback above it writes. "
            "Put StrategicGrams above HICRA in trainer.callbacks.",
        ),
        (
            [GRPO(), PLANNER, SCHEDULE, GTPO, SEPA],
            "SEPA writes `signal`, which nothing below it reads. Move SEPA above GTPO in trainer.callbacks.",
        ),
        (
            [GTPO, GRPO()],
            "GRPO overwrites the `advantages` of GTPO before anything uses it. "
            "Move GRPO above GTPO in trainer.callbacks.",
        ),
        (
            [GRPO(), PROBE, MaxRL()],
            "MaxRL overwrites the `advantages` of GRPO before anything uses it. "
            "Keep only one of the two in trainer.callbacks.",
        ),
        (
            [GRPO(), HICRA, PLANNER],
            "HICRA reads `plan_mask`, which no callback above it writes. "
            "Move StrategicGrams above HICRA in trainer.callbacks.",
        ),
        (
            [GRPO(), SCHEDULE],
            "LinearLambda writes `sepa_lambda`, which nothing below it reads. "
            "Remove LinearLambda from the list trainer.callbacks.",
        ),
    ],
)
def test_a_meaningless_stack_is_rejected_with_its_repair(stack, message):
    with pytest.raises(StackError) as error:
        check_stack(stack)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "stack",
    [
        [],
        [GTPO],
        [GRPO(), GTPO],
        [GRPO(), PLANNER, HICRA, GTPO],
        [GRPO(), PLANNER, GTPO, HICRA],
        [PROBE, GRPO(), PLANNER, SCHEDULE, PROBE, SEPA, GTPO, HICRA, PROBE],
        [Callback(), GRPO(), Callback()],
    ],
)
def test_a_stack_that_means_something_passes(stack):
    check_stack(stack)


@pytest.mark.parametrize(("reads", "writes"), [("advantage", ""), ("", "rewards"), ("", "nothing")])
def test_a_contract_about_no_field_or_about_writing_a_fact_is_refused(reads, writes):
    with pytest.raises(TypeError, match="facts read-only"):
        operator("Wrong", reads, writes)


def test_lightning_refuses_a_bad_stack_without_the_command_line(fit):
    with pytest.raises(StackError, match="Put StrategicGrams above HICRA"):
        fit(stack=[GRPO(), HICRA])


class Undeclared(CreditOperator, reads="advantages"):
    """Change what it says it only watches."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages * 2
        return {}


class PerCompletion(CreditOperator, reads="rewards", writes="advantages"):
    """Forget that credit belongs to tokens."""

    def assign(self, rollout):
        rollout.advantages = rollout.rewards
        return {}


class NotANumber(CreditOperator, reads="advantages", writes="advantages"):
    """Divide by nothing."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages / 0
        return {}


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Undeclared, r"Undeclared rebinds \['advantages'\] without declaring it in `writes`"),
        (PerCompletion, r"PerCompletion leaves advantages of shape \(8,\), expected \(8, 6\): one per token"),
        (NotANumber, r"NotANumber leaves advantages that are not finite, at step 3"),
    ],
)
def test_an_operator_is_held_to_its_header(rollout, operator, message):
    with pytest.raises(StackError, match=message):
        operator().checked(rollout)


class Count(CreditOperator, reads="rewards"):
    """Report a constant."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def assign(self, rollout):
        return {"value": float(self.value)}


def test_two_operators_of_one_class_keep_their_metrics_apart(fit):
    run = fit(steps=1, stack=[Count(1), GRPO(), Count(2)])
    assert run.history[0]["credit/Count/value"] == 1
    assert run.history[0]["credit/Count_2/value"] == 2
