"""Definition 1 of the paper, executed for every operator there is: f reads rewards, g reads what it says."""

import copy
import functools
import inspect
import math
import warnings
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import callbacks
from callbacks import StackWarning
from callbacks.critics.adapter_critic import AdapterCritic
from callbacks.critics.answer_critic import AnswerCritic
from callbacks.critics.head_critic import HeadCritic
from callbacks.critics.oracle_teacher import OracleTeacher
from callbacks.dense.implicit_reward import ImplicitReward
from callbacks.dense.optimal_token_baseline import OptimalTokenBaseline
from callbacks.dense.prefix_baseline import PrefixBaseline
from callbacks.dense.tempo import TEMPO
from callbacks.episode.grpo import GRPO
from callbacks.episode.opo import OPO
from callbacks.episode.pass_at_k import PassAtK
from callbacks.episode.rloo import RLOO
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.episode.softmax_grpo import SoftmaxGRPO
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.probes.quadrant_stats import QuadrantStats
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.signals.process_signal import ProcessSignal
from callbacks.signals.sepa import SEPA
from callbacks.signals.sepa_amplification import SEPAAmplification
from callbacks.signals.shuffled_signal import ShuffledSignal
from callbacks.signals.surprisal import Surprisal
from callbacks.tokens.delight import Delight
from callbacks.tokens.eapo import EAPO
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hard_delight import HardDelight
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from callbacks.tokens.quadrant_mask import QuadrantMask
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.random_sign import RandomSign
from callbacks.tokens.repo import REPO
from callbacks.tokens.rsi_mask import RSIMask
from callbacks.tokens.stare import STARE
from callbacks.tokens.taco import TACO
from callbacks.turns.random_turns import RandomTurns
from callbacks.turns.within_turns import WithinTurns
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.rollout import ROLLOUT_FIELDS, Rollout
from rlcredit.formulas.gates import AdaptiveEta
from rlcredit.formulas.reward_histogram import RewardHistogram
from tests.conftest import KnownCritic, copy_rollout_fields, make_rollout

OPERATORS = find_operator_classes()
DRAWN = {
    *(RandomMask, RandomPlanner, RandomSign, RandomTurns, ShuffledSignal, QuadrantStats),
    *(AnswerCritic, HeadCritic, OracleTeacher),
}
SHAPE = {"mask", "group_size"}
TOKENS = ("signal", "plan_mask", "process", "progress", "values", "advantages")
SHARES = ("sepa_lambda", "critic_weight")
REQUIRED = {
    SoftOverlong: {"max_tokens": 4, "cache": 2},
    AnnealOut: {"operator": RSIMask(low=0.5, high=1.5)},
    WithinTurns: {"operator": GTPO()},
}
"""Arguments without which an operator does not act outside a trainer."""

NEUTRAL = [
    *(kind(**REQUIRED.get(kind, {}), **kind.neutral) for kind in OPERATORS if kind.neutral),
    Surprisal(),
    SEPA(),
    SEPAAmplification(),
    SEPAAmplification(clamped=True),
    EntropyMask(rho=1.0, scope="sequence", denominator="kept"),
    Delight(blend="lambda"),
    HardDelight(blend=0.0),
    EAPO(modulated=()),
    STARE(target=0.0, adapt=0.1),
    QuadrantMask(threshold="top", scope="batch"),
    AnnealOut(RSIMask(low=0.0, high=math.inf), delay=0, steps=9),
    AnnealOut(RSIMask(low=0.5, high=1.5), delay=0, steps=3),
    WithinTurns(GTPO(beta=0.0)),
]
"""What headers declare to be the identity, and other arguments or neighbours with which an operator is."""

NEVER_NEUTRAL = {
    "AnnealOut",
    "AnswerCritic",
    "BatchNormalization",
    "BucketNormalization",
    "OddsWeight",
    "RandomPlanner",
    "WithinTurns",
}
"""Operators that always change what they read: they normalise, weigh by a probability, turn a mask, judge, or run
another."""


ACTIVE = {
    AnnealOut: lambda: AnnealOut(REPO(), delay=0, steps=9),
    Delight: lambda: Delight(eta=AdaptiveEta(decay=0.9)),
    QuadrantMask: lambda: QuadrantMask(keep=("PHR", "NLR")),
    SoftOverlong: lambda: SoftOverlong(max_tokens=5, cache=3),
    TACO: lambda: TACO(alpha=1.0),
    AdapterCritic: lambda: AdapterCritic(target=RewardHistogram(high=2.0), warmup=1, rate=0.1),
    ImplicitReward: lambda: ImplicitReward(rate=0.1),
    AnswerCritic: lambda: AnswerCritic(target=RewardHistogram(high=2.0), warmup=1, fits=2),
    HeadCritic: lambda: HeadCritic(target=RewardHistogram(high=2.0), warmup=1, fits=2),
    STARE: lambda: STARE(target=math.inf, down=0.9, adapt=0.1),
    WithinTurns: lambda: WithinTurns(REPO()),
    VarianceLambda: lambda: VarianceLambda(warmup=2, decay=0.5, threshold=5.0, steps=None),
}
"""Operators whose defaults do nothing to batches as small as these, with arguments that do."""


CONTRACTS = []
"""Functions that each check one contract of an operator, with the operators that it is for."""


def contract_of(operators):
    """Add the function below to the contracts of these operators."""
    return lambda check: CONTRACTS.append((check, frozenset(operators))) or check


def made(operator):
    return ACTIVE.get(operator, operator)()


def name(thing):
    return thing.__name__ if isinstance(thing, type) else f"{type(thing).__name__}{thing.arguments or ''}"


def equal(one, two):
    if isinstance(one, torch.Tensor):
        return isinstance(two, torch.Tensor) and one.shape == two.shape and torch.equal(one, two)
    return one == two


def midway(rewards=(1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)) -> Rollout:
    """A rollout in the middle of a stack: credit per group, some tokens planning, half of the pooling.

    Its tensors are shared with others of these rewards: no operator may change them in place.
    """
    return copy.copy(make_midway(tuple(rewards)))


@functools.cache
def make_midway(rewards) -> Rollout:
    rollout = make_rollout(rewards)
    GRPO().assign(rollout)
    StrategicGrams().assign(rollout)
    rollout.sepa_lambda = 0.5
    ProcessSignal(beta=1.0).assign(rollout)
    rollout.values = rollout.old_logprobs.exp()
    rollout.critic, rollout.critic_weight = KnownCritic(), 0.5
    return rollout


def rows(rollout: Rollout, order: torch.Tensor) -> Rollout:
    """The same rollout with its rows in another order."""
    result = copy.copy(rollout)
    for field in fields(rollout):
        value = getattr(rollout, field.name)
        if isinstance(value, torch.Tensor):
            setattr(result, field.name, value[order])
    result.tokens = [rollout.tokens[row] for row in order.tolist()]
    return result


def test_every_module_of_a_room_is_one_operator():
    files = Path(callbacks.__file__).parent.glob("*/*.py")
    modules = [f"callbacks.{file.parent.name}.{file.stem}" for file in files if file.stem != "__init__"]
    assert sorted(operator.__module__ for operator in OPERATORS) == sorted(modules)


@contract_of(OPERATORS)
def touches_only_what_it_declares(operator):
    rollout, operator = midway(), made(operator)
    for field in ROLLOUT_FIELDS - operator.reads - operator.writes - SHAPE:
        setattr(rollout, field, None)  # any other access fails loudly
    before = copy_rollout_fields(rollout)
    operator.assign(rollout)
    changed = {field for field, value in before.items() if not equal(value, getattr(rollout, field))}
    assert changed <= operator.writes


@contract_of(OPERATORS)
def reads_only_what_it_declares(operator):
    for rewards in ((1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (0.0,) * 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StackWarning)
            made(operator).assign_checked(midway(rewards))


@contract_of(OPERATORS)
def rebinds_and_never_mutates(operator):
    rollout = midway()
    held = {field: getattr(rollout, field) for field in ROLLOUT_FIELDS}
    before = copy_rollout_fields(rollout)
    made(operator).assign(rollout)
    for field, value in held.items():
        assert equal(value, before[field]), f"{field} was changed in place"


@contract_of(OPERATORS)
def padding_never_matters(operator):
    clean, dirty = midway(), midway()
    for field in (
        "old_logprobs",
        "ref_logprobs",
        "ref_log_ratio",
        "sum_pi_squared",
        "entropy",
        "signal",
        "process",
        "advantages",
    ):
        value = getattr(dirty, field)
        setattr(dirty, field, value.where(dirty.mask, 1e6))
    dirty.plan_mask = dirty.plan_mask | ~dirty.mask
    assert_close(made(operator).assign(dirty), made(operator).assign(clean))
    for field in operator.writes & set(TOKENS):
        assert_close(getattr(dirty, field)[dirty.mask], getattr(clean, field)[clean.mask])


@contract_of(OPERATORS)
def wider_padding_never_matters(operator):
    narrow, wide = midway(), midway()
    for field in fields(wide):
        value = getattr(wide, field.name)
        if isinstance(value, torch.Tensor) and value.shape[:2] == narrow.mask.shape:
            setattr(wide, field.name, torch.cat([value, torch.zeros_like(value)], 1))
    wide.turn = wide.turn.where(wide.mask, -1)
    assert_close(made(operator).assign(wide), made(operator).assign(narrow))
    for field in operator.writes & set(TOKENS):
        assert_close(getattr(wide, field)[wide.mask], getattr(narrow, field)[narrow.mask])


@contract_of(operator for operator in OPERATORS if operator not in DRAWN)
def the_order_of_groups_and_of_completions_never_matters(operator):
    order = torch.tensor([6, 4, 7, 5, 1, 0, 3, 2])
    straight, shuffled = midway(), rows(midway(), order)
    assert_close(made(operator).assign(shuffled), made(operator).assign(straight))
    for field in operator.writes & set(TOKENS):
        assert_close(getattr(shuffled, field), getattr(straight, field)[order])


@contract_of(OPERATORS)
def reports_finite_numbers_for_any_batch(operator):
    for rewards in ([0.0] * 8, [1.0] * 8, [1.0] + [0.0] * 7):
        rollout = midway(rewards)
        metrics = made(operator).assign(rollout)
        assert all(math.isfinite(float(value)) for value in metrics.values())
        assert rollout.advantages.isfinite().all()
        assert rollout.advantages.shape == rollout.mask.shape


@contract_of(OPERATORS)
def a_batch_without_uncertainty_and_one_of_planning_only_are_batches(operator):
    certain, planning = midway(), midway()
    for field in ("old_logprobs", "entropy", "signal"):
        setattr(certain, field, torch.zeros_like(certain.signal))
    planning.plan_mask = planning.mask.clone()
    for rollout in (certain, planning):
        selects_nothing = operator is Delight and rollout is certain
        with pytest.warns(StackWarning, match="selects no tokens") if selects_nothing else nullcontext():
            metrics = made(operator).assign_checked(rollout)
        assert all(math.isfinite(float(value)) for value in metrics.values())


@contract_of(ACTIVE)
def the_active_arguments_are_active(operator):
    before, after = midway(), midway()
    operators = made(operator)
    for _ in range(4):
        operators.assign(after)
    assert any(not equal(getattr(before, field), getattr(after, field)) for field in operator.writes)


@contract_of(operator for operator in OPERATORS if "advantages" in operator.writes)
def a_completion_that_was_not_judged_gets_no_credit(operator):
    for verdicts in ((1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.5, 1.0), (0.0,) * 8):
        rollout = make_rollout(verdicts)
        rollout.judged = torch.tensor([True, True, False, True, False, True, False, True])
        SoftOverlong(max_tokens=5, cache=3).assign(rollout)
        if "advantages" in operator.reads:
            GRPO().assign(rollout)
        StrategicGrams().assign(rollout)
        ProcessSignal(beta=1.0).assign(rollout)
        made(operator).assign(rollout)
        if operator.__name__ != "BatchNormalization":  # it moves everybody, as documented
            assert not rollout.advantages[~rollout.judged].where(rollout.mask[~rollout.judged], 0).any()


def test_every_operator_that_edits_what_it_reads_declares_neutral_arguments():
    edits = [kind for kind in OPERATORS if kind.reads & kind.writes and inspect.signature(kind).parameters]
    silent = {kind.__name__ for kind in edits if not kind.neutral}
    assert silent - {"SEPAAmplification"} == NEVER_NEUTRAL  # lambda = 0 makes SEPA's amplification the identity


@pytest.mark.parametrize("operator", NEUTRAL, ids=name)
def test_a_neutral_parameter_is_the_identity(operator):
    for rewards in ((1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (1.0,) * 4 + (0.0,) * 4):
        rollout = midway(rewards)
        rollout.sepa_lambda = 0.5 if isinstance(operator, CorrectnessGate) else 0.0
        before = copy_rollout_fields(rollout)
        operator.assign(rollout)
        for field in TOKENS:
            assert torch.equal(getattr(rollout, field)[rollout.mask], before[field][rollout.mask])
        assert torch.equal(rollout.rewards, before["rewards"])
        assert rollout.alternatives is None
        assert rollout.continuations is None
        for field in SHARES:
            assert getattr(rollout, field) == before[field]


def changed_by(operator):
    """What a copy of an operator makes of a batch and says about it, as numbers."""
    rollout = midway()
    metrics = copy.deepcopy(operator).assign(rollout)
    said = {name: float(value) for name, value in metrics.items()}
    return rollout.sepa_lambda, rollout.critic_weight, rollout.advantages.sum().item(), said


@contract_of(OPERATORS)
def a_restored_operator_goes_on_where_the_first_one_was(operator):
    first, second = made(operator), made(operator)
    for step in range(3):
        rollout = midway([1.0, 0.0, float(step), 1.0, 0.0, 0.0, 1.0, 0.0])
        rollout.step, rollout.signal, rollout.entropy = step, rollout.signal * (step + 1), rollout.entropy / (step + 2)
        first.assign(rollout)
    if first.state:
        assert set(first.state_dict()) == set(first.state)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        if (
            operator is not CounterfactualProbe
        ):  # other stacks' state shows in their gradients alone; it has its own test
            assert changed_by(made(operator)) != changed_by(first), "the state changes nothing here"
    one, two = midway(), midway()
    first.assign(one)
    second.assign(two)
    for field in (*TOKENS, *SHARES):
        assert equal(getattr(one, field), getattr(two, field))


REAL = (2.5, -1.0, 0.25, -0.75, -3.0, -3.0, -3.5, -2.0)
"""Rewards of two groups, of which the second has no positive one."""

VERDICT_READERS = {CorrectnessGate, OutcomeAnchor}
"""Operators of real rewards that read verdicts: a schedule that counts what is right, and one that may anchor by it."""


def made_for_real_rewards(operator):
    """An operator for rewards below zero, which critics have to be told of."""
    if operator in (AdapterCritic, AnswerCritic, HeadCritic):
        arguments = {"rate": 0.1} if operator is AdapterCritic else {"fits": 2}
        return operator(target=RewardHistogram(bins=9, low=-9.0, high=9.0), warmup=1, **arguments)
    return PassAtK(k=2) if operator is PassAtK else made(operator)


def midway_with_real_rewards(verdicts=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), rewards=REAL) -> Rollout:
    """A rollout in the middle of a stack, with rewards of its own beside the verdicts."""
    rollout = midway(verdicts)
    rollout.task_rewards = torch.tensor(rewards)
    GRPO().assign(rollout)
    return rollout


@contract_of(operator for operator in OPERATORS if operator.rewards == "real")
def an_operator_of_real_rewards_gives_finite_credit_for_them(operator):
    acting = made_for_real_rewards(operator)
    for rewards in (REAL, [-7.0] * 8, [0.0] * 7 + [-0.001]):
        rollout = midway_with_real_rewards(rewards=rewards)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StackWarning)  # of a batch in which all tokens weigh alike
            metrics = acting.assign_checked(rollout)
        assert all(math.isfinite(float(value)) for value in metrics.values())
        assert rollout.advantages.isfinite().all()


@contract_of(operator for operator in OPERATORS if operator.writes)
def only_operators_of_binary_rewards_give_credit_by_verdicts(operator):
    first, second = midway_with_real_rewards(), midway_with_real_rewards([0.0, 1.0] * 4)
    for rollout in (first, second):
        acting = made_for_real_rewards(operator)
        acting.run_seed = 7
        acting.assign(rollout)
    told = [
        field for field in (*TOKENS, *SHARES, "returns") if not equal(getattr(first, field), getattr(second, field))
    ]
    assert not told or operator.rewards == "binary" or operator in VERDICT_READERS
    if operator.rewards == "binary":
        assert told or operator.costly


@contract_of([GRPO, RLOO, OPO, SoftmaxGRPO, PrefixBaseline, TEMPO, OptimalTokenBaseline])
def a_group_baseline_takes_away_whatever_all_have_in_common(operator):
    plain, shifted = (midway_with_real_rewards(rewards=[each + shift for each in REAL]) for shift in (0.0, -8.0))
    for rollout in (plain, shifted):
        operator().assign(rollout)
    assert plain.advantages.any()
    assert_close(shifted.advantages, plain.advantages, atol=1e-5, rtol=0)


def test_an_outcome_anchor_takes_real_rewards_unless_it_anchors_by_verdict():
    assert OutcomeAnchor().rewards == "real"
    assert OutcomeAnchor(zero_variance="outcome").rewards == "binary"
    assert AnnealOut(OutcomeAnchor(zero_variance="outcome")).rewards == "binary"


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_an_operator_keeps_its_contracts(operator):
    """All contracts are tried, and a failure names those that are broken."""
    broken = {}
    for check, operators in CONTRACTS:
        try:
            if operator in operators:
                check(operator)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (the others are tried, too)
            broken[check.__name__] = error
    if broken:
        raise BaseExceptionGroup(f"{name(operator)} breaks {', '.join(broken)}", list(broken.values()))


def test_fourteen_contracts_hold_for_operators():
    assert len(CONTRACTS) == 14
    assert all(operators for _, operators in CONTRACTS)
