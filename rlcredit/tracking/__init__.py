"""What a run leaves behind: configuration, learning curve, completions, adapter, and a line per step."""
