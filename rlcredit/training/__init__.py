"""The training step: sample a rollout, assign credit, take the loss, check and record."""
