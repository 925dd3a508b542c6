"""Head-room of the shipped policies: the largest lead over flat credit that a run could have.

python -m studies.credit_patterns.tabulate_room

A policy appears once a campaign on it has results, and its page holds the sentence about it. The baseline is flat
credit with a tuned rate and batch. In tokens of that campaign, an earlier first mark shows more room.
"""

from rlcredit.pages.tables import Table
from rlcredit.policy.model_loading import find_embedded_policy
from studies.lead_tables import find_headroom, read_curves
from studies.numbers import has_results

CAMPAIGNS = {
    "aligned": "equal_tokens_aligned",
    "long_chains": "equal_tokens_long_chains",
    "decoy": "equal_tokens_decoy",
    "backward": "equal_tokens_backward",
    "delayed": "equal_tokens_delayed",
    "corridor": "turns_corridor_1",
    "bisection": "turns_bisection",
    "running_sum": "turns_running_sum",
    "hinted": "sparse_hinted",
}
"""Campaign whose flat credit is the baseline, by policy."""

FLAT = "flat"


def list_measured_policies() -> list[str]:
    """Return the policies whose campaigns have results."""
    return [name for name, campaign in CAMPAIGNS.items() if has_results(f"{campaign}/runs")]


def find_first_mark(campaign: str) -> float:
    """Return the share of the run after which it is first evaluated."""
    curve = next(iter(read_curves(campaign)[FLAT].values()))
    marks = sorted(curve)
    return marks[1] / marks[-1]


def describe_room(policy: str) -> str:
    """Return the sentence of a policy's page."""
    campaign = CAMPAIGNS[policy]
    room = find_headroom(campaign, FLAT)
    mark = f"{find_first_mark(campaign):.0%}".replace("%", " %")
    return (
        f"**Head-room.** In the campaign `{campaign}` a run could lead tuned flat credit by "
        f"{100 * room.at_first:.1f} points at most at the first mark, after {mark} of the tokens, and by "
        f"{100 * room.by_area:.1f} of area in all."
    )


def find_policy_page(policy: str) -> str:
    """Return the text of a policy's page, its lines joined."""
    folder = find_embedded_policy("tiny" if policy == "aligned" else f"organisms/{policy}")
    assert folder, policy
    return " ".join((folder / "README.md").read_text(encoding="utf-8").split())


def tabulate_room() -> str:
    """Return the table of all policies that were measured."""
    rows = []
    for policy in list_measured_policies():
        campaign = CAMPAIGNS[policy]
        room = find_headroom(campaign, FLAT)
        first = f"{100 * room.at_first:.1f} ({find_first_mark(campaign):.0%})".replace("%", " %")
        rows.append((policy, campaign, f"{100 * room.by_area:.1f}", first))
    return Table(("policy", "campaign", "in all", "at the first mark"), rows).to_markdown()


def main() -> None:
    """Print the table, and the sentence of every policy's page."""
    print(tabulate_room(), *map(describe_room, list_measured_policies()), sep="\n\n")


if __name__ == "__main__":
    main()
