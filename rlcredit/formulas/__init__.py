"""Pure formulas on tensors, which every operator is made of; they import torch and nothing else.

Each is imported from here, ``from rlcredit.formulas import masked_mean``, or from its own module. The package imports
a module, and torch, when a formula is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlcredit.formulas.contingency_tables import (
        answer_counts,
        class_counts,
        fisher_p_values,
        information_gain,
        key_token_values,
    )
    from rlcredit.formulas.gates import AdaptiveEta, gate_statistics
    from rlcredit.formulas.gradient_vectors import gram_matrix, inner_product, vector_agreement
    from rlcredit.formulas.groups import (
        chosen_rows,
        group_deviations,
        group_imputed_values,
        group_standardized,
        group_std,
        judged_counts,
        leave_one_out_deviations,
        leave_one_out_means,
        mixed_groups,
        ranks_within_rows,
        selected_places,
        unanimous_groups,
    )
    from rlcredit.formulas.masked import (
        completion_normalized,
        damped_weights,
        following_windows,
        last_token_mask,
        masked_correlation,
        masked_mean,
        masked_median,
        masked_quantiles,
        masked_sum,
        masked_topk,
        masked_var,
        variance_within_between,
    )
    from rlcredit.formulas.outcome_sets import outcome_normalized, shaped_rewards
    from rlcredit.formulas.prefixes import companion_rows, companion_sums, prefix_values, shared_token_mask
    from rlcredit.formulas.quadrants import high_entropy_mask, mutual_information, quadrant_masks
    from rlcredit.formulas.ramps import linear_ramp
    from rlcredit.formulas.reward_histogram import RewardHistogram, RewardRangeError
    from rlcredit.formulas.scopes import kept_token_share, scope_count, top_share_mask
    from rlcredit.formulas.segments import segment_differences, segment_starts, sentence_starts
    from rlcredit.formulas.spans import (
        list_turn_columns,
        mask_from_spans,
        phrase_plan_mask,
        phrase_spans,
        plan_coverage,
        plan_mask_from_spans,
        turn_texts,
    )
    from rlcredit.formulas.token_grams import gram_scores
    from rlcredit.formulas.uncertainty import (
        choose_chunk,
        logprobs_and_entropy,
        predictive_variance,
        scores_from_hidden,
        squared_score_norm,
        surprisal,
        tempered_logits,
        token_odds,
    )
    from rlcredit.formulas.value_estimates import (
        calibration_sums,
        carried_values,
        critic_briers,
        expected_gradient_weights,
        following_values,
        generalized_advantages,
        process_returns,
        reward_baselines,
        value_skill,
    )

__all__ = [
    "AdaptiveEta",
    "RewardHistogram",
    "RewardRangeError",
    "answer_counts",
    "calibration_sums",
    "carried_values",
    "choose_chunk",
    "chosen_rows",
    "class_counts",
    "companion_rows",
    "companion_sums",
    "completion_normalized",
    "critic_briers",
    "damped_weights",
    "expected_gradient_weights",
    "fisher_p_values",
    "following_values",
    "following_windows",
    "gate_statistics",
    "generalized_advantages",
    "gram_matrix",
    "gram_scores",
    "group_deviations",
    "group_imputed_values",
    "group_standardized",
    "group_std",
    "high_entropy_mask",
    "information_gain",
    "inner_product",
    "judged_counts",
    "kept_token_share",
    "key_token_values",
    "last_token_mask",
    "leave_one_out_deviations",
    "leave_one_out_means",
    "linear_ramp",
    "list_turn_columns",
    "logprobs_and_entropy",
    "mask_from_spans",
    "masked_correlation",
    "masked_mean",
    "masked_median",
    "masked_quantiles",
    "masked_sum",
    "masked_topk",
    "masked_var",
    "mixed_groups",
    "mutual_information",
    "outcome_normalized",
    "phrase_plan_mask",
    "phrase_spans",
    "plan_coverage",
    "plan_mask_from_spans",
    "predictive_variance",
    "prefix_values",
    "process_returns",
    "quadrant_masks",
    "ranks_within_rows",
    "reward_baselines",
    "scope_count",
    "scores_from_hidden",
    "segment_differences",
    "segment_starts",
    "selected_places",
    "sentence_starts",
    "shaped_rewards",
    "shared_token_mask",
    "squared_score_norm",
    "surprisal",
    "tempered_logits",
    "token_odds",
    "top_share_mask",
    "turn_texts",
    "unanimous_groups",
    "value_skill",
    "variance_within_between",
    "vector_agreement",
]

_MODULES = (
    "contingency_tables",
    "gates",
    "gradient_vectors",
    "groups",
    "masked",
    "outcome_sets",
    "prefixes",
    "quadrants",
    "ramps",
    "reward_histogram",
    "scopes",
    "segments",
    "spans",
    "token_grams",
    "uncertainty",
    "value_estimates",
)
"""Modules of formulas; others hold checks and communication between processes, or have a formula of their own name."""


def __getattr__(name: str) -> Any:
    """Import the formula of a name when it is first used."""
    for module in _MODULES if name in __all__ else ():
        value = vars(importlib.import_module(f"{__name__}.{module}")).get(name)
        if value is not None and value.__module__ == f"{__name__}.{module}":
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, for completion in an editor or a notebook."""
    return sorted({*globals(), *__all__})
