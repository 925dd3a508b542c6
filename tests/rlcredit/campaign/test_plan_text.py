"""What a campaign costs and can show, with numbers that can be checked by hand."""

import re
from types import SimpleNamespace

import pytest

from rlcredit.campaign.declaration import CampaignDeclaration, ComparisonFamily, DeclaredBudget
from rlcredit.campaign.plan_text import describe_campaign, explain_seed_shortfall, list_evaluation_steps
from rlcredit.tasks.held_out_sets import HeldOutSet


def campaign(seeds, conditions=2, **more):
    names = {f"c{number}": ("c.yaml",) for number in range(conditions)}
    fixed = {"name": "x", "configs": (), "baseline": "c0", "steps": 100, "primary": "val/pass_at_1", "effect": 0.02}
    return CampaignDeclaration(conditions=names, seeds=tuple(range(seeds)), **{**fixed, **more})


def baseline(steps=100, every=20, updates=1):
    module = SimpleNamespace(
        updates_per_rollout=updates,
        rounds=1,
        sampling=SimpleNamespace(completions=16),
        validation=SimpleNamespace(completions=4),
    )
    task = SimpleNamespace(prompts_per_step=8, validation_size=512, held_out_completions=None, held_out_size=512)
    task.held_out_sets = [HeldOutSet("", 0, task)]
    leaves = {"trainer": {"max_steps": steps, "val_check_interval": every}}
    return SimpleNamespace(leaves=leaves, module=module, task=task)


def machine(slots):
    return SimpleNamespace(slots=slots, description="this machine")


def test_the_plan_counts_what_will_be_sampled_and_how_long_it_takes():
    each = {"start": 10.0, "step": 1.0, "validation": 5.0}
    text = "\n".join(describe_campaign(campaign(8), baseline(), machine(2), {"c0": each, "c1": each}))
    assert "2 conditions x 8 seeds = 16 runs of 100 steps, 2 at a time" in text
    # 16 runs x 100 steps x 8 prompts x 16; 16 runs x 6 evaluations x 512 questions x 4
    assert "204,800 training completions, 196,608 held out (6 evaluations a run)" in text
    # 10 + 100 x 1 + 6 x 5 = 140 s a run, eight of them one after the other in each slot: 1120 s
    assert "time       about 19 min, if completions keep their length" in text
    assert "time       run of  takes  a step  an evaluation\ntime       c0      3 min  1.00 s  5 s\n" in text
    assert "time       c1" not in text


def test_a_condition_that_costs_more_is_counted_with_what_it_costs():
    cheap, dear = {"start": 10.0, "step": 1.0, "validation": 5.0}, {"start": 10.0, "step": 5.0, "validation": 5.0}
    text = "\n".join(describe_campaign(campaign(3), baseline(), machine(3), {"c0": cheap, "c1": dear}))
    # 140 and 540 s, seed by seed, as three slots become free: 140 + 540, 540, 140 + 140 + 540
    assert "time       about 14 min" in text
    assert "time       c0      3 min  1.00 s  5 s\ntime       c1      9 min  5.00 s  5 s\n" in text


def test_nothing_is_said_of_time_unless_all_of_it_is_known():
    text = "\n".join(
        describe_campaign(campaign(3), baseline(), machine(3), {"c0": {"start": 1, "step": 1, "validation": 1}})
    )
    assert "\ntime " not in text


def test_two_updates_of_a_rollout_sample_once():
    text = "\n".join(describe_campaign(campaign(8), baseline(updates=2), machine(2), {}))
    assert "102,400 training completions" in text


def test_five_pairs_can_never_reach_a_verdict():
    assert "the smallest p of 5 pairs is 0.0625" in "\n".join(
        describe_campaign(campaign(5), baseline(), machine(1), {})
    )
    assert explain_seed_shortfall(campaign(5)) == (
        "5 seeds cannot reach a verdict; 6 are needed for p <= 0.05, which no fewer pairs can reach. "
        "Declare more seeds, or `exploratory: true` if no verdict is expected."
    )
    assert explain_seed_shortfall(campaign(6)) is None
    assert "deviations" not in "\n".join(describe_campaign(campaign(5), baseline(), machine(1), {}))
    assert not explain_seed_shortfall(campaign(5, exploratory=True)).endswith("expected.")


def test_more_comparisons_need_more_pairs_for_the_same_power():
    """Holm's first of four asks for p <= 0.0125, that of eight for 0.00625."""
    needed = [explain_seed_shortfall(campaign(8, conditions=number, deviation=0.02)) for number in (2, 5, 9)]
    assert [int(re.search(r"(\d+) are needed", text)[1]) for text in needed] == [10, 15, 17]
    assert explain_seed_shortfall(campaign(6, conditions=9)) is None, "the t test has no smallest p"


def test_all_families_share_one_correction():
    names = tuple(f"c{number}" for number in range(1, 9))
    split = {"first": ComparisonFamily("c0", names[:4]), "second": ComparisonFamily("c1", names[4:])}
    whole, parted = (campaign(8, conditions=9, deviation=0.02, **how) for how in ({}, {"families": split}))
    assert explain_seed_shortfall(whole) == explain_seed_shortfall(parted)
    text = "\n".join(describe_campaign(parted, baseline(), machine(2), {}))
    assert "compares   second: c5, c6, c7, c8 against c1" in text


def test_one_condition_is_compared_with_nothing():
    assert "compares" not in "\n".join(describe_campaign(campaign(8, conditions=1), baseline(), machine(1), {}))
    assert explain_seed_shortfall(campaign(1, conditions=1)) is None


def test_an_effect_out_of_reach_asks_for_the_seeds_it_needs():
    """An effect of one standard deviation takes ten pairs for a power of 0.8 (Cohen's tables: 10)."""
    assert "10 are needed for an effect of 0.02 with power 0.8" in explain_seed_shortfall(campaign(8, deviation=0.02))
    assert explain_seed_shortfall(campaign(10, deviation=0.02)) is None
    text = "\n".join(describe_campaign(campaign(8, deviation=0.02), baseline(), machine(1), {}))
    assert "8 pairs find a difference of 1.16 standard deviations with power 0.8, which is 0.0231 of val/pass" in text


def test_the_last_policy_must_be_the_one_that_is_measured():
    assert list_evaluation_steps(baseline()) == [0, 20, 40, 60, 80, 100]
    with pytest.raises(
        ValueError, match=r"the last interval would be shorter. Add settings: {trainer.val_check_interval: 10}"
    ):
        list_evaluation_steps(baseline(steps=10))


def test_a_budget_is_planned_by_the_tokens_of_a_short_run():
    timing = {"start": 10.0, "step": 1.0, "validation": 5.0, "decoded": 300.0, "backward": 200.0}
    declared = campaign(2, steps=None, budget=DeclaredBudget(decoded_tokens=29_900, evaluations=2))
    text = "\n".join(describe_campaign(declared, baseline(), machine(1), {"c0": timing, "c1": timing}))
    assert "= 4 runs of 29,900 decoded tokens, 1 at a time" in text
    assert "samples    training completions as the budget allows, 24,576 held out (3 evaluations a run)" in text
    # 29,900 / 300 is less than 100 steps: 10 + 100 x 1 + 3 x 5 = 125 s, four times
    assert "time       about 9 min" in text
    assert "time       run of  takes  steps, about  a step  an evaluation\n" in text
    assert "time       c0      3 min  100           1.00 s  5 s\n" in text
    assert "val/pass_at_1 after 29,900 decoded tokens, effect 0.02" in text
