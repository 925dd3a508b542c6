"""Conditions x seeds, declared before the first run and finished whatever interrupts them."""
