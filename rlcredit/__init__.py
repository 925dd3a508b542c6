"""rlcredit: credit assignment in reinforcement learning with verifiable rewards, as stacks of Lightning callbacks."""

from rlcredit.config.former_names import keep_former_names_importable

__version__ = "0.1.0"

keep_former_names_importable()
