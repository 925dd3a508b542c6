"""Sizes of models to measure, small ones and published ones, and models of these sizes with random weights."""

from typing import Any

import torch

from rlcredit.policy.model_loading import Precision

SMALL_SHAPES: dict[str, dict[str, Any]] = {
    "llama_70m": {
        **{"model_type": "llama", "vocab_size": 16_000, "hidden_size": 640, "intermediate_size": 1_728},
        **{"num_hidden_layers": 12, "num_attention_heads": 10, "num_key_value_heads": 10, "head_dim": 64},
        "tie_word_embeddings": True,
    },
    "qwen3_120m": {
        **{"model_type": "qwen3", "vocab_size": 32_000, "hidden_size": 768, "intermediate_size": 2_304},
        **{"num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 64},
        "tie_word_embeddings": True,
    },
}
"""Sizes that two cores train in seconds, and beside which Python and torch are small."""

PUBLISHED_SHAPES: dict[str, dict[str, Any]] = {
    "smollm2_135m": {
        **{"model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1_536},
        **{"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
    },
    "qwen3_0.6b": {
        **{"model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 1_024, "intermediate_size": 3_072},
        **{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
        "tie_word_embeddings": True,
    },
    "qwen3_4b": {
        **{"model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 2_560, "intermediate_size": 9_728},
        **{"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128},
        "tie_word_embeddings": True,
    },
    "qwen3_8b": {
        **{"model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 4_096, "intermediate_size": 12_288},
        **{"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128},
        "tie_word_embeddings": False,
    },
}
"""Sizes of published models, as their ``config.json`` has them."""

MODEL_SHAPES = {**SMALL_SHAPES, **PUBLISHED_SHAPES}


def make_random_model(shape: str, device: torch.device, dtype: Precision = "bfloat16", **others: Any) -> Any:
    """Return a model of a shape with random weights that do not learn.

    Args:
        shape: One of :data:`MODEL_SHAPES`.
        device: Device on which the weights are drawn.
        dtype: Their precision.
        **others: Sizes that replace those of the shape.

    """
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415

    sizes = {**MODEL_SHAPES[shape], "eos_token_id": 2, "pad_token_id": 0, **others}
    config = AutoConfig.for_model(sizes.pop("model_type"), **sizes)
    torch.manual_seed(0)
    with device:
        return AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).requires_grad_(False)
