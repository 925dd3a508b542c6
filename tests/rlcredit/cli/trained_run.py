"""The folder of a run, without the time that a run takes."""

from pathlib import Path

from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint
from rlcredit.run_folder.layout import RunFolder

CONFIG = """
condition: grpo
trainer: {accelerator: gpu, precision: bf16-mixed, max_steps: 4, callbacks: [GRPO]}
model:
  policy: {path: tiny, lora: {rank: 16, alpha: 32, targets: all-linear}}
  sampling: {completions: 4, max_tokens: 24, temperature: 0.8}
data:
  class_path: ReasoningGym
  init_args:
    name: chain_sum
    config: {min_terms: 3, max_terms: 3, min_digits: 1, max_digits: 1}
    prompts_per_step: 2
    train_size: 16
    validation_size: 4
    system: Add.
"""


def made(policy, path: Path) -> RunFolder:
    """Write configuration and checkpoint of a policy, as a run on a machine with a GPU would."""
    run = RunFolder(path)
    run.checkpoints.mkdir(parents=True)
    run.config.write_text(CONFIG, encoding="utf-8")
    weights = {f"policy.{name}": w.detach() for name, w in policy.named_parameters() if w.requires_grad}
    with run.last_checkpoint.open("w+b") as file:
        write_sealed_checkpoint({"state_dict": weights, "global_step": 4}, file)
    return run
