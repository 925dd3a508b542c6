"""The command line: LightningCLI with a checked stack, and commands that need no trainer."""
