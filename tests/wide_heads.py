"""Write a twin of the embedded policy that vLLM can decode: its heads are twice as wide, half of each is zero.

python -m tests.wide_heads --out policies/tiny_wide

vLLM has no attention kernel for heads of 16. The twin computes the same log-probabilities.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.policy.policy import Policy


def save_with_wide_heads(source: str | Path, folder: str | Path) -> tuple[Any, Any]:
    """Write a model whose heads are twice as wide, half of each zero, and whose logits are the same.

    Args:
        source: Folder of a model of the Qwen3 kind.
        folder: Folder that is written.

    Returns:
        The model and its twin.

    """
    model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    narrow = model.config.head_dim
    model.config.head_dim = 2 * narrow
    twin = type(model)(model.config)
    # Pair i of a rotary embedding turns as fast as pair 2i of one twice as wide.
    place = torch.arange(0, narrow, 2).repeat(2) + torch.tensor([0, narrow]).repeat_interleave(narrow // 2)
    state = model.state_dict()
    for name, weight in state.items():
        if any(f".{kind}_proj." in name for kind in "qkv"):
            wide = weight.new_zeros(len(weight) // narrow, 2 * narrow, weight.shape[1])
            wide[:, place] = weight.view(-1, narrow, weight.shape[1])
            state[name] = wide.flatten(0, 1)
        elif ".o_proj." in name:
            wide = weight.new_zeros(len(weight), weight.shape[1] // narrow, 2 * narrow)
            wide[:, :, place] = weight.view(len(weight), -1, narrow)
            state[name] = wide.flatten(1)
        elif "q_norm" in name or "k_norm" in name:
            # Half of what is averaged is zero, for both; and scores are divided by the root of the width.
            wide = weight.new_ones(2 * narrow)
            wide[place] = weight * (0.5**0.5 if "k_norm" in name else 1.0)
            state[name] = wide
    twin.load_state_dict(state)
    twin.generation_config = model.generation_config
    twin.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return model, twin


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("policies/tiny_wide"), help="folder to be made")
    args = parser.parse_args()
    silence_libraries()
    save_with_wide_heads(Policy().location, args.out)
    print(f"{args.out}: rlcredit reads it with --model.policy.path {args.out}")


if __name__ == "__main__":
    main()
