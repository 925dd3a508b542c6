"""What would fail, or be another policy, when the weights are read: found out without reading them."""

from pathlib import Path
from typing import Any

from rlcredit.inputs.strict_yaml import shown
from rlcredit.policy import Policy

SCALES = ("logits_scaling", "logit_scale", "lm_head_multiplier")
"""Under which names models keep a factor of their logits: Granite, Cohere, Falcon-H1."""

CAPS = ("final_logit_softcapping", "logits_soft_cap")
"""Under which names models keep a bound of their logits: Gemma, RecurrentGemma."""


HERE = ("policies/", "./", "../", "/", "~")
"""With what a path begins that is meant to be a folder; the id of a hub repository has one slash and none of these."""

MADE_BY = {
    "policies/smollm2": "python scripts/fetch_smollm2.py --out policies/smollm2",
    "policies/long_chains": "python scripts/pretrain_tiny.py --out policies/long_chains --start rlcredit/tiny "
    "--terms 2 12 --steps 3000 --lr 1e-3",
}
"""Commands that make the folders which shipped configurations name."""


def absent(policy: Policy) -> str | None:
    """Return what is missing where a path is meant to be a folder and is none; None for all others."""
    local = policy.path.startswith(HERE) or policy.path.count("/") > 1
    if not local or Path(policy.location).exists():
        return None
    command = MADE_BY.get(policy.path)
    repair = f"Make it: {command}" if command else "Name a folder that exists, or the id of a hub repository."
    return f"there is no folder {shown(policy.path)!r} here. {repair}"


def refuse_weights(policy: Policy) -> None:
    """Refuse a folder that is not there, or has weights in a format that is not read.

    Pickles run code, and GGUF is no format for training.

    Raises:
        ValueError: with the command that makes it, or another format of it.

    """
    if missing := absent(policy):
        raise ValueError(f"model.policy.path: {missing}")
    folder = Path(policy.location)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        if any(folder.glob("*.bin")):
            load = f"AutoModelForCausalLM.from_pretrained('{folder}', dtype='auto', use_safetensors=False)"
            command = f"from transformers import AutoModelForCausalLM; {load}.save_pretrained('{folder}')"
            raise ValueError(
                f"model.policy.path: {shown(policy.path)!r} has its weights as .bin files, which may run code when "
                f'read; only safetensors are. If you trust them, save them as such: python -c "{command}"'
            )
        for file in folder.glob("*.gguf"):
            raise ValueError(_gguf(policy, file))
    if folder.is_file() and folder.suffix == ".gguf":
        raise ValueError(_gguf(policy, folder))


def _gguf(policy: Policy, file: Path) -> str:
    return (
        f"model.policy.path: {shown(policy.path)!r} has its weights as GGUF. Make a folder of them and name that: "
        f"python scripts/fetch_smollm2.py --gguf {file} --out policies/{file.stem}"
    )


def refuse_logits(policy: Policy, config: Any, model: Any) -> None:
    """Refuse a model whose logits are not its hidden states times its output embedding.

    Args:
        policy: not loaded.
        config: of transformers.
        model: built from it, without weights.

    Raises:
        ValueError: with what they are scaled or capped by.

    """
    text, head = config.get_text_config(), model.get_output_embeddings()
    odd = {name: getattr(text, name, None) for name in (*SCALES, *CAPS)}
    found = [
        f"{name} is {value:g}" for name, value in odd.items() if value is not None and (value != 1 or name in CAPS)
    ]
    if getattr(head, "bias", None) is not None:
        found.append("its output embedding has a bias")
    if found:
        raise ValueError(
            f"model.policy.path: {shown(policy.path)!r} scales, caps or biases its logits ({', '.join(found)}). Scores "
            "are taken from hidden states times the output embedding, which would be another policy. Use a model "
            "without, as those of the Llama, Qwen2 and Qwen3 families."
        )
