"""The command line: LightningCLI with a checked stack, and the commands that need no trainer."""
