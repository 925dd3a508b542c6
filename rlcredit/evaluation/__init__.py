"""``rlcredit evaluate``: policies answer the held-out questions of tasks and are compared question by question."""
