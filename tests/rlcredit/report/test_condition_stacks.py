"""Stacks of conditions, and what else differs."""

from rlcredit.report.condition_stacks import describe_condition_rewards, make_stack_table
from rlcredit.report.evidence import read_campaign_evidence


def test_a_condition_is_its_stack_and_its_other_differences(left):
    campaign = left()
    grpo = {"class_path": "callbacks.GRPO", "init_args": {"normalize_std": False}}
    for name, beta in (("same", 0.1), ("good", 0.2)):
        gtpo = {"class_path": "callbacks.GTPO", "init_args": {"beta": beta}}
        campaign.ledger["configs"][name]["trainer"]["callbacks"] = [grpo, gtpo]
    campaign.ledger["configs"]["base"]["trainer"]["callbacks"] = [grpo]
    campaign.ledger["configs"]["good"]["model"]["validation"]["temperature"] = 0.9
    table = make_stack_table(read_campaign_evidence(campaign.write()))
    rows = {name: (stack, differs) for name, stack, differs in table.rows}
    assert rows["base"] == ("GRPO", "the baseline")
    assert rows["same"] == ("GRPO \N{RIGHTWARDS ARROW} GTPO(beta=0.1)", "nothing")
    assert rows["good"] == ("GRPO \N{RIGHTWARDS ARROW} GTPO(beta=0.2)", "model.validation.temperature: 0.9 (0.7)")
    assert rows["bad"] == ("-", "nothing")
    assert table.note == "The same wherever it stands: GRPO(normalize_std=False)."


def test_a_report_says_how_rewards_counted_where_they_are_not_verdicts():
    def config(**arguments):
        return {"data": {"init_args": arguments}}

    plain, weighed = config(rewards=None), config(rewards=["verifier", {"function": "mine.short", "weight": -0.1}])
    assert list(describe_condition_rewards({"one": plain, "two": config()})) == []
    said = "verifier - 0.1 mine.short; right is what the verifier scores 1 or more."
    assert list(describe_condition_rewards({"one": weighed, "two": weighed})) == [f"Rewards: {said}"]
    assert list(describe_condition_rewards({"one": weighed, "two": plain})) == [
        f"Rewards of one: {said}",
        "Rewards of two: one for right, zero for wrong.",
    ]
