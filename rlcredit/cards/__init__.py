"""Report cards: the properties, effects, cost and training gain of one credit operator, against a baseline."""
