"""What a run leaves behind, each written by one callback: adapter, checkpoints, held-out results, progress."""
