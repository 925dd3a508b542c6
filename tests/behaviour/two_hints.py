"""Train on hinted credit in one process or in two."""

from callbacks.dense.self_distillation import SelfDistillation
from callbacks.episode.grpo import GRPO
from callbacks.tokens.random_sign import RandomSign
from tests.behaviour.recorded_training import record_training, save_rank


def train_on_hints(folder, **trainer):
    """Train for two steps; return the gradients and the tokens scored so far."""
    stack = [GRPO(), SelfDistillation(groups="all"), RandomSign(share=0.1, groups="all")]
    return record_training(folder, 2, stack, "tokens/forward", **trainer)


if __name__ == "__main__":
    save_rank(train_on_hints)
