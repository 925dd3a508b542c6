import pytest

from rlcredit.statistics.grid_choice import GridChoice, choose_grid_value


def test_a_best_value_inside_the_grid_and_far_ahead_is_no_doubt():
    choice = choose_grid_value({1.0: [0.9, 0.8], 2.0: [0.5, 0.5], 0.5: [0.4, 0.6]})
    assert choice == GridChoice(1.0, None, ())
    assert choice.describe_doubts("flat") == []


@pytest.mark.parametrize(("best", "edge"), [(0.5, "lowest"), (1.0, None), (4.0, "highest")])
def test_a_best_value_at_an_end_is_named(best, edge):
    results = {value: [0.9 if value == best else 0.1] * 3 for value in (0.5, 1.0, 4.0)}
    assert choose_grid_value(results).edge == edge


def test_values_within_a_standard_error_of_paired_differences_are_tied():
    # Differences to the best: 0.03 and -0.01, mean 0.01, standard error 0.02; 0.02 and 0.02, standard error 0.
    choice = choose_grid_value({1.0: [0.70, 0.80], 2.0: [0.67, 0.81], 4.0: [0.68, 0.78]})
    assert (choice.best, choice.tied) == (1.0, (2.0,))
    assert choose_grid_value({1.0: [0.7, 0.8], 2.0: [0.7, 0.8]}) == GridChoice(1.0, "lowest", (2.0,))


def test_one_seed_shows_no_ties_and_one_value_has_no_ends():
    assert choose_grid_value({1.0: [0.7], 2.0: [0.71], 4.0: [0.7]}) == GridChoice(2.0, None, ())
    assert choose_grid_value({1.0: [0.7, 0.7]}) == GridChoice(1.0, None, ())
