"""Sizes of a decoder, and what follows from them: its layers and how many weights they have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

DECODER_KINDS = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma3_text")
"""Architectures whose layers are known here."""

EXPERT_PARTS = ("gate", "gate_proj", "up_proj", "down_proj")
"""Names that PEFT takes for the router and the stacked experts, wherever a model has some. An adapter of stacked
experts is multiplied out to all their weights at every pass, and the gated layers of a dense layer, which have the same
names, would get none."""


def is_expert(name: str) -> bool:
    """Whether PEFT would take the name of a layer for that of a router or of experts.

    Example:
        >>> is_expert("model.layers.0.mlp.gate_proj"), is_expert("model.layers.0.self_attn.q_proj")
        (True, False)

    """
    return name.rpartition(".")[2] in EXPERT_PARTS


class LinearShape(NamedTuple):
    """A linear layer."""

    in_features: int
    out_features: int
    bias: bool = False

    @property
    def parameters(self) -> int:
        """Number of weights, including the bias."""
        return (self.in_features + self.bias) * self.out_features


@dataclass(frozen=True)
class DecoderArchitecture:
    """A decoder of grouped queries, gated layers and rotary positions, dense or with experts.

    Args:
        kind: Kind of decoder, one of :data:`DECODER_KINDS`.
        vocabulary: Size of the vocabulary, V.
        hidden: Width of the residual stream, D.
        intermediate: Width between the gated layers.
        layers: Number of layers.
        heads: Number of query heads.
        kv_heads: Number of key and value heads.
        head_dim: Width of a head.
        tied: Whether the output embedding is the input's.
        qkv_bias: Whether queries, keys and values have a bias.
        out_bias: Whether the output of attention has a bias.
        mlp_bias: Whether the gated layers have a bias.
        experts: Experts per layer that has some.
        active: Experts that a token goes through.
        expert_width: Width between the layers of an expert.
        sparse: Numbers of the layers that have experts.

    """

    kind: str
    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    tied: bool
    qkv_bias: bool
    out_bias: bool
    mlp_bias: bool
    experts: int = 0
    active: int = 0
    expert_width: int = 0
    sparse: frozenset[int] = frozenset()

    @property
    def query_width(self) -> int:
        """Width of all queries of a token."""
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        """Width of all keys of a token."""
        return self.kv_heads * self.head_dim

    @property
    def has_qk_norm(self) -> bool:
        """Whether queries and keys are normalised."""
        return self.kind.startswith(("qwen3", "gemma3"))

    @property
    def layer_norms(self) -> int:
        """Number of norms of the residual stream in a layer."""
        return 4 if self.kind == "gemma3_text" else 2

    def linear_layers(self) -> dict[str, LinearShape]:
        """Return the linear layers except the head, as transformers names them; stacked experts do not count."""
        attention = {
            "q_proj": LinearShape(self.hidden, self.query_width, self.qkv_bias),
            "k_proj": LinearShape(self.hidden, self.key_width, self.qkv_bias),
            "v_proj": LinearShape(self.hidden, self.key_width, self.qkv_bias),
            "o_proj": LinearShape(self.query_width, self.hidden, self.out_bias),
        }
        mlp = {
            "gate_proj": LinearShape(self.hidden, self.intermediate, self.mlp_bias),
            "up_proj": LinearShape(self.hidden, self.intermediate, self.mlp_bias),
            "down_proj": LinearShape(self.intermediate, self.hidden, self.mlp_bias),
        }
        layers: dict[str, LinearShape] = {}
        for number in range(self.layers):
            layers |= {f"model.layers.{number}.self_attn.{name}": layer for name, layer in attention.items()}
            if number not in self.sparse:
                layers |= {f"model.layers.{number}.mlp.{name}": layer for name, layer in mlp.items()}
        return layers

    def adaptable_layers(self) -> dict[str, LinearShape]:
        """Return the layers that can get an adapter; see :data:`EXPERT_PARTS`."""
        return {name: layer for name, layer in self.linear_layers().items() if not self.sparse or not is_expert(name)}

    @property
    def linear_parameters(self) -> int:
        """Weights of the linear layers, without the output embedding: what is quantized, or merged with an adapter."""
        return sum(layer.parameters for layer in self.linear_layers().values())

    @property
    def parameters(self) -> int:
        """Number of all weights, counting tied ones once."""
        embeddings = (1 if self.tied else 2) * self.vocabulary * self.hidden
        norms = self.layers * (self.layer_norms * self.hidden + 2 * self.head_dim * self.has_qk_norm) + self.hidden
        expert = 3 * self.hidden * self.expert_width
        return self.linear_parameters + embeddings + norms + len(self.sparse) * self.experts * (expert + self.hidden)


def parse_architecture(config: Mapping[str, Any]) -> DecoderArchitecture | None:
    """Return the architecture that a ``config.json`` describes; None if it is another kind, or lacks a size.

    Example:
        >>> sizes = {"vocab_size": 384, "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 3}
        >>> heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
        >>> parse_architecture({"model_type": "qwen3", "tie_word_embeddings": True, **sizes, **heads}).parameters
        172576

    """
    kind = config.get("model_type")
    try:
        heads, width, layers = (
            int(config[name]) for name in ("num_attention_heads", "hidden_size", "num_hidden_layers")
        )
        moe = {}
        if kind == "qwen3_moe":
            step, dense = config.get("decoder_sparse_step") or 1, config.get("mlp_only_layers") or []
            sparse = {number for number in range(layers) if number not in dense and (number + 1) % step == 0}
            number = config.get("num_experts") or config["num_local_experts"]  # as transformers 5 writes it
            sizes = (number, config["num_experts_per_tok"], config["moe_intermediate_size"])
            moe = {**dict(zip(("experts", "active", "expert_width"), sizes, strict=True)), "sparse": frozenset(sparse)}
        bias = bool(config.get("attention_bias"))
        architecture = DecoderArchitecture(
            kind=str(kind),
            vocabulary=config["vocab_size"],
            hidden=width,
            intermediate=config["intermediate_size"],
            layers=layers,
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or width // heads,
            tied=bool(config.get("tie_word_embeddings", str(kind).startswith("gemma"))),
            qkv_bias=kind == "qwen2" or bias,
            out_bias=kind != "qwen2" and bias,
            mlp_bias=kind == "llama" and bool(config.get("mlp_bias")),
            **moe,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return architecture if kind in DECODER_KINDS else None


def approximate_architecture(config: Any, vocabulary: int) -> DecoderArchitecture:
    """Return sizes near those of a model of an unknown kind: as if it were a dense decoder.

    Args:
        config: Configuration of the model, as transformers reads it.
        vocabulary: Size of the vocabulary.

    """
    width, heads = config.hidden_size, getattr(config, "num_attention_heads", 1)
    return DecoderArchitecture(
        kind=config.model_type,
        vocabulary=vocabulary,
        hidden=width,
        intermediate=getattr(config, "intermediate_size", None) or 4 * width,
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        tied=True,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
    )
