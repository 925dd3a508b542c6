"""Numbers of the page on how noisy credit is."""

from typing import Any

from studies.measured_credit import tabulate_noise
from studies.numbers import Estimate, Rows, read_held_out, read_results

MEASURED = "Monte Carlo, 8, optimal"
STACKS = {
    "grpo": "GRPO",
    "measured": MEASURED,
    "plain": "Monte Carlo, 8",
    "gtpo": "GTPO",
}


def find_estimate(rows: Rows, **keys: str) -> Estimate:
    """Return the only estimate whose columns have some values, such as ``stack`` and ``quantity``."""
    (row,) = [row for row in rows if keys.items() <= row.items()]
    return Estimate(*(float(row[name]) for name in ("estimate", "low", "high")))


def collect_length_numbers(rows: Rows, terms: str) -> dict[str, Any]:
    """Return agreements of stacks at one length of chains, and the direction under measured credit."""
    keys = {"terms": terms, "completions": "8"}
    found: dict[str, Any] = {
        name: find_estimate(rows, stack=stack, quantity="agreement", **keys) for name, stack in STACKS.items()
    }
    found["gain"] = find_estimate(rows, stack=MEASURED, quantity="more_than_grpo", **keys)
    found["gtpo_loss"] = -find_estimate(rows, stack="GTPO", quantity="more_than_grpo", **keys)
    found["direction"] = find_estimate(rows, stack=MEASURED, quantity="direction", **keys)
    return found


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the noise of credit."""
    rows = read_results("noise")
    lengths = {f"terms_{terms.replace('-', '_')}": terms for terms in ("2-4", "6-8", "10-12")}
    found = {name: collect_length_numbers(rows, terms) for name, terms in lengths.items()}
    return {
        **found,
        "directions": [each["direction"].mean for each in found.values()],
        "solved_by_first_copy": read_held_out("headroom_6_8", "c1_grpo", step=0).mean(),
        "solved_by_second_copy": read_held_out("headroom_rate_6_8", "c1_grpo", step=0).mean(),
        "table": tabulate_noise.render_noise_table(rows),
        "more_completions": find_estimate(rows, stack="GRPO", terms="6-8", completions="56", quantity="agreement"),
        "more_prompts": find_estimate(read_results("noise_28_prompts"), stack="GRPO", quantity="agreement"),
    }
