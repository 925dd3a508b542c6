"""Pages of policies name the head-room that the committed runs leave."""

import pytest

from studies.credit_patterns.tabulate_room import (
    CAMPAIGNS,
    describe_room,
    find_policy_page,
    list_measured_policies,
    tabulate_room,
)
from studies.csv_rows import read_csv_rows
from studies.numbers import find_results


@pytest.mark.parametrize("policy", list_measured_policies())
def test_the_page_of_a_policy_names_its_head_room(policy):
    assert describe_room(policy) in find_policy_page(policy)


def test_the_head_room_is_the_distance_to_the_best_score_from_the_first_mark_on():
    rows = read_csv_rows(find_results("equal_tokens_backward/runs.csv"))
    scores = [float(row["val/pass_at_1"]) for row in rows]
    flat = [score for row, score in zip(rows, scores, strict=True) if row["condition"] == "flat"]
    means = [sum(flat[place::5]) / 8 for place in range(5)]  # eight runs of five evaluations, one after the other
    leads = [0, *(100 * (max(scores) - mean) for mean in means[1:])]
    area = (leads[0] / 2 + sum(leads[1:4]) + leads[4] / 2) / 4
    assert f"| backward | equal_tokens_backward | {area:.1f} | {leads[1]:.1f} (25 %) |" in tabulate_room()


def test_every_policy_with_a_campaign_is_one_that_ships():
    assert all("172,576 parameters" in find_policy_page(policy) for policy in CAMPAIGNS)
