"""rlcredit: credit assignment in reinforcement learning with verifiable rewards, as stacks of Lightning callbacks."""

__version__ = "0.1.0"
