"""Numbers of the page on runs that were killed everywhere.

The two commands of the page print their counts and keep no file of them. They stand here as they were printed.
"""

from typing import Any

from rlcredit.pages.tables import Table

PHASES = {
    "decode": "completions are decoded (`decode`)",
    "verify": "answers are judged (`verify`)",
    "credit": "an operator assigns credit (`credit`)",
    "forward": "the loss is computed (`forward`)",
    "backward": "gradients are computed (`backward`)",
    "optimizer": "the weights change (`optimizer`)",
    "step_end": "the step ends (`step_end`)",
    "log": "metrics are logged (`log`)",
    "record": "a line of the record is written (`record`)",
    "table": "a table or an evaluation is written (`table`)",
    "question": "held-out questions are answered (`question`)",
    "held_out": "an evaluation is recorded (`held_out`)",
    "checkpoint": "a checkpoint is written (`checkpoint`)",
    "replaced": "a file gets its name (`replaced`)",
    "checkpoint_named": "`last.ckpt` is named (`checkpoint_named`)",
    "checkpoint_removed": "an old checkpoint is removed (`checkpoint_removed`)",
    "deliver": "metrics go to MLflow (`deliver`)",
    "upload": "a file goes to MLflow (`upload`)",
    "curve": "the learning curve is drawn (`curve`)",
    "adapter": "the adapter is written (`adapter`)",
    "close": "the record is closed (`close`)",
}
STACKS = ("GRPO", "MaxRL, adaptive lambda, gate, SEPA, GTPO", "two updates per rollout")
ONCE = ("checkpoint_removed", "curve", "adapter", "close")
"""Phases that a run enters once."""
TWICE = ("decode", "verify", "credit")
"""Phases that a run with two updates per rollout enters less often."""
CHAINS = [{"chains": 623, "faults": 1067, "unequal": 1}, {"chains": 52, "faults": 91, "unequal": 0}]
"""Chains of random faults: of the seeds 2 and 3, and of seed 4, after what the former found had been repaired."""


def count_kills() -> dict[str, list[int]]:
    """Return how many runs were killed in every phase, stack by stack; all of them ended equal."""
    kills = {phase: [1 if phase in ONCE else 3] * len(STACKS) for phase in PHASES}
    for phase in TWICE:
        kills[phase][-1] = 2
    return kills


def render_kill_table() -> str:
    """Return the table of all kills."""
    rows = [
        [PHASES[phase], *(f"{number} of {number}" for number in numbers)] for phase, numbers in count_kills().items()
    ]
    return Table(["killed when", *STACKS], rows).to_markdown()


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of killed runs."""
    chains = sum(each["chains"] for each in CHAINS)
    return {
        "table": render_kill_table(),
        "kills": sum(sum(numbers) for numbers in count_kills().values()),
        "chains": chains,
        "equal_chains": chains - sum(each["unequal"] for each in CHAINS),
        "first": CHAINS[0],
        "second": CHAINS[1],
    }
