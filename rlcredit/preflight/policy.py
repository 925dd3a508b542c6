"""Whether a policy can be loaded, and which of its layers get an adapter, checked without reading its weights."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlcredit.config.resource_limits import find_resource_excess
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.policy.adapters import ADAPTER_CONFIG, MERGE_ADVICE
from rlcredit.policy.architecture import LinearShape, is_expert
from rlcredit.policy.chat_turns import parse_conversation
from rlcredit.policy.memory import TRAINED_BYTES, read_machine_memory
from rlcredit.policy.model_loading import load_model_config, load_tokenizer
from rlcredit.policy.policy import LoRA, Policy, add_lora_adapter
from rlcredit.policy.policy_sizes import build_meta_model, find_linear_layers
from rlcredit.preflight.weights import (
    refuse_modified_logits,
    refuse_non_causal_model,
    refuse_unfit_tokenizer,
    refuse_unreadable_weights,
)

EMBEDDING_NAMES = ("lm_head", "model.embed_tokens")
"""What the two embeddings are called in models of the Llama, Qwen2 and Qwen3 families."""

TOKENIZER_SECONDS, TEMPLATE_SECONDS = 20.0, 5.0
"""Seconds of processor time that reading a tokenizer and writing a prompt may take; most take less than one."""

_HUB_SECONDS = 20.0
"""Seconds that the hub has to say whether it has a model."""


class LoRATargetError(ValueError):
    """LoRA targets that name something which cannot have an adapter.

    Attributes:
        cause: What is wrong with the targets.

    """

    def __init__(self, cause: str, repair: str) -> None:
        super().__init__(f"model.policy.lora.targets: {cause} {repair}")
        self.cause = cause


def refuse_unloadable_policy(policy: Policy, adapter: Path | None = None) -> None:
    """Refuse a policy that does not exist, before a run is opened for it; weights are read later.

    Args:
        policy: Policy; it is not loaded.
        adapter: Folder of the adapter whose settings the policy has taken over; None if it has its own.

    Raises:
        ValueError: there is none, it would be read as another policy, or no layer of it can get the adapter; with the
            repair.

    """
    refuse_unreadable_weights(policy)
    with _explain_load_errors(policy):
        _ask_hub_once(policy.location)
        config = load_model_config(policy.location)
    refuse_non_causal_model(policy, config)
    if Path(policy.location).is_dir():  # a download takes as long as it takes
        refuse_costly_files(policy, "Its tokenizer.json", TOKENIZER_SECONDS, lambda: load_tokenizer(policy.location))
    with _explain_load_errors(policy):
        tokenizer = load_tokenizer(policy.location)
        _, model = build_meta_model(policy.location)
    policy.prompt.refuse_tokenizer(tokenizer, policy.path)
    conversations = [parse_conversation("1 + 1 =")]
    refuse_costly_files(
        policy,
        "Its chat template",
        TEMPLATE_SECONDS,
        lambda: policy.prompt.encode_conversations(tokenizer, conversations),
    )
    if len(set(policy.prompt.render_conversations(tokenizer, [*conversations, parse_conversation("2 + 3 =")]))) == 1:
        raise ValueError(
            f"model.policy.path: the chat template of {shorten_name(policy.path)!r} leaves out the question, so that "
            "all prompts are the same. Repair that file, take it from where the model was published, or set "
            "model.policy.prompt.chat to false."
        )
    refuse_unfit_tokenizer(policy, tokenizer, model)
    refuse_modified_logits(policy, config, model)
    layers = find_linear_layers(model)
    try:
        select_lora_layers(policy, layers, [name for name, _ in model.named_modules() if name and name not in layers])
    except LoRATargetError as error:
        if adapter is None:
            raise
        raise ValueError(
            f"{shorten_name(adapter / ADAPTER_CONFIG)}: target_modules: {error.cause} {MERGE_ADVICE}"
        ) from None
    try:
        add_lora_adapter(model, policy.lora)
    except ValueError as error:  # PEFT knows of models some of whose layers are no layers to their own code
        raise ValueError(f"model.policy.lora.targets: {' '.join(str(error).split())}") from None


def _ask_hub_once(location: str) -> None:
    """Ask the hub for a model that is neither a folder nor in its cache; transformers would try for half a minute."""
    from huggingface_hub import HfApi, try_to_load_from_cache  # noqa: PLC0415

    if not Path(location).is_dir() and not isinstance(try_to_load_from_cache(location, "config.json"), str):
        HfApi().model_info(location, timeout=_HUB_SECONDS)


@contextlib.contextmanager
def _explain_load_errors(policy: Policy) -> Iterator[None]:
    """Turn what transformers raises into one sentence about the path."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (transformers raises anything, and `tokenizers` Exception itself)
        cause = " ".join(str(error).split()) or type(error).__name__
        if Path(policy.location).is_dir():
            problem = "is a folder whose tokenizer and model cannot be made out"
        else:
            problem = "is not `tiny`, no folder with a tokenizer and a model, no hub id in reach"
        raise ValueError(f"model.policy.path: {shorten_name(policy.path)!r} {problem}: {cause:.300}") from None


def refuse_costly_files(policy: Policy, file: str, seconds: float, attempt: Callable[[], Any]) -> None:
    """Refuse a policy whose files make a library loop or exhaust memory.

    Args:
        policy: Policy whose files are read.
        file: File that is likely to cost so much, for the message.
        seconds: Processor seconds that the attempt may take.
        attempt: Function that uses the file.

    Raises:
        ValueError: it takes too much.

    """
    if excess := find_resource_excess(attempt, seconds):
        raise ValueError(
            f"model.policy.path: rendering a prompt for {shorten_name(policy.path)!r} takes {excess}. {file} is at "
            "fault: repair that file, or take it from where the model was published. Without a template, "
            "model.policy.prompt.chat must be false."
        )


def select_lora_layers(
    policy: Policy, layers: dict[str, LinearShape], other_names: Sequence[str] = EMBEDDING_NAMES
) -> dict[str, LinearShape]:
    """Return the layers with an adapter; refuse names of no layer, and a rank for which there is no memory.

    Args:
        policy: Policy; it is not loaded.
        layers: Layers that can get an adapter, by name.
        other_names: Names of the parts that cannot.

    Raises:
        LoRATargetError: with the names that exist.
        ValueError: the rank is too high.

    """
    targets = _match_lora_targets(layers, other_names, policy.lora)
    weights = sum(policy.lora.rank * (layer.in_features + layer.out_features) for layer in targets.values())
    memory, adapter = read_machine_memory(), weights * TRAINED_BYTES
    if adapter > memory:
        raise ValueError(
            f"model.policy.lora.rank: an adapter of rank {policy.lora.rank:,} takes {adapter / 2**30:,.0f} GiB with "
            f"its gradients and moments; this machine has {memory / 2**30:,.0f}. Lower it."
        )
    return targets


def _match_lora_targets(
    layers: dict[str, LinearShape], other_names: Sequence[str], lora: LoRA
) -> dict[str, LinearShape]:
    """Return the layers that PEFT would choose.

    Raises:
        LoRATargetError: it would find none, or others than linear layers; with the names that exist.

    """
    ends = sorted({name.rpartition(".")[2] for name in layers})
    repair = f"There are {', '.join(ends)}; `all-linear` means all of them."
    if lora.targets == "all-linear":
        return layers
    if misfits := [name for name in other_names if _is_targeted(lora.targets, name, repair)]:
        if is_expert(misfits[0]):
            raise LoRATargetError(
                f"{lora.targets!r} names {misfits[0]}. PEFT takes that name for the stacked experts or the router.",
                repair,
            )
        raise LoRATargetError(
            f"{lora.targets!r} names {misfits[0]}. Only linear layers between the embeddings can learn.", repair
        )
    if isinstance(lora.targets, list):
        for target in lora.targets:
            if not any(f".{name}".endswith(f".{target}") for name in layers):
                raise LoRATargetError(f"no linear layer is called {target!r}.", repair)
    matches = {name: layer for name, layer in layers.items() if _is_targeted(lora.targets, name, repair)}
    if not matches:
        raise LoRATargetError(f"{lora.targets!r} names no linear layer.", repair)
    return matches


def _is_targeted(targets: str | list[str], name: str, repair: str) -> bool:
    """Whether targets name a module, by PEFT's rules: a list holds ends of names, a text is a pattern."""
    if not isinstance(targets, str):
        return any(f".{name}".endswith(f".{target}") for target in targets)
    try:
        return re.fullmatch(targets, name) is not None
    except re.error as error:
        raise LoRATargetError(f"{targets!r} is no pattern ({error}).", repair) from None
