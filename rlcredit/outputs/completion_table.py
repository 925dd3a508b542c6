"""A table of completions with the credit of every token."""

from collections.abc import Iterator
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.credit.rollout import Rollout
from rlcredit.pages.turn_blocks import write_messages
from rlcredit.record.artifacts import find_run_folder, is_picture_due, publish_table
from rlcredit.training.module import PolicyModule


class CompletionTable(Callback):
    """Write prompt, reference answer, completion, verdict, reward and per-token advantage of some rollouts.

    Episodes of several turns stand as messages, too.

    Args:
        every_n_steps: Steps from one table to the next.
        rows: Completions per table, taken evenly from the batch.

    """

    def __init__(self, every_n_steps: int = 20, rows: int = 16) -> None:
        for name, value in (("every_n_steps", every_n_steps), ("rows", rows)):
            if value < 1:
                raise ValueError(f"completions.{name}: expected a number from 1 on, got {value}. Say 16.")
        self.every_n_steps, self.rows = every_n_steps, rows

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Write the table of this step, with the credit that the update used."""
        if not is_picture_due(trainer, batch, self.every_n_steps):
            return
        assert isinstance(pl_module, PolicyModule)
        records = list(self.records(batch, pl_module))
        folder = find_run_folder(trainer)
        publish_table(trainer, folder.completions_file(batch.step).relative_to(folder.path).as_posix(), records)

    def records(self, rollout: Rollout, module: PolicyModule) -> Iterator[dict[str, Any]]:
        """Yield one record per chosen completion."""
        policy = module.policy
        rows = range(0, len(rollout.mask), max(1, len(rollout.mask) // self.rows))
        for row in rows[: self.rows]:
            credit = rollout.advantages[row][rollout.mask[row]].tolist()
            texts, prompt = rollout.list_texts(row), rollout.prompt_ids[row]
            prompt = prompt[policy.prompt_mask(prompt)]
            source = rollout.sources[row // rollout.group_size][1]
            texts, blocks = rollout.list_texts(row), rollout.list_blocks(row)
            yield {
                "step": rollout.step,
                "prompt": policy.tokenizer.decode(prompt, skip_special_tokens=True).strip(),
                "reference": source.reference,
                "completion": "".join(rollout.tokens[row]),
                "verdict": name_verdict(rollout, row),
                "reward": rollout.rewards[row].item(),
                "credit": " ".join(f"{piece}[{a:+.2f}]" for piece, a in zip(texts, credit, strict=True)),
                "tokens": texts,
                "advantages": [round(advantage, 6) for advantage in credit],
                **({"messages": write_messages(blocks, texts)} if blocks else {}),
            }


def name_verdict(rollout: Rollout, row: int) -> str:
    """Return the verdict on a completion: ``right``, ``wrong``, or ``unjudged`` where the verifier could not tell."""
    if not rollout.judged[row]:
        return "unjudged"
    return "right" if rollout.correct[row] > 0.5 else "wrong"
