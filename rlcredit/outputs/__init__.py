"""The outputs of a run, each written by one callback: adapter, checkpoints, held-out results, status."""
