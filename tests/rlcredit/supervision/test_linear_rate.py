"""Learning rates that move over the tokens, or the steps, of a run."""

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.optim.lr_scheduler import LinearLR

from callbacks.episode.grpo import GRPO
from rlcredit.supervision.linear_rate import LinearRate
from rlcredit.supervision.token_budget import TokenBudget


class Rates(Callback):
    """Keep the rate of every update."""

    def __init__(self):
        self.seen = []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.seen.append(optimizer.param_groups[0]["lr"])


def test_over_steps_the_rate_moves_on_a_straight_line(fit):
    rates = Rates()
    run = fit(steps=4, lr=1e-3, stack=[GRPO(), LinearRate(end=0.2), rates])
    assert rates.seen == pytest.approx([1e-3, 0.8e-3, 0.6e-3, 0.4e-3])
    assert [step["train/rate_factor"] for step in run.history] == pytest.approx([1.0, 0.8, 0.6, 0.4])


def test_over_a_budget_it_follows_the_tokens_of_finished_rollouts(fit):
    rates, budget = Rates(), 4000
    stack = [GRPO(), TokenBudget(budget), LinearRate(end=2.0), rates]
    run = fit(steps=-1, max_epochs=-1, lr=1e-3, updates_per_rollout=2, stack=stack)
    counts = [step["tokens/decoded"] for step in run.history]
    assert len(counts) > 4
    before = [0.0, 0.0, *(counts[update - update % 2 - 1] for update in range(2, len(counts)))]
    assert rates.seen == pytest.approx([1e-3 * (1 + count / budget) for count in before])


@pytest.mark.filterwarnings("ignore:Checkpoint directory", "ignore:You.re resuming")
def test_a_continued_run_goes_on_where_its_rate_was(fit, tmp_path):
    whole, rest = Rates(), Rates()

    def train(rates, **arguments):
        saver = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=2, save_top_k=-1)
        stack = [GRPO(), LinearRate(end=0.0), rates, saver]
        return fit(steps=6, lr=1e-3, stack=stack, enable_checkpointing=True, **arguments)

    expected = train(whole)
    continued = train(rest, ckpt_path=tmp_path / "step=2.ckpt")
    assert rest.seen == whole.seen[2:]
    for name, weight in expected.adapter.items():
        assert torch.equal(continued.adapter[name], weight), name


def test_it_refuses_a_second_schedule_and_a_run_without_an_end(fit):
    def halve(optimizer):
        return LinearLR(optimizer, 1.0, 0.5)

    with pytest.raises(ValueError, match="Keep one of them"):
        fit(steps=1, scheduler=halve, stack=[GRPO(), LinearRate()])
    with pytest.raises(ValueError, match=r"Set trainer\.max_steps, or add TokenBudget"):
        fit(steps=-1, max_epochs=1, stack=[GRPO(), LinearRate()])
    with pytest.raises(ValueError, match="end >= 0"):
        LinearRate(end=-0.1)
