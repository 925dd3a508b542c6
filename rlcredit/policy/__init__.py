"""The policy: a causal language model with a LoRA adapter, its prompts, weights and sizes."""
