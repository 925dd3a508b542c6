"""Campaigns: every condition with every seed, declared before the first run and resumed after interruptions."""
