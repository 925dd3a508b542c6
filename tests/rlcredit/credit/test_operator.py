import copy
import inspect
import math
import os
import signal
import sys
from collections import deque

import pytest
import torch
from lightning.pytorch import Callback

from callbacks.critics.adapter_critic import AdapterCritic
from callbacks.critics.forced_answer import ForcedAnswer
from callbacks.critics.head_critic import HeadCritic
from callbacks.critics.oracle_teacher import OracleTeacher
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.dense.gae import GAE
from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.episode.rloo import RLOO
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.semantic_planner import SemanticPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.gradient_probe import GradientProbe
from callbacks.probes.signal_stats import SignalStats
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.linear_lambda import LinearLambda
from callbacks.schedules.skill_weight import SkillWeight
from callbacks.signals.entropy import Entropy
from callbacks.signals.predictive_variance import PredictiveVariance
from callbacks.signals.sepa import SEPA
from callbacks.tokens.advantage_clip import AdvantageClip
from callbacks.tokens.delight import Delight
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.zero_variance_mask import ZeroVarianceMask
from rlcredit.base.exit_status import NotFinite
from rlcredit.credit.catalogue import find_operator_classes, find_usual_writer
from rlcredit.credit.contract import StackError, StackWarning
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import ROLLOUT_FIELDS
from rlcredit.credit.stack_checks import (
    bound_advantages,
    check_stack,
    explain_idle_operators,
    refuse_binary_operators,
    refuse_narrow_histograms,
)
from rlcredit.credit.undeclared_reads import note_undeclared_reads
from rlcredit.formulas.reward_histogram import RewardHistogram
from rlcredit.training.periodic_measurement import PeriodicMeasurement
from tests.conftest import make_rollout


def operator(name, reads="", writes=""):
    """An operator with a contract and nothing else; kept out of the search for usual writers."""
    return type(name, (CreditOperator,), {}, reads=reads, writes=writes)()


PROBE = GradientProbe()


def test_a_copy_leaves_the_policy_that_logs_for_an_operator():
    operator, policy = GRPO(), torch.nn.Linear(1, 1)
    operator.log, operator.log_dict = policy.forward, policy.forward  # as Lightning attaches its module's methods
    twin = copy.deepcopy(operator)
    assert vars(twin) == {name: value for name, value in vars(operator).items() if not name.startswith("log")}


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (
            [GRPO(), HICRA()],
            "HICRA reads `plan_mask`, which no callback above it writes. Put StrategicGrams above HICRA in the stack.",
        ),
        (
            [GRPO(), StrategicGrams(), LinearLambda(), GTPO(), SEPA()],
            "SEPA writes `signal`, which nothing below it reads. Move SEPA above GTPO in the stack.",
        ),
        (
            [GTPO(), GRPO()],
            "GRPO overwrites the `advantages` of GTPO before anything uses it. Move GRPO above GTPO in the stack.",
        ),
        (
            [GRPO(), PROBE, MaxRL()],
            "MaxRL overwrites the `advantages` of GRPO before anything uses it. Keep only one of the two in the stack.",
        ),
        (
            [GRPO(), HICRA(), StrategicGrams()],
            "HICRA reads `plan_mask`, which no callback above it writes. Move StrategicGrams above HICRA in the stack.",
        ),
        (
            [GRPO(), LinearLambda()],
            "LinearLambda writes `sepa_lambda`, which nothing below it reads. Remove LinearLambda from the stack.",
        ),
        (
            [GRPO(), StrategicGrams(), SEPA(), GTPO()],
            "SEPA reads `sepa_lambda`, which no callback above it writes. Put LinearLambda above SEPA in the stack.",
        ),
        (
            [GRPO(), Delight(blend="lambda")],
            "Delight reads `sepa_lambda`, which no callback above it writes. "
            "Put LinearLambda above Delight in the stack.",
        ),
        (
            [GRPO(), Delight(), Delight()],
            "Two Delight with the same arguments would share one state in a checkpoint. "
            "Change an argument of one, or keep only one, in the stack.",
        ),
        (
            [GRPO(), Entropy(), PredictiveVariance(), GTPO()],
            "PredictiveVariance overwrites the `signal` of Entropy before anything uses it. "
            "Keep only one of the two in the stack.",
        ),
        (
            [GRPO(), HeadCritic(), GAE(share=0.5), AdapterCritic(), ExpectedGradient()],
            "ExpectedGradient needs values of tokens that were not sampled, and AdapterCritic tells none. Put "
            "HeadCritic or RidgeCritic in its place in the stack.",
        ),
        (
            [GRPO(), HeadCritic(), GAE(share=0.5), ForcedAnswer(), ExpectedGradient()],
            "ExpectedGradient needs values of tokens that were not sampled, and ForcedAnswer tells none. Put "
            "HeadCritic or RidgeCritic in its place in the stack.",
        ),
        (
            [GRPO(), HeadCritic(), SkillWeight(), ForcedAnswer(), GAE()],
            "ForcedAnswer overwrites the `critic_weight` of SkillWeight before anything uses it. "
            "Move ForcedAnswer above SkillWeight in the stack.",
        ),
        (
            [HeadCritic(), ExpectedGradient(), BatchNormalization()],
            "BatchNormalization would change the credit of sampled tokens alone, and ExpectedGradient gives some to "
            "their alternatives as well. Move BatchNormalization above ExpectedGradient in the stack.",
        ),
        (
            [SoftOverlong(), GRPO(), OracleTeacher(), RidgeCritic(), GAE()],
            "OracleTeacher takes rewards of one for right and zero for wrong, and SoftOverlong makes other numbers of "
            "them. Keep only one of the two in the stack.",
        ),
        (
            [AnnealOut(SoftOverlong()), GRPO(), ForcedAnswer(), GAE()],
            "ForcedAnswer takes rewards of one for right and zero for wrong, and AnnealOut makes other numbers of "
            "them. Keep only one of the two in the stack.",
        ),
        (
            [GRPO(), OracleTeacher(), RidgeCritic(lam=0.5), GAE()],
            "OracleTeacher writes `returns`, which nothing below it reads. Remove OracleTeacher from the stack.",
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
        [GTPO()],
        [GRPO(), GTPO()],
        [GRPO(), StrategicGrams(), HICRA(), GTPO()],
        [GRPO(), StrategicGrams(), GTPO(), HICRA()],
        [PROBE, GRPO(), StrategicGrams(), LinearLambda(), PROBE, SEPA(), GTPO(), HICRA(), PROBE],
        [GRPO(), StrategicGrams(), RandomPlanner(), SignalStats()],
        [GRPO(), Delight()],
        [GRPO(), Delight(eta=1.0), Delight(eta=2.0)],
        [GRPO(), ConstantLambda(), Delight(blend="lambda")],
        [Callback(), GRPO(), Callback()],
        [HeadCritic(), ExpectedGradient(), ZeroVarianceMask()],
        [GRPO(), HeadCritic(), GAE(share=0.5), RidgeCritic(), ExpectedGradient()],
        [ForcedAnswer(), operator("ValueReader", "values advantages", "advantages")],
        [type("Flip", (CreditOperator,), {}, reads="rewards", writes="rewards", rewards="binary")(), GRPO()],
        [GRPO(), HeadCritic(), ExpectedGradient(), PROBE],
        [GRPO(), AdapterCritic(), GAE(share=0.5), RidgeCritic(), ExpectedGradient()],
    ],
)
def test_a_stack_that_means_something_passes(stack):
    check_stack(stack)


def test_a_critic_whose_histogram_cannot_hold_the_rewards_is_refused():
    said = "HeadCritic predicts rewards from 0 to 1, and they may lie from -0.5 to 1. Set its target"
    with pytest.raises(StackError, match=said):
        refuse_narrow_histograms([SoftOverlong(), GRPO(), HeadCritic(), GAE()])
    refuse_narrow_histograms([SoftOverlong(), GRPO(), HeadCritic(target=RewardHistogram(low=-0.5)), GAE()])
    refuse_narrow_histograms([operator("Odd", "rewards", "rewards"), GRPO(), HeadCritic(), GAE()])  # nobody knows


@pytest.mark.parametrize(("reads", "writes"), [("advantage", ""), ("", "correct"), ("", "nothing")])
def test_a_contract_about_no_field_or_about_writing_a_fact_is_refused(reads, writes):
    with pytest.raises(TypeError, match="facts read-only"):
        operator("Wrong", reads, writes)


def test_lightning_refuses_a_bad_stack_without_the_command_line(fit):
    with pytest.raises(StackError, match="Put StrategicGrams above HICRA"):
        fit(stack=[GRPO(), HICRA()])


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
    ],
)
def test_an_operator_is_held_to_its_header(rollout, operator, message):
    with pytest.raises(StackError, match=message):
        operator().assign_checked(rollout)


class Count(CreditOperator, reads="rewards"):
    """Report a constant."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def assign(self, rollout):
        return {"value": float(self.value)}


def test_credit_that_is_not_finite_names_its_operator(rollout):
    with pytest.raises(NotFinite, match=r"Step 3: NotANumber assigning credit gives advantages that are not finite"):
        NotANumber().assign_checked(rollout)


def test_two_operators_of_one_class_keep_their_metrics_apart(fit):
    run = fit(steps=1, stack=[Count(1), GRPO(), Count(2)])
    assert run.history[0]["credit/Count/value"] == 1
    assert run.history[0]["credit/Count_2/value"] == 2


class WrongLambda(CreditOperator, writes="sepa_lambda"):
    """Pool more than everything."""

    def assign(self, rollout):
        rollout.sepa_lambda = 1.5
        return {}


class Tokenless(CreditOperator, writes="signal"):
    """Forget a dimension."""

    def assign(self, rollout):
        rollout.signal = rollout.mask.sum(-1).float()
        return {}


def test_every_field_that_is_written_is_held_to_its_shape_and_range(rollout):
    with pytest.raises(StackError, match=r"WrongLambda leaves sepa_lambda = 1.5, expected one in \[0, 1\]"):
        WrongLambda().assign_checked(rollout)
    with pytest.raises(StackError, match=r"Tokenless leaves signal of shape \(8,\), expected \(8, 6\)"):
        Tokenless().assign_checked(make_rollout())


def test_credit_is_detached_however_it_is_assigned(rollout):
    rollout.old_logprobs.requires_grad_()
    rollout.advantages = rollout.advantages * rollout.old_logprobs.exp()
    GTPO().assign(rollout)
    assert not rollout.advantages.requires_grad


def test_the_missing_writer_proposed_is_the_usual_one():
    proposed = {"plan_mask": "StrategicGrams", "sepa_lambda": "LinearLambda", "signal": "Surprisal"}
    proposed |= {"values": "HeadCritic", "critic": "HeadCritic"}
    for field, writer in proposed.items():
        assert find_usual_writer(field).__name__ == writer


def test_operators_that_run_a_model_or_have_one_run_for_them_are_costly():
    every = set(find_operator_classes())
    read_for_them = {"oracle", "ref_logprobs", "ref_log_ratio", "hidden", "lookahead"}
    costly = {kind for kind in every if issubclass(kind, PeriodicMeasurement) or kind.reads & read_for_them}
    assert {kind for kind in every if kind.costly} == costly | {SemanticPlanner}


def test_an_operator_that_can_do_nothing_at_its_place_says_so(fit):
    with pytest.warns(StackWarning, match=r"AdvantageClip\(limit=2\) changes nothing: .* \|A\| <= 0.875 above it"):
        fit(steps=1, stack=[GRPO(), AdvantageClip(limit=2.0)])


@pytest.mark.parametrize(
    ("stack", "limits"),
    [
        ([GRPO(), AdvantageClip(limit=5.0)], [1, 0.9375, 0.9375]),
        ([MaxRL(), AdvantageClip(limit=5.0), Delight()], [1, 15, 5, 5]),
        ([GRPO(normalize_std=True)], [1, 3.75]),
        ([RLOO(), StrategicGrams(), HICRA(alpha=0.5)], [1, 1, 1, 1.5]),
        ([GRPO(), GTPO(), AdvantageClip(limit=5.0)], [1, 0.9375, math.inf, 5]),
    ],
)
def test_the_largest_advantage_is_known_where_it_can_be(stack, limits):
    assert bound_advantages(stack, group_size=16) == pytest.approx(limits)


class FlipsRewards(CreditOperator, reads="rewards"):
    """Change a fact."""

    def assign(self, rollout):
        rollout.rewards = 1 - rollout.rewards
        return {}


class InPlace(CreditOperator, reads="signal"):
    """Mutate what it should rebind."""

    def assign(self, rollout):
        rollout.signal[:] = 0
        return {}


class InPlaceOnAll(CreditOperator, reads="advantages", writes="advantages"):
    """Mutate what many tokens share."""

    def assign(self, rollout):
        rollout.advantages *= 2
        return {}


class Silent(CreditOperator, reads="rewards"):
    """Forget to report."""

    def assign(self, rollout):
        pass


class Verbose(CreditOperator):
    """Report a ledger for a number."""

    def assign(self, rollout):
        return {"w": rollout.mask.float()}


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Verbose, r"Verbose.assign returns a metric 'w' of shape \(\d+, \d+\). Return one number"),
        (FlipsRewards, r"FlipsRewards rebinds \['rewards'\] without declaring it"),
        (InPlace, r"InPlace changes \['signal'\] in place. Rebind the field to a new tensor"),
        (InPlaceOnAll, "InPlaceOnAll changes a tensor in place. Rebind the field to a new one"),
        (Silent, "Silent.assign returns None, expected a dict of metrics"),
    ],
)
def test_facts_stay_and_tensors_are_rebound(rollout, operator, message):
    with pytest.raises(StackError, match=message):
        operator().assign_checked(rollout)


def raise_interrupt():
    raise KeyboardInterrupt


ENDINGS = {
    "SystemExit": sys.exit,
    "SystemExit: 0": lambda: sys.exit(0),
    "SystemExit: os._exit(0)": lambda: os._exit(0),
    "StopIteration": lambda: next(iter([])),
    "KeyboardInterrupt": raise_interrupt,
}


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["operator", "probe", "gate"])
def test_an_operator_that_ends_the_process_is_an_error_with_its_name(rollout, kind, ending, watch):
    base, header = {
        "operator": (CreditOperator, {"reads": "advantages", "writes": "advantages"}),
        "probe": (CreditOperator, {"reads": "advantages"}),
        "gate": (CorrectnessGate, {}),
    }[kind]
    ends = type("Ends", (base,), {"assign": lambda self, rollout: ENDINGS[ending]()}, **header)()
    with pytest.raises(StackError) as refusal:
        ends.assign_checked(rollout, watch=watch)
    said = f"Ends tries to end the run by {ending} (test_operator.py, line "
    assert str(refusal.value).startswith(said)
    assert str(refusal.value).endswith("). Return metrics, or raise an error.")


def test_an_interrupt_by_a_signal_passes_through_an_operator(rollout):
    interrupted = type("Interrupted", (CreditOperator,), {"assign": lambda *_: signal.raise_signal(signal.SIGINT)})
    with pytest.raises(KeyboardInterrupt):
        interrupted().assign_checked(rollout)


class Remembers(CorrectnessGate, state="history"):
    """Keep what no checkpoint holds."""

    def __init__(self, history=None):
        super().__init__()
        self.history = history


def test_state_is_inherited_and_must_be_loadable(fit):
    assert Remembers.state == ("opened_at", "history")
    assert Remembers([1.0, {"a": None}]).state_dict() == {"opened_at": None, "history": [1.0, {"a": None}]}
    with pytest.raises(StackError, match="Remembers keeps deque `history` as state"):
        fit(stack=[GRPO(), StrategicGrams(), LinearLambda(), Remembers(deque([1])), SEPA(), GTPO()])


class Forgets(CreditOperator, reads="rewards", state="seen"):
    """Keep an argument under another name."""

    def __init__(self, k):
        super().__init__()
        self._k, self.seen = k, 0


def test_a_stateful_operator_must_keep_its_arguments_by_name():
    with pytest.raises(StackError, match=r"Forgets must keep \['k'\] under the same name: a checkpoint knows"):
        check_stack([GRPO(), Forgets(1)])


def test_an_argument_must_not_hide_what_every_operator_uses():
    with pytest.raises(TypeError, match=r"has an argument \['bound'\], which every operator uses. Rename it"):
        type("Capped", (CreditOperator,), {"__init__": lambda self, bound: None}, reads="advantages")


@pytest.mark.parametrize(
    ("stack", "size", "message"),
    [
        ([GRPO()], 1, "GRPO gives no credit to groups of 1. Draw more for each prompt."),
        ([MaxRL(), AdvantageClip()], 8, "AdvantageClip(limit=inf) changes nothing"),
    ],
)
def test_what_gives_no_credit_or_caps_nothing_is_told(stack, size, message):
    assert [told[: len(message)] for told in explain_idle_operators(stack, size)] == [message]


class Peeks(CreditOperator, reads="advantages", writes="advantages"):
    """Weigh by a field that the header keeps quiet about."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages * rollout.entropy
        return {}


class PeeksAtAMissingFact(CreditOperator, reads="rewards"):
    """Use a fact that is computed only for those who declare it."""

    def assign(self, rollout):
        return {"kl": -rollout.ref_logprobs.mean()}


class Accumulates(CreditOperator, writes="advantages"):
    """Read what it only says it writes."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages + 1
        return {}


class ReadsItsOwn(CreditOperator, reads="rewards", writes="advantages"):
    """Read back what it has bound, shapes, and a method of the rollout on declared fields."""

    def assign(self, rollout):
        rollout.advantages = rollout.rewards[:, None].expand(rollout.mask.shape) / rollout.group_size
        rollout.credited_rows()
        return {"mean": rollout.advantages.mean()}


class PeeksThroughAMethod(CreditOperator, reads="rewards"):
    """Have a method of the rollout read it."""

    def assign(self, rollout):
        return {"right": rollout.verdicts.sum()}


@pytest.mark.parametrize(
    ("operator", "field"),
    [
        (Peeks, "entropy"),
        (PeeksAtAMissingFact, "ref_logprobs"),
        (Accumulates, "advantages"),
        (PeeksThroughAMethod, "correct"),
    ],
)
def test_a_read_that_the_header_does_not_declare_is_refused_with_its_line(rollout, operator, field):
    rollout.ref_logprobs = None
    source, first = inspect.getsourcelines(operator)
    line = first + next(place for place, text in enumerate(source) if "rollout." in text)
    with pytest.raises(StackError) as error:
        operator().assign_checked(rollout)
    expected = (
        f"{operator.__name__} reads `{field}` (test_operator.py, line {line}), which it does not declare. Add {field}"
    )
    assert str(error.value).startswith(expected)


def test_what_an_operator_has_bound_itself_it_may_read(rollout):
    assert set(ReadsItsOwn().assign_checked(rollout)) == {"mean"}


def test_watching_leaves_no_trace(rollout):
    held = vars(rollout).copy()
    with note_undeclared_reads(rollout, {"rewards"}) as notes:
        part = copy.copy(rollout)
        with note_undeclared_reads(rollout, ROLLOUT_FIELDS) as inner:
            assert rollout.entropy is held["entropy"]
        assert rollout.signal is held["signal"]
    assert (inner.read, list(notes.read)) == ({}, ["signal"])
    assert type(rollout) is type(part) is type(make_rollout())
    assert vars(rollout) == vars(part) == held


def test_a_binary_operator_is_refused_beside_real_rewards_with_the_repair():
    said = (
        "MaxRL takes rewards of one for right and zero for wrong, and data.init_args.rewards "
        "gives any numbers. Put .* GRPO"
    )
    with pytest.raises(StackError, match=said):
        refuse_binary_operators(
            [GRPO(), MaxRL()], "data.init_args.rewards gives any numbers", "leave out data.init_args.rewards"
        )
    refuse_binary_operators([GRPO(), GTPO(), SignalStats()], "they are", "change them")


def test_no_bound_is_known_for_real_rewards_but_that_of_a_clip():
    assert bound_advantages([GRPO(), AdvantageClip(2.0), GTPO(beta=0.0)], 4, has_real_rewards=True)[:3] == [
        math.inf,
        math.inf,
        2,
    ]
    assert explain_idle_operators([GRPO(), AdvantageClip(5.0)], 4)
    assert not explain_idle_operators([GRPO(), AdvantageClip(5.0)], 4, has_real_rewards=True)


def test_rewards_are_declared_in_the_header_and_inherited():
    class Binary(CreditOperator, reads="correct", writes="advantages", rewards="binary"):
        """Count what is right."""

    class Heir(Binary, reads="correct judged"):
        """Count it, too."""

    assert (GRPO.rewards, Binary.rewards, Heir.rewards) == ("real", "binary", "binary")
    with pytest.raises(TypeError, match='rewards=\'ternary\'; expected "real" or "binary"'):

        class Odd(CreditOperator, rewards="ternary"):
            """Count to three."""
