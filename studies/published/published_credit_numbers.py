"""Worked numbers of the page on published credit: what an equation gives, and what the released code gives.

Every pair of functions takes one small example: ``NAME_equation`` is the paper's form, ``NAME_code`` that of the
repository and commit which the page names. Where an operator here has the form, its own formula is called.
"""

from typing import Any

import torch
from docs.numbers import require_claim
from torch import Tensor

from callbacks.dense.canonical_gtpo import canonical_gtpo_advantages
from callbacks.dense.tempo import tempo_advantages
from callbacks.episode.grpo import grpo_advantages
from callbacks.tokens.conflict_mask import conflict_weights, leading_conflicts
from callbacks.tokens.gtpo import gtpo_weights
from rlcredit.formulas.contingency_tables import fisher_p_values, information_gain, key_token_values
from rlcredit.formulas.groups import leave_one_out_deviations
from rlcredit.formulas.prefixes import companion_sums, prefix_values, shared_token_mask
from rlcredit.formulas.segments import segment_differences
from rlcredit.formulas.value_estimates import process_returns


def whitened(values: Tensor) -> Tensor:
    """Values less their mean, divided by their unbiased deviation."""
    return (values - values.mean()) / values.std()


def reverse_sums(rewards: Tensor) -> Tensor:
    """Sum of the rewards from each token on, shape ``(B, T)``."""
    return rewards.flip(1).cumsum(1).flip(1)


def vineppo_equation(values: Tensor) -> Tensor:
    """Difference of the values around each step of one token; ``values`` ends with the reward, shape ``(B, T + 1)``."""
    whole = torch.ones_like(values[:, 1:], dtype=torch.bool)
    return segment_differences(values, whole, whole)


def vineppo_code(values: Tensor) -> Tensor:
    """The differences of the equation, whitened over all tokens of the batch."""
    return whitened(vineppo_equation(values))


def prime_equation(ratios: Tensor, beta: float) -> Tensor:
    """Process returns of one group; ``ratios`` are log-ratios of the reward model to its reference, ``(G, T)``."""
    whole = torch.ones_like(ratios, dtype=torch.bool)
    return process_returns(beta * ratios, whole, whole[:, 0], len(ratios))


def prime_code(ratios: Tensor) -> Tensor:
    """Returns before whitening: log-ratios over the largest return, times G / (G - 1), less the group's means."""
    size = len(ratios)
    rewards = ratios / (reverse_sums(ratios).abs().max() + 1e-6)
    return reverse_sums(rewards * size / (size - 1) - rewards.mean(1).sum() / (size - 1))


def ktae_code(table: Tensor, uses: Tensor, tokens: Tensor) -> Tensor:
    """Value of a token with both weights one, as `key_token_values` has it, shape ``(N,)``."""
    return key_token_values(table, uses, tokens, frequency=1.0)


def ktae_equation(table: Tensor, uses: Tensor, tokens: Tensor, gain_weight: float) -> Tensor:
    """Value of a token with the information gain weighted as the launch scripts ask, shape ``(N,)``."""
    fisher, gain = (-2 * fisher_p_values(table)).exp(), information_gain(table)
    direction = 4 * ktae_code(table, uses, tokens).atanh() / (fisher + gain)
    return (direction * (fisher + gain_weight * gain) / (2 * (1 + gain_weight))).tanh()


def spo_tree_edges(leaves: Tensor) -> Tensor:
    """Credit of every edge of a tree of two levels, the upper ones first; ``leaves`` is ``(children, leaves)``."""
    children = leaves.mean(-1)
    return torch.cat([children - children.mean(), (leaves - children[:, None]).flatten()])


def treerl_equation(trees: Tensor) -> tuple[Tensor, Tensor]:
    """Credit of the prefixes and of the leaves behind one fork in each tree, from rewards of shape ``(M, leaves)``."""
    values, root = trees.mean(-1), trees.mean()
    prefixes = 2 * (values - root) / trees.shape[1] ** 0.5
    return prefixes, (trees - root) + (trees - values[:, None])


def treerl_code(trees: Tensor) -> tuple[Tensor, Tensor]:
    """The same with leave-one-out rewards, and values divided by the root of their leaves before the difference."""
    centred = leave_one_out_deviations(trees.flatten(), trees.numel()).view(trees.shape)
    values = centred.mean(-1) / trees.shape[1] ** 0.5
    return 2 * values, centred - values[:, None] + centred


def level_deviations(rewards: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Reward less the mean of its subgroup at each depth, and the subgroup's size, both ``(depths, B)``."""
    same = levels[:, :, None] == levels[:, None, :]
    sizes = same.sum(-1)
    return rewards - (same * rewards).sum(-1) / sizes, sizes


def treepo_equation(rewards: Tensor, levels: Tensor) -> Tensor:
    """Mean of the deviations over all depths, before the division; ``levels`` numbers the subgroups of each depth."""
    deviations, _ = level_deviations(rewards, levels)
    return deviations.mean(0)


def treepo_code(rewards: Tensor, levels: Tensor) -> Tensor:
    """Mean of the deviations over the depths at which the subgroup has more than one leaf, before whitening."""
    deviations, sizes = level_deviations(rewards, levels)
    counted = sizes > 1
    return (deviations * counted).sum(0) / counted.sum(0)


def tree_grpo_equation(rewards: Tensor, leaves: int) -> Tensor:
    """Rewards standardised over all trees plus rewards standardised inside their tree of some leaves."""
    return grpo_advantages(rewards, len(rewards), True) + grpo_advantages(rewards, leaves, True)


def tree_grpo_nested(rewards: Tensor, leaves: int) -> Tensor:
    """Rewards standardised over all trees, and the result once more inside each tree."""
    return grpo_advantages(grpo_advantages(rewards, len(rewards), True), leaves, True)


def fr3e_equation(distributions: Tensor) -> Tensor:
    """Place of the largest entropy; ``distributions`` holds the next token's at each place, ``(T, V)``."""
    return torch.special.entr(distributions).sum(-1).argmax()


def fr3e_code(sampled: Tensor) -> Tensor:
    """Place of the least likely sampled token."""
    return sampled.argmin()


def fr3e_divisors(values: Tensor) -> Tensor:
    """What the advantages of each state are divided by; ``values`` are shares of right answers along a response."""
    changes = torch.cat([1 - values[:1], values.diff()])
    sizes = changes.abs() ** 1.5
    return (changes.sign() * sizes / sizes.sum()).exp()


def arpo_equation(change: float, base: float = 0.5, weight: float = 0.2, threshold: float = 0.5) -> float:
    """Probability of a branch, 0 or 1, at a change of entropy: whether base + weight x change exceeds a threshold."""
    return float(base + weight * change > threshold)


def arpo_code(change: float, base: float = 0.5, weight: float = 0.2) -> float:
    """Probability that a uniform number less weight x change does not exceed the base."""
    return min(1.0, max(0.0, base + weight * change))


def conflict_equation(advantages: Tensor, ids: Tensor) -> Tensor:
    """Mean weighted credit of each completion, conflicts with positive credit counted twice and negative not at all."""
    weights = conflict_weights(advantages, ids, ids > 0, len(ids), positive=2.0, negative=0.0)
    return (advantages * weights).mean(-1)


def conflict_code(advantages: Tensor, ids: Tensor) -> Tensor:
    """The same, divided by the longer of the completion's two runs of conflicts; no completion is padded."""
    leading = leading_conflicts(advantages.sign(), ids, len(ids)).sum(-1)
    trailing = leading_conflicts(advantages.sign().flip(1), ids.flip(1), len(ids)).sum(-1)
    return conflict_equation(advantages, ids) / torch.maximum(leading, trailing).clamp(min=1)


def sepa_gtpo(advantages: Tensor, signal: Tensor, mask: Tensor) -> Tensor:
    """Credit of the SEPA paper's GTPO: a factor from the token's surprisal, whatever the outcome, ``(B, T)``."""
    return (advantages[:, None] * gtpo_weights(signal, mask, beta=0.1)).where(mask, 0)


DIFFERING = ("vineppo", "prime", "ktae", "treerl", "fr3e", "arpo", "conflict", "treepo")
ALIKE = ("spo_tree", "tree_grpo")
"""Methods of the page whose worked numbers differ, and those for which one function is both."""

VINEPPO_VALUES = torch.tensor([[0.25, 0.25, 1.0], [0.25, 0.5, 0.0]])
PRIME_RATIOS = torch.tensor([[20.0, 60.0], [0.0, 20.0]])
KTAE_TABLE = torch.tensor([[4.0], [1.0], [1.0], [2.0]], dtype=torch.float64)
KTAE_USES = torch.tensor([[6.0], [2.0]], dtype=torch.float64)
KTAE_TOKENS = torch.tensor([[50.0], [30.0]], dtype=torch.float64)
SPO_LEAVES = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
TWO_TREES = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
TREEPO_REWARDS, TREEPO_LEVELS = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([[0, 0, 0], [0, 0, 1]])
FR3E_DISTRIBUTIONS = torch.tensor([[0.5, 0.5], [0.3, 0.7]])
FR3E_SAMPLED = torch.tensor([0.5, 0.3])
FR3E_VALUES = torch.tensor([0.5, 0.25, 0.75])
CONFLICT_CREDIT, CONFLICT_IDS = torch.tensor([[0.5] * 4, [-0.5] * 4]), torch.tensor([[1, 2, 3, 5], [1, 2, 4, 5]])
GTPO_REWARDS = torch.tensor([1.0, 1.0, 0.0, 0.0])
GTPO_ENTROPY = torch.tensor([[2.0, 4.0, 1.0], [3.0, 1.0, 0.0], [4.0, 0.5, 3.0], [0.5, 4.0, 0.0]])
GTPO_MASK = GTPO_ENTROPY > 0
TEMPO_IDS = torch.tensor([[1, 2, 3], [1, 2, 4], [1, 5, 3], [6, 2, 3]])
TEMPO_REWARDS = torch.tensor([1.0, 0.0, 0.0, 0.0])


def collect_tree_numbers() -> dict[str, Any]:
    """Return the numbers of the methods that sample a tree."""
    edges = spo_tree_edges(SPO_LEAVES)
    upper = leave_one_out_deviations(SPO_LEAVES.mean(-1), len(SPO_LEAVES))
    treerl = [
        {"prefix": prefixes[0].item(), "right": leaves[0, 0].item(), "failed": leaves[1, 0].item()}
        for prefixes, leaves in (treerl_equation(TWO_TREES), treerl_code(TWO_TREES))
    ]
    nested = tree_grpo_nested(TWO_TREES.flatten(), 2)
    require_claim(nested[2:].abs().max() == 0, "a tree of failures gets no credit from tree_2norm")
    return {
        "spo_edge": edges[0].item(),
        "spo_alone": upper.flatten()[0].item(),
        "spo_kept": int((edges != 0).sum()),
        "spo_edges": len(edges),
        "spo_full": sum(6**depth for depth in (1, 2, 3)),
        "treerl_equation": treerl[0],
        "treerl_code": treerl[1],
        "treepo_equation": treepo_equation(TREEPO_REWARDS, TREEPO_LEVELS).tolist(),
        "treepo_code": treepo_code(TREEPO_REWARDS, TREEPO_LEVELS).tolist(),
        "tree_grpo": tree_grpo_equation(TWO_TREES.flatten(), 2).tolist(),
        "tree_grpo_nested": nested.tolist(),
        "fr3e_entropies": torch.special.entr(FR3E_DISTRIBUTIONS).sum(-1).tolist(),
        "fr3e_equation": int(fr3e_equation(FR3E_DISTRIBUTIONS)) + 1,
        "fr3e_code": int(fr3e_code(FR3E_SAMPLED)) + 1,
        "fr3e_divisors": fr3e_divisors(FR3E_VALUES).tolist(),
        "arpo_equation": [arpo_equation(change) for change in (-0.05, 0.05)],
        "arpo_code": [arpo_code(change) for change in (-0.05, 0.05)],
    }


def collect_name_numbers() -> dict[str, Any]:
    """Return the numbers of methods that share a name, and of TEMPO, which has no released code."""
    canonical = canonical_gtpo_advantages(GTPO_REWARDS, GTPO_ENTROPY, GTPO_MASK, 4)
    factor = sepa_gtpo(grpo_advantages(GTPO_REWARDS, 4), GTPO_ENTROPY, GTPO_MASK)
    judged, whole = torch.ones(4, dtype=torch.bool), TEMPO_IDS > 0
    values = prefix_values(TEMPO_REWARDS, *companion_sums(TEMPO_REWARDS, judged, TEMPO_IDS, whole, 4), whole)
    shared = shared_token_mask(TEMPO_IDS, whole, judged, 4)
    left = tempo_advantages(TEMPO_REWARDS, values, whole, 4) - grpo_advantages(TEMPO_REWARDS, 4, True)[:, None]
    require_claim(left[~shared].abs().max() == 0, "TEMPO leaves the credit of lone tokens as GRPO has it")
    return {
        "gtpo_canonical": canonical[0].tolist(),
        "gtpo_canonical_wrong": canonical[3, :2].tolist(),
        "gtpo_factor": factor[0].tolist(),
        "gtpo_factor_wrong": factor[3, :2].tolist(),
        "tempo_lone": int((~shared).sum()),
        "tempo_tokens": shared.numel(),
    }


def collect_numbers() -> dict[str, Any]:
    """Return the worked numbers of the page."""
    ktae = KTAE_TABLE, KTAE_USES, KTAE_TOKENS
    numbers = {
        "vineppo_equation": vineppo_equation(VINEPPO_VALUES)[0].tolist(),
        "vineppo_code": vineppo_code(VINEPPO_VALUES)[0].tolist(),
        "prime_equation": prime_equation(PRIME_RATIOS, 0.05)[0].tolist(),
        "prime_code": prime_code(PRIME_RATIOS)[0].tolist(),
        "ktae_p": fisher_p_values(KTAE_TABLE).item(),
        "ktae_gain": information_gain(KTAE_TABLE).item(),
        "ktae_code": ktae_code(*ktae).item(),
        "ktae_equation": ktae_equation(*ktae, gain_weight=2.0).item(),
        "conflict_equation": conflict_equation(CONFLICT_CREDIT, CONFLICT_IDS).tolist(),
        "conflict_code": conflict_code(CONFLICT_CREDIT, CONFLICT_IDS).tolist(),
        "entropy_limit": torch.tensor(2.0).log().item(),
        **collect_tree_numbers(),
        **collect_name_numbers(),
    }
    pairs = [(numbers[f"{name}_equation"], numbers[f"{name}_code"]) for name in DIFFERING]
    require_claim(all(equation != code for equation, code in pairs), f"equation and code differ for {DIFFERING}")
    return numbers | {"differing": len(DIFFERING), "alike": len(ALIKE)}
