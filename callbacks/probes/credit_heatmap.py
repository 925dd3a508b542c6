"""Credit as colour: every token of some completions, before and after every operator, in one page."""

from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.uncertainty import surprisal
from rlcredit.pages.notebook_views import InlinePage
from rlcredit.pages.page_template import load_page_template
from rlcredit.record.artifacts import is_picture_due, publish_text


def colour_scale(values: Tensor) -> float:
    """Return the size at which a colour is full: the quantile 0.98 of sizes, or the largest where that is zero."""
    sizes = values.abs().double()
    return torch.quantile(sizes, 0.98).item() or sizes.max().item() or 1.0


def list_alternatives(rollout: Rollout, row: int) -> dict[int, list[tuple[str, float, float]]]:
    """Return text, probability and credit of the tokens that have credit without being sampled, by place."""
    listed: dict[int, list[tuple[str, float, float]]] = {}
    if rollout.alternatives is not None:
        own = rollout.alternatives.keep(rollout.alternatives.rows == row)
        texts = rollout.lookahead.decode_tokens(own.tokens) if rollout.lookahead else map(str, own.tokens.tolist())
        numbers = zip(own.places.tolist(), texts, own.logprobs.exp().tolist(), own.weights.tolist(), strict=True)
        for place, text, probability, weight in numbers:
            listed.setdefault(place, []).append((text, round(probability, 4), round(weight, 4)))
    return listed


def list_continuations(rollout: Rollout, row: int) -> dict[int, list[tuple[int, float]]]:
    """Return length and mean credit of the continuations that leave a completion, by place."""
    listed: dict[int, list[tuple[int, float]]] = {}
    if rollout.continuations is not None:
        own = rollout.continuations.keep(rollout.continuations.rows == row)
        credit = masked_mean(own.credit, own.mask, dim=-1)
        for place, length, mean in zip(own.places.tolist(), own.mask.sum(-1).tolist(), credit.tolist(), strict=True):
            listed.setdefault(place, []).append((length, round(mean, 4)))
    return listed


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

    TEMPLATE = Path(__file__).with_suffix(".html")
    """Template of the page."""

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
        publish_text(trainer, f"heatmap/{self.label}_step_{batch.step:06d}.html", self.render_html(batch))

    def render_html(self, rollout: Rollout) -> str:
        """Return the page of a rollout; a notebook shows it as the result of a cell."""
        return InlinePage(load_page_template(self.TEMPLATE).render(content=self.collect_page(rollout)))

    def collect_page(self, rollout: Rollout) -> dict[str, Any]:
        """Return what the page shows, as JSON knows it."""
        rows, layers, errors = self.choose_rows(rollout), [], None
        shown: list[tuple[str, Tensor, bool]] = [(label, ledger[rows], True) for label, ledger in rollout.trail]
        if rollout.truth is not None:
            errors = rollout.truth.error[: len(rows)]
            shown.append(("true credit", rollout.truth.credit[: len(rows)], True))
        shown += [
            ("entropy", rollout.entropy[rows], False),
            ("surprisal", surprisal(rollout.old_logprobs[rows]), False),
        ]
        shown += [("planning", rollout.plan_mask[rows].float(), False)] if rollout.plan_mask.any() else []
        mask, credit = rollout.mask[rows].cpu(), [ledger[rows][rollout.mask[rows]] for _, ledger in rollout.trail]
        for number, (name, values, signed) in enumerate(shown):
            scale = colour_scale(torch.cat(credit) if number < len(credit) else values.cpu()[mask])
            layers.append({"name": name, "signed": signed, "scale": scale, "errors": name == "true credit"})
        return {
            "title": f"Credit at step {rollout.step}",
            "stack": " \u2192 ".join(label for label, _ in rollout.trail) or "verdicts as credit",
            "layers": layers,
            "shown": max(len(credit) - 1, 0),
            "rows": [self.describe_completion(rollout, row, place, shown, errors) for place, row in enumerate(rows)],
        }

    def choose_rows(self, rollout: Rollout) -> list[int]:
        """Choose completions."""
        if rollout.truth is not None:
            return list(rollout.truth.rows[: self.completions])
        return rollout.evenly_spaced_rows(self.completions)

    def describe_completion(
        self,
        rollout: Rollout,
        row: int,
        place: int,
        shown: list[tuple[str, Tensor, bool]],
        errors: Tensor | None,
    ) -> dict[str, Any]:
        """Return one completion with the values of every layer."""
        length, judged = int(rollout.mask[row].sum()), bool(rollout.judged[row])
        record: dict[str, Any] = {
            "prompt": rollout.sources[row // rollout.group_size][1].text if rollout.sources else "",
            "tokens": rollout.tokens[row],
            "correct": rollout.correct[row].item() if judged else None,
            "reward": rollout.rewards[row].item(),
            "values": [[round(v, 4) for v in values[place, :length].tolist()] for _, values, _ in shown],
            "alternatives": list_alternatives(rollout, row),
            "continuations": list_continuations(rollout, row),
        }
        if errors is not None:
            record["errors"] = [round(e, 4) for e in errors[place, :length].tolist()]
        return record
