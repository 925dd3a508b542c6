"""Credit for tensors of another trainer: what our own loop gives, however the rows lie."""

import subprocess
import sys
import warnings

import pytest
import torch
from torch.testing import assert_close

from callbacks import GRPO, GTPO, HICRA, REPO, SEPA, ConstantLambda, Entropy, MaxRL, SignalStats, StrategicGrams
from rlcredit import Rollout, credit_heatmap
from rlcredit.bridge import assign_credit, load_stack
from rlcredit.bridge.bridged_stack import ARGUMENT_DESCRIPTIONS, FROM_POLICY
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.contract import StackError, StackWarning
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.stack import CreditStack
from tests.conftest import make_rollout
from tests.contracts.test_unjudged import PLAIN, stack_around

SHIPPED = [
    kind for kind in find_operator_classes() if kind.writes and not kind.reads & FROM_POLICY.keys() and not kind.costly
]
DRAWN = ("RandomMask", "RandomPlanner", "ShuffledSignal")
"""Their noise belongs to places in the batch, which the order of rows changes."""

TURN_FACTS = {"turn_rewards", "states"}
"""Arguments that a batch of single turns can do without."""

GAP = 777
"""Token id of what stands between sampled tokens."""

VERDICTS = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


def give(rollout, order=None, spread=None):
    """A rollout as a trainer has it: rows in some order, tokens in columns of their own."""
    order = torch.arange(len(rollout.mask)) if order is None else order
    width = rollout.mask.shape[1]
    columns = torch.arange(width) if spread is None else spread

    def place(values, fill=0):
        wide = torch.full((len(values), int(columns.max()) + 1), fill, dtype=values.dtype)
        wide[:, columns] = values
        return wide[order]

    texts = {tuple(ids[: len(pieces)]): pieces for ids, pieces in zip(rollout.completion_ids.tolist(), rollout.tokens)}

    def decode(ids):
        pieces = iter(texts.get(tuple(token for token in ids if token != GAP), ["?"] * len(ids)))
        return ["" if token == GAP else next(pieces) for token in ids]

    return {
        "completion_ids": place(rollout.completion_ids, fill=GAP),
        "mask": place(rollout.mask),
        "rewards": rollout.correct[order],
        "groups": (torch.arange(len(order)) // rollout.group_size)[order],
        "old_logprobs": place(rollout.old_logprobs, fill=float("nan")),
        "entropy": place(rollout.entropy, fill=float("nan")),
        "ref_logprobs": place(rollout.ref_logprobs, fill=float("nan")),
        "sum_pi_squared": place(rollout.sum_pi_squared, fill=float("nan")),
        "prompt_ids": rollout.prompt_ids[order],
        "turn": place(rollout.turn, fill=-1),
        "step": rollout.step,
        "decode": decode,
    }


def make_batch(seed=0):
    """A rollout in which what is made of other fields is so."""
    rollout = make_rollout(VERDICTS, group_size=4, width=6, seed=seed)
    rollout.ref_log_ratio = rollout.old_logprobs - rollout.ref_logprobs
    return rollout


def open_gaps(rollout, columns):
    """The same rollout with its tokens in columns of their own, and unsampled ones between."""

    def place(values, fill=0):
        wide = torch.full((len(values), int(columns.max()) + 1), fill, dtype=values.dtype)
        return wide.index_copy(1, columns, values)

    fields = ("mask", "old_logprobs", "entropy", "ref_logprobs", "ref_log_ratio", "sum_pi_squared")
    texts = [[""] * (int(columns[row.sum() - 1]) + 1) for row in rollout.mask]
    for row, pieces in enumerate(rollout.tokens):
        for column, piece in zip(columns.tolist(), pieces[: int(rollout.mask[row].sum())], strict=False):
            texts[row][column] = piece
    return Rollout(
        step=rollout.step,
        group_size=rollout.group_size,
        prompt_ids=rollout.prompt_ids,
        completion_ids=place(rollout.completion_ids, fill=GAP),
        correct=rollout.correct,
        tokens=texts,
        turn=place(rollout.turn, fill=-1),
        **{name: place(getattr(rollout, name)) for name in fields},
    )


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_every_operator_gives_what_it_gives_in_our_own_loop(kind):
    operator = PLAIN.get(kind, kind)()
    rollout = make_batch()
    mine = stack_around(operator)
    own = rollout.copy_with_neutral_ledger()
    for each in mine:
        each.assign_checked(own)
    expected = own.advantages.where(rollout.mask, 0)
    stack = load_stack([GRPO()])
    stack.operators = stack_around(operator)  # no program: it stands beside neighbours that may not need it
    assert_close(assign_credit(stack, **give(rollout)), expected, atol=1e-6, rtol=1e-5)
    if kind.__name__ in DRAWN:
        return
    stack.operators = stack_around(operator)
    order = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
    holed = torch.tensor([1, 2, 4, 5, 8, 9])
    found = assign_credit(stack, **give(rollout, order, holed))
    gapped = open_gaps(rollout, holed - holed[0])
    for each in stack_around(operator):
        each.assign_checked(gapped)
    expected = gapped.advantages.where(gapped.mask, 0)[:, holed - holed[0]]
    assert_close(found[:, holed], expected[order], atol=1e-6, rtol=1e-5)
    others = torch.ones(found.shape[1], dtype=torch.bool).index_fill(0, holed, False)
    assert not found[:, others].any()


def small(**changed):
    """Three completions, two of one prompt, as little as can be given."""
    return {
        "completion_ids": torch.tensor([[5, 6], [7, 0], [5, 8]]),
        "mask": torch.tensor([[1, 1], [1, 0], [1, 1]]),
        "rewards": [1.0, 1.0, 0.0],
        "groups": ["a", "b", "a"],
        **changed,
    }


def test_a_group_counts_only_its_own_rows_whatever_the_size_of_others():
    rollout = make_batch()
    whole = give(rollout)
    kept = torch.tensor([0, 1, 2, 3, 4, 6])  # the second group has two of its four rows
    part = {name: value[kept] if isinstance(value, torch.Tensor) else value for name, value in whole.items()}
    for stack in ([GRPO(normalize_std=True)], [MaxRL(), Entropy(), GTPO(beta=0.5)], [GRPO(), REPO()]):
        found = assign_credit(stack, **part)
        alone = [
            assign_credit(stack, **{n: v[rows] if isinstance(v, torch.Tensor) else v for n, v in part.items()})
            for rows in (kept[:4], torch.tensor([4, 5]))
        ]
        if not any(operator.state for operator in stack):
            assert_close(found, torch.cat(alone), atol=1e-6, rtol=1e-5)
        assert found[4:].any()


def test_groups_of_one_row_are_warned_of_where_they_give_no_credit():
    mask, rewards = torch.ones(3, 2), [1.0, 0.0, 1.0]
    with pytest.warns(StackWarning, match="All groups have one row. GRPO gives no credit to groups of 1."):
        assert not assign_credit(["GRPO"], mask=mask, rewards=rewards, groups=range(3)).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assign_credit(["GRPO"], mask=mask, rewards=rewards, groups=[0, 0, 1])
        assign_credit([], mask=mask, rewards=rewards, groups=range(3))


def test_rewards_that_nobody_could_tell_give_no_credit_and_count_for_nobody():
    known = assign_credit([GRPO()], **small(rewards=[1.0, 1.0, 0.0], groups=[0, 1, 0]))
    some = assign_credit(
        [GRPO()],
        completion_ids=torch.tensor([[5, 6], [7, 0], [5, 8], [1, 1]]),
        mask=torch.ones(4, 2),
        rewards=[1.0, 1.0, 0.0, None],
        groups=[0, 1, 0, 0],
    )
    assert some[[0, 2]].tolist() == known[[0, 2]].tolist() == [[0.5, 0.5], [-0.5, -0.5]]
    assert not some[3].any()


@pytest.mark.parametrize("rewards", [[0.3, 7.0, -2.0], torch.tensor([0.3, 7.0, -2.0], dtype=torch.bfloat16)])
def test_rewards_may_be_any_real_numbers_and_come_in_any_precision(rewards):
    found = assign_credit([GRPO()], **small(rewards=rewards, groups=[0, 0, 0]))
    values = torch.tensor(rewards, dtype=torch.float32) if isinstance(rewards, list) else rewards.float()
    assert_close(found[:, 0], values - values.mean())
    assert found.dtype == torch.float32


def test_sixteen_bits_give_the_credit_of_the_same_numbers_in_thirty_two():
    given = give(make_batch())
    short = {name: value.bfloat16() if is_float(value) else value for name, value in given.items()}
    rounded = {name: value.float() if is_float(value) else value for name, value in short.items()}
    short["mask"] = short["mask"].bfloat16()
    for stack in (
        [GRPO(), GTPO()],
        [MaxRL(), Entropy(), GTPO(beta=0.5)],
        "systems/erpo",
        "rereadings/gradient_size_mask",
    ):
        found = assign_credit(stack, **short)
        assert found.dtype == torch.float32
        assert torch.equal(found, assign_credit(stack, **rounded))


def is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def test_a_completion_without_a_token_counts_in_its_group_and_gets_no_credit():
    given = small(mask=torch.tensor([[1, 1], [1, 0], [0, 0]]))
    found = assign_credit([GRPO(), GTPO()], old_logprobs=torch.full((3, 2), -1.0), **given)
    assert found.tolist() == [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]
    nothing = small(mask=torch.zeros(3, 2), old_logprobs=torch.zeros(3, 2), entropy=torch.zeros(3, 2))
    for stack in ([GRPO(), GTPO()], [MaxRL(), Entropy(), GTPO(beta=0.5)]):
        assert assign_credit(stack, **nothing).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_no_tensor_is_made_on_a_device_of_its_own(kind):
    """What is made without a device goes to the default one, where here nothing can be computed with."""
    given, stacks = give(make_batch()), [load_stack([GRPO()]) for _ in range(2)]
    for stack in stacks:
        stack.operators = stack_around(PLAIN.get(kind, kind)())
    expected = assign_credit(stacks[0], **given)
    lists = {name: given[name].tolist() for name in ("rewards", "groups")}
    with torch.device("meta"):
        found = assign_credit(stacks[1], **given | lists)
    assert found.device == expected.device
    assert_close(found, expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no accelerator on this machine")
@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_credit_is_assigned_on_the_device_of_the_batch(kind):
    given, stacks = give(make_batch()), [load_stack([GRPO()]) for _ in range(2)]
    for stack in stacks:
        stack.operators = stack_around(PLAIN.get(kind, kind)())
    moved = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    found = assign_credit(stacks[0], **moved)
    assert found.is_cuda
    assert stacks[0].rollout.advantages.is_cuda
    assert_close(found.cpu(), assign_credit(stacks[1], **given), atol=1e-6, rtol=1e-5)


def test_verdicts_beside_rewards_are_what_operators_of_verdicts_read():
    given = small(rewards=[0.9, 0.2, 0.4], groups=[0, 0, 0])
    with pytest.raises(StackError, match=r"MaxRL reads verdicts, and `rewards` hold 0\.9\. Pass `correct` too"):
        assign_credit([MaxRL()], **given)
    found = assign_credit([MaxRL()], correct=[1, 0, 0], **given)
    assert found[:, 0].tolist() == pytest.approx([2.0, -1.0, -1.0], abs=1e-4)
    with pytest.raises(ValueError, match=r"correct holds 0\.5, expected one for right and zero for wrong"):
        assign_credit([MaxRL()], correct=[1, 0.5, 0], **given)
    shaped = assign_credit([GRPO()], correct=[1, 0, 0], **given)
    assert shaped[:, 0].tolist() == pytest.approx([0.4, -0.3, -0.1])


class Reader(CreditOperator, reads="advantages ref_log_ratio", writes="advantages"):
    """Reads what is made of two arguments."""

    def assign(self, rollout):
        """Add the ratio."""
        rollout.advantages = rollout.advantages + rollout.ref_log_ratio
        return {}


@pytest.mark.parametrize(
    ("stack", "named", "message"),
    [
        ([GRPO(), GTPO()], "old_logprobs", "GTPO needs `old_logprobs`, which this call does not give: log-prob"),
        ([GRPO(), Entropy(), GTPO()], "entropy", "Entropy needs `entropy`, which this call"),
        ("systems/erpo", "ref_logprobs", "ProcessSignal needs `ref_logprobs`"),
        ("monte_carlo/nothing", None, "no condition of this name"),
        ("rereadings/gradient_size_mask", "sum_pi_squared", "GradientSizeMask needs `sum_pi_squared`"),
        ("rereadings/tracked_baseline", "prompt_ids", "TrackedBaseline needs `prompt_ids`"),
        ([StrategicGrams(), ConstantLambda(), SEPA(), GRPO(), GTPO()], "decode", "StrategicGrams needs `decode`"),
    ],
)
def test_what_is_missing_is_named_with_the_operator_that_needs_it(stack, named, message):
    rollout = make_batch()
    given = {name: value for name, value in give(rollout).items() if name != named}
    with pytest.raises((StackError, FileNotFoundError), match=message):
        assign_credit(stack, **given)


def test_every_argument_that_may_be_left_out_is_described_and_none_is_needed_in_vain():
    optional = {*give(make_batch())} - {"mask", "rewards", "groups", "turn"}
    assert optional == {*ARGUMENT_DESCRIPTIONS} - TURN_FACTS
    needs = load_stack([StrategicGrams(), ConstantLambda(), Entropy(), SEPA(), GRPO(), GTPO(), HICRA()]).list_needs()
    assert {*needs} == {"completion_ids", "decode", "entropy", "old_logprobs"}
    assert not load_stack([GRPO()]).list_needs()
    assert {*load_stack([GRPO(), Reader()]).list_needs()} == {"ref_logprobs", "old_logprobs"}


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_what_is_not_given_is_refused_or_makes_no_difference(kind):
    stack = load_stack([GRPO()])

    def assign(arguments):
        stack.operators = stack_around(PLAIN.get(kind, kind)())
        return assign_credit(stack, **arguments)

    whole = give(make_batch()) | {"step": 3}
    expected = assign(whole)
    for name in ARGUMENT_DESCRIPTIONS:
        rest = {other: value for other, value in whole.items() if other != name}
        if name in stack.list_needs().keys() - TURN_FACTS:
            with pytest.raises(StackError, match=f"needs `{name}`, which this call does not give"):
                assign(rest)
        else:
            assert torch.equal(assign(rest), expected), name


def test_a_batch_without_token_ids_says_so(tmp_path):
    stack = load_stack(["GRPO"])
    assign_credit(stack, **small(completion_ids=None, decode=lambda ids: [str(token) for token in ids]))
    assert not stack.rollout.has_fact("completion_ids")
    assert "-1 " in credit_heatmap(stack.rollout, decode=chr)
    with pytest.raises(StackError, match="SharedStateMask needs `completion_ids`, which this call does not give"):
        assign_credit(["GRPO", "SharedStateMask"], **small(completion_ids=None))


@pytest.mark.parametrize("name", ["old_logprobs", "entropy"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_sampled_token_without_a_number_is_refused_where_the_stack_reads_it(name, value):
    holed = torch.full((3, 2), -1.0)
    holed[2, 1] = value
    stack = ["GRPO", "GTPO"] if name == "old_logprobs" else ["GRPO", "EntropyAdvantage"]
    with pytest.raises(ValueError, match=f"{name} is (nan|-inf) in row 2, column 1, where the mask says"):
        assign_credit(stack, **small(**{name: holed}))
    assert assign_credit(["GRPO"], **small(**{name: holed}))[0].tolist() == [0.5, 0.5]
    holed[2, 1], holed[1, 1] = -1.0, value  # no token was sampled there
    assert assign_credit(stack, **small(**{name: holed})).isfinite().all()


@pytest.mark.parametrize(
    "stack",
    [
        ["GRPO", "GTPO(beta=0.5)"],
        ("GRPO", "callbacks.GTPO(beta=0.5)"),
        [GRPO(), "GTPO(beta=0.5)"],
        ["GRPO", GTPO(beta=0.5)],
        ["GRPO()", {"class_path": "GTPO", "init_args": {"beta": 0.5}}],
    ],
)
def test_operators_are_written_as_in_a_file_or_given_as_instances(stack):
    given = small(old_logprobs=torch.tensor([[-1.0, -2.0], [-1.0, 0.0], [-0.1, -3.0]]))
    assert torch.equal(assign_credit(stack, **given), assign_credit([GRPO(), GTPO(beta=0.5)], **given))
    assert [each for each in load_stack(stack).operators if each in stack] == [
        each for each in stack if isinstance(each, CreditOperator)
    ]


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (["GRPO", "GTPOO"], r"stack\[1\]: no class `GTPOO`\. Did you mean `GTPO`\?"),
        ([GRPO(), "gtpo"], r"no class `gtpo`\. Did you mean `GTPO`\?"),
        (
            ["GRPO", "GTPO(bta=1)"],
            r"stack\[1\]\.init_args\.bta: `GTPO` has no parameter `bta`\. Did you mean `beta`",
        ),
        (["GRPO", "GTPO(beta=-1)"], r"GTPO expects beta >= 0, got -1\.0"),
        (["GRPO", "GTPO(beta=0.1"], r"stack\[1\]: `GTPO\(beta=0\.1` has no closing parenthesis"),
        (["GRPO", {"GTPO": {"beta": 0.5}}], r"stack\[1\]: write GTPO\(beta=0\.5\)"),
        (["mine.Operator"], "there is no module `mine`"),
        ([GRPO, GTPO], r"stack\[0\] is the class GRPO\. Write GRPO\(\) instead"),
        (["GRPO", None], r"stack\[1\] is None, expected an operator, its name, or a call of it"),
        (["GRPO", "SignalStats"], "SignalStats measures and assigns no credit"),
        ("GRPO", r"no file GRPO, .* pass a list, as \[.GRPO"),
    ],
)
def test_what_names_no_operator_is_refused_as_in_a_file(stack, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        assign_credit(stack, **small())


def test_operators_that_need_the_policy_and_probes_are_refused_by_name():
    with pytest.raises(StackError, match="MonteCarloCredit continues completions with the policy"):
        load_stack("monte_carlo/monte_carlo_credit")
    with pytest.raises(StackError, match="RidgeCritic reads hidden states"):
        load_stack("critics/ridge_gae")
    with pytest.raises(StackError, match="SignalStats measures and assigns no credit"):
        load_stack([GRPO(), SignalStats()])


def test_what_an_environment_has_said_stands_between_the_tokens_of_the_batch():
    stack = load_stack(["GRPO"])
    ids, mask = torch.tensor([[0, 5, 9, 6], [0, 5, 0, 0]]), torch.tensor([[0, 1, 0, 1], [0, 1, 0, 0]])
    credit = assign_credit(
        stack, completion_ids=ids, mask=mask, rewards=[1.0, 0.0], groups=[0, 0], decode=lambda ids: map(str, ids)
    )
    assert credit.tolist() == [[0, 0.5, 0, 0.5], [0, -0.5, 0, 0]]
    assert stack.rollout.completion_ids.tolist() == [[5, 9, 6], [5, 0, 0]]
    assert stack.rollout.mask.tolist() == [[True, False, True], [True, False, False]]
    assert stack.rollout.turn.tolist() == [[0, -1, 1], [0, -1, -1]]
    assert stack.rollout.tokens == [["5", "9", "6"], ["5"]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mask": torch.ones(3)}, "mask has shape"),
        ({"mask": torch.tensor([[1, 2], [1, 0], [1, 1]])}, "other values than 0 and 1"),
        ({"groups": 3}, "groups is 3, expected the group of each row, as"),
        ({"mask": [[1, 1], [1, 1], [1, 0]]}, "mask is .*list.*, expected a tensor. Pass torch.as_tensor"),
        ({"groups": [0, 0]}, "groups has 2 entries, expected 3"),
        ({"rewards": [1.0]}, r"`rewards` holds \[1.0\] \(list of 1\); expected a list of 3"),
        ({"rewards": [1.0, float("inf"), 0.0]}, "rewards is infinite in row 1"),
        ({"completion_ids": torch.zeros(3, 1).long()}, "completion_ids has shape"),
        ({"old_logprobs": torch.zeros(3, 1)}, "old_logprobs has shape"),
        (
            {"old_logprobs": torch.full((3, 2), 0.5)},
            "old_logprobs is 0.5 in row 0, column 0, and a",
        ),
        ({"prompt_ids": torch.zeros(2, 1).long()}, "prompt_ids has shape"),
    ],
)
def test_arguments_of_other_shapes_are_refused_by_name(changed, message):
    with pytest.raises(ValueError, match=message):
        assign_credit([GRPO()], **small(**changed))


@pytest.mark.parametrize(("texts", "found"), [(["ab"], "1 texts"), ("ab", "one text")])
def test_a_decoder_returns_one_text_per_token(texts, found):
    with pytest.raises(ValueError, match=f"decode returned {found} for 2 tokens. Return a list with the text of each"):
        assign_credit([StrategicGrams(), GRPO(), HICRA()], decode=lambda ids: texts, **small())


def test_state_goes_on_from_batch_to_batch_and_comes_back_from_a_checkpoint():
    batches = [give(make_batch(seed)) for seed in (0, 1, 2)]
    whole, first, second = (load_stack([GRPO(), REPO()]) for _ in range(3))
    expected = [assign_credit(whole, **batch) for batch in batches]
    for batch in batches[:2]:
        assign_credit(first, **batch)
    saved = first.state_dict()
    second.load_state_dict(saved)
    evaluated = second.copy_for_evaluation()
    assign_credit(evaluated, **batches[0])
    assert torch.equal(assign_credit(second, **batches[2]), expected[2])
    assert not torch.equal(assign_credit(load_stack([GRPO(), REPO()]), **batches[2]), expected[2])
    with pytest.raises(ValueError, match="state of REPO, and the stack keeps that of none"):
        load_stack([GRPO()]).load_state_dict(saved)


def test_metrics_have_the_names_of_our_own_loop_and_the_batch_is_kept_as_a_rollout():
    stack = load_stack([GRPO(), Entropy(), GTPO(), GTPO(beta=0.5)])
    rollout = make_batch()
    assign_credit(stack, **give(rollout))
    assert {name.split("/")[1] for name in stack.metrics} >= {"GTPO", "GTPO_2"}
    assert all(name.startswith("credit/") and isinstance(value, float) for name, value in stack.metrics.items())
    assert [label for label, _ in stack.rollout.trail] == ["GRPO", "GTPO", "GTPO_2"]
    own = CreditStack([GRPO(), Entropy(), GTPO(), GTPO(beta=0.5)]).assign(rollout)
    assert_close(stack.rollout.advantages.where(rollout.mask, 0), own.advantages.where(rollout.mask, 0))


def test_texts_of_the_last_batch_are_decoded_when_it_is_asked_for_and_not_before(tmp_path):
    asked = []

    def decode(ids):
        asked.append(ids)
        return [f"<{token}>" for token in ids]

    stack = load_stack([GRPO()])
    order = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
    assign_credit(stack, **give(make_batch(), order) | {"decode": decode})
    assert asked == []
    page = credit_heatmap(stack.rollout)
    assert len(asked) == len(stack.rollout.tokens) == 8
    stack.rollout.save(tmp_path / "batch.safetensors")
    loaded = Rollout.load(tmp_path / "batch.safetensors")
    assert loaded.tokens == stack.rollout.tokens
    assert credit_heatmap(loaded) == page


@pytest.mark.slow
def test_the_import_needs_torch_alone():
    code = (
        "import sys; from rlcredit.bridge import assign_credit; print([m for m in ('lightning', 'transformers', "
        "'jsonargparse', 'mlflow') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_names_are_read_and_explained_where_lightning_is_not_installed():
    code = (
        "import sys; sys.modules['lightning'] = None\nfrom rlcredit.bridge import load_stack\n"
        "print(load_stack(['GRPO', 'GTPO(beta=0.5)']).operators[1].beta)\n"
        "try:\n    load_stack(['GRPOO'])\nexcept ValueError as error:\n    print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("0.5\nstack[0]: no class `GRPOO`. Did you mean `GRPO`?")


class Share(CreditOperator, reads="rewards judged", writes="advantages", rewards="binary"):
    """Take the rewards for shares of what is right."""

    def assign(self, rollout):
        """Give the rewards."""
        rollout.advantages = rollout.rewards[:, None].expand(rollout.mask.shape)
        return {}


def test_an_operator_that_needs_binary_rewards_and_reads_them_is_refused_beside_others():
    given = small(rewards=[0.9, 0.0, 1.0], groups=[0, 0, 0])
    for correct in (None, [1, 0, 1]):
        with pytest.raises(StackError, match=r"Share takes rewards of one .*, and `rewards` hold 0\.9\. .* verdicts"):
            assign_credit([Share()], correct=correct, **given)
    found = assign_credit([Share()], **small(rewards=[1.0, 0.0, None], groups=[0, 0, 0]))
    assert found[:2, 0].tolist() == [1.0, 0.0]
