"""Ground floor: tensors in, tensors out; imports torch and nothing else."""
