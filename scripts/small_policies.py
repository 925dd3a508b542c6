"""Policies for measurements: with an adapter that is not zero, and with given weights saved as a policy."""

import shutil
from pathlib import Path
from typing import Any

import torch

from rlcredit.policy.policy import Policy


def load_with_random_adapter(policy: Policy) -> Policy:
    """Load a policy and give its adapter random weights, so that it changes the outputs."""
    policy.load(seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            if "lora_B" in name:
                weight.copy_(0.02 * torch.randn(weight.shape, generator=generator))
    return policy


def save_as_policy(model: Any, folder: Path) -> Policy:
    """Write a model beside the embedded policy's tokenizer; return the policy that reads it."""
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(Path(Policy().location) / name, folder)
    return Policy(str(folder))
