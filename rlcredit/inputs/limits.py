"""The largest values that mean anything."""

SEEDS = 2**32
"""How many seeds there are; numpy takes no larger one."""
THREADS = 1024
"""More than most machines have cores; far more, and a system cannot start them."""
