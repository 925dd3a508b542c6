"""Calculate the seconds that an update would take on a card: products, bytes, attention and launches. Nothing is run.

python -m studies.one_card.project_update

The efficiencies of :data:`ASSUMED_RATES` are assumptions, and bytes and operations of a layer were counted on a CPU
from a prototype whose rows are packed without padding. Writes ``results/projected_update.csv``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import print_columns
from model_shapes import PUBLISHED_SHAPES

from rlcredit.policy.architecture import parse_architecture
from studies.csv_rows import write_csv_rows

RESULTS = Path(__file__).parent / "results" / "projected_update.csv"
PEAK_OPERATIONS = 781e12
"""Operations a second of a product of two matrices of 8,192 rows in bfloat16, as measured on an H100."""
ASSUMED_RATES = {"bytes": 3.0e12, "launch": 5e-6}
"""Bytes a second, and seconds of a launch."""
LORA_RANK = 64
CHUNK_BYTES = 2**30
"""Bytes of the logits that are computed at a time."""
FIXED_SECONDS = 0.05
"""Seconds of an update that belong to nothing else."""
LAYER_OPERATIONS = {"forward": 28, "backward": 54}
"""Operations of a layer in each pass."""


@dataclass(frozen=True)
class ProjectedUpdate:
    """An update of 256 completions with 16 prompts of 64 tokens.

    Args:
        shape: One of :data:`~model_shapes.PUBLISHED_SHAPES`.
        length: Tokens of a completion.
        query_width: Width of the queries of all heads.
        product_share: Share of the peak that products of a layer reach.
        head_share: Share of the peak that products of the head reach.
        attention_rate: Operations a second of attention.
        forward_bytes: Bytes a token and layer that are no products, forwards.
        backward_bytes: The same backwards.

    """

    shape: str
    length: int
    query_width: int
    product_share: float
    head_share: float
    attention_rate: float
    forward_bytes: float
    backward_bytes: float

    def project(self, block: int, is_recomputed: bool, traffic: float, head_bytes: int) -> tuple[float, float]:
        """Return seconds, and seconds over the least that the weights need.

        Args:
            block: Tokens that are computed at a time.
            is_recomputed: Whether each layer is computed again in the backward pass.
            traffic: Share of the bytes that is left, of those that are no products.
            head_bytes: Bytes moved for each logit.

        """
        architecture = parse_architecture(PUBLISHED_SHAPES[self.shape])
        assert architecture is not None
        width, layers, vocabulary = architecture.hidden, architecture.layers, architecture.vocabulary
        scored = 256 * self.length
        tokens, repeats = scored + 16 * 64, int(is_recomputed)
        weights = architecture.linear_parameters
        products = 2 * tokens * weights * (2 + repeats) / (self.product_share * PEAK_OPERATIONS)
        products += 4 * width * vocabulary * scored / (self.head_share * PEAK_OPERATIONS)
        keys = 64 + self.length / 2
        attention = 4 * keys * self.query_width * layers * tokens * (3.5 + repeats) / self.attention_rate
        key_width, inner = architecture.key_width, PUBLISHED_SHAPES[self.shape]["intermediate_size"]
        inputs = 2 * width + self.query_width + inner
        outputs = self.query_width + 2 * key_width + 2 * width + 2 * inner
        forward = 2 * inputs + 4 * outputs + self.forward_bytes * traffic
        backward = 6 * inputs + 4 * outputs + self.backward_bytes * traffic
        moved = tokens * layers * (forward * (1 + repeats) + backward) + scored * vocabulary * head_bytes
        launches = (
            -(-tokens // block) * layers * (LAYER_OPERATIONS["forward"] * (1 + repeats) + LAYER_OPERATIONS["backward"])
        )
        launches += 30 * scored * 4 * vocabulary / CHUNK_BYTES
        device = products + attention + moved / ASSUMED_RATES["bytes"]
        seconds = max(device, launches * ASSUMED_RATES["launch"]) + FIXED_SECONDS
        least = 4 * (weights + width * vocabulary) * tokens / PEAK_OPERATIONS
        return seconds, least / seconds


SMALL = ProjectedUpdate("smollm2_135m", 1024, 576, 0.55, 0.7, 250e12, 46_070, 124_033)
LARGE = ProjectedUpdate("qwen3_4b", 512, 4096, 0.75, 0.75, 350e12, 6 * 46_070, 6 * 124_033)
"""The traffic of the larger shape is that of the smaller one times six, by their widths; it was not counted."""
PROJECTED_PATHS = {
    "packed, layers computed again": (True, 1.0, 102),
    "packed, layers computed again, head in one pass": (True, 1.0, 10),
    "packed, layers computed again and compiled, head in one pass": (True, 0.5, 10),
    "packed, graph kept, head in one pass": (False, 1.0, 10),
    "packed, graph kept, layers compiled, head in one pass": (False, 0.5, 10),
}
"""Ways to compute an update: whether layers are computed again, share of the traffic, bytes of a logit."""


def list_projections() -> list[dict[str, Any]]:
    """Return a row for each shape and way."""
    rows = []
    for update in (SMALL, LARGE):
        for name, (is_recomputed, traffic, head_bytes) in PROJECTED_PATHS.items():
            block = 65_536 if update is SMALL else 32_768 if is_recomputed else 8_192
            seconds, share = update.project(block, is_recomputed, traffic, head_bytes)
            rows.append({"shape": update.shape, "path": name, "seconds": f"{seconds:.2f}", "share": f"{share:.3f}"})
    return rows


def main() -> None:
    """Write and print all rows."""
    rows = list_projections()
    write_csv_rows(RESULTS, rows)
    print_columns(rows)


if __name__ == "__main__":
    main()
