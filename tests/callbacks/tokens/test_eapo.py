import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.tokens.eapo import EAPO, eapo_advantages
from rlcredit.formulas.quadrants import high_entropy_mask
from tests.callbacks.rollouts import THREE_AND_TWO, rollout_of
from tests.conftest import make_rollout


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(1.1, 4.0))
def test_eapo_is_a_weight_between_its_bounds(seed, alpha, phi):
    rollout = make_rollout(seed=seed)
    GRPO().assign(rollout)
    leaned = eapo_advantages(rollout.advantages, rollout.entropy, rollout.mask, 4, alpha, phi)
    weight = (leaned / rollout.advantages)[rollout.mask & (rollout.advantages != 0)]
    assert (weight >= 1 - alpha / phi - 1e-5).all()
    assert (weight <= 1 + alpha / phi + 1e-5).all()
    assert not leaned[rollout.advantages == 0].any()


def test_eapo_by_hand():
    entropy = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 50.0]])  # standard scores -1.41, -.71, 0, .71, 1.41
    advantages = torch.tensor([[1.0], [-3.0]]).expand(2, 3)
    # Clipped at 0.5 and at 1.5; the wrong answer's uncertain tokens are blamed more.
    score = math.sqrt(0.5)
    expected = torch.tensor([[1 - 0.1, 1 - 0.1, 1.0], [-3 - 0.2 * score, -3 - 0.2 * 2 * score, -3.0]])
    assert_close(eapo_advantages(advantages, entropy, THREE_AND_TWO, 2, 0.2, 2.0), expected)


def test_modulation_can_be_left_out_of_a_quadrant():
    whole, part, plain = (make_rollout() for _ in range(3))
    for rollout in (whole, part, plain):
        GRPO().assign(rollout)
    EAPO().assign(whole)
    EAPO(modulated=("PLR", "NHR", "NLR")).assign(part)
    left_out = (plain.advantages > 0) & high_entropy_mask(plain.entropy, plain.mask, "mean", "group", 4)
    assert left_out.any()
    assert_close(part.advantages, plain.advantages.where(left_out, whole.advantages))
    assert not torch.equal(whole.advantages[left_out], plain.advantages[left_out])
    with pytest.raises(ValueError, match="modulated to be one of PHR, PLR, NHR, NLR, got 'HPR'"):
        EAPO(modulated=("HPR",))


@pytest.mark.parametrize(("normalize_std", "clipped"), [(False, 1.0), (True, 0.0)])
def test_what_is_clipped_depends_on_the_scale_of_advantages(normalize_std, clipped):
    rollout = rollout_of([1.0, 0.0, 0.0, 0.0], 4, [[0.0, 1.0]] * 4)  # standard scores of 1; a bound of 0.375 or 0.75
    rollout.rewards = torch.tensor([1.0, 1.0, 0.0, 0.0])
    GRPO(normalize_std).assign(rollout)
    assert EAPO(phi=0.8).assign(rollout)["clipped_fraction"] == clipped


def test_an_alpha_that_could_flip_signs_is_refused():
    with pytest.raises(ValueError, match=r"0 <= alpha < phi, got 2.0 and 2.0. Otherwise signs may flip"):
        EAPO(alpha=2.0, phi=2.0)


def test_golden_values_of_eapo_for_real_rewards():
    rollout = make_rollout([-2.0, -5.0], group_size=2, width=2)  # the mean is -3.5: advantages 1.5 and -1.5
    rollout.mask = torch.ones(2, 2, dtype=torch.bool)
    rollout.entropy = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    GRPO().assign(rollout)
    EAPO(alpha=0.2, phi=2.0).assign(rollout)
    # Mean 1.5, variance (2.25 + 0.25 + 0.25 + 2.25) / 4 = 1.25: standard scores -1.3416, -0.4472, 0.4472, 1.3416, of
    # which those beyond 1.5 / 2 are clipped: 1.5 - 0.15, 1.5 - 0.0894, -(1.5 + 0.0894), -(1.5 + 0.15).
    lean = 0.2 * 0.5 / math.sqrt(1.25)
    expected = torch.tensor([[1.35, 1.5 - lean], [-1.5 - lean, -1.65]])
    assert_close(rollout.advantages, expected)
    # Again, as weights: 1 - alpha / phi and 1 + alpha / phi at the ends, 1 -+ 0.2 * 0.4472 / 1.5 between.
    weights = torch.tensor([[0.9, 1 - lean / 1.5], [1 + lean / 1.5, 1.1]])
    assert_close(rollout.advantages / torch.tensor([[1.5], [-1.5]]), weights)
