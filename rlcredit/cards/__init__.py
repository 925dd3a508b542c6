"""Report cards: what one credit operator is, does, costs and teaches, beside a baseline and all that ship."""
