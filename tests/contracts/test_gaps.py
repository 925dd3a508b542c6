"""Tokens of an environment between two turns are read and nothing else: no credit, no loss and no metric holds them."""

import copy
import math
import warnings
from dataclasses import fields

import pytest
import torch
from torch.testing import assert_close

from callbacks import StackWarning
from callbacks.critics.forced_answer import ForcedAnswer
from callbacks.dense.branches import Branches
from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.random_sign import RandomSign
from rlcredit.credit.rollout import NEUTRAL_VALUES, Rollout
from rlcredit.credit.value_fault import find_value_fault
from rlcredit.formulas.turns import count_turns
from rlcredit.losses import EntropyBonus, ImportanceSampling, KLPenalty
from tests.contracts.test_contracts import OPERATORS, SHARES, TOKENS, made, midway, name
from tests.contracts.test_losses import BOUNDED, EVERY, LOSSES
from tests.contracts.test_unjudged import ARGUED
from tests.rlcredit.losses.batches import batch, value_and_gradient

CASES = [
    *(lambda kind=kind: made(kind) for kind in OPERATORS),
    *(lambda one=one: copy.deepcopy(one) for one in ARGUED),
    *(lambda cuts=cuts: MonteCarloCredit(samples=2, cuts=cuts) for cuts in ("sentence", "phrase")),
    lambda: MonteCarloCredit(samples=2, cuts="phrase", train="equal"),
    *(lambda cuts=cuts: ForcedAnswer(cuts=cuts) for cuts in ("token", "phrase")),
    lambda: Branches(forks=3, spacing=3, level=0.1),
    lambda: Branches(forks=2, spacing=1, rule="random", rate=0.5),
]

DEPENDS_ON_COLUMNS = {
    RandomMask: "the noise of a token is that of its column",
    RandomSign: "the noise of a token is that of its column",
    SoftOverlong: "the limit of an episode counts what is sampled and what is read",
    (Branches, "random"): "the noise of a token is that of its column",
}
"""Operators whose credit changes where an environment says more, with the reason; what it says changes none."""


def is_bound_to_columns(operator):
    return {type(operator), (type(operator), getattr(operator, "rule", None))} & DEPENDS_ON_COLUMNS.keys()


def closed_episodes() -> Rollout:
    """A rollout in the middle of a stack, whose rows are up to three turns, one behind the other; some begin alike."""
    rollout = midway()
    rows, width = rollout.mask.shape
    vars(rollout)["completion_ids"] = rollout.completion_ids.index_fill(1, torch.arange(3), 5)
    turn = (torch.arange(width) + torch.arange(rows)[:, None] % 3) // 3
    noise = torch.Generator().manual_seed(1)
    rollout.turn = turn.where(rollout.mask, -1)
    rollout.turn_rewards = torch.rand(rows, 3, generator=noise) * (torch.arange(3) < count_turns(rollout.turn)[:, None])
    rollout.states = torch.randint(2, (rows, 3), generator=noise)
    return rollout


def find_columns(turn):
    """Return the column of each token once one to three tokens of an environment stand before every later turn."""
    rows, width = turn.shape
    said = (1 + (torch.arange(rows)[:, None] + torch.arange(3)) % 3).cumsum(-1)
    shifts = torch.cat([torch.zeros(rows, 1, dtype=torch.long), said], 1)
    behind = count_turns(turn)[:, None] - 1  # padding follows the last turn
    return torch.arange(width) + shifts.gather(1, turn.where(turn >= 0, behind).clamp(min=0))


def spread_columns(values, columns, width, filler):
    """Return values of tokens at their columns, something else in between."""
    wide = filler.expand(len(values), width, *values.shape[2:]).to(values.dtype).clone()
    index = columns if values.ndim == 2 else columns[..., None].expand(values.shape)
    return wide.scatter_(1, index, values.contiguous())


def open_episodes(closed: Rollout, seed: int) -> Rollout:
    """The same rollout with what an environment has said between the turns, which is another text for every seed."""
    noise, opened = torch.Generator().manual_seed(seed), copy.copy(closed)
    columns = find_columns(closed.turn)
    width = int(columns.max()) + 2
    for field in fields(closed):
        value = getattr(closed, field.name)
        if not (isinstance(value, torch.Tensor) and value.shape[:2] == closed.mask.shape):
            continue
        shape = (len(value), width, *value.shape[2:])
        filler = 1e4 * torch.randn(shape, generator=noise)
        if field.name in ("mask", "turn"):
            filler = torch.tensor({"mask": 0, "turn": -1}[field.name])
        elif value.dtype == torch.int64:
            filler = torch.randint(3, 100, shape, generator=noise)
        elif value.dtype == torch.bool:
            filler = filler > 0
        vars(opened)[field.name] = spread_columns(value, columns, width, filler)
    for neutral in opened.unwritten:  # made of the mask
        vars(opened)[neutral] = NEUTRAL_VALUES[neutral](opened)
    texts = ("let me", " think", "\n", "wait. ", "")
    opened.tokens = [[texts[(seed + place) % 5] for place in range(width)] for _ in closed.tokens]
    for row, pieces in enumerate(closed.tokens):
        for place, piece in enumerate(pieces):
            opened.tokens[row][columns[row, place]] = piece
    return opened


def assign_twice(make, rollout):
    """Return an operator, and the ledger and metrics of its second time, when critics have learnt."""
    operator = make()
    operator.run_seed = 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StackWarning)
        operator.assign_checked(copy.copy(rollout))
        metrics = operator.assign_checked(rollout := copy.copy(rollout))
    return operator, rollout, {key: float(value) for key, value in metrics.items()}


def list_extra_credit(rollout):
    """The fields of alternatives and continuations, places as numbers of sampled tokens."""
    counts, extra = rollout.mask.cumsum(-1) - 1, []
    for tokens in (rollout.alternatives, rollout.continuations):
        if tokens is not None:
            extra += tokens._replace(places=counts[tokens.rows, tokens.places])
    return extra


def read_ledger(rollout, operator):
    """All that an operator has written, tokens in their order."""
    ledger = {field: getattr(rollout, field) for field in operator.writes & {*SHARES, "rewards"}}
    ledger |= {field: getattr(rollout, field)[rollout.mask] for field in operator.writes & {*TOKENS, "returns"}}
    return ledger | {f"extra {place}": values for place, values in enumerate(list_extra_credit(rollout))}


CLOSED = closed_episodes()
OPENED = [open_episodes(CLOSED, seed) for seed in (0, 1)]


def test_the_episodes_have_gaps_and_several_turns():
    assert torch.equal(OPENED[0].completion_ids[OPENED[0].mask], CLOSED.completion_ids[CLOSED.mask])
    assert (count_turns(CLOSED.turn) > 1).sum() >= 5
    gaps = OPENED[0].mask.flip(-1).cummax(-1).values.flip(-1) & ~OPENED[0].mask
    assert gaps.sum() >= 8
    assert not torch.equal(OPENED[0].entropy[gaps], OPENED[1].entropy[gaps])


@pytest.mark.parametrize("make", CASES, ids=lambda make: name(make()))
def test_credit_is_that_of_the_sampled_tokens(make):
    operator, closed, metrics = assign_twice(make, CLOSED)
    (_, first, numbers), (_, second, same_numbers) = (assign_twice(make, opened) for opened in OPENED)
    assert numbers == same_numbers
    ledger = read_ledger(first, operator)
    for field, value in read_ledger(second, operator).items():
        assert_close(value, ledger[field], rtol=0, atol=0)
    if is_bound_to_columns(operator):
        return
    assert numbers == pytest.approx(metrics, rel=1e-5, abs=1e-6)
    for field, value in read_ledger(closed, operator).items():
        assert_close(ledger[field], value, rtol=1e-5, atol=1e-6)


ALL_LOSSES = {
    **{f"{type(loss).__name__}{number}": loss for number, loss in enumerate([*BOUNDED, *EVERY])},
    **{kind: loss for kind, (loss, _) in LOSSES.items()},
    **{"IS": ImportanceSampling(), "KL": KLPenalty(ImportanceSampling()), "bonus": EntropyBonus(ImportanceSampling())},
    "constant": ImportanceSampling(denominator="constant", constant=9),
}


@pytest.mark.parametrize("kind", ALL_LOSSES)
def test_a_loss_is_that_of_the_sampled_tokens_whatever_stands_between_and_behind_them(kind):
    loss, closed = ALL_LOSSES[kind], batch(3)
    closed.turn = ((torch.arange(7) + torch.arange(8)[:, None] % 3) // 3).where(closed.mask, -1)
    columns, opened = find_columns(closed.turn), copy.copy(closed)
    width = int(columns.max()) + 1
    vars(opened)["mask"] = spread_columns(closed.mask, columns, width, torch.tensor(False))
    for field in ("logprobs", "old_logprobs", "advantages", "ref_logprobs", "entropy", "now", "uniforms"):
        values = spread_columns(getattr(closed, field).detach(), columns, width, torch.tensor(math.nan))
        vars(opened)[field] = values.where(opened.mask, math.nan)
    for update in (0, 1):
        value, gradient = value_and_gradient(loss, closed, update)
        same, wide_gradient = value_and_gradient(loss, opened, update)
        assert same == pytest.approx(value, abs=1e-6)
        assert not wide_gradient[~opened.mask].any()
        assert_close(wide_gradient[opened.mask], gradient[closed.mask])
    assert find_value_fault(0, "an operator", "advantages", opened.advantages, opened.mask) is None
