"""Judge whether an answer is right, wrong, or cannot be judged, in processes that can do nothing else."""
