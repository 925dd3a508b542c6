"""Credit as colour: every token of some completions, before and after every operator, in one page."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcredit.credit.rollout import Decode, Rollout, evenly_spaced_rows
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.uncertainty import surprisal
from rlcredit.pages.notebook_views import InlinePage

HEATMAP_TEMPLATE = Path(__file__).with_suffix(".html")
"""Template of the page."""


def credit_heatmap(
    rollout: Rollout,
    advantages: Tensor | Mapping[str, Tensor] | None = None,
    *,
    completions: int = 8,
    decode: Decode | None = None,
    run: str = "",
) -> InlinePage:
    """Return a page on which the tokens of some completions are coloured by their credit.

    A notebook shows the page, which loads nothing; its method ``save`` writes it. Every token stands above one tick for
    each ledger, and for entropy, surprisal and the planning mask where these are known.

    Args:
        rollout: Rollout from a stack, from a bridge (``stack.rollout``), from :meth:`Rollout.load`, or of tensors.
        advantages: Credit to show, shape ``(B, T)``, or ``(B,)`` where all tokens of a completion have the same;
            several ledgers by name to compare them. What the operators of the rollout have written if None.
        completions: Number of completions, taken evenly from those that have tokens.
        decode: Function from token ids to the text of each, where the rollout has no texts; ids are shown without.
        run: Name of its run, for the title.

    Raises:
        ValueError: advantages have another shape than the mask, or are not finite at a sampled token.

    Example:
        >>> ids = torch.tensor([[5, 6], [7, 8]])
        >>> known = {"old_logprobs": torch.zeros(2, 2), "entropy": torch.zeros(2, 2), "tokens": [[], []]}
        >>> rollout = Rollout(0, 2, ids[:, :0], ids, ids > 0, correct=torch.tensor([1.0, 0.0]), **known)
        >>> page = credit_heatmap(rollout, {"flat": torch.tensor([0.5, -0.5]), "mine": torch.ones(2, 2)})
        >>> page.startswith("<!doctype html>"), '"tokens": ["5 ", "6 "]' in page
        (True, True)

    """
    if advantages is not None:
        ledgers = advantages if isinstance(advantages, Mapping) else {"advantages": advantages}
        rollout = copy.copy(rollout)
        rollout.trail = tuple((name, _read_advantages(name, values, rollout.mask)) for name, values in ledgers.items())
    return draw_heatmap(collect_heatmap(rollout, completions, decode, run))


def _read_advantages(name: str, values: Tensor, mask: Tensor) -> Tensor:
    """Return advantages of every token."""
    values = values.detach().to(mask.device).float()
    if values.shape == mask.shape[:1]:
        values = values[:, None].expand(mask.shape)
    if values.shape != mask.shape:
        raise ValueError(
            f"{name} has shape {tuple(values.shape)}, expected {tuple(mask.shape)} as the mask, or one value per "
            "completion."
        )
    if not values[mask].isfinite().all():
        row, place = ((~values.isfinite()) & mask).nonzero()[0].tolist()
        raise ValueError(f"{name} is {values[row, place]:g} at row {row}, token {place}. Credit is finite.")
    return values


def draw_heatmap(content: Mapping[str, Any], *, embedded: bool = False) -> InlinePage:
    """Return the page of what :func:`collect_heatmap` returns.

    Args:
        content: What the page shows.
        embedded: Whether the page stands in another one.

    """
    from rlcredit.pages.page_template import load_page_template  # noqa: PLC0415  (credit itself needs no templates)

    return InlinePage(load_page_template(HEATMAP_TEMPLATE).render(content=content, embedded=embedded))


def collect_heatmap(
    rollout: Rollout, completions: int = 8, decode: Decode | None = None, run: str = ""
) -> dict[str, Any]:
    """Return the content of the page in types of JSON; arguments as for :func:`credit_heatmap`."""
    signals = _list_signals(rollout)
    trail = rollout.trail
    if not trail and ("advantages" not in rollout.unwritten or not signals):
        trail = (("advantages", rollout.advantages),)
    rows, layers, errors = _choose_rows(rollout, completions), [], None
    panels: list[tuple[str, Tensor, bool]] = [(label, ledger[rows], True) for label, ledger in trail]
    if rollout.truth is not None:
        errors = rollout.truth.spread_units(rollout.truth.error)[: len(rows)]
        panels.append(("true credit", rollout.truth.spread_units(rollout.truth.credit)[: len(rows)], True))
    panels += [(name, values[rows], False) for name, values in signals.items()]
    mask, credit = rollout.mask[rows].cpu(), [ledger[rows][rollout.mask[rows]] for _, ledger in trail]
    for number, (name, values, has_sign) in enumerate(panels):
        scale = colour_scale(torch.cat(credit) if number < len(credit) else values.cpu()[mask])
        layers.append({"name": name, "signed": has_sign, "scale": scale, "errors": name == "true credit"})
    return {
        "title": f"{run}: credit at step {rollout.step}" if run else f"Credit at step {rollout.step}",
        "stack": " \u2192 ".join(label for label, _ in trail) or "verdicts as credit",
        "layers": layers,
        "shown": max(len(credit) - 1, 0),
        "rows": [_describe_completion(rollout, row, place, panels, errors, decode) for place, row in enumerate(rows)],
    }


def _list_signals(rollout: Rollout) -> dict[str, Tensor]:
    """Return the signals of every token beside its credit, by name."""
    signals = {"entropy": rollout.entropy} if rollout.has_fact("entropy") else {}
    signals |= {"surprisal": surprisal(rollout.old_logprobs)} if rollout.has_fact("old_logprobs") else {}
    return signals | ({"planning": rollout.plan_mask.float()} if rollout.plan_mask.any() else {})


def _choose_rows(rollout: Rollout, completions: int) -> list[int]:
    """Choose completions: those whose true credit is known, or some that have tokens, at equal distances."""
    if rollout.truth is not None:
        return list(rollout.truth.rows[:completions])
    candidates = rollout.mask.any(-1).nonzero().squeeze(-1).tolist()
    return [candidates[place] for place in evenly_spaced_rows(len(candidates), completions)] if candidates else []


def _describe_completion(
    rollout: Rollout,
    row: int,
    place: int,
    panels: Sequence[tuple[str, Tensor, bool]],
    errors: Tensor | None,
    decode: Decode | None,
) -> dict[str, Any]:
    """Return one completion with the values of every layer."""
    mask, has_verdict = rollout.mask[row].cpu(), bool(rollout.judged[row])
    record: dict[str, Any] = {
        "prompt": _find_prompt_text(rollout, row, decode),
        "tokens": rollout.list_texts(row, decode),
        "correct": rollout.correct[row].item() if has_verdict else None,
        "reward": rollout.rewards[row].item() if has_verdict else None,
        "values": [[round(v, 4) for v in values[place].cpu()[mask].tolist()] for _, values, _ in panels],
        "alternatives": list_alternatives(rollout, row),
        "continuations": list_continuations(rollout, row),
    }
    if explanation := _explain_absent_credit(rollout, row):
        record["absent"] = explanation
    if blocks := rollout.list_blocks(row, decode):
        record["turns"] = [block._asdict() for block in blocks]
    if errors is not None:
        record["errors"] = [round(e, 4) for e in errors[place].cpu()[mask[: errors.shape[1]]].tolist()]
    return record


def _explain_absent_credit(rollout: Rollout, row: int) -> str:
    """Return why a completion has no credit at all, where its group has equal rewards; empty elsewhere."""
    start = row - row % rollout.group_size
    rewards = rollout.rewards[start : start + rollout.group_size]
    ledger = rollout.trail[-1][1] if rollout.trail else rollout.advantages
    is_idle = rollout.group_size > 1 and bool((rewards == rewards[0]).all()) and not ledger[row].any()
    return "no credit: rewards of its group are equal" if is_idle else ""


def _find_prompt_text(rollout: Rollout, row: int, decode: Decode | None) -> str:
    """Return the prompt of a completion, its number where nobody knows its text."""
    number = row // rollout.group_size
    if rollout.sources:
        return rollout.sources[number][1].text
    ids = rollout.prompt_ids[row]
    text = "".join(decode(ids[ids >= 0].tolist())) if decode is not None and len(ids) else ""
    return text or f"prompt {number + 1}"


def colour_scale(values: Tensor) -> float:
    """Return the size at which a colour is full: the quantile 0.98 of sizes, or the largest where that is zero."""
    sizes = values.abs().double()
    return torch.quantile(sizes, 0.98).item() or sizes.max().item() or 1.0


def list_alternatives(rollout: Rollout, row: int) -> dict[int, list[tuple[str, float, float]]]:
    """Return text, probability and credit of the tokens that have credit without being sampled, by sampled token."""
    entries: dict[int, list[tuple[str, float, float]]] = {}
    if rollout.alternatives is not None:
        options = rollout.alternatives.keep(rollout.alternatives.rows == row)
        tokens, weights = options.tokens, options.weights.tolist()
        texts = rollout.lookahead.decode_tokens(tokens) if rollout.lookahead else map(str, tokens.tolist())
        places, probabilities = _number_sampled(rollout, row, options.places), options.logprobs.exp().tolist()
        numbers = zip(places, texts, probabilities, weights, strict=True)
        for place, text, probability, weight in numbers:
            entries.setdefault(place, []).append((text, round(probability, 4), round(weight, 4)))
    return entries


def list_continuations(rollout: Rollout, row: int) -> dict[int, list[tuple[int, float]]]:
    """Return length and mean credit of the continuations that leave a completion, by sampled token."""
    entries: dict[int, list[tuple[int, float]]] = {}
    if rollout.continuations is not None:
        branches = rollout.continuations.keep(rollout.continuations.rows == row)
        credit = masked_mean(branches.credit, branches.mask, dim=-1)
        lengths = branches.mask.sum(-1).tolist()
        places = _number_sampled(rollout, row, branches.places)
        for place, length, mean in zip(places, lengths, credit.tolist(), strict=True):
            entries.setdefault(place, []).append((length, round(mean, 4)))
    return entries


def _number_sampled(rollout: Rollout, row: int, places: Tensor) -> list[int]:
    """Return the number of sampled tokens that a row has before each of some places."""
    return (rollout.mask[row].cumsum(0) - 1)[places].tolist()
