"""What a run tells: kept in its folder step by step, and delivered to MLflow from there.

``journal.py`` keeps it, ``logger.py`` is what Lightning talks to, ``store.py`` is one run in MLflow, and
``delivery.py`` sends the journal to MLflow without holding up training.
"""

from rlcredit.record.destination import MLflowDestination
from rlcredit.record.logger import RunRecord

__all__ = ["MLflowDestination", "RunRecord"]
