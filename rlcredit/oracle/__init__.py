"""Asking the policy itself what a prefix is worth."""

from rlcredit.oracle.credit_estimate import TrueCredit
from rlcredit.oracle.oracle import ContinuationCost, Oracle

__all__ = ["ContinuationCost", "Oracle", "TrueCredit"]
