"""Critics: they learn what prefixes of completions are worth from the rewards of earlier rollouts."""
