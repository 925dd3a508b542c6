"""Pure formulas on tensors, which every operator is made of; imports torch and nothing else."""
