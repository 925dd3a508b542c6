"""The policy's forward pass over prompts and completions without padding, in few operations, with gradients."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, rms_norm, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from rlcredit.base.messages import warn_once
from rlcredit.policy.joined_linear import CastFactors, JoinedLinear
from rlcredit.policy.model_loading import Precision, Quantization
from rlcredit.policy.packed_layout import PackedLayout, lay_out_rows
from rlcredit.policy.policy import MAX_MERGED_WEIGHTS, Policy
from rlcredit.policy.prompt_format import PADDING

PACKED_KINDS = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma3_text")
"""Architectures that differ only in biases, norms, activation, windows of attention and what stands for the MLP."""

MAX_STATE_ERROR = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
"""How far hidden states of two passes may lie apart, as a share of their norm. The embedded policy shows 5e-7 in
float32 and 0.01 in bfloat16."""

MAX_COPY_BYTES = 2**28
"""Bytes of a prompt's gradients in all its places that are summed at one time."""

PACKED_ROTATIONS = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings that depend on the position alone."""

KNOWN_ACTIVATIONS = ("silu", "gelu_pytorch_tanh")


def find_packing_obstacle(
    config: Mapping[str, Any], dtype: Precision, quantization: Quantization | None, computing_dtype: torch.dtype
) -> str | None:
    """Return why a policy cannot be read by this pass; None if its configuration allows it.

    Args:
        config: Configuration of the model, as its ``config.json`` has it.
        dtype: Precision of its weights.
        quantization: Bits in which they are held, if they are quantized.
        computing_dtype: Precision in which layers compute.

    """
    kind, rotations = config.get("model_type"), config.get("rope_parameters") or config.get("rope_scaling") or {}
    rotations_by_layer = [rotation for rotation in rotations.values() if isinstance(rotation, dict)] or [rotations]
    rotation_kinds = [rotation.get("rope_type") or rotation.get("type") or "default" for rotation in rotations_by_layer]
    activation = config.get("hidden_activation") or config.get("hidden_act")
    reasons = {
        f"its architecture is {kind}": kind not in PACKED_KINDS,
        f"its weights are held in {quantization}": quantization == "8bit",
        f"its activation is {activation}": activation is not None and activation not in KNOWN_ACTIVATIONS,
        f"its rotary embedding is {rotation_kinds[0]}": any(name not in PACKED_ROTATIONS for name in rotation_kinds),
        f"its {dtype} weights are computed in another precision": computing_dtype != getattr(torch, dtype),
        "its attention reads both ways": bool(config.get("use_bidirectional_attention")),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def find_packed_forward(policy: Policy) -> "PackedForward | None":
    """Return the pass that reads a policy without padding, as it is held now; None if the model's own is to be used.

    That is so where :func:`find_packing_obstacle` has a reason, where both passes differ, and for small layers on a
    CPU, whose adapters are cheaper to add into the weights.
    """
    key = policy.device, policy.computing_dtype, policy.is_sharded
    if key not in policy.packed_passes:
        is_small = policy.device.type == "cpu" and max(policy.adapted_sizes()) <= MAX_MERGED_WEIGHTS
        config, dtype = policy.lm.config.to_dict(), policy.computing_dtype
        obstacle = find_packing_obstacle(config, policy.dtype, policy.quantization, dtype)
        obstacle = "its weights lie in parts" if policy.is_sharded else obstacle
        forward = None if obstacle or is_small else PackedForward(policy)
        if forward is not None and not is_packed_forward_exact(policy, forward):
            obstacle, forward = "what that computes differs from the model's own", None
        policy.packed_passes[key] = forward
        if obstacle and policy.device.type != "cpu":
            warn_once(f"{policy.path} is updated by its own forward pass, at a fraction of the speed: {obstacle}.")
    return policy.packed_passes[key]


@torch.no_grad()
def is_packed_forward_exact(policy: Policy, forward: "PackedForward") -> bool:
    """Whether the pass without padding gives the model's own hidden states, for three prompts and six completions."""
    noise = torch.Generator().manual_seed(0)
    ids = torch.randint(min(len(policy.head), 1000), (6, 28), generator=noise)
    prompts, completions = ids[:3, :12].repeat(2, 1), ids[:, 12:]
    mask = torch.arange(16) < torch.tensor([16, 1, 9, 4, 16, 12])[:, None]
    prompts[1::3, :5] = prompts[2::3, :11] = PADDING
    with policy.evaluation_mode():
        context = policy.read_prompts(prompts.to(policy.device))
        states = policy.predicting_states(context, completions.to(policy.device))
        packed_states, layout = forward.read_rows(prompts, completions, mask)
    own_states = states.flatten(0, 1)[layout.cells].float()
    difference = (packed_states.float() - own_states).norm()
    return bool(difference <= MAX_STATE_ERROR[policy.head.dtype] * own_states.norm())


class PackedForward:
    """The frozen weights of a policy, ready to be read with any adapter.

    Args:
        policy: Policy of a known architecture, loaded, on its device.

    """

    def __init__(self, policy: Policy) -> None:
        transformer = policy.lm.get_base_model().model
        self.embedding, self.rotary = transformer.embed_tokens, transformer.rotary_emb
        self.norm = PackedNorm(transformer.norm)
        self.layers = [PackedLayer(layer) for layer in transformer.layers]
        self.device = policy.device
        dtype, width = self.embedding.weight.dtype, self.layers[0].width
        self.is_flat = has_varlen_attention(self.device, dtype, width)  # attention without padding, too

    def read_rows(
        self, prompt_ids: Tensor, completion_ids: Tensor, mask: Tensor, recomputed_layers: int = 0
    ) -> tuple[Tensor, PackedLayout]:
        """Read completions after their prompts, with graph where gradients are enabled.

        Args:
            prompt_ids: Left-padded prompts, shape ``(B, L)``, on the CPU.
            completion_ids: Right-padded completions, shape ``(B, T)``, on the CPU.
            mask: True on sampled tokens, shape ``(B, T)``, on the CPU; those between them are read, too.
            recomputed_layers: Layers, from the first, of which the backward pass finds the input alone and computes
                the rest again.

        Returns:
            Last hidden state before each sampled token, shape ``(M, D)``, and the layout, on the policy's device.

        """
        dtype = self.embedding.weight.dtype
        is_autocast = torch.is_autocast_enabled(self.device.type)
        layout = lay_out_rows(prompt_ids, completion_ids, mask, is_padded=not self.is_flat).move_to(self.device)
        factors = [factor for layer in self.layers for linear in layer.linears for factor in linear.factors]
        if factors and is_autocast and factors[0].dtype != dtype:
            factors = CastFactors.apply(dtype, *factors)
        with torch.autocast(self.device.type, enabled=False):
            return self._run_layers(layout, factors, recomputed_layers), layout

    def _run_layers(self, layout: PackedLayout, factors: Sequence[Tensor], recomputed_layers: int) -> Tensor:
        x = self.embedding(layout.ids)
        kinds = {layer.kind for layer in self.layers}
        rotations = {kind: self._rotate_positions(x, layout.positions, kind) for kind in kinds}
        start = 0
        for number, layer in enumerate(self.layers):
            end = start + layer.factor_count if factors else start
            arguments = (x, *rotations[layer.kind], layout, *factors[start:end])
            start = end
            if number < recomputed_layers and torch.is_grad_enabled():
                x = checkpoint(layer, *arguments, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(*arguments)
        return self.norm(x.index_select(0, layout.predicting))  # gradients of a prompt are added in a fixed order

    def _rotate_positions(self, x: Tensor, positions: Tensor, kind: str | None) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of each position, shape ``(N, 1, H)``; the first half of the sine is negated."""
        cos, sin = self.rotary(x, positions[None], **({"layer_type": kind} if kind else {}))
        half = sin.shape[-1] // 2
        return cos[0][:, None], torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)[:, None]


class PackedNorm:
    """A root-mean-square norm with its scale.

    Args:
        norm: Norm of transformers.

    """

    def __init__(self, norm: Any) -> None:
        self.weight, self.is_exact = norm.weight.detach(), "Gemma" in type(norm).__name__
        self.eps = norm.eps if self.is_exact else norm.variance_epsilon
        if self.is_exact:  # scaled by one more than the weight, before rounding
            self.weight = 1 + self.weight.float()

    def __call__(self, x: Tensor) -> Tensor:
        """Return the normalised values, of the last dimension."""
        if self.is_exact:
            return rms_norm(x.float(), x.shape[-1:], self.weight, self.eps).to(x.dtype)
        return rms_norm(x, x.shape[-1:], self.weight, self.eps)


class PackedLayer:
    """One layer of the decoder, over a row of tokens.

    Args:
        layer: Decoder layer of transformers.

    """

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.scale, self.width = attention.scaling, attention.head_dim
        self.window = getattr(attention, "sliding_window", getattr(attention.config, "sliding_window", None))
        self.kind = getattr(attention, "layer_type", None) if hasattr(layer, "pre_feedforward_layernorm") else None
        self.qkv = JoinedLinear([attention.q_proj, attention.k_proj, attention.v_proj])
        self.out, self.mlp = JoinedLinear([attention.o_proj]), mlp
        self.gate = self.up = self.down = None
        if hasattr(mlp, "gate_proj"):  # apart: halves of one output would be read at a third of the bandwidth
            self.gate, self.up, self.down = (
                JoinedLinear([part]) for part in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)
            )
            self.is_silu = "SiLU" in type(mlp.act_fn).__name__
        self.linears = [linear for linear in (self.qkv, self.out, self.gate, self.up, self.down) if linear]
        self.input_norm = PackedNorm(layer.input_layernorm)
        self.out_norm = self.down_norm = None
        if hasattr(layer, "pre_feedforward_layernorm"):  # norms around attention and MLP, not before them only
            self.out_norm, self.down_norm = map(
                PackedNorm, (layer.post_attention_layernorm, layer.post_feedforward_layernorm)
            )
            self.mlp_norm = PackedNorm(layer.pre_feedforward_layernorm)
        else:
            self.mlp_norm = PackedNorm(layer.post_attention_layernorm)
        self.key_heads = attention.k_proj.out_features // self.width
        self.query_heads = attention.q_proj.out_features // self.width
        self.head_norms = None
        if hasattr(attention, "q_norm"):
            self.head_norms = PackedNorm(attention.q_norm), PackedNorm(attention.k_norm)

    @property
    def factor_count(self) -> int:
        """Number of the factors of adapters in this layer."""
        return 2 * sum(len(linear.adapted) for linear in self.linears)

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor, layout: PackedLayout, *factors: Tensor) -> Tensor:
        """Return the residual stream behind the layer, shape ``(N, D)``; other arguments as it is called."""
        parts, start = {}, 0
        for linear in self.linears:
            end = start + 2 * len(linear.adapted)
            parts[linear] = factors[start:end]
            start = end
        attention = self._attend(self.qkv(self.input_norm(x), parts[self.qkv]), cos, sin, layout)
        x = _add_linear(self.out, attention, parts[self.out], self.out_norm, x)
        states = self.mlp_norm(x)
        if self.gate is None or self.up is None or self.down is None:
            return x + self.mlp(states[None])[0]
        gate, values = (linear(states, parts[linear]) for linear in (self.gate, self.up))
        products = _GatedProduct.apply(gate, values, self.is_silu)
        return _add_linear(self.down, products, parts[self.down], self.down_norm, x)

    def _attend(self, qkv: Tensor, cos: Tensor, sin: Tensor, layout: PackedLayout) -> Tensor:
        """Return the output of attention for each token, shape ``(N, heads x width)``."""
        heads, keys = self.query_heads, self.key_heads
        qkv = qkv.view(len(qkv), -1, self.width)
        if self.head_norms is not None:
            query_norm, key_norm = self.head_norms
            queries, key_part, values = qkv.split([heads, keys, keys], 1)
            qkv = torch.cat([query_norm(queries), key_norm(key_part), values], 1)
        rotated_qkv = _Rotation.apply(qkv, cos, sin, heads + keys)
        sequences = _GatheredSequences.apply(rotated_qkv.flatten(1), layout).view(len(layout.sequences), -1, self.width)
        parts = sequences.split([heads, keys, keys], 1)
        attention = attend_sequences(parts, layout, self.scale, self.window)
        return _FirstPlaces.apply(attention.flatten(1), layout)


def _add_linear(
    linear: JoinedLinear, x: Tensor, factors: Sequence[Tensor], norm: PackedNorm | None, residual: Tensor
) -> Tensor:
    """Return a layer's output, behind its norm if it has one, on top of the residual stream."""
    return linear(x, factors, residual) if norm is None else residual + norm(linear(x, factors))


def has_varlen_attention(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Whether torch has a kernel for sequences side by side on a device, for heads of this width in 16 bits."""
    if device.type != "cuda" or dtype == torch.float32 or width % 8 or width > 256:
        return False
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415
    except ImportError:
        return False
    return {"window_size", "enable_gqa"} <= inspect.signature(varlen_attn).parameters.keys()  # not in all releases


def attend_sequences(parts: Sequence[Tensor], layout: PackedLayout, scale: float, window: int | None) -> Tensor:
    """Return the output of causal attention inside each sequence, shape ``(S, Q, H)``.

    Args:
        parts: Queries of all sequences, shape ``(S, Q, H)``, and keys and values, shape ``(S, K, H)``.
        layout: Layout of the sequences.
        scale: Factor by which the scores are multiplied.
        window: Tokens that are seen, the present one included; all if None.

    """
    queries, keys, values = parts
    is_grouped = queries.shape[1] > keys.shape[1]
    window = None if window is None or window >= layout.width else window
    if layout.ends is not None:
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415

        bounds = (layout.ends, layout.ends, layout.width, layout.width)
        reach = (-1 if window is None else window - 1, 0)
        output = varlen_attn(queries, keys, values, *bounds, scale=scale, window_size=reach, enable_gqa=is_grouped)
        assert isinstance(output, Tensor)
        return output
    rows = [part.view(-1, layout.width, *part.shape[1:]).transpose(1, 2) for part in parts]
    band = None
    if window is not None:
        distance = torch.arange(layout.width, device=queries.device)
        distance = distance[:, None] - distance
        band = (distance >= 0) & (distance < window)
    if is_grouped and queries.is_cuda and (band is not None or queries.dtype == torch.float32):
        # There torch's kernels that keep no scores know no groups.
        rows[1:] = [part.repeat_interleave(rows[0].shape[1] // part.shape[1], 1) for part in rows[1:]]
        is_grouped = False
    output = scaled_dot_product_attention(
        *rows, attn_mask=band, is_causal=band is None, scale=scale, enable_gqa=is_grouped
    )
    return output.transpose(1, 2).flatten(0, 1)


class _GatheredSequences(Function):
    """Tokens in the places of their sequences; gradients of a prompt are summed over its places in a fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layout: PackedLayout) -> Tensor:
        ctx.layout = layout
        return x[layout.sequences]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        layout = ctx.layout
        token_gradient = gradient[layout.places]
        gradient_rows = torch.cat([gradient, gradient.new_zeros(1, gradient.shape[1])])
        token_bytes = layout.copies.shape[1] * gradient.shape[1] * gradient.element_size()
        start = 0
        for copies in layout.copies.split(max(1, MAX_COPY_BYTES // token_bytes)):
            sums = gradient_rows[copies].sum(1, dtype=torch.float32)
            token_gradient[start : start + len(copies)] = sums.to(gradient.dtype)
            start += len(copies)
        return token_gradient, None


class _FirstPlaces(Function):
    """Outputs of sequences at the first place of each token."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, layout: PackedLayout) -> Tensor:
        ctx.layout, ctx.shape = layout, y.shape
        return y[layout.places]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient.new_zeros(ctx.shape).index_copy_(0, ctx.layout.places, gradient), None


class _Rotation(Function):
    """Rotary embedding of the first heads of ``(N, heads, H)``; the sine has the signs, others pass as they are."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, heads: int) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.heads = heads
        return _rotate_halves(x, cos, sin, heads, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        cos, sin = ctx.saved_tensors
        return _rotate_halves(gradient, cos, sin, ctx.heads, -1), None, None, None


def _rotate_halves(x: Tensor, cos: Tensor, sin: Tensor, heads: int, direction: int) -> Tensor:
    result, part = torch.empty_like(x), x[:, :heads]
    halves = part.roll(x.shape[-1] // 2, -1)
    torch.addcmul(part * cos, halves, sin, value=direction, out=result[:, :heads])
    result[:, heads:] = x[:, heads:]
    return result


class _GatedProduct(Function):
    """The activation of a gate times values, both ``(N, F)``; nothing but the inputs is kept."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, values: Tensor, is_silu: bool) -> Tensor:
        ctx.save_for_backward(gate, values)
        ctx.is_silu = is_silu
        return (silu(gate) if is_silu else gelu(gate, approximate="tanh")).mul_(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gate, values = ctx.saved_tensors
        if ctx.is_silu:
            gate_gradient = torch.ops.aten.silu_backward(gradient * values, gate)
            return gate_gradient, silu(gate).mul_(gradient), None
        gate_gradient = torch.ops.aten.gelu_backward(gradient * values, gate, approximate="tanh")
        return gate_gradient, gelu(gate, approximate="tanh").mul_(gradient), None
