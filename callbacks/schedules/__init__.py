"""Schedules: step and history to sepa_lambda, how strongly to pool."""
