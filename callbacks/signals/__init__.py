"""Signals: what counts as uncertainty, before credit follows it."""
