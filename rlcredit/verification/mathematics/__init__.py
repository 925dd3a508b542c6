"""Mathematics as people write it: what an answer and its reference say, and whether it is the same."""
