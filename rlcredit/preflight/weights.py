"""Checks of a policy's files, made without reading its weights: they must load, and be the policy described."""

import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlcredit.config.strict_yaml import shorten_name
from rlcredit.policy.policy import Policy

LOGIT_SCALES = ("logits_scaling", "logit_scale", "lm_head_multiplier")
"""Under which names models keep a factor of their logits: Granite, Cohere, Falcon-H1."""

LOGIT_CAPS = ("final_logit_softcapping", "logits_soft_cap")
"""Under which names models keep a bound of their logits: Gemma, RecurrentGemma."""


CAUSAL_ENDINGS = ("ForCausalLM", "LMHeadModel")
"""How the classes are called that continue a text."""

_ADAPTER_CONFIG, _WEIGHTS_FILE = "adapter_config.json", "model.safetensors"

TRACING_ERRORS = (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, LookupError)
"""What models raise that look at numbers, or use kernels, that there are none of without weights."""

FOLDER_BEGINNINGS = ("policies/", "./", "../", "/", "~")
"""With what a path begins that is meant to be a folder; the id of a hub repository has one slash and none of these."""

FOLDER_COMMANDS = {
    "policies/smollm2": "python scripts/fetch_smollm2.py --out policies/smollm2",
    "policies/long_chains": "python scripts/pretrain_tiny.py --out policies/long_chains --start rlcredit/tiny "
    "--terms 2 12 --steps 3000 --lr 1e-3",
}
"""Commands that make the folders which shipped configurations name."""


def explain_missing_folder(policy: Policy) -> str | None:
    """Return an error message if a path is meant to be a folder and is none; None otherwise."""
    local = policy.path.startswith(FOLDER_BEGINNINGS) or policy.path.count("/") > 1
    if not local or Path(policy.location).exists():
        return None
    command = FOLDER_COMMANDS.get(policy.path)
    repair = f"Make it: {command}" if command else "Name a folder that exists, or the id of a hub repository."
    return f"there is no folder {shorten_name(policy.path)!r} here. {repair}"


def refuse_unreadable_weights(policy: Policy) -> None:
    """Refuse a folder that does not exist, holds no model, or has weights in an unsupported format.

    Pickles run code, and GGUF is no format for training.

    Raises:
        ValueError: with the command that makes it, or another format of it.

    """
    if missing := explain_missing_folder(policy):
        raise ValueError(f"model.policy.path: {missing}")
    folder, path = Path(policy.location), shorten_name(policy.path)
    if (folder / _ADAPTER_CONFIG).is_file():
        raise ValueError(
            f"model.policy.path: {path!r} is the folder of an adapter ({_ADAPTER_CONFIG}). Name its base model; "
            "`sample`, `evaluate` and `export` take the folder as --adapter."
        )
    files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    if any(file.suffix == ".safetensors" for file in files) or not folder.exists():
        files = []
    for file in files:
        if file.suffix == ".gguf":
            raise ValueError(
                f"model.policy.path: {path!r} has its weights as GGUF. Make a folder of them and name that: "
                f"python scripts/fetch_smollm2.py --gguf {file} --out policies/{file.stem}"
            )
        if file.suffix == ".bin":
            load = f"AutoModelForCausalLM.from_pretrained('{folder}', dtype='auto', use_safetensors=False)"
            command = f"from transformers import AutoModelForCausalLM; {load}.save_pretrained('{folder}')"
            raise ValueError(
                f"model.policy.path: {path!r} has its weights as .bin files, which may run code when read; only "
                f'safetensors are. If you trust them, save them as such: python -c "{command}"'
            )
    if folder.is_dir():
        _refuse_incomplete_folder(path, folder)


def _refuse_incomplete_folder(path: str, folder: Path) -> None:
    """Refuse a folder without its configuration or some weight files, or with truncated ones."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415

    index = folder / f"{_WEIGHTS_FILE}.index.json"
    try:
        if not (folder / "config.json").is_file():
            raise FileNotFoundError("config.json is missing")
        files = [_WEIGHTS_FILE]
        if index.is_file() and not (folder / _WEIGHTS_FILE).is_file():
            files = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        for file in files:
            with safe_open(folder / file, framework="pt"):  # reads the table of contents alone
                pass
    except (OSError, ValueError, LookupError, TypeError, AttributeError, SafetensorError) as error:
        raise ValueError(
            f"model.policy.path: {path!r} holds no whole model: {shorten_name(str(error))}. Copy or download it again, "
            "or name a folder that `save_pretrained` has written, with its tokenizer."
        ) from None


def refuse_non_causal_model(policy: Policy, config: Any) -> None:
    """Refuse a model that transformers would load, but that does not continue texts, or reads more than text.

    Args:
        policy: Policy; it is not loaded.
        config: Configuration that transformers has read.

    Raises:
        ValueError: with what it is.

    """
    from transformers import MODEL_FOR_MASKED_LM_MAPPING  # noqa: PLC0415

    kind, architectures = config.model_type, config.architectures or []
    if config.get_text_config() is not config:
        reason = f"reads more than text ({kind}), and only text models"
    elif type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
        reason = f"does not continue texts ({kind}), and only models that do so"
    elif architectures and not any(str(architecture).endswith(CAUSAL_ENDINGS) for architecture in architectures):
        endings = " or ".join(CAUSAL_ENDINGS)
        reason = f"is saved as {shorten_name(str(architectures[0]))}, and only what is saved as {endings}"
    else:
        return
    raise ValueError(
        f"model.policy.path: {shorten_name(policy.path)!r} {reason} can be trained. Name one of the "
        "Llama, Qwen2 or Qwen3 families."
    )


_OF_OTHER_MEDIA = re.compile(r"^<.*(?:image|audio|video|vision).*>$")
"""Tokens that stand for no text. Text models that are cut out of larger ones have them, and no embedding for them."""


def refuse_unfit_tokenizer(policy: Policy, tokenizer: Any, model: Any) -> None:
    """Refuse a tokenizer that yields no tokens, yields tokens without an embedding, or is not a fast one.

    Args:
        policy: Policy; it is not loaded.
        tokenizer: Tokenizer of the policy.
        model: Model without weights.

    Raises:
        ValueError: with the first of these tokens, and the command that makes room for them.

    """
    if not tokenizer.is_fast:
        raise ValueError(
            f"model.policy.path: {shorten_name(policy.path)!r} has a tokenizer of Python code "
            f"({type(tokenizer).__name__}); completions are decoded token by token, which takes a "
            "tokenizer.json. Save one with it."
        )
    if not tokenizer("4 + 3 =", add_special_tokens=False)["input_ids"]:
        raise ValueError(
            f"model.policy.path: the tokenizer of {shorten_name(policy.path)!r} writes no token for a text; a "
            "tokenizer.json is missing. Copy that of the model there."
        )
    rows = model.get_input_embeddings().num_embeddings
    beyond = {
        number: token
        for token, number in tokenizer.get_vocab().items()
        if number >= rows and not _OF_OTHER_MEDIA.search(token)
    }
    if beyond:
        load = f"m = AutoModelForCausalLM.from_pretrained('{policy.location}', dtype='auto')"
        save = f"m.resize_token_embeddings({max(beyond) + 1}); m.save_pretrained('NEW')"
        raise ValueError(
            f"model.policy.path: the tokenizer of {shorten_name(policy.path)!r} is larger than its model: of its "
            f"tokens {len(beyond):,} lie beyond the {rows:,} that have an embedding, "
            f"{shorten_name(beyond[min(beyond)])!r} first. Use the tokenizer that the model was trained "
            "with, or write a model with more rows and copy the tokenizer "
            f'to it: python -c "from transformers import AutoModelForCausalLM; {load}; {save}"'
        )


def refuse_modified_logits(policy: Policy, config: Any, model: Any) -> None:
    """Refuse a model whose logits are not its hidden states times its output embedding.

    Args:
        policy: Policy; it is not loaded.
        config: Configuration that transformers has read.
        model: Model built from it, without weights.

    Raises:
        ValueError: with what they are scaled or capped by.

    """
    text, head = config.get_text_config(), model.get_output_embeddings()
    settings = {name: getattr(text, name, None) for name in (*LOGIT_SCALES, *LOGIT_CAPS)}
    changes = [
        f"{name} is {value:g}"
        for name, value in settings.items()
        if value is not None and (value != 1 or name in LOGIT_CAPS)
    ]
    if getattr(head, "bias", None) is not None:
        changes.append("its output embedding has a bias")
    if not changes and not any(settings[name] is not None for name in LOGIT_SCALES) and _has_modified_logits(model):
        changes.append("what it returns is not what its output embedding gives")
    if changes:
        raise ValueError(
            f"model.policy.path: {shorten_name(policy.path)!r} scales, caps or biases its logits "
            f"({', '.join(changes)}). Scores are taken from hidden states times the output embedding, which would be "
            "another policy. Use a model without, as those of the Llama, Qwen2 and Qwen3 families."
        )


def _has_modified_logits(model: nn.Module) -> bool:
    """Whether a model modifies the output of its output embedding; no number is computed.

    What cannot be traced without weights passes: :meth:`~rlcredit.policy.policy.Policy.load` compares numbers.
    """
    outputs: list[Tensor] = []
    head: nn.Module = model.get_output_embeddings()  # pyright: ignore[reportCallIssue]
    hook = head.register_forward_hook(lambda _, __, output: outputs.append(output))
    try:
        # In float32, so that a model that returns its logits in float32 returns the very same.
        with torch.no_grad():
            logits = model.float().eval()(input_ids=torch.zeros(1, 2, dtype=torch.long, device="meta")).logits
    except TRACING_ERRORS:
        return False
    finally:
        hook.remove()
    return logits is not outputs[-1]
