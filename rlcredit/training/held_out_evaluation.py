"""Held-out evaluation: questions are answered with the same noise in every validation, and what is right is counted."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleDict

from rlcredit.base.exit_status import RunStopped
from rlcredit.decoding.noise import VALIDATION
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.distributed import find_largest_number, is_set_anywhere, share_first_value
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.turns import count_turns
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.task import PromptBatch, Task
from rlcredit.training.collector import RolloutCollector, repeat_examples
from rlcredit.training.metrics import MeanPassAtK
from rlcredit.training.nan_and_mismatch import find_value_fault
from rlcredit.verification.rewards import verdict_mask
from rlcredit.verification.verifiers import Verdict

SHARE_VERDICTS = {"unjudged": Verdict.UNJUDGED, "no_answer": Verdict.NO_ANSWER}
"""Verdicts whose share of the answers is a metric, by its name."""


class HeldOutEvaluator(Module):
    """Answer held-out questions, and keep pass@k of each set; a module, so that Lightning finds its metrics.

    Args:
        sampling: How held-out questions are answered.
        pass_k: The k of ``val/pass_at_k``.
        seed: Seed of the sampling noise.

    Attributes:
        pass_metrics: Metrics of each held-out set, by its number.
        batch_counts: Batches of each held-out set that this process has, and most that any has.
        first_fault: First fault of held-out answers, reported when all processes have finished theirs.

    """

    def __init__(self, sampling: Sampling, pass_k: int, seed: int) -> None:
        super().__init__()
        self.sampling = sampling
        self.pass_k = pass_k
        self.seed = seed
        self.pass_metrics = ModuleDict()
        self.batch_counts: list[tuple[int, int]] = []
        self.first_fault: RunStopped | None = None

    def add_metrics(self, task: Task) -> None:
        """Keep metrics for each held-out set of a task that has none yet."""
        for held_out_set in task.held_out_sets:
            k = held_out_set.choose_k(self.pass_k, self.sampling.completions)
            if str(held_out_set.number) not in self.pass_metrics:
                pair = {"pass_at_1": MeanPassAtK(1), "pass_at_k": MeanPassAtK(k)}
                self.pass_metrics[str(held_out_set.number)] = ModuleDict(pair)

    def find_pass_metrics(self, held_out_set: HeldOutSet) -> dict[str, MeanPassAtK]:
        """Return the two metrics of a held-out set, by quantity."""
        return dict(self.pass_metrics[str(held_out_set.number)].items())  # pyright: ignore[reportCallIssue]

    def evaluate_batch(
        self, collector: RolloutCollector, held_out_set: HeldOutSet, prompts: PromptBatch, step: int
    ) -> tuple[Tensor, dict[str, Any]]:
        """Answer some questions of a set, and count them in its metrics.

        Args:
            collector: Collector of answers.
            held_out_set: Set of the questions.
            prompts: Questions, P of them.
            step: Optimizer steps taken.

        Returns:
            Which answers are right, shape ``(P, G)``, and the other metrics of this batch, by name.

        """
        sampling, prompt_ids = held_out_set.choose_sampling(self.sampling), collector.encode(prompts)
        examples = repeat_examples(prompts, sampling.completions)
        episodes = held_out_set.task.open_episodes(collector.policy, examples)
        samples = collector.sample(
            held_out_set.shift_noise_numbers(prompts), prompt_ids, sampling, self.seed, VALIDATION, episodes
        )
        self.first_fault = (
            self.first_fault
            or find_value_fault(step, "sampling held-out answers", "log-probabilities", samples.logprobs, samples.mask)
            or collector.compare_engine(prompt_ids, samples, sampling, step)
        )
        answers = collector.policy.decode_texts(samples.completion_ids, samples.mask)
        verdicts, rewards, _ = collector.judge(held_out_set.task, prompts, answers, sampling.completions, episodes)
        right = verdict_mask(verdicts, Verdict.RIGHT).view(-1, sampling.completions)
        for metric in self.find_pass_metrics(held_out_set).values():
            metric.update(right)
        metrics: dict[str, Any] = {
            name: verdict_mask(verdicts, kind).float().mean().item() for name, kind in SHARE_VERDICTS.items()
        }
        metrics["completion_length"] = samples.mask.sum(-1).float().mean()
        metrics["entropy"] = masked_mean(samples.entropy, samples.mask)
        if episodes is not None and samples.turn is not None:
            metrics["turns"] = count_turns(samples.turn).float().mean()
        if rewards is not None:
            metrics["reward"] = masked_mean(rewards, ~rewards.isnan())
        return right, {held_out_set.name_metric(name): value for name, value in metrics.items()}

    def compare_batch_counts(self, batches: list[int], device: torch.device) -> None:
        """Learn how many more batches of each held-out set than this process another has."""
        self.batch_counts = [(number, find_largest_number(number, device)) for number in batches]

    def make_spare_passes(self, collector: RolloutCollector, task: Task, number: int, batch_index: int) -> None:
        """After the last batch of a set, score as often as the processes with most questions of it do.

        Args:
            collector: Collector of answers.
            task: Task whose held-out questions are read again.
            number: Number of the set.
            batch_index: Number of the batch that has been answered.

        """
        batches, most_batches = self.batch_counts[number]
        for _ in range(most_batches - batches if batch_index + 1 == batches else 0):
            prompt_ids = collector.encode(task.held_out_prompts(0, 1))
            ids = torch.zeros(1, 1, dtype=torch.long, device=prompt_ids.device)
            for adapter in (True, False):  # as `evaluate_batch` does with what an engine has drawn
                collector.score(prompt_ids, ids, ids.bool(), self.sampling.temperature, adapter)

    def raise_fault(self, device: torch.device) -> None:
        """Stop all processes if one has a fault, once all have finished."""
        fault, self.first_fault = self.first_fault, None
        if is_set_anywhere(fault is not None, device):
            raise share_first_value(fault)
