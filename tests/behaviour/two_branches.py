"""Train on continuations in one process or in two."""

from callbacks.dense.branches import Branches
from tests.behaviour.recorded_training import record_training, save_rank


def train_on_branches(folder, **trainer):
    """Train for three steps; return the gradients and the tokens decoded so far."""
    stack = [Branches(rule="random", rate=0.03)]  # so seldom that a process may have no fork
    return record_training(folder, 3, stack, "tokens/decoded", **trainer)


if __name__ == "__main__":
    save_rank(train_on_branches)
