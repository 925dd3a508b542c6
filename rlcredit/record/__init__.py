"""What a run tells: kept in its folder step by step, and delivered to MLflow from there."""

from rlcredit.record.destination import MLflowDestination
from rlcredit.record.logger import RunRecord

__all__ = ["MLflowDestination", "RunRecord"]
