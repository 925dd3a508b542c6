"""Both forms of published credit are what a hand derives from the page's examples."""

import math

import pytest
import torch
from docs.studies.published_credit import numbers
from docs.studies.published_credit.numbers import collect_numbers


def near(values):
    return pytest.approx(values, abs=1e-5)


@pytest.fixture(scope="module")
def worked():
    return collect_numbers()


def test_vineppo_blames_a_step_that_changes_nothing_once_it_is_whitened(worked):
    # Credit 0, 3/4, 1/4, -1/2: mean 1/8, squared deviations 1/64 and 25/64, twice each, over three.
    deviation = math.sqrt((2 * 1 + 2 * 25) / 64 / 3)
    assert worked["vineppo_equation"] == near([0, 0.75])
    assert worked["vineppo_code"] == near([-0.125 / deviation, 0.625 / deviation])


def test_prime_returns_fall_by_the_equation_and_rise_in_the_code(worked):
    # Rewards 1 and 3 less 1/2, the mean of the other completion.
    assert worked["prime_equation"] == near([0.5 + 2.5, 2.5])
    # Ratios over 80 are 1/4, 3/4 and 0, 1/4, their means 1/2 and 1/8; doubled, less 5/8: -1/8 and 7/8.
    assert worked["prime_code"] == near([-0.125 + 0.875, 0.875])


def test_the_prime_code_does_not_know_the_scale_of_the_ratios():
    ratios = numbers.PRIME_RATIOS
    torch.testing.assert_close(numbers.prime_code(7 * ratios), numbers.prime_code(ratios))


def test_ktae_weighs_the_information_gain_once_in_the_code(worked):
    # Four of five right answers and one of three wrong ones: of C(8, 5) = 56 draws, those as unlikely have 1 + 10 + 15.
    fisher = math.exp(-2 * 26 / 56)
    bits = [-(p * math.log2(p) + (1 - p) * math.log2(1 - p)) for p in (5 / 8, 4 / 5, 1 / 3)]
    gain = bits[0] - 5 / 8 * bits[1] - 3 / 8 * bits[2]
    right, wrong = (3 * share / (share + 2 * (0.5 + 0.5 * tokens / 40)) for share, tokens in ((0.12, 50), (2 / 30, 30)))
    direction = math.asin(math.sqrt(4 / 5)) - math.asin(math.sqrt(1 / 3))
    direction += right / (wrong + 1e-5) - wrong / (right + 1e-5)
    assert worked["ktae_p"] == near(26 / 56)
    assert worked["ktae_gain"] == near(gain)
    for form, weight in (("code", 1), ("equation", 2)):
        score = (fisher + weight * gain) / (1 + weight) * direction
        assert worked[f"ktae_{form}"] == near(2 / (1 + math.exp(-score)) - 1)


def test_an_edge_of_spo_counts_its_child_among_the_parents_leaves(worked):
    assert numbers.spo_tree_edges(numbers.SPO_LEAVES).tolist() == near(
        [1 / 3, -1 / 3, 0, 1 / 3, 1 / 3, -2 / 3, 0, 0, 0, 2 / 3, -1 / 3, -1 / 3]
    )
    assert worked["spo_alone"] == near(2 / 3 - 1 / 6)
    assert (worked["spo_kept"], worked["spo_edges"], worked["spo_full"]) == (8, 12, 258)


def test_treerl_divides_before_or_after_the_difference(worked):
    root = math.sqrt(2)
    # Values 1/2 and 0 below a root of 1/4.
    assert worked["treerl_equation"] == near({"prefix": (0.25 + 0.25) / root, "right": 0.75 + 0.5, "failed": -0.25 + 0})
    # Less the mean of the other three: 1 and -1/3; the prefixes have 1/3 and -1/3, over the root of two.
    below = 1 / 3 / root
    assert worked["treerl_code"] == near(
        {"prefix": 2 * below, "right": 1 - below + 1, "failed": -1 / 3 + below - 1 / 3}
    )


def test_treepo_leaves_out_the_subgroup_of_a_lone_response(worked):
    # At the prompt 2/3, -1/3, -1/3; in the first branch 1/2, -1/2; the lone one differs from itself by nothing.
    assert worked["treepo_equation"] == near([7 / 12, -5 / 12, -1 / 6])
    assert worked["treepo_code"] == near([7 / 12, -5 / 12, -1 / 3])


def test_tree_grpo_adds_two_standards_and_its_other_estimator_nests_them(worked):
    half = math.sqrt(0.5)
    assert worked["tree_grpo"] == near([1.5 + half, -0.5 - half, -0.5, -0.5])
    assert worked["tree_grpo_nested"] == near([half, -half, 0, 0])


def test_fr3e_forks_where_entropy_is_large_or_where_the_sampled_token_is_unlikely(worked):
    assert worked["fr3e_entropies"] == near([math.log(2), -0.3 * math.log(0.3) - 0.7 * math.log(0.7)])
    assert (worked["fr3e_equation"], worked["fr3e_code"]) == (1, 2)
    # Changes 1/2, -1/4, 1/2: to the power of 3/2 they are as 1 to 2^-1.5 to 1.
    small = 2**-1.5
    shares = [1 / (2 + small), -small / (2 + small), 1 / (2 + small)]
    assert worked["fr3e_divisors"] == near([math.exp(share) for share in shares])


def test_arpo_branches_by_a_threshold_or_by_a_draw(worked):
    assert worked["arpo_equation"] == [0.0, 1.0]
    assert worked["arpo_code"] == near([0.49, 0.51])
    assert (numbers.arpo_code(-10.0), numbers.arpo_code(10.0)) == (0.0, 1.0)


def test_the_loss_of_gtpo_is_divided_by_the_longer_run_of_conflicts(worked):
    # Weights 2, 2, 1, 2 and 0, 0, 1, 0; two tokens of conflict at the start and one at the end.
    assert worked["conflict_equation"] == near([0.5 * 7 / 4, -0.5 * 1 / 4])
    assert worked["conflict_code"] == near([0.5 * 7 / 8, -0.5 * 1 / 8])


def test_two_methods_called_gtpo_order_the_tokens_of_a_right_and_of_a_wrong_answer_differently(worked):
    # Surprisals 2, 4, 1 have the mean 7/3, those of the last answer 9/4.
    assert worked["gtpo_factor"] == near([0.5 * (0.9 + 0.1 * signal * 3 / 7) for signal in (2, 4, 1)])
    assert worked["gtpo_factor_wrong"] == near([-0.5 * (0.9 + 0.1 * signal * 4 / 9) for signal in (0.5, 4)])
    first, _, last = worked["gtpo_canonical"]
    assert last > first  # though it is the more certain token: the other right answer has ended by then
    certain, uncertain = worked["gtpo_canonical_wrong"]
    assert certain < uncertain < 0
    assert worked["gtpo_canonical"] == pytest.approx([0.962, 1.108, 0.999], abs=5e-4)


def test_three_of_the_twelve_tokens_have_a_prefix_of_their_own(worked):
    assert (worked["tempo_lone"], worked["tempo_tokens"]) == (3, 12)
