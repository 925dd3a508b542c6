"""Asking the policy itself what a prefix is worth."""

from rlcredit.oracle.credit import TrueCredit
from rlcredit.oracle.oracle import Cost, Oracle

__all__ = ["Cost", "Oracle", "TrueCredit"]
