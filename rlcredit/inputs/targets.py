"""Whether a policy can be loaded and which layers of it get an adapter, found out without reading its weights."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlcredit.inputs.bounded import excess_of
from rlcredit.inputs.loadable import refuse_logits, refuse_weights
from rlcredit.inputs.strict_yaml import shown
from rlcredit.loading import load_tokenizer
from rlcredit.memory.architecture import Linear
from rlcredit.memory.machine import ram
from rlcredit.memory.parts import TRAINED
from rlcredit.memory.skeleton import linear_layers, without_weights
from rlcredit.policy import LoRA, Policy
from rlcredit.prompt import turns

READING, WRITING = 20.0, 5.0
"""Seconds of processor time that reading a tokenizer and writing a prompt may take; most take less than one."""


def refuse_policy(policy: Policy) -> None:
    """Refuse a policy that does not exist, before a run is opened for it; the weights are read later.

    Raises:
        ValueError: there is none, it would be read as another policy, or no layer of it can get the adapter; with the
            repair.

    """
    refuse_weights(policy)
    if Path(policy.location).is_dir():  # a download takes as long as it takes
        refuse_excess(policy, "Its tokenizer.json", READING, lambda: load_tokenizer(policy.location))
    try:
        tokenizer = load_tokenizer(policy.location)
        config, model = without_weights(policy.location)
    except Exception as error:  # noqa: BLE001  (`tokenizers` raises Exception itself)
        cause = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"model.policy.path: {shown(policy.path)!r} is not `tiny`, no folder with a tokenizer and a model, no hub "
            f"id in reach: {cause}"
        ) from None
    policy.prompt.check(tokenizer, policy.path)
    asked = [turns("1 + 1 =")]
    refuse_excess(policy, "Its chat template", WRITING, lambda: policy.prompt.encoded(tokenizer, asked))
    refuse_logits(policy, config, model)
    refuse_targets(policy, linear_layers(model))


def refuse_excess(policy: Policy, what: str, seconds: float, attempt: Callable[[], Any]) -> None:
    """Refuse a policy whose files make a library loop, or take all memory.

    Args:
        policy: whose files they are.
        what: is likely to do so, for the message.
        seconds: of processor time that it may take.
        attempt: what the file is used for.

    Raises:
        ValueError: it takes too much.

    """
    if excess := excess_of(attempt, seconds):
        raise ValueError(
            f"model.policy.path: to write a prompt for {shown(policy.path)!r} takes {excess}. {what} is at fault: "
            "repair that file, or take it from where the model was published. Without a template, "
            "model.policy.prompt.chat must be false."
        )


def refuse_targets(policy: Policy, layers: dict[str, Linear]) -> dict[str, Linear]:
    """Refuse names that no layer has, and a rank for which there is no memory; return the layers with an adapter.

    Raises:
        ValueError: with the names that exist.

    """
    chosen = _targeted(layers, policy.lora)
    weights = sum(policy.lora.rank * (layer.in_features + layer.out_features) for layer in chosen.values())
    memory = ram()
    if weights * TRAINED > memory:
        raise ValueError(
            f"model.policy.lora.rank: an adapter of rank {policy.lora.rank:,} takes {weights * TRAINED / 2**30:,.0f} "
            f"GiB with its gradients and moments; this machine has {memory / 2**30:,.0f}. Lower it."
        )
    return chosen


def _targeted(layers: dict[str, Linear], lora: LoRA) -> dict[str, Linear]:
    """Return the layers that PEFT would choose.

    Raises:
        ValueError: it would find none; with the names that exist.

    """
    ends = sorted({name.rpartition(".")[2] for name in layers})
    repair = f"There are {', '.join(ends)}; `all-linear` means all but the head."
    if isinstance(lora.targets, list):
        for target in lora.targets:
            if not any(f".{name}".endswith(f".{target}") for name in layers):
                raise ValueError(f"model.policy.lora.targets: no linear layer is called {target!r}. {repair}")
        names = {name for name in layers if any(f".{name}".endswith(f".{target}") for target in lora.targets)}
    elif lora.targets == "all-linear":
        names = {name for name in layers if not name.endswith("lm_head")}
    else:
        try:
            names = {name for name in layers if re.fullmatch(lora.targets, name)}
        except re.error as error:
            raise ValueError(f"model.policy.lora.targets: {lora.targets!r} is no pattern ({error}). {repair}") from None
    if not names:
        raise ValueError(f"model.policy.lora.targets: {lora.targets!r} names no linear layer. {repair}")
    return {name: layers[name] for name in names}
