"""A stack that is accepted has no line without effect: whatever an operator writes reaches the advantages."""

import copy
import functools
import itertools
import math
import warnings

import pytest
import torch

from callbacks import StackWarning
from callbacks.critics.adapter_critic import AdapterCritic
from callbacks.critics.answer_critic import AnswerCritic
from callbacks.critics.head_critic import HeadCritic
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.dense.gae import GAE
from callbacks.dense.implicit_reward import ImplicitReward
from callbacks.dense.self_distillation import SelfDistillation
from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.episode.pass_at_k import PassAtK
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.planning.mined_grams import MinedGrams
from callbacks.planning.semantic_planner import SemanticPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_heatmap import CreditHeatmap
from callbacks.probes.signal_stats import SignalStats
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.linear_lambda import LinearLambda
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.signals.process_signal import ProcessSignal
from callbacks.signals.sepa import SEPA
from callbacks.tokens.advantage_clip import AdvantageClip
from callbacks.tokens.gradient_size_mask import GradientSizeMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.opsa import OPSA
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from callbacks.tokens.quadrant_mask import QuadrantMask
from callbacks.tokens.random_sign import RandomSign
from callbacks.tokens.repo import REPO
from callbacks.tokens.rsi_mask import RSIMask
from callbacks.tokens.stare import STARE
from callbacks.tokens.taco import TACO
from callbacks.turns.within_turns import WithinTurns
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import bound_advantages, check_stack
from tests.conftest import make_rollout

BATCH = make_rollout((1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, *[0.0] * 4, *[1.0] * 4), width=9, seed=3)
BATCH.completion_ids = BATCH.completion_ids.index_fill(1, torch.arange(4), 5)  # prefixes that completions share
BATCH.turn = (torch.arange(9) // 3).where(BATCH.mask, -1)  # up to three turns, which nothing stands between
BATCH.turn_rewards = torch.rand(16, 3, generator=torch.Generator().manual_seed(5))
BATCH.states = torch.arange(48).view(16, 3) % torch.tensor([1, 2, 4])  # of which the group meets some again


def taught(critic):
    """A critic that has learned from another batch, and so is used."""
    critic.assign(make_rollout((1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0), width=9, seed=4))
    return critic


ACTIVE = {
    AdapterCritic: lambda: taught(AdapterCritic(warmup=1)),
    AdvantageClip: lambda: AdvantageClip(1.05),
    AnnealOut: lambda: AnnealOut(REPO(), delay=0, steps=9),
    AnswerCritic: lambda: taught(AnswerCritic(width=8, fits=2, batch=64, warmup=1)),
    ConstantLambda: lambda: ConstantLambda(0.7),
    CorrectnessGate: lambda: CorrectnessGate(threshold=0.1, ramp=9),
    ExpectedGradient: lambda: ExpectedGradient(share=0.5),
    GAE: lambda: GAE(share=0.5),
    HeadCritic: lambda: taught(HeadCritic(width=8, fits=2, batch=64, warmup=1)),
    GradientSizeMask: lambda: GradientSizeMask(share=0.3, scope="sequence"),
    ImplicitReward: lambda: taught(ImplicitReward(rate=0.1)),
    LinearLambda: lambda: LinearLambda(delay=0, steps=9),
    MinedGrams: lambda: StrategicGrams(["think"]),
    OPSA: lambda: OPSA(share=1.0, groups="all"),
    OutcomeAnchor: lambda: OutcomeAnchor(eta=0.7),
    PassAtK: lambda: PassAtK(k=2),
    QuadrantMask: lambda: QuadrantMask(("PHR", "NLR")),
    RidgeCritic: lambda: taught(RidgeCritic(warmup=1)),
    RSIMask: lambda: RSIMask(low=0.5, high=1.5),
    RandomSign: lambda: RandomSign(groups="all"),
    SelfDistillation: lambda: SelfDistillation(groups="all"),
    SoftOverlong: lambda: SoftOverlong(max_tokens=8, cache=7),
    STARE: lambda: STARE(share=0.4, target=math.inf, down=0.8),
    StrategicGrams: lambda: StrategicGrams(["let me"]),
    TACO: lambda: TACO(alpha=1.0),
    WithinTurns: lambda: WithinTurns(GTPO(beta=0.5)),
    VarianceLambda: lambda: VarianceLambda(warmup=1, decay=0.0, threshold=5.0, steps=None),
}
"""Operators whose defaults do nothing to batches as small as these, with arguments that do."""


@functools.cache
def active(kind):
    """An operator that acts; stacks are copied before they do."""
    return ACTIVE.get(kind, kind)()


SUPPORT = {
    "plan_mask": StrategicGrams(["me think"]),
    "sepa_lambda": ConstantLambda(0.4),
    "process": ProcessSignal(beta=1.0),
    "values": active(RidgeCritic),
}
KINDS = [kind for kind in find_operator_classes() if kind.writes and kind is not SemanticPlanner]


def supported(stack):
    """The stack below writers of what its operators read and nobody writes."""
    support = []
    for name, writer in SUPPORT.items():
        places = [place for place, operator in enumerate(stack) if name in operator.writes]
        if any(name in operator.reads for operator in stack[: places[0] + 1 if places else None]):
            support.append(writer)
    return [*support, *stack]


def accepted(stack):
    try:
        check_stack(stack)
    except StackError:
        return False
    return True


def credit(stack):
    """The advantages that a stack leaves, and whether each of its operators has changed what it writes."""
    return credit_once(tuple(stack))


@functools.cache
def credit_once(stack):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StackWarning)
        rollout, changed = BATCH.copy_with_neutral_ledger(), []
        for operator in copy.deepcopy(stack):
            before = {
                name: getattr(rollout, name) for name in operator.writes - {"critic", "alternatives", "continuations"}
            }
            operator.assign(rollout)
            changed.append(
                any(
                    not torch.equal(*map(torch.as_tensor, (value, getattr(rollout, name))))
                    for name, value in before.items()
                )
            )
    return rollout.advantages.where(rollout.mask, 0), changed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_write_that_changes_something_changes_the_credit_of_every_accepted_pair(kind):
    for below in KINDS:
        stack = supported([active(kind), active(below)])
        if below is kind or not accepted(stack):
            continue
        whole, changed = credit(stack)
        if changed[-2]:
            without, _ = credit([*stack[:-2], stack[-1]])
            assert not torch.equal(whole, without), f"{kind.__name__} above {below.__name__} is lost"


def test_a_penalty_reaches_the_credit_of_every_accepted_stack_of_three():
    penalty, lost = active(SoftOverlong), []
    writers = [kind for kind in KINDS if "advantages" in kind.writes]
    for first, second in itertools.product(writers, writers):
        below = supported([active(first), active(second)])
        if accepted([penalty, *below]) and torch.equal(credit([penalty, *below])[0], credit(below)[0]):
            lost.append((first.__name__, second.__name__))
    assert not lost


PENALTY = SoftOverlong(max_tokens=8, cache=7)


@pytest.mark.parametrize(
    "below",
    [
        [],
        [GTPO()],
        [BatchNormalization()],
        [GRPO(), BatchNormalization()],
        [CreditHeatmap(), GRPO()],
    ],
)
def test_a_penalty_on_rewards_that_become_credit_is_accepted(below):
    check_stack([PENALTY, *below])
    assert not torch.equal(credit([PENALTY, *below])[0], credit(below)[0])


NOTHING = "SoftOverlong writes `rewards`, which nothing below it reads."


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ([PENALTY, MaxRL(), CreditHeatmap()], f"{NOTHING} Remove SoftOverlong from the stack."),
        ([PENALTY, CreditHeatmap(), MaxRL()], f"{NOTHING} Remove SoftOverlong from the stack."),
        ([GRPO(), PENALTY, CreditHeatmap()], f"{NOTHING} Move SoftOverlong above GRPO in the stack."),
        ([GRPO(), PENALTY, BatchNormalization()], f"{NOTHING} Move SoftOverlong above GRPO in the stack."),
        ([PENALTY, MaxRL(), BatchNormalization()], f"{NOTHING} Remove SoftOverlong from the stack."),
        (
            [PENALTY, GRPO(), MaxRL()],
            "MaxRL overwrites the `advantages` of GRPO before anything uses it. Keep only one of the two in the stack.",
        ),
        (
            [StrategicGrams(), LinearLambda(), GTPO(), SEPA(), SignalStats()],
            "SEPA writes `signal`, which only probes read. Move SEPA above GTPO in the stack.",
        ),
    ],
)
def test_a_probe_or_a_reader_of_something_else_excuses_no_write(stack, message):
    with pytest.raises(StackError) as error:
        check_stack(stack)
    assert str(error.value) == message


def test_a_stack_that_only_measures_what_it_writes_is_one():
    check_stack([StrategicGrams(), ConstantLambda(), SEPA(), SignalStats(), GRPO()])


def test_shaped_rewards_that_become_credit_have_no_known_bound():
    assert bound_advantages([PENALTY, AdvantageClip(0.5)], 4) == [1.0, math.inf, 0.5]
    assert bound_advantages([PENALTY, GRPO()], 4)[-1] == math.inf
    assert bound_advantages([GRPO(), GTPO(beta=0.0)], 4)[1] == 0.75
