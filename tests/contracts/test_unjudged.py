"""A completion without a verdict is as if it had not been sampled: no credit of its own, and no change to others'."""

import copy
import warnings

import pytest
import torch
from torch.testing import assert_close

from callbacks import StackWarning
from callbacks.critics.answer_critic import AnswerCritic
from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.branches import Branches
from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.grpo import GRPO
from callbacks.episode.grpos import GRPOS
from callbacks.episode.pass_at_k import PassAtK
from callbacks.episode.rloo import RLOO
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.episode.tracked_baseline import TrackedBaseline
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.semantic_planner import SemanticPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.signals.process_signal import ProcessSignal
from callbacks.signals.sepa import SEPA
from callbacks.signals.shuffled_signal import ShuffledSignal
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_gate import EntropyGate
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from callbacks.tokens.quadrant_mask import QuadrantMask
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.random_sign import RandomSign
from callbacks.tokens.repo import REPO
from callbacks.tokens.stare import STARE
from callbacks.turns.random_turns import RandomTurns
from callbacks.turns.within_turns import WithinTurns
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.stack import CreditStack
from rlcredit.formulas.gates import AdaptiveEta
from rlcredit.formulas.groups import group_imputed_values
from tests.conftest import make_rollout

SCOPES = ("sequence", "group", "batch")
ARGUED = [
    GRPO(normalize_std=True),
    PassAtK(k=2),
    BatchNormalization(zero_variance="exclude"),
    GRPOS(norm_set="own"),
    EntropyGate(normalize="mean"),
    OutcomeAnchor(zero_variance="outcome"),
    Delight(eta=AdaptiveEta(decay=0.9)),
    STARE(target=0.45, down=0.9, adapt=0.1),
    Branches(forks=2, spacing=1, rule="entropy_rank", train="equal"),
    MonteCarloCredit(samples=2, cuts="sentence", train="on_policy"),
    *(EntropyMask(rho=0.3, scope=scope, denominator="kept", keep_ties=True) for scope in SCOPES),
    *(QuadrantMask(("PHR", "NLR"), threshold, scope) for threshold in ("mean", "median", "top") for scope in SCOPES),
    *(RandomMask(rho=0.3, scope=scope) for scope in SCOPES),
]
PLAIN = {
    AnnealOut: lambda: AnnealOut(REPO(), delay=0, steps=9),
    SoftOverlong: lambda: SoftOverlong(max_tokens=6, cache=4),
    CorrectnessGate: lambda: CorrectnessGate(threshold=0.55),
    AnswerCritic: lambda: AnswerCritic(width=8, fits=2, batch=64),
    HeadCritic: lambda: HeadCritic(width=8, fits=2, batch=64),
    VarianceLambda: lambda: VarianceLambda(warmup=1, decay=0.0, threshold=5.0, steps=None),
    PassAtK: lambda: PassAtK(k=1),
    WithinTurns: lambda: WithinTurns(GTPO(beta=0.5)),
}
OPERATORS = [
    *ARGUED,
    *(PLAIN.get(kind, kind)() for kind in find_operator_classes() if kind.writes and kind is not SemanticPlanner),
]
STATEFUL = [VarianceLambda(warmup=1), REPO(), STARE(adapt=0.1), CorrectnessGate(), TrackedBaseline()]
DRAWN = (RandomMask, RandomPlanner, RandomSign, RandomTurns, ShuffledSignal)
"""Their noise belongs to places in the batch."""

VERDICTS = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
USES = [EntropyMask(rho=0.5), ConstantLambda(), SEPA(), GTPO(beta=0.5)]
"""Operators whose credit shows what has become of signal, planning mask and lambda."""


def name(operator):
    return f"{type(operator).__name__}{operator.arguments or ''}"


def with_unjudged(whole, extra):
    """The same rollout, ``extra`` completions of every group and one whole group more, all without a verdict."""
    groups, size, width = len(whole.mask) // whole.group_size, whole.group_size + extra, whole.mask.shape[1]
    wider = make_rollout([0.0] * (groups + 1) * size, group_size=size, width=width, seed=9)
    old = torch.arange((groups + 1) * size).view(-1, size)[:groups, : whole.group_size].flatten()
    for field in (
        "mask",
        "turn",
        "old_logprobs",
        "entropy",
        "sum_pi_squared",
        "ref_logprobs",
        "ref_log_ratio",
        "completion_ids",
        "hidden",
    ):
        setattr(wider, field, getattr(wider, field).index_copy(0, old, getattr(whole, field)))
    wider.tokens = [list(pieces) for pieces in wider.tokens]
    for row, pieces in zip(old.tolist(), whole.tokens, strict=True):
        wider.tokens[row] = pieces
    wider.judged = torch.zeros(len(wider.mask), dtype=torch.bool).index_fill(0, old, True)
    wider.correct = group_imputed_values(wider.correct.index_copy(0, old, whole.correct), wider.judged, size)
    return wider, old


BATCHES = [make_rollout(VERDICTS, width=6, seed=seed) for seed in (0, 1)]
JOINED_BATCHES = [tuple(zip(*(with_unjudged(batch, extra) for batch in BATCHES), strict=True)) for extra in (0, 1, 3)]
"""The batches with so many unjudged completions more in every group, and the rows at which the judged ones are."""


def stack_around(operator):
    """What has to stand above an operator for it to do something, and below it for that to be seen."""
    above = [StrategicGrams(), ProcessSignal(beta=1.0), ConstantLambda(0.5)]
    if operator.reads & {"advantages"}:
        above.append(GRPO())
    below = [] if "advantages" in operator.writes else [GRPO(), *USES, OutcomeAnchor(eta=0.5)]
    return [*above, copy.deepcopy(operator), *below]


def left(operator, *rollouts):
    """The ledger after each of several batches, the state of the stack being kept."""
    stack = stack_around(operator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StackWarning)
        ledgers = [rollout.copy_with_neutral_ledger() for rollout in rollouts]
        for ledger in ledgers:
            for each in stack:  # no program: an operator stands here beside neighbours that may not need it
                each.assign_checked(ledger)
        return ledgers


@pytest.mark.parametrize("operator", [one for one in OPERATORS if not isinstance(one, DRAWN)], ids=name)
def test_unjudged_completions_change_no_credit_of_judged_ones(operator):
    alone_ledgers = left(operator, *BATCHES)
    for joined, rows in JOINED_BATCHES:
        for mine, alone, old in zip(left(operator, *joined), alone_ledgers, rows, strict=True):
            where = alone.mask
            for field in ("rewards", "values", "advantages", "signal", "process", "sepa_lambda"):
                one, two = getattr(mine, field), getattr(alone, field)
                if field == "sepa_lambda":
                    assert one == pytest.approx(two, abs=1e-6)
                elif field == "rewards":
                    assert_close(one[old], two)
                else:
                    assert_close(one[old][where], two[where], atol=1e-6, rtol=1e-5)
            others = ~mine.judged
            assert not mine.advantages[others].where(mine.mask[others], 0).any(), "credit without a verdict"


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_what_unjudged_completions_hold_changes_no_credit_of_judged_ones(operator):
    judged = torch.tensor([True, True, False, True, True, False, True, True])
    ledgers = []
    for scale in (1.0, 7.0):
        rollout = make_rollout(VERDICTS)
        rollout.judged = judged
        for field in ("entropy", "old_logprobs", "ref_log_ratio", "sum_pi_squared"):
            value = getattr(rollout, field)
            setattr(rollout, field, torch.where(judged[:, None], value, scale * value))
        rollout.correct = group_imputed_values(rollout.correct, judged, 4)
        ledgers.append(left(operator, rollout)[0])
    for field in ("rewards", "advantages"):
        assert torch.equal(*(getattr(ledger, field)[judged] for ledger in ledgers))
    assert not ledgers[0].advantages[~judged].where(ledgers[0].mask[~judged], 0).any()


def test_leaving_one_out_leaves_one_of_the_judged_out():
    rollout, _ = with_unjudged(make_rollout([1.0, 1.0, 0.0, 0.0], group_size=4), extra=12)
    assert CreditStack([RLOO()]).assign(rollout).advantages[:4, 0].tolist() == pytest.approx(
        [2 / 3, 2 / 3, -2 / 3, -2 / 3]
    )
    standardised = CreditStack([GRPO(normalize_std=True)]).assign(rollout).advantages[:4, 0]
    assert standardised.abs().tolist() == pytest.approx([0.75**0.5] * 4, abs=1e-5)
    assert not CreditStack([PassAtK(k=4)]).assign(rollout).advantages.any()  # four of four tries are all there are


def test_without_operators_too_there_is_no_credit_without_a_verdict():
    rollout = make_rollout([1.0, 0.5, 0.0, 0.5])
    rollout.judged = torch.tensor([True, False, True, False])
    assert rollout.advantages[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("operator", STATEFUL, ids=name)
def test_a_batch_without_any_verdict_moves_no_state(operator):
    operator, rollout = copy.deepcopy(operator), make_rollout()
    operator.assign(rollout)
    before = operator.state_dict()
    rollout.judged = torch.zeros(8, dtype=torch.bool)
    operator.assign(rollout)
    assert operator.state_dict() == before
