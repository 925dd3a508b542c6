"""Where the variance of held-out verdicts comes from."""

import numpy as np

from rlcredit.report.evidence import CampaignEvidence
from rlcredit.statistics.variance_components import VarianceComponents, variance_components

FACTORS = ("step", "prompt", "arm", "run")


def decompose_variance(evidence: CampaignEvidence) -> dict[str, VarianceComponents]:
    """Split the variance of a question's share of right samples, over all steps and after the last one.

    Runs are nested in arms, questions are common to all. Only seeds that are finished in every condition count, so that
    the table is balanced; nothing is returned for fewer than two of them, or if conditions are measured otherwise.

    """
    declaration = evidence.declaration
    seeds = [
        seed for seed in declaration.seeds if all((name, seed) in evidence.runs for name in declaration.conditions)
    ]
    arms = [[evidence.runs[name, seed] for seed in seeds] for name in declaration.conditions]
    alike = not any(evidence.list_metric_differences(name, declaration.baseline) for name in declaration.conditions)
    if len(seeds) < 2 or not alike or len({run.question_key for arm in arms for run in arm}) > 1:
        return {}
    steps = list(arms[0][0].right)
    table = np.stack([[[run.right[step].mean(-1) for run in arm] for arm in arms] for step in steps])
    named = {"all evaluations": table, f"after step {declaration.steps}": table[-1:]}
    return {name: _decompose_table(part) for name, part in named.items()}


def _decompose_table(table: np.ndarray) -> VarianceComponents:
    """Decompose an array of shape ``(steps, arms, runs, questions)``; what has one level only is no factor."""
    step, arm, run, prompt = np.indices(table.shape).reshape(4, -1)
    labels = dict(zip(FACTORS, (step, prompt, arm, arm * table.shape[2] + run), strict=True))
    levels = {"step": table.shape[0], "arm": table.shape[1]}
    factors = {name: codes for name, codes in labels.items() if levels.get(name, 2) > 1}
    return variance_components(table.ravel(), factors)
