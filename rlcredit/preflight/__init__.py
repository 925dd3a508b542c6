"""What would fail in the first minutes of a run, found before its weights are read."""
