"""Measurements of a test policy that later cards find again, unless they are no longer what is measured."""

import sys
from dataclasses import replace

import pytest
import torch

from rlcredit.cards.card_policies import resolve_card_policy
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.cards.measuring_bar import MeasuringBar
from rlcredit.cards.policy_cards import PolicyCards
from tests.rlcredit.cards.conftest import BUDGET

MOODY = """
from pathlib import Path

from rlcredit.decoding.in_process import InProcessEngine


class Moody(InProcessEngine):
    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step, **how):
        mood = int(Path(__file__).with_name("mood").read_text())
        return super().sample(policy, prompt_ids, prompts, sampling, seed=seed + mood, step=step, **how)
"""
SMALL = replace(BUDGET, asked=3, samples=8)


@pytest.mark.slow
def test_true_credit_is_not_taken_for_that_of_other_answers(tmp_path, monkeypatch):
    (tmp_path / "moody_engine.py").write_text(MOODY)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    asked = (resolve_card_policy("aligned"), resolve_card_condition("GRPO"), SMALL, tmp_path / "cards")

    def measure(mood):
        (tmp_path / "mood").write_text(str(mood))
        with MeasuringBar("GRPO", 9) as bar:
            return PolicyCards(*asked, engine="moody_engine.Moody()").measure_baseline(bar)

    first, again, other = measure(0), measure(0), measure(1)
    assert first.decoded == again.decoded
    assert torch.equal(again.truth.credit, first.truth.credit)
    assert other.rollout.tokens != first.rollout.tokens
    assert torch.equal(other.truth.mask, other.rollout.mask[other.truth.rows])
    assert torch.equal(measure(1).truth.credit, other.truth.credit)
