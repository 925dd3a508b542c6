"""Checks that find, before any weights are read, what would fail in the first minutes of a run."""
