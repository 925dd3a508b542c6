"""Engines: who decodes."""
