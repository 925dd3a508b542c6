"""Tables of how-to pages about one card: what fits at a time, and the seconds of a step, both by calculation."""

from pathlib import Path
from typing import Any

from rlcredit.config.strict_yaml import read_yaml
from rlcredit.pages.tables import Table
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.memory import TRAINED_BYTES, PassSize, WeightHolding, forecast_memory
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight.memory import ASSUMED_PROMPT_TOKENS, LIBRARY_BYTES, format_bytes
from rlcredit.preflight.time import forecast_seconds, format_range

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
        fixed_bytes = forecast_part(settings, shape, tokens, 1, "decoding").weights + LIBRARY_BYTES["cuda"]
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
        rows.append(
            (f"`{name}`", format_range(step["rollout"]), format_range(step["update"]), format_range(hours), fits)
        )
    return Table(("file", "rollout, s", "update, s", "100 steps, h", "at a time"), rows).to_markdown()


def read_model(name: str) -> tuple[dict[str, Any], DecoderArchitecture, int]:
    """Return the policy's settings in a file of ``configs/models``, its architecture, and tokens of a completion."""
    content = read_yaml(CONFIG_FOLDER / "models" / f"{name}.yaml")["model"]
    sampling = read_yaml(CONFIG_FOLDER / "base.yaml")["model"]["sampling"] | content.get("sampling", {})
    sizes = find_policy_sizes(content["policy"]["path"])
    assert sizes is not None
    assert sizes.architecture is not None
    return content["policy"], sizes.architecture, sampling["max_tokens"]


def forecast_part(settings: dict[str, Any], shape: DecoderArchitecture, tokens: int, rows: int, part: str) -> Any:
    """Return the memory of ``decoding`` or of an ``update`` with some completions at a time, a prompt for each 16."""
    prompts = -(-rows // 16)
    single = PassSize(1, ASSUMED_PROMPT_TOKENS, 1, tokens)
    size = PassSize(prompts, ASSUMED_PROMPT_TOKENS, rows, tokens)
    rank = settings["lora"]["rank"]
    adapter = sum(rank * (layer.in_features + layer.out_features) for layer in shape.adaptable_layers().values())
    return forecast_memory(
        shape,
        WeightHolding(settings["dtype"], settings.get("quantization")),
        adapter * TRAINED_BYTES,
        [single if part == "update" else size],
        size if part == "update" else None,
        is_mixed=True,
    )


def describe_fit(settings: dict[str, Any], shape: DecoderArchitecture, tokens: int, room: int) -> str:
    """Return the most completions that fit at a time, while decoding and in the update; a dash if none does."""
    counts = [
        next(
            (
                rows
                for rows in ROW_COUNTS
                if forecast_part(settings, shape, tokens, rows, part).peak + LIBRARY_BYTES["cuda"] <= room
            ),
            0,
        )
        for part in ("decoding", "update")
    ]
    return f"{counts[0]}, {counts[1]}" if all(counts) else "-"
