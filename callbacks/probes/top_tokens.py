"""The tokens with the most credit and those with the highest surprisal, as a table."""

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.uncertainty import surprisal
from rlcredit.record.artifacts import is_picture_due, publish_table

CHARACTERS_BEFORE, CHARACTERS_BEHIND = 60, 30
"""Characters of context."""


class TopTokens(CreditOperator, reads="advantages correct entropy judged old_logprobs step tokens"):
    """List the tokens with the largest credit at this place of the stack, and the most surprising ones.

    Each comes with its place «marked» in the text around it, advantage, surprisal, entropy and verdict, and with the
    number of tokens in the batch that have credit of the same size: under GRPO alone that is whole completions, among
    which the more surprising tokens come first. Written to ``tokens/<Label>_step_<step>.json`` of the run, and as a
    table of its MLflow page; with several processes, of the tokens that the first one sampled.

    Args:
        every_n_steps: Steps from one table to the next; the last step writes one too.
        tokens: Rows of either kind.

    """

    def __init__(self, every_n_steps: int = 20, tokens: int = 20) -> None:
        super().__init__()
        if every_n_steps < 1 or tokens < 1:
            raise ValueError(f"TopTokens expects positive numbers, got {every_n_steps} and {tokens}.")
        self.every_n_steps, self.tokens = every_n_steps, tokens
        self.seen: tuple[Rollout, Tensor] | None = None

    def assign(self, rollout: Rollout) -> Metrics:
        """Remember the advantages at this place until the step is over."""
        self.seen = (rollout, rollout.advantages)
        return {}

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Write the table of this step."""
        if self.seen is not None and is_picture_due(trainer, batch, self.every_n_steps):
            publish_table(trainer, f"tokens/{self.label}_step_{batch.step:06d}.json", self.list_top_tokens(*self.seen))
            self.seen = None

    def list_top_tokens(self, rollout: Rollout, advantages: Tensor) -> list[dict[str, Any]]:
        """Return the rows of the table, credit first."""
        credit, surprise = advantages[rollout.mask].double(), surprisal(rollout.old_logprobs)[rollout.mask].double()
        places, entropy = rollout.mask.nonzero().tolist(), rollout.entropy[rollout.mask]
        by_surprise = surprise.argsort(descending=True, stable=True)
        by_credit = by_surprise[credit.abs()[by_surprise].argsort(descending=True, stable=True)]
        _, size, counts = torch.unique(credit.abs(), return_inverse=True, return_counts=True)
        records = []
        for kind, order in (("credit", by_credit), ("surprisal", by_surprise)):
            for rank, index in enumerate(order[: self.tokens].tolist(), 1):
                row, place = places[index]
                records.append(
                    {
                        "by": kind,
                        "rank": rank,
                        "context": _quote_token(rollout.tokens[row], place),
                        "advantage": round(credit[index].item(), 4),
                        "surprisal": round(surprise[index].item(), 4),
                        "entropy": round(entropy[index].item(), 4),
                        "correct": rollout.correct[row].item() if rollout.judged[row] else None,
                        "same_credit": int(counts[size[index]]),
                    }
                )
        return records


def _quote_token(pieces: list[str], place: int) -> str:
    left_text, right_text = "".join(pieces[:place]), "".join(pieces[place + 1 :])
    return f"{left_text[-CHARACTERS_BEFORE:]}«{pieces[place]}»{right_text[:CHARACTERS_BEHIND]}"
