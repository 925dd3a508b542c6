"""Definition 1 of the paper, executed for every operator there is: f reads rewards, g reads what it says."""

import math

import pytest
import torch
from torch.testing import assert_close

from callbacks import every_operator
from callbacks.episode.grpo import GRPO
from callbacks.tokens.advantage_clip import AdvantageClip
from rlcredit.rollout import FIELDS
from tests.conftest import make_rollout, snapshot

OPERATORS = every_operator()
NEUTRAL = [AdvantageClip(limit=math.inf)]
SHAPE = {"mask", "group_size"}


def name(thing):
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def equal(one, two):
    if isinstance(one, torch.Tensor):
        return isinstance(two, torch.Tensor) and one.shape == two.shape and torch.equal(one, two)
    return one == two


def test_there_are_operators():
    assert {"GRPO", "MaxRL", "RLOO", "AdvantageClip"} <= {operator.__name__ for operator in OPERATORS}


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_touches_only_what_it_declares(operator):
    rollout = make_rollout()
    for field in FIELDS - operator.reads - operator.writes - SHAPE:
        setattr(rollout, field, None)  # any other access fails loudly
    before = snapshot(rollout)
    operator().assign(rollout)
    changed = {field for field, value in before.items() if not equal(value, getattr(rollout, field))}
    assert changed <= operator.writes


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_rebinds_and_never_mutates(operator):
    rollout = make_rollout()
    held = {field: getattr(rollout, field) for field in FIELDS}
    before = snapshot(rollout)
    operator().assign(rollout)
    for field, value in held.items():
        assert equal(value, before[field]), f"{field} was changed in place"


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_padding_never_matters(operator):
    clean, dirty = make_rollout(), make_rollout()
    for field in ("old_logprobs", "entropy", "signal", "advantages"):
        value = getattr(dirty, field)
        setattr(dirty, field, value.where(dirty.mask, 1e6))
    operator().assign(clean)
    operator().assign(dirty)
    for field in operator.writes & {"signal", "advantages", "plan_mask"}:
        assert_close(getattr(dirty, field)[dirty.mask], getattr(clean, field)[clean.mask])


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_reports_finite_numbers_for_any_batch(operator):
    for rewards in ([0.0] * 8, [1.0] * 8, [1.0] + [0.0] * 7):
        rollout = make_rollout(rewards)
        metrics = operator().assign(rollout)
        assert all(math.isfinite(float(value)) for value in metrics.values())
        assert rollout.advantages.isfinite().all()
        assert rollout.advantages.shape == rollout.mask.shape


@pytest.mark.parametrize("operator", NEUTRAL, ids=name)
def test_a_neutral_parameter_is_the_identity(operator):
    rollout = make_rollout()
    GRPO().assign(rollout)
    before = snapshot(rollout)
    operator.assign(rollout)
    assert all(equal(value, getattr(rollout, field)) for field, value in before.items())
