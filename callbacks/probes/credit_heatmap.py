"""Credit as colour: every token of some completions, before and after every operator, in one page."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.credit.heatmap import credit_heatmap
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.record.artifacts import is_picture_due, label_run_folder, publish_text


class CreditHeatmap(CreditOperator, reads="correct entropy judged old_logprobs rewards step tokens"):
    """Write a page on which the tokens of some completions are coloured by the credit that the stack gives them.

    Every token stands above one tick for each operator that wrote advantages, and for entropy, surprisal, the planning
    mask, and true credit if a ``CreditOracle`` of the same list has measured it at this step; a button for each of them
    colours the text by it. Pointing at a token shows its numbers, the tokens that have credit in its place, and the
    continuations that leave before it. The page is one file that loads nothing:
    ``heatmap/<Label>_step_<step>.html`` of the run and of its MLflow page. Of several processes the first one draws
    what it sampled. Its place in the list does not matter. A run without it writes such a page of its last step alone.

    Args:
        every_n_steps: Steps from one page to the next; the last step writes one too.
        completions: Number of completions, taken evenly from the batch, or the first of those that the oracle was asked
            about.

    """

    def __init__(self, every_n_steps: int = 50, completions: int = 8) -> None:
        super().__init__()
        if every_n_steps < 1 or completions < 1:
            raise ValueError(f"CreditHeatmap expects positive numbers, got {every_n_steps} and {completions}.")
        self.every_n_steps, self.completions = every_n_steps, completions

    def assign(self, rollout: Rollout) -> Metrics:
        """Return no metrics; the page is drawn at the end of the step, after all operators."""
        return {}

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Draw the page of this step."""
        if not is_picture_due(trainer, batch, self.every_n_steps):
            return
        page = self.render_html(batch, label_run_folder(trainer))
        publish_text(trainer, f"heatmap/{self.label}_step_{batch.step:06d}.html", page)

    def render_html(self, rollout: Rollout, run: str = "") -> str:
        """Return the page of a rollout, as :func:`rlcredit.credit.heatmap.credit_heatmap` draws it."""
        return credit_heatmap(rollout, completions=self.completions, run=run)
