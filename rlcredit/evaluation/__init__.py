"""``rlcredit evaluate``: held-out questions of some tasks, answered by some policies, compared question by question."""
