"""Numbers of the page on policies that disagree about where credit lies."""

from typing import Any

import numpy as np
from docs.numbers import read_results, require_claim
from docs.studies.organisms.tabulate_organisms import ORACLE, PASS, render_test_policy_table


def collect_first_values(metric: str) -> dict[str, float]:
    """Return what a metric was before training, by policy; means over seeds."""
    values: dict[str, list[float]] = {}
    for row in read_results("organisms"):
        if row["metric"] == metric:
            values.setdefault(row["organism"], []).append(float(row["first"]))
    return {name: float(np.mean(each)) for name, each in values.items()}


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the policies."""
    solved = collect_first_values(PASS)
    forks = collect_first_values(f"{ORACLE}fork_fraction")
    require_claim(70 < 1 / forks["delayed"] < 90, "one token in eighty decides on delayed")
    cosines = collect_first_values(f"{ORACLE}GRPO_cosine")
    require_claim(all(0.2 <= share <= 0.6 for share in solved.values()), "each policy solves 20 to 60 % of its task")
    require_claim(min(cosines, key=cosines.__getitem__) == "delayed", "flat credit has the lowest cosine on delayed")
    decoy = [collect_first_values(f"{ORACLE}{name}_auc")["decoy"] for name in ("surprisal", "entropy")]
    require_claim(f"{decoy[0]:.2f}" == f"{decoy[1]:.2f}", "surprisal and entropy find the forks of decoy equally well")
    return {
        "table": render_test_policy_table(read_results("organisms")),
        "decoy_area": decoy[0],
        "delayed_cosine": cosines["delayed"],
        "long_chains_cosine": cosines["long_chains"],
        "other_cosines": [cosine for name, cosine in cosines.items() if name not in ("delayed", "long_chains")],
    }
