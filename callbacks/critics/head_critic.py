"""Head critic: a small network on the policy's hidden states, taught by the rewards of the last rollouts."""

from rlcredit.credit.network_critic import NetworkCritic


class HeadCritic(NetworkCritic, usual=True):
    """Estimate values with a network of two hidden layers, fitted to the rewards of the last rollouts.

    It reads the policy's last hidden state, how surprising and how long the prefix is, and the mean reward of the
    group's other completions. The policy is not trained through it. The rollouts it learns from are part of a
    checkpoint: four bytes for each feature of ``rollouts`` times ``prefixes``.

    Args:
        width: Units of each hidden layer.
        rate: Learning rate.
        decay: Weight decay of AdamW.
        fits: Steps of AdamW per rollout; four times as many while it warms up.
        batch: Prefixes per step.
        rollouts: Rollouts that it learns from, the last one included.
        prefixes: Most prefixes of a rollout that it keeps, chosen at random.
        target: Histogram in which it predicts the reward; right or wrong if None.
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of what it learns; 1 is the return itself, less learns from rewards and its own values alone.

    """
