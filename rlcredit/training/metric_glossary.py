"""What each metric of a default run means: one line for each, from which the reference page is written."""

from typing import NamedTuple


class MetricMeaning(NamedTuple):
    """The meaning of a metric.

    Attributes:
        meaning: What is measured.
        unit: Unit of the number.
        taken: Where it is taken: before or after clipping, over which tokens, with which k.

    """

    meaning: str
    unit: str
    taken: str = ""


_HELD_OUT_ANSWERS = "after the step; each question gets `model.validation.completions` answers"
_BEFORE_UPDATE = "when sampled, before the update"
_IN_UPDATE = "in the update"
_SURPRISAL_QUANTILE = "quantile of the surprisal of sampled tokens"

METRIC_MEANINGS: dict[str, MetricMeaning] = {
    "val/pass_at_1": MetricMeaning(
        "share of right answers to held-out questions", "share", f"k = 1; {_HELD_OUT_ANSWERS}"
    ),
    "val/pass_at_k": MetricMeaning(
        "share of held-out questions that at least one of k answers gets right, estimated without bias",
        "share",
        "k = `model.pass_k`, 4 unless set, and at most the number of answers",
    ),
    "val/no_answer": MetricMeaning("share of held-out answers that state no answer in any known format", "share"),
    "val/unjudged": MetricMeaning("share of held-out answers that no verifier could judge", "share"),
    "val/completion_length": MetricMeaning("mean length of held-out answers", "tokens", "end-of-sequence included"),
    "val/entropy": MetricMeaning(
        "mean entropy of the distribution that each held-out token was drawn from",
        "nats",
        "at the sampling temperature",
    ),
    "train/reward": MetricMeaning(
        "mean reward of judged completions", "reward", f"{_BEFORE_UPDATE}; as shaped by operators"
    ),
    "train/solve_rate": MetricMeaning("share of judged completions that are right", "share", _BEFORE_UPDATE),
    "train/no_answer": MetricMeaning(
        "share of completions that state no answer in any known format", "share", _BEFORE_UPDATE
    ),
    "train/unjudged": MetricMeaning("share of completions that no verifier could judge", "share", _BEFORE_UPDATE),
    "train/truncated": MetricMeaning("share of completions cut at `max_tokens`", "share", _BEFORE_UPDATE),
    "train/completion_length": MetricMeaning("mean length of completions", "tokens", "end-of-sequence included"),
    "train/zero_variance": MetricMeaning(
        "share of groups whose rewards are all alike, which give a group baseline nothing to learn from", "share"
    ),
    "train/zero_variance_all_right": MetricMeaning("share of groups in which every completion is right", "share"),
    "train/zero_variance_all_wrong": MetricMeaning("share of groups in which every completion is wrong", "share"),
    "train/entropy": MetricMeaning(
        "mean entropy of the distribution that each token was drawn from",
        "nats",
        f"{_BEFORE_UPDATE}; all sampled tokens",
    ),
    "train/surprisal": MetricMeaning(
        "mean of -log pi of sampled tokens, of which entropy is the expectation",
        "nats",
        f"{_BEFORE_UPDATE}; all sampled tokens",
    ),
    "train/surprisal_p50": MetricMeaning(f"0.5 {_SURPRISAL_QUANTILE}", "nats", _BEFORE_UPDATE),
    "train/surprisal_p90": MetricMeaning(f"0.9 {_SURPRISAL_QUANTILE}", "nats", _BEFORE_UPDATE),
    "train/surprisal_p99": MetricMeaning(f"0.99 {_SURPRISAL_QUANTILE}", "nats", _BEFORE_UPDATE),
    "train/loss": MetricMeaning(
        "value of the loss; its gradient is the update, and its size says little",
        "",
        f"{_IN_UPDATE}, after the loss's clipping",
    ),
    "train/learning_rate": MetricMeaning("learning rate of the first parameter group", "", "of this update"),
    "train/gradient_norm": MetricMeaning(
        "length of the gradient over all trained weights", "", "before `trainer.gradient_clip_val`"
    ),
    "train/ratio_min": MetricMeaning(
        "smallest importance ratio of a token, trainer to sampler", "", "before clipping; 1 in the first update"
    ),
    "train/ratio_max": MetricMeaning(
        "largest importance ratio of a token, trainer to sampler", "", "before clipping; 1 in the first update"
    ),
    "train/kl_sampler": MetricMeaning(
        "estimated divergence of the trained policy from the one that sampled",
        "nats per token",
        "0 in the first update",
    ),
    "train/tokens_per_second": MetricMeaning(
        "sampled tokens by the time of the whole step, all processes together", "tokens/s", "held-out answers left out"
    ),
    "credit/GRPO/advantage_max": MetricMeaning(
        "largest absolute advantage below GRPO", "reward", "before any operator below it, and before clipping"
    ),
    "tokens/decoded": MetricMeaning("tokens decoded for training", "tokens", "sum since the run began"),
    "tokens/decoded_by_probes": MetricMeaning("tokens decoded for probes", "tokens", "sum since the run began"),
    "tokens/prefill": MetricMeaning("tokens read before decoding begins", "tokens", "sum since the run began"),
    "tokens/forward": MetricMeaning("tokens through passes without gradient", "tokens", "sum since the run began"),
    "tokens/backward": MetricMeaning("tokens through passes of updates", "tokens", "sum since the run began"),
    "time/rollout": MetricMeaning("time for sampling and for facts that operators read", "s", "of this step"),
    "time/verify": MetricMeaning("time for judging completions", "s", "of this step"),
    "time/credit": MetricMeaning("time for assigning credit", "s", "of this step"),
    "time/update": MetricMeaning("time for loss, gradient and optimizer step", "s", "of this update"),
}
"""Metrics of a run of GRPO with nothing else set, by name, as they are looked for: results first, clocks last."""

EPISODE_METRICS: dict[str, MetricMeaning] = {
    "val/turns": MetricMeaning("mean number of turns of held-out episodes", "turns"),
    "train/turns": MetricMeaning("mean number of turns of an episode", "turns", "one that a limit cut counts"),
    "train/observation_tokens": MetricMeaning(
        "mean tokens that an episode reads between its turns", "tokens", "beside those of `train/completion_length`"
    ),
}
"""Further metrics of a task with an environment, by name."""
