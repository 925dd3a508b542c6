"""The folder of a run: its files, its intact checkpoints, and the one from which a run continues."""
