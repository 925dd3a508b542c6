"""rlcredit: credit assignment in reinforcement learning with verifiable rewards, as stacks of Lightning callbacks.

What a script or a notebook needs is imported from here. Each name imports its module when it is first used, so that
``import rlcredit`` loads no torch. Operators and probes are in ``callbacks``, losses in :mod:`rlcredit.losses`, further
tasks in :mod:`rlcredit.tasks`, formulas in :mod:`rlcredit.formulas`.
"""

import warnings
from typing import TYPE_CHECKING, Any

from rlcredit.base.lazy_names import load_lazy_name

if TYPE_CHECKING:
    from rlcredit.campaign.recorded_campaign import RecordedCampaign, read_campaign
    from rlcredit.cards.card import Card
    from rlcredit.cards.card_view import CardView
    from rlcredit.cli.python_trainer import make_trainer
    from rlcredit.credit.contract import StackError
    from rlcredit.credit.heatmap import credit_heatmap
    from rlcredit.credit.operator import CreditOperator
    from rlcredit.credit.rollout import Rollout
    from rlcredit.credit.stack import CreditStack
    from rlcredit.credit.stack_checks import check_stack
    from rlcredit.decoding.sampling import Sampling
    from rlcredit.episodes.environment import Environment, Turn
    from rlcredit.outputs.held_out import HeldOutVerdicts
    from rlcredit.policy.policy import LoRA, Policy
    from rlcredit.record.logger import RunRecord
    from rlcredit.record.recorded_run import RecordedRun, read_run
    from rlcredit.run_folder.layout import RunFolder
    from rlcredit.tasks.reasoning_gym import ReasoningGym
    from rlcredit.tasks.records import Records
    from rlcredit.tasks.task import Task
    from rlcredit.training.dynamic_sampling import DynamicSampling
    from rlcredit.training.module import PolicyModule

__version__ = "0.1.0"

__all__ = [
    "Card",
    "CardView",
    "CreditOperator",
    "CreditStack",
    "DynamicSampling",
    "Environment",
    "HeldOutVerdicts",
    "LoRA",
    "Policy",
    "PolicyModule",
    "ReasoningGym",
    "RecordedCampaign",
    "RecordedRun",
    "Records",
    "Rollout",
    "RunFolder",
    "RunRecord",
    "Sampling",
    "StackError",
    "Task",
    "Turn",
    "check_stack",
    "credit_heatmap",
    "make_trainer",
    "read_campaign",
    "read_run",
]

_MODULES = {
    "Card": "rlcredit.cards.card",
    "CardView": "rlcredit.cards.card_view",
    "CreditOperator": "rlcredit.credit.operator",
    "CreditStack": "rlcredit.credit.stack",
    "DynamicSampling": "rlcredit.training.dynamic_sampling",
    "Environment": "rlcredit.episodes.environment",
    "HeldOutVerdicts": "rlcredit.outputs.held_out",
    "LoRA": "rlcredit.policy.policy",
    "Policy": "rlcredit.policy.policy",
    "PolicyModule": "rlcredit.training.module",
    "ReasoningGym": "rlcredit.tasks.reasoning_gym",
    "RecordedCampaign": "rlcredit.campaign.recorded_campaign",
    "RecordedRun": "rlcredit.record.recorded_run",
    "Records": "rlcredit.tasks.records",
    "Rollout": "rlcredit.credit.rollout",
    "RunFolder": "rlcredit.run_folder.layout",
    "RunRecord": "rlcredit.record.logger",
    "Sampling": "rlcredit.decoding.sampling",
    "StackError": "rlcredit.credit.contract",
    "Task": "rlcredit.tasks.task",
    "Turn": "rlcredit.episodes.environment",
    "check_stack": "rlcredit.credit.stack_checks",
    "credit_heatmap": "rlcredit.credit.heatmap",
    "make_trainer": "rlcredit.cli.python_trainer",
    "read_campaign": "rlcredit.campaign.recorded_campaign",
    "read_run": "rlcredit.record.recorded_run",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name when it is first used."""
    return load_lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    """List the public names, for completion in an editor or a notebook."""
    return sorted({*globals(), *__all__})


warnings.filterwarnings("ignore", message="IProgress not found")  # progress bars of libraries, which no cell shows
