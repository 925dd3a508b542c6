"""What a stack costs beside the step it is a part of."""

from collections.abc import Iterator

from rlcredit.card.batch import CardBatch
from rlcredit.card.finding import Finding

PASSES = {"ref_logprobs": 1, "ref_log_ratio": 2}
"""Forward passes over the batch that an optional fact takes."""


def measure_credit_cost(batch: CardBatch, base: CardBatch) -> Iterator[Finding]:
    """Yield the share of a step, passes and tokens that credit takes.

    Args:
        batch: under the stack that is judged.
        base: the same completions under the baseline.

    """
    share, flat = (each.seconds.get("credit", 0.0) / max(sum(each.seconds.values()), 1e-9) for each in (batch, base))
    yield Finding(
        "credit_time",
        "share of a step",
        share,
        "share",
        baseline=flat,
        sentence=f"Assigning credit takes {share:.1%} of a step here, the baseline's {flat:.1%}; one step timed.",
    )
    needs = set().union(*(operator.reads for operator in batch.stack), batch.resolution.module.loss.needs)
    passes = max((PASSES[name] for name in needs & PASSES.keys()), default=0)
    yield Finding(
        "passes",
        "more passes over a batch",
        float(passes),
        "number",
        sentence=f"{passes or 'No'} forward {'pass' if passes == 1 else 'passes'} more than the baseline's.",
    )
    drawn = int(batch.rollout.mask.sum())
    yield Finding(
        "decoded",
        "more tokens decoded",
        batch.decoded / drawn,
        "times",
        sentence=f"It has {batch.decoded:,} tokens decoded beside the {drawn:,} of the completions."
        if batch.decoded
        else "It has no tokens decoded beside the completions.",
    )
