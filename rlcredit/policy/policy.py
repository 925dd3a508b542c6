"""The policy: a causal language model with a LoRA adapter; no Lightning here."""

import contextlib
import copy
import functools
import inspect
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rlcredit.formulas.groups import ranks_within_rows
from rlcredit.formulas.turns import find_read_lengths
from rlcredit.formulas.uncertainty import scores_from_hidden, tempered_logits
from rlcredit.policy.architecture import DecoderArchitecture, approximate_architecture, parse_architecture
from rlcredit.policy.chat_turns import Conversation, parse_conversation
from rlcredit.policy.model_loading import (
    TINY,
    Precision,
    Quantization,
    find_embedded_policy,
    load_frozen_model,
    load_tokenizer,
)
from rlcredit.policy.pieces import decode_runs, make_piece_decoder
from rlcredit.policy.policy_sizes import find_linear_layers, has_stacked_experts
from rlcredit.policy.prompt_format import (
    PADDING,
    PromptFormat,
    Tools,
    find_context_length,
    left_padded_ids,
    refuse_long_prompts,
    refuse_unknown_tokens,
)

MAX_MERGED_WEIGHTS = 2**15
"""Weights of a layer for which one product, its gradient included, is faster than three with the adapter's factors."""


@dataclass
class LoRA:
    """The adapter, the only part that learns. Dropout is zero, the model's own too: sampling and training are one.

    Args:
        rank: Rank r of the adapter.
        alpha: Numerator of the scale alpha / r by which the update is multiplied.
        targets: Names of the linear layers that get an adapter, or ``all-linear``.

    """

    rank: int = 16
    alpha: float = 32
    targets: str | list[str] = "all-linear"

    def __post_init__(self) -> None:
        """Refuse a rank that PEFT would refuse later."""
        if self.rank < 1:
            raise ValueError(f"LoRA expects rank >= 1, got {self.rank}.")


def add_lora_adapter(base: Any, lora: LoRA) -> Any:
    """Return a model of transformers with a fresh adapter in it.

    Where experts are stacked, PEFT would turn ``all-linear`` and patterns into names that stand for experts too; it
    gets the names of linear layers instead.

    Raises:
        ValueError: PEFT has no adapter for a layer that is named.

    """
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415
    from transformers.pytorch_utils import Conv1D  # noqa: PLC0415

    targets = lora.targets
    if isinstance(targets, str) and has_stacked_experts(base):
        layers = find_linear_layers(base)
        names = [name for name in layers if targets == "all-linear" or re.fullmatch(targets, name)]
        targets = sorted({name.rpartition(".")[2] for name in names} if targets == "all-linear" else names)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets,
        lora_dropout=0.0,
        fan_in_fan_out=any(isinstance(layer, Conv1D) for layer in base.modules()),  # as GPT-2 holds its weights
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base, config)


class TokenScores(NamedTuple):
    """Log-probability of sampled tokens, and what each was drawn from: its entropy and sum of squared probabilities.

    All ``(B, T)`` float32, in nats.
    """

    logprobs: Tensor
    entropy: Tensor
    sum_pi_squared: Tensor = None  # pyright: ignore[reportAssignmentType]


@dataclass
class PromptContext:
    """Prompts, each computed once, and the prompt of each completion; each prompt has one backward pass.

    Attributes:
        hidden: Last hidden state of each prompt, shape ``(P, 1, D)``.
        cache: Keys and values of P prompts, as transformers keeps them.
        mask: False on padding, shape ``(P, L)``.
        of: Number of the prompt of each completion, shape ``(B,)``.

    """

    hidden: Tensor
    cache: Any
    mask: Tensor
    of: Tensor

    def select_rows(self, rows: Tensor | slice) -> "PromptContext":
        """Return the context of some completions."""
        return PromptContext(self.hidden, self.cache, self.mask, self.of[rows])

    def expand_cache(self) -> Any:
        """Return a cache with a row for every completion, and leave this one as it is."""
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        for layer in cache.layers:
            _select_cache_rows(layer, self.of)
        return cache


def _select_cache_rows(layer: Any, rows: Tensor) -> None:
    """Select rows of a layer's keys and values; one that comes several times gets its gradients in a fixed order.

    The gradient of transformers' own ``keys[rows]`` is added in the order in which threads arrive, but in torch's
    deterministic mode; that of ``index_select`` is not, on the CPU.
    """
    from transformers.cache_utils import DynamicLayer  # noqa: PLC0415

    if type(layer).batch_select_indices is not DynamicLayer.batch_select_indices:
        layer.batch_select_indices(rows)
        return
    layer.keys = layer.keys.index_select(0, rows)
    layer.values = layer.values.index_select(0, rows)


@functools.cache
def find_cache_argument(transformer: type[nn.Module]) -> str:
    """Return the name of a transformers cache, as argument and in the output; it was renamed in 5.24."""
    parameters = inspect.signature(transformer.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


class Policy(nn.Module):
    """A causal language model with LoRA, scored at a temperature.

    Constructing it costs nothing; :meth:`load` reads the weights.

    Args:
        path: ``tiny`` for the embedded model, a local folder, or the id of a hub repository (safetensors only).
        lora: Settings of the adapter.
        dtype: Precision of the frozen weights; the adapter is always float32.
        quantization: Whether to hold the frozen weights in ``4bit`` (nf4, double quantisation) or ``8bit`` through
            bitsandbytes; neither if None.
        prompt: Format in which conversations are written for the model; its chat template if None.

    """

    def __init__(
        self,
        path: str = TINY,
        lora: LoRA | None = None,
        dtype: Precision = "float32",
        quantization: Quantization | None = None,
        prompt: PromptFormat | None = None,
    ) -> None:
        super().__init__()
        self.path = path
        self.lora = lora or LoRA()
        self.dtype: Precision = dtype
        self.quantization: Quantization | None = quantization
        self.prompt = prompt or PromptFormat()
        self.reads_branches = False  # whether this has been found to work; see `PolicyLookahead`
        self.is_sharded = False  # whether its layers lie in parts; see `shard_frozen_weights`
        self.packed_passes: dict[Any, Any] = {}  # by device and precision; see `find_packed_forward`
        self.lm: Any = None
        self.tokenizer: Any = None

    @property
    def location(self) -> str:
        """Folder or hub id of the weights and the tokenizer."""
        return str(find_embedded_policy(self.path) or os.path.expanduser(self.path))

    def load(self, seed: int = 0) -> None:
        """Read tokenizer and weights and start a fresh adapter; a second call does nothing.

        Args:
            seed: Seed of the adapter's initial weights, whatever the state of the global generator.

        Raises:
            ValueError: the model's logits are not its hidden states times its output embedding.
            PromptError: its tokenizer cannot write prompts as ``prompt`` says.
            NotFinite: a weight of the model holds NaN or infinity.

        """
        if self.lm is not None:
            return
        self.tokenizer = load_tokenizer(self.location)
        self.prompt.refuse_tokenizer(self.tokenizer, self.path)
        base = load_frozen_model(self.location, self.dtype, self.quantization)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.lm = add_lora_adapter(base, self.lora)
        self._check_head()

    def _check_head(self) -> None:
        """Refuse an adapter on an embedding: log-probabilities read its weights directly and would not change.

        Some models cap or scale their logits; scoring from hidden states would then be another distribution.
        """
        for embedding in (self.lm.get_input_embeddings(), self.lm.get_output_embeddings()):
            if hasattr(embedding, "base_layer"):
                raise ValueError(
                    f"{self.path}: the adapter is on an embedding ({self.lora.targets}), where it would not act. Name "
                    "linear layers between the embeddings, or all-linear."
                )
        ids = torch.arange(8, device=self.device)[None]
        with torch.no_grad(), self.evaluation_mode():
            model_logits = self.lm(input_ids=ids).logits[0].float()
            states, _ = self.hidden_states(ids, torch.ones_like(ids))
            state_logits = tempered_logits(states[0], self.head, temperature=1.0)
        if not torch.allclose(state_logits, model_logits, rtol=2e-2, atol=2e-2):
            raise ValueError(
                f"{self.path}: logits differ from hidden states times the output embedding by up to "
                f"{(state_logits - model_logits).abs().max():.2g}. Models that cap, scale or bias their logits are not "
                "supported."
            )

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return self.head.device

    @property
    def computing_dtype(self) -> torch.dtype:
        """Precision in which layers compute: that of autocast inside it, else that of the weights."""
        kind = self.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.head.dtype

    @functools.cached_property
    def architecture(self) -> DecoderArchitecture:
        """Sizes of the model; approximate ones if it is of an unknown kind."""
        return parse_architecture(self.lm.config.to_dict()) or approximate_architecture(self.lm.config, len(self.head))

    @property
    def stop_ids(self) -> Tensor:
        """Tokens that end a completion, on the policy's device."""
        ends = self.lm.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        return torch.tensor(
            sorted({end for end in [*ends, self.tokenizer.eos_token_id] if end is not None and end < len(self.head)}),
            dtype=torch.long,
            device=self.device,
        )

    @property
    def head(self) -> Tensor:
        """The output embedding, ``(V, D)``."""
        return self.lm.get_output_embeddings().weight

    def hidden_states(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        cache: Any = None,
        use_cache: bool = False,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """Run tokens through the transformer.

        Args:
            ids: Token ids of tokens that are not in the cache, or padding, shape ``(B, S)``.
            attention_mask: False on padding, of cached and new tokens, shape ``(B, L)``; or what each new token may
                attend to, as numbers to be added to its scores, shape ``(B, 1, S, L)``.
            cache: Cache of the tokens before, or None.
            use_cache: Whether to return a cache that the next tokens can use.
            positions: Position of each new token, shape ``(B, S)``; where the mask has them if None.

        Returns:
            Last hidden states, shape ``(B, S, D)``, and the grown cache.

        """
        if positions is None:
            attention_mask = attention_mask.long()
            positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        transformer = self.lm.get_base_model().base_model
        name = find_cache_argument(type(transformer))
        output = transformer(
            input_ids=ids.clamp(min=0),  # padding has no embedding, and nothing attends to it
            attention_mask=attention_mask,
            position_ids=positions,
            use_cache=use_cache,
            **{name: cache},
        )
        return output.last_hidden_state, output[name] if use_cache else None

    def encode_questions(self, questions: Sequence[str | Conversation], tools: Tools | None = None) -> Tensor:
        """Write questions as :class:`~rlcredit.policy.prompt_format.PromptFormat` says; a text is one turn of the user.

        Args:
            questions: Questions, P of them.
            tools: Schemas of the tools of an environment that answers in turns, if it has any; None where a question is
                answered once.

        Returns:
            Token ids, with :data:`~rlcredit.policy.prompt_format.PADDING` on the left, shape ``(P, L)``, L a multiple
            of 16 so that few shapes occur.

        Raises:
            PromptError: the tokenizer cannot write one, or one is longer than the model can read.

        """
        conversations = [parse_conversation(question) for question in questions]
        prompts = self.prompt.encode_conversations(self.tokenizer, conversations, tools)
        if self.lm is not None:
            refuse_long_prompts(list(map(len, prompts)), find_context_length(self.lm.config), self.path)
            refuse_unknown_tokens(prompts, self.lm.get_input_embeddings().num_embeddings, self.tokenizer, self.path)
        return left_padded_ids(prompts, multiple=16)

    def prepend_thinking_mark(self, completions: Sequence[str]) -> list[str]:
        """Return completions as a verifier reads them: after the thinking tag that their prompt has opened.

        A completion that is cut while it thinks has no mark of its own to tell.
        """
        mark = self.prompt.find_thinking_mark(self.tokenizer)
        return [mark + completion for completion in completions]

    def prompt_mask(self, prompt_ids: Tensor) -> Tensor:
        """Return true on tokens, false on padding; the pad token of the model is a token."""
        return prompt_ids != PADDING

    def score_prompts(self, prompt_ids: Tensor, completion_ids: Tensor, temperature: float = 1.0) -> TokenScores:
        """Score completions under the tempered policy, with graph where gradients are enabled.

        Args:
            prompt_ids: Token ids of the prompts, left-padded, shape ``(B, L)``.
            completion_ids: Token ids of the completions, right-padded, shape ``(B, T)``; scores of padding are
                meaningless and finite.
            temperature: Temperature T by which logits are divided.

        Returns:
            Log-probability of every completion token and entropy of the distribution it was drawn from.

        """
        return self.score_completions(self.read_prompts(prompt_ids), completion_ids, temperature)

    def read_prompts(self, prompt_ids: Tensor) -> PromptContext:
        """Read prompts, left-padded, shape ``(B, L)``; one that comes several times is read once."""
        prompts, prompt_numbers = prompt_ids.unique(dim=0, return_inverse=True)
        mask = self.prompt_mask(prompts)
        states, cache = self.hidden_states(prompts, mask, use_cache=True)
        return PromptContext(states[:, -1:], cache, mask, prompt_numbers)

    def score_completions(
        self, context: PromptContext, completion_ids: Tensor, temperature: float = 1.0
    ) -> TokenScores:
        """Score completions, right-padded, shape ``(B, T)``, after their prompts; see :meth:`score_prompts`."""
        return self.score_states(self.predicting_states(context, completion_ids), completion_ids, temperature)

    def score_states(
        self, states: Tensor, token_ids: Tensor, temperature: float = 1.0, *, keeps_entropy: bool = True
    ) -> TokenScores:
        """Score tokens from the hidden states that predict them.

        Args:
            states: Last hidden states, shape ``(..., D)``.
            token_ids: Token ids, shape ``(...)``.
            temperature: Temperature T by which logits are divided.
            keeps_entropy: Whether the entropy has a gradient.

        """
        states, tokens = states.reshape(-1, states.shape[-1]), token_ids.reshape(-1)
        scores = scores_from_hidden(states, self.head, tokens, temperature, keeps_entropy=keeps_entropy)
        return TokenScores(*(score.view(token_ids.shape) for score in scores))

    def predicting_states(self, context: PromptContext, completion_ids: Tensor) -> Tensor:
        """Return the hidden states from which each completion token is predicted, shape ``(B, T, D)``."""
        return self.read_completions(context, completion_ids)[0]

    def read_completions(self, context: PromptContext, completion_ids: Tensor) -> tuple[Tensor, Any]:
        """Read completions after their prompts.

        Args:
            context: Prompts of the completions.
            completion_ids: Token ids of the completions, right-padded, shape ``(B, T)``.

        Returns:
            Hidden states from which each completion token is predicted, shape ``(B, T, D)``, and the cache of the
            prompts and of all tokens but the last.

        """
        # Position i predicts token i + 1: the last prompt token predicts the first completion token.
        first_states = context.hidden.index_select(0, context.of)
        inputs, cache = completion_ids[:, :-1], context.expand_cache()
        if not inputs.shape[1]:
            if not self.is_sharded:
                return first_states, cache
            inputs = completion_ids  # one pass more than needed, because every process makes as many
        mask = torch.cat([context.mask[context.of], torch.ones_like(inputs, dtype=torch.bool)], -1)
        states, cache = self.hidden_states(inputs, mask, cache, use_cache=True)
        return torch.cat([first_states, states], 1)[:, : completion_ids.shape[1]], cache

    def read_branches(
        self, context: PromptContext, cache: Any, rows: Tensor, places: Tensor, token_ids: Tensor
    ) -> Tensor:
        """Read other tokens behind each of several prefixes of completions, in one pass.

        All branches of a completion lie side by side; a token attends to its prefix, to the tokens before it in its
        branch, and to itself.

        Args:
            context: Prompts of the completions, B of them.
            cache: Cache of prompts and completions, from :meth:`read_completions`; it must not be used again.
            rows: Number of the completion of each branch, ascending, shape ``(N,)``.
            places: Tokens of the completion that are the branch's prefix, shape ``(N,)``.
            token_ids: Token ids of each branch, right-padded with anything, shape ``(N, K)``.

        Returns:
            Hidden state behind each token, shape ``(N, K, D)``.

        """
        prompts, device, length = context.mask[context.of], rows.device, token_ids.shape[1]
        slots = ranks_within_rows(rows, len(prompts))
        branches, cached_tokens = int(slots.max()) + 1, cache.get_seq_length()
        ids = token_ids.new_full((len(prompts), branches, length), PADDING)
        prefixes = ids.new_zeros(len(prompts), branches)
        ids[rows, slots], prefixes[rows, slots] = token_ids, places
        prefixes = prefixes.repeat_interleave(length, 1)
        read = torch.arange(cached_tokens - prompts.shape[1], device=device) < prefixes[..., None]
        width = branches * length
        order = torch.arange(width, device=device)
        branch = order // length
        is_earlier = (branch[:, None] == branch) & (order[:, None] >= order)
        is_visible = torch.cat([prompts[:, None].expand(-1, width, -1), read, is_earlier.expand(len(ids), -1, -1)], -1)[
            :, None
        ]
        dtype = self.computing_dtype
        bias = torch.zeros(is_visible.shape, dtype=dtype, device=device).masked_fill(
            ~is_visible, torch.finfo(dtype).min
        )
        positions = prompts.sum(-1, keepdim=True) + prefixes + order % length
        states, _ = self.hidden_states(ids.flatten(1), bias, cache, use_cache=True, positions=positions)
        return states.view(*ids.shape, -1)[rows, slots]

    def decode_pieces(self, completion_ids: Tensor, mask: Tensor) -> list[list[str]]:
        """Decode token by token; a character split over tokens appears whole at the last of them.

        Args:
            completion_ids: Token ids of completions, shape ``(B, T)``.
            mask: True on sampled tokens, shape ``(B, T)``.

        Returns:
            One list of strings per row, as long as the policy reads it. Those of sampled tokens, joined, are its text
            without special tokens; what an environment has said stands between.

        """
        decode = make_piece_decoder(self.tokenizer)
        rows = zip(completion_ids.tolist(), mask.tolist(), find_read_lengths(mask).tolist(), strict=True)
        return [decode_runs(decode, ids[:length], is_sampled[:length]) for ids, is_sampled, length in rows]

    def decode_texts(self, completion_ids: Tensor, mask: Tensor) -> list[str]:
        """Decode what was sampled, row by row: the pieces of :meth:`decode_pieces` joined, several times faster."""
        lengths = find_read_lengths(mask)
        rows = zip(completion_ids.tolist(), lengths.tolist(), strict=True)
        texts = self.tokenizer.backend_tokenizer.decode_batch([ids[:length] for ids, length in rows])
        # Where a character is not whole, pieces leave it out; where there are gaps, they know whose words are whose.
        has_gaps = (lengths > mask.sum(-1)).tolist()
        odd = [row for row, text in enumerate(texts) if "\ufffd" in text or has_gaps[row]]
        for row, pieces in zip(odd, self.decode_pieces(completion_ids[odd], mask[odd]), strict=True):
            texts[row] = "".join(itertools.compress(pieces, mask[row].tolist()))
        return texts

    @contextlib.contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """Evaluate in eval mode and restore the mode after."""
        training = self.lm.training
        self.lm.eval()
        try:
            yield
        finally:
            self.lm.train(training)

    @contextlib.contextmanager
    def merge_adapter(self, largest: int | None = None) -> Iterator[None]:
        """Merge the adapter into the weights meanwhile: the same policy but for rounding, in fewer operations.

        Where gradients are enabled, they go through the sums. The weights come back bit for bit, for nothing is
        subtracted: the sums lie beside them, in as much memory as the adapted weights take.

        Args:
            largest: Number of weights above which a layer stays as it is; all are merged if None.

        Raises:
            ValueError: weights that are not float32; rounded to their precision, the sums would be another policy.

        """
        from peft.tuners.lora import LoraLayer  # noqa: PLC0415

        lora_layers: list[Any] = [module for module in self.lm.modules() if isinstance(module, LoraLayer)]
        layers = [layer for layer in lora_layers if not largest or layer.get_base_layer().weight.numel() <= largest]
        bases = [layer.get_base_layer() for layer in layers]
        originals = [base.weight for base in bases]
        if odd := {weight.dtype for weight in originals} - {torch.float32}:
            raise ValueError(
                f"An adapter is merged into float32 weights only, got {odd.pop()}. Sample without merging."
            )
        try:
            for layer, base, weight in zip(layers, bases, originals, strict=True):
                base._parameters["weight"] = weight + layer.get_delta_weight("default")  # has a graph: no Parameter
                layer.merged_adapters.append("default")
            yield
        finally:
            for layer, base, weight in zip(layers, bases, originals, strict=True):
                base._parameters["weight"] = weight
                layer.merged_adapters.clear()

    def merge_for_gradients(self) -> contextlib.AbstractContextManager[None]:
        """Use as few operations for the gradient as sizes and precision allow."""
        is_rounded = self.dtype != "float32" or self.quantization or torch.is_autocast_enabled(self.device.type)
        return contextlib.nullcontext() if is_rounded or self.is_sharded else self.merge_adapter(MAX_MERGED_WEIGHTS)

    def create_adapter(self, noise: torch.Generator) -> list[Tensor]:
        """Return the factors A and B of a fresh adapter of the same shape, layer by layer; it changes nothing yet.

        Args:
            noise: Source of the factors A, on the CPU.

        """
        factors = []
        for factor_a, factor_b in self._adapter_factors():
            reach = factor_a.weight.shape[1] ** -0.5  # as PEFT draws them
            values = reach * (2 * torch.rand(factor_a.weight.shape, generator=noise) - 1)
            factors += [values.to(factor_a.weight), torch.zeros_like(factor_b.weight)]
        return factors

    def copy_adapter(self) -> dict[str, Tensor]:
        """Return copies of the adapter's weights by name, in the order in which :meth:`use_adapter` takes factors."""
        return {name: weight.detach().clone() for name, weight in self.named_parameters() if weight.requires_grad}

    @contextlib.contextmanager
    def use_adapter(self, factors: Sequence[Tensor]) -> Iterator[None]:
        """Act with another adapter meanwhile; gradients go to its factors.

        Args:
            factors: Factors A and B, layer by layer, as :meth:`create_adapter` returns them.

        """
        layers = [layer for pair in self._adapter_factors() for layer in pair]
        originals = [layer.weight for layer in layers]
        try:
            for layer, factor in zip(layers, factors, strict=True):
                vars(layer)["_parameters"]["weight"] = factor  # may be no Parameter
            yield
        finally:
            for layer, weight in zip(layers, originals, strict=True):
                vars(layer)["_parameters"]["weight"] = weight

    def adapted_sizes(self) -> list[int]:
        """Return the number of weights of each layer that has an adapter."""
        return [len(b.weight) * a.weight.shape[1] for a, b in self._adapter_factors()]

    def _adapter_factors(self) -> list[tuple[nn.Linear, nn.Linear]]:
        """Return the layers of the adapter's factors A and B."""
        from peft.tuners.lora import LoraLayer  # noqa: PLC0415

        lora_layers = [module for module in self.lm.modules() if isinstance(module, LoraLayer)]
        return [(layer.lora_A["default"], layer.lora_B["default"]) for layer in lora_layers]  # pyright: ignore[reportReturnType]

    @contextlib.contextmanager
    def disable_adapter(self) -> Iterator[None]:
        """Act as the frozen reference policy."""
        with self.lm.disable_adapter():
            yield

    def save_tokenizer(self, folder: str | Path) -> None:
        """Save the tokenizer as it was loaded, without the padding settings of its last batch."""
        load_tokenizer(self.location).save_pretrained(str(folder))

    def save_adapter(self, folder: str | Path) -> None:
        """Save the adapter in PEFT's format, for ``PeftModel.from_pretrained``."""
        for config in self.lm.peft_config.values():
            if isinstance(config.target_modules, set):
                config.target_modules = sorted(config.target_modules)  # a set has another order in every process
        self.lm.save_pretrained(str(folder), safe_serialization=True)
