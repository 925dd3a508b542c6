"""The forward pass of a dense decoder in few operations: layers of one input are one product."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, pad, rms_norm, scaled_dot_product_attention, silu

from rlcredit.decoding.decoding_loop import DecodingForward
from rlcredit.decoding.key_value_cache import KernelCache, KeyValueCache, MatmulCache
from rlcredit.policy.joined_linear import read_bias
from rlcredit.policy.joined_weights import join_weights
from rlcredit.policy.packed_forward import PACKED_ROTATIONS
from rlcredit.policy.policy import Policy

FUSED_KINDS = ("llama", "qwen2", "qwen3")
"""Architectures that differ only in biases, query and key norms, grouped queries and tied heads."""


def find_fusion_obstacle(policy: Policy) -> str | None:
    """Return why a policy cannot be decoded by this pass; None if its configuration allows it."""
    config = policy.lm.config
    activation = getattr(config, "hidden_act", None)
    rotation = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    reasons = {
        f"its architecture is {config.model_type}": config.model_type not in FUSED_KINDS,
        f"its weights are held in {policy.quantization}": policy.quantization is not None,
        "attention slides over a window": any(kind != "full_attention" for kind in getattr(config, "layer_types", ())),
        f"its activation is {activation}": activation != "silu",
        f"its rotary embedding is {rotation}": rotation not in PACKED_ROTATIONS,
        "float32 weights are computed in fewer bits": policy.dtype == "float32"
        and torch.is_autocast_enabled(policy.device.type),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


class FusedLinear:
    """Linear layers with the same input, computed as one product with their adapters.

    In float32 the adapters are added into the weights. In fewer bits the sums would round to another policy: there the
    frozen weights stay as they are, and so do the low-rank factors, the first of which lie below the weights.

    Args:
        layers: Linear layers, plain or adapted by PEFT; these products are theirs until their adapters change.
        norm: Factors by which their input is scaled, channel by channel, shape ``(D,)``; nothing is scaled if None.
            Where :attr:`norm` is not None, the caller does it.

    """

    def __init__(self, layers: Sequence[Any], norm: Tensor | None = None) -> None:
        plain = [getattr(layer, "base_layer", layer) for layer in layers]
        pairs, kind = list(zip(layers, plain, strict=True)), plain[0].weight.dtype
        self.down = self.up = self.bias = None
        self.norm = None if norm is None else norm.detach()
        if any(layer.bias is not None for layer in plain):
            self.bias = torch.cat([read_bias(layer) for layer in plain])
        if kind == torch.float32:
            sums = torch.cat([_merged_weight(layer, base) for layer, base in pairs])
            self.weight, self.norm = sums if self.norm is None else sums * self.norm, None
            return
        factors = [layer.lora_A["default"].weight.detach() for layer, base in pairs if layer is not base]
        is_rounded = torch.is_autocast_enabled(plain[0].weight.device.type)  # the trainer rounds the factors, too
        self.weight = join_weights(plain, sum(map(len, factors)) if is_rounded else 0)
        if factors:
            self.up = torch.block_diag(*(_scaled_lora_up(layer, base) for layer, base in pairs))
            if is_rounded:
                self.weight[len(self.up) :] = torch.cat(factors)
                self.bias = None if self.bias is None else pad(self.bias, (0, len(self.weight) - len(self.up)))
                self.up = self.up.to(kind)
            else:
                self.down = torch.cat(factors)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs of all layers side by side, shapes ``(N, D)`` to ``(N, E)``."""
        y = linear(x, self.weight, self.bias)
        if self.up is None:
            return y
        if self.down is None:
            return y[:, : len(self.up)].addmm_(y[:, len(self.up) :], self.up.T)
        return (y + linear(linear(x.to(self.down.dtype), self.down), self.up)).to(y.dtype)

    def add_to_residual(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return the outputs on top of a residual stream, which is overwritten."""
        if self.up is None and self.bias is None:
            return residual.addmm_(x, self.weight.T)
        return residual.add_(self(x))  # not one product after the other, which would round the residual twice


def _merged_weight(layer: Any, base: Any) -> Tensor:
    if layer is base:
        return base.weight.detach()
    return base.weight.detach() + layer.get_delta_weight("default").detach()


def _scaled_lora_up(layer: Any, base: Any) -> Tensor:
    if layer is base:
        return base.weight.new_zeros(len(base.weight), 0)
    return layer.lora_B["default"].weight.detach() * layer.scaling["default"]


class FusedLayer:
    """One layer of the decoder.

    Args:
        layer: Decoder layer of transformers.
        eps: Epsilon of the layer's norms.

    """

    def __init__(self, layer: Any, eps: float) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.eps, self.scale, self.width = eps, attention.scaling, attention.head_dim
        self.qkv = FusedLinear([attention.q_proj, attention.k_proj, attention.v_proj], layer.input_layernorm.weight)
        self.out, self.down = FusedLinear([attention.o_proj]), FusedLinear([mlp.down_proj])
        self.gate_up = FusedLinear([mlp.gate_proj, mlp.up_proj], layer.post_attention_layernorm.weight)
        keys = attention.k_proj.out_features // self.width
        self.keys, self.queries = keys, attention.q_proj.out_features // self.width
        self.norm = None
        if hasattr(attention, "q_norm"):
            norms = [(attention.q_norm, self.queries), (attention.k_norm, keys)]
            self.norm = torch.cat([norm.weight.detach().expand(heads, -1) for norm, heads in norms])

    def project_qkv(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries, shape ``(N, Q, H)``, and keys and values, ``(N, 2, K, H)``, of tokens ``(N, D)``."""
        qkv = self.qkv(_rms_norm(x, self.eps, self.qkv.norm)).view(len(x), -1, self.width)
        qk = qkv[:, : self.queries + self.keys]
        norms = qk if self.norm is None else _rms_norm(qk, self.eps) * self.norm
        halves = norms.chunk(2, -1)  # joined by `cat`, for `roll` copies what does not lie densely before it moves it
        torch.addcmul(norms * cos, torch.cat(halves[::-1], -1), sin, out=qk)
        return qk[:, : self.queries], qkv[:, self.queries :].view(len(x), 2, self.keys, self.width)

    def finish_layer(self, x: Tensor, attention: Tensor) -> Tensor:
        """Return the residual stream behind the layer, shape ``(N, D)``, from the output of attention."""
        x = self.out.add_to_residual(x, attention)
        gate, values = self.gate_up(_rms_norm(x, self.eps, self.gate_up.norm)).chunk(2, -1)
        return self.down.add_to_residual(x, silu(gate).mul_(values))


def _rms_norm(x: Tensor, eps: float, scale: Tensor | None = None) -> Tensor:
    r"""Return :math:`x / \sqrt{\mathrm{mean}(x^2) + \epsilon}` over the last dimension, times a scale."""
    if x.dtype != torch.float32:
        return rms_norm(x, x.shape[-1:], scale, eps)
    size = x.shape[-1]
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True).mul_(size**-0.5)
    directions = x / torch.hypot(length, x.new_full((), eps**0.5))
    return directions if scale is None else directions * scale


class FusedForward(DecodingForward):
    """A policy that has read some contexts and continues them token by token.

    Args:
        policy: Policy of a known architecture; its adapter is taken as it is now.

    """

    def __init__(self, policy: Policy) -> None:
        base = policy.lm.get_base_model().model
        eps = policy.lm.config.rms_norm_eps
        self.policy, self.rotary = policy, base.rotary_emb
        self.embedding, self.norm, self.eps = base.embed_tokens.weight.detach(), base.norm.weight.detach(), eps
        self.layers = [FusedLayer(layer, eps) for layer in base.layers]

    def read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        """Read contexts once each; return the last hidden state of every row, shape ``(B, D)``.

        Args:
            prompt_ids: Token ids of the contexts, left-padded, shape ``(P, L)``.
            context_numbers: Number of the context that each row continues, shape ``(B,)``.
            room: Number of tokens that may follow.

        """
        with torch.autocast(prompt_ids.device.type, enabled=False):
            return self._read_contexts(prompt_ids, context_numbers, room)

    def _read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        mask, length = self.policy.prompt_mask(prompt_ids), prompt_ids.shape[1]
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        self.rotations = self._rotations(length + room)
        x = embedding(prompt_ids.flatten().clamp(min=0), self.embedding)
        lowest = torch.finfo(x.dtype).min
        bias = x.new_zeros(mask.shape).masked_fill(~mask, lowest)
        # A row of padding sees itself, so that nothing is divided by zero.
        causal = x.new_full((length, length), lowest).triu(1)
        attention_bias = torch.maximum(bias[:, None, None] + causal, x.new_full((), lowest))
        self.cache: list[KeyValueCache] = []
        cos, sin = self.rotations[places.flatten()].unbind(1)
        for layer in self.layers:
            queries, kv = layer.project_qkv(x, cos, sin)
            queries = queries.view(*prompt_ids.shape, layer.queries, -1).transpose(1, 2)
            kv = kv.view(*prompt_ids.shape, 2, layer.keys, -1).permute(2, 0, 3, 1, 4)
            read_kv, is_grouped = kv, layer.queries > layer.keys
            if is_grouped and x.is_cuda:  # beside a mask, torch's kernels that keep no scores know no groups
                read_kv, is_grouped = kv.repeat_interleave(layer.queries // layer.keys, 2), False
            attention = scaled_dot_product_attention(
                queries, *read_kv, attention_bias, scale=layer.scale, enable_gqa=is_grouped
            )
            x = layer.finish_layer(x, attention.transpose(1, 2).reshape(len(x), -1))
            self.cache.append(self._cache_type(kv, context_numbers, room))
        self.column, self.places = length, places[:, -1][context_numbers] + 1
        self.bias = x.new_zeros(len(context_numbers), self.layers[0].keys, 1, length + room)
        self.bias[..., :length] = bias[context_numbers][:, None, None]
        return _rms_norm(x.view(*prompt_ids.shape, -1)[:, -1], self.eps, self.norm)[context_numbers]

    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row, shape ``(B,)``; return the last hidden states, shape ``(B, D)``."""
        with torch.autocast(tokens.device.type, enabled=False):
            states = self.read_token(tokens, self.bias[..., : self.column + 1], self.column)
            self.column, self.places = self.column + 1, self.places + 1
            return states

    def read_token(self, tokens: Tensor, bias: Tensor, column: int | Tensor) -> Tensor:
        """Return the last hidden states behind one more token in every row, and keep its keys and values.

        Args:
            tokens: Token ids, shape ``(B,)``.
            bias: Bias added to attention's scores, up to the last key that is read, shape ``(B, K, 1, C)``.
            column: Place of the token among all tokens of the rows; on an accelerator shape ``(1,)``.

        """
        x = embedding(tokens, self.embedding)
        cos, sin = self.rotations[self.places].unbind(1)
        bias = bias.flatten(0, 1)
        for layer, cache in zip(self.layers, self.cache, strict=True):
            queries, kv = layer.project_qkv(x, cos, sin)
            cache.write_token(kv, column)
            x = layer.finish_layer(x, cache.attend(queries, bias, layer.scale))
        return _rms_norm(x, self.eps, self.norm)

    @property
    def _cache_type(self) -> type[KeyValueCache]:
        return MatmulCache if self.embedding.dtype == torch.float32 else KernelCache

    def keep_rows(self, rows: Tensor) -> None:
        """Keep some rows, shape ``(N,)``; a row may come twice."""
        for cache in self.cache:
            cache.keep_rows(rows, self.column)
        self.places, self.bias = self.places[rows], self.bias[rows]

    def _rotations(self, length: int) -> Tensor:
        """Return cosine and sine of every place, shape ``(length, 2, 1, H)``; the first half of the sine is negated."""
        cos, sin = self.rotary(self.embedding, torch.arange(length, device=self.embedding.device)[None])
        sign = torch.ones_like(sin[0, 0])
        sign[: len(sign) // 2] = -1
        return torch.stack([cos[0], sin[0] * sign], 1)[:, :, None]
