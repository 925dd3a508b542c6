"""The card of a trained adapter: what it was made from, how, and how it is loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcredit.loading import find_embedded_policy

NAME = "README.md"

SHOWN = ("stack", "loss", "task", "optimizer", "completions", "max_tokens", "temperature")
"""Parameters of a run that the card names."""

CARD = """---
{header}
---

# {name}

A LoRA adapter trained with rlcredit by reinforcement learning with verifiable rewards.

| | |
|---|---|
{rows}

The tokenizer beside it is the base model's, with the padding that training used.

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "path/of/this/folder"
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained({base!r}), folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
```

The policy that was trained is the one sampled at temperature {temperature}, without top-p or top-k.

Licence: an adapter changes weights of its base model, whose licence says how both may be used.
"""


def render_adapter_card(
    name: str, path: str, location: str, step: int, parameters: Mapping[str, Any], versions: Mapping[str, str]
) -> str:
    """Return the card in Markdown.

    Args:
        name: of the run.
        path: of the base model, as configured.
        location: where its weights lie.
        step: optimizer steps taken.
        parameters: of the run.
        versions: of the code.

    """
    header = ["library_name: peft", "tags: [lora, reinforcement-learning, rlcredit]"]
    if not find_embedded_policy(path) and not Path(path).exists():  # of a hub
        header.insert(1, f"base_model: {path}")
    base = f"`{path}`, embedded in rlcredit" if find_embedded_policy(path) else f"`{path}`"
    made = ", ".join(f"{key.removeprefix('version.')} {value}" for key, value in versions.items())
    facts = {"base": base, "run": name, "steps": step, **{key: parameters.get(key) for key in SHOWN}, "made with": made}
    rows = "\n".join(f"| {key} | {str(value).replace('|', chr(92) + '|')} |" for key, value in facts.items())
    return CARD.format(
        header="\n".join(header), name=name, rows=rows, base=location, temperature=parameters.get("temperature")
    )
