"""Probes: they watch at their place in the list and change nothing."""
