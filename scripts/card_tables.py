"""Tables of how-to pages about one card: what fits at a time, and the seconds of a step, both by calculation."""

from pathlib import Path
from typing import Any

import torch

from rlcredit.config.strict_yaml import read_yaml
from rlcredit.pages.tables import Table
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.memory import (
    TRAINED_BYTES,
    MemoryForecast,
    PassSize,
    WeightHolding,
    estimate_update_cost,
    forecast_memory,
    weight_bytes,
)
from rlcredit.policy.packed_forward import find_packing_obstacle
from rlcredit.policy.policy_sizes import find_policy_sizes, read_policy_config
from rlcredit.preflight.memory import ASSUMED_PROMPT_TOKENS, LIBRARY_BYTES, format_bytes
from rlcredit.preflight.time import forecast_seconds, format_range
from rlcredit.training.micro_batches import USABLE_SHARES, MicroBatches

CONFIG_FOLDER = Path(__file__).parents[1] / "configs"

CARD_ROOMS = {"24 GB": 23 * 2**30, "80 GB": 79 * 2**30, "141 GB": 139 * 2**30}
"""Bytes that torch finds on cards of these sizes."""

ROW_COUNTS = (256, 128, 64, 32, 16, 8, 4, 2, 1)
"""Numbers of completions at a time that are tried."""

ONE_CARD_MODELS = ("qwen2.5_0.5b", "qwen2.5_1.5b", "qwen3_4b")
"""Files of ``configs/models`` on the page about one card."""

ONE_CARD_NAME = "NVIDIA H100 80GB HBM3"
"""Card of that page."""

EVALUATION_BATCHES = 3 * 512 // 64
"""Batches of 64 questions x 2 completions before, amid and after the 100 steps of ``base.yaml``."""


def render_card_sizes() -> str:
    """Return the completions that fit at a time, for every model that is trained with ``base.yaml``."""
    rows = []
    for name in sorted(path.stem for path in (CONFIG_FOLDER / "models").glob("*.yaml") if path.stem != "smollm2_135m"):
        settings, shape, tokens = read_model(name)
        fixed_bytes = forecast_decoding(settings, shape, tokens, 1).weights + LIBRARY_BYTES["cuda"]
        cells = [describe_fit(settings, shape, tokens, room) for room in CARD_ROOMS.values()]
        rows.append((f"`{name}`", f"{tokens:,}", format_bytes(fixed_bytes), *cells))
    return Table(("file", "tokens", "weights, adapter, libraries", *CARD_ROOMS), rows).to_markdown()


def render_card_times() -> str:
    """Return the forecast seconds of a step, hours of a run and memory for the page about one card."""
    rows = []
    for name in ONE_CARD_MODELS:
        settings, shape, tokens = read_model(name)
        step = forecast_seconds(shape, ONE_CARD_NAME, 16, 256, tokens)
        batch = forecast_seconds(shape, ONE_CARD_NAME, 64, 128, tokens)["rollout"]
        hours = [
            (100 * (rollout + update) + EVALUATION_BATCHES * answering) / 3600
            for rollout, update, answering in zip(step["rollout"], step["update"], batch, strict=True)
        ]
        fits = describe_fit(settings, shape, tokens, CARD_ROOMS["80 GB"])
        rows.append((f"`{name}`", *map(format_range, (step["rollout"], step["update"], hours)), *fits.split(", ")))
    return Table(
        ("file", "rollout, s", "update, s", "100 steps, h", "completions decoded together", "micro-batch, tokens"), rows
    ).to_markdown()


def read_model(name: str) -> tuple[dict[str, Any], DecoderArchitecture, int]:
    """Return the policy's settings in a file of ``configs/models``, its architecture, and tokens of a completion."""
    content = read_yaml(CONFIG_FOLDER / "models" / f"{name}.yaml")["model"]
    sampling = read_yaml(CONFIG_FOLDER / "base.yaml")["model"]["sampling"] | content.get("sampling", {})
    sizes = find_policy_sizes(content["policy"]["path"])
    assert sizes is not None
    assert sizes.architecture is not None
    return content["policy"], sizes.architecture, sampling["max_tokens"]


def forecast_decoding(settings: dict[str, Any], shape: DecoderArchitecture, tokens: int, rows: int) -> MemoryForecast:
    """Return the memory of decoding some completions at a time, 16 to a prompt."""
    size = PassSize(-(-rows // 16), ASSUMED_PROMPT_TOKENS, rows, tokens)
    adapter = count_adapter_weights(settings, shape) * TRAINED_BYTES
    holding = WeightHolding(settings["dtype"], settings.get("quantization"))
    return forecast_memory(shape, holding, adapter, [size], kind="cuda")


def count_adapter_weights(settings: dict[str, Any], shape: DecoderArchitecture) -> int:
    """Return the number of weights of the adapter."""
    rank = settings["lora"]["rank"]
    return sum(rank * (layer.in_features + layer.out_features) for layer in shape.adaptable_layers().values())


def describe_fit(settings: dict[str, Any], shape: DecoderArchitecture, tokens: int, room: int) -> str:
    """Return the completions decoded at a time and the tokens of a micro-batch that fit; a dash if one does not."""
    forecasts = {rows: forecast_decoding(settings, shape, tokens, rows) for rows in ROW_COUNTS}
    fitting_rows = [rows for rows, forecast in forecasts.items() if forecast.peak + LIBRARY_BYTES["cuda"] <= room]
    size, quantization = PassSize(16, ASSUMED_PROMPT_TOKENS, 256, tokens), settings.get("quantization")
    config = read_policy_config(settings["path"])
    is_packed = find_packing_obstacle(config, settings["dtype"], quantization, torch.bfloat16) is None
    rank = settings["lora"]["rank"]
    cost = estimate_update_cost(shape, settings["dtype"], size, rank=rank, is_packed=is_packed, is_mixed=True)
    weights = int(weight_bytes(shape, WeightHolding(settings["dtype"], quantization)))
    free_bytes = USABLE_SHARES["cuda"] * room - weights - 12 * count_adapter_weights(settings, shape)
    step_tokens = 16 * ASSUMED_PROMPT_TOKENS + 256 * tokens if is_packed else size.keys
    part = MicroBatches().choose_part(cost, step_tokens, free_bytes, is_separate=True)
    return f"{fitting_rows[0]}, {part.tokens:,}" if fitting_rows and part.tokens > tokens else "-"
