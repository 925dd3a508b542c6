import pytest

from callbacks.dense.canonical_gtpo import CanonicalGTPO, canonical_gtpo_advantages
from rlcredit.formulas.outcome_sets import shaped_rewards
from tests.callbacks.published_gtpo import ALIVE, CORRECT, ENTROPY, SHAPED, kept
from tests.callbacks.rollouts import rollout_of


def test_canonical_gtpo_shapes_the_published_example():
    shaped, _ = shaped_rewards(CORRECT, ENTROPY, ALIVE, **SHAPED)
    expected = [1.08, 1.16, 1.10, 1.12, 1.04, -1.022222, -1.177778, -1.1, -1.177778, -1.022222]
    assert kept(shaped.sum(0)[0]) == pytest.approx(expected, abs=5e-7)


def test_canonical_gtpo_normalises_the_published_example_over_its_own_set():
    own = canonical_gtpo_advantages(CORRECT, ENTROPY, ALIVE, 4, norm_set="own")
    expected = [-0.5, 1.5, 0, 0.5, -1.5, 1.118034, -1.118034, 0, -1.118034, 1.118034]
    assert kept(own) == pytest.approx(expected, abs=5e-7)
    # The outcome is gone: right answers and wrong ones get nothing on average.
    assert own[:2][ALIVE[:2]].sum().item() == pytest.approx(0, abs=1e-5)


def test_canonical_gtpo_keeps_the_outcome_with_the_other_set_at_zero():
    every = kept(canonical_gtpo_advantages(CORRECT, ENTROPY, ALIVE, 4))
    assert every[:5] == pytest.approx([0.962, 1.108, 0.999, 1.035, 0.890], abs=5e-4)
    assert (max(every[5:]), min(every[5:])) == (pytest.approx(-0.855, abs=5e-4), pytest.approx(-1.137, abs=5e-4))


def test_canonical_gtpo_says_how_often_it_goes_against_the_outcome():
    rewards = [1.0, 1.0, 0.0, 0.0]
    entropy = [[2.0, 4.0], [3.0, 1.0], [4.0, 0.5], [0.5, 4.0]]
    own = CanonicalGTPO(norm_set="own").assign(rollout_of(rewards, 4, entropy))
    both = CanonicalGTPO(norm_set="all").assign(rollout_of(rewards, 4, entropy))
    assert own["against_outcome_fraction"] == 0.5
    assert both["against_outcome_fraction"] == 0
