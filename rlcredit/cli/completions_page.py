"""Completions as one self-contained HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.cli.sampled_completions import Completion
from rlcredit.pages.page_template import load_page_template

_PAGE_TEMPLATE = Path(__file__).with_suffix(".html")


def render_completions_page(title: str, about: str, prompts: Sequence[tuple[str, Sequence[Completion]]]) -> str:
    """Return a page with tokens coloured by entropy or surprisal; pointing at a token shows its numbers.

    Args:
        title: Title of the page.
        about: Policy, temperature and the like, in one line.
        prompts: Prompts as the model reads them, each with its completions.

    """
    groups = [
        {"prompt": prompt, "completions": [_serialise_completion(completion) for completion in answers]}
        for prompt, answers in prompts
    ]
    return load_page_template(_PAGE_TEMPLATE).render(content={"title": title, "about": about, "groups": groups})


def _serialise_completion(completion: Completion) -> dict[str, Any]:
    return {
        "tokens": completion.tokens,
        "logprobs": [round(value, 4) for value in completion.logprobs],
        "entropy": [round(value, 4) for value in completion.entropy],
        "truncated": completion.truncated,
        "verdict": completion.verdict and completion.verdict.value,
        "answer": completion.answer,
        "reference": completion.reference,
        **({"turns": [block._asdict() for block in completion.turns]} if completion.turns else {}),
    }
