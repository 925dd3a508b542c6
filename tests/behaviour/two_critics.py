"""Train with a critic on one process or on two."""

from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.grpo import GRPO
from tests.behaviour.recorded_training import record_training, save_rank


def train_with_critic(folder, **trainer):
    """Train for four steps; return the gradients, the weights of the critic, and its network."""
    critic = HeadCritic(width=8, fits=5, batch=64, warmup=2)
    stack = [GRPO(), critic, ExpectedGradient(share=0.5)]
    recorded = record_training(folder, 4, stack, "credit/ExpectedGradient/weight", **trainer)
    return *recorded, critic.network["weights"]


if __name__ == "__main__":
    save_rank(train_with_critic)
