"""The oracle: the policy's own estimate of the value of a prefix."""

from rlcredit.oracle.credit_estimate import TrueCredit
from rlcredit.oracle.episode_oracle import EpisodeOracle
from rlcredit.oracle.oracle import ContinuationCost, Oracle

__all__ = ["ContinuationCost", "EpisodeOracle", "Oracle", "TrueCredit"]
