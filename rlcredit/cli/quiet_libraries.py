"""Silencing library output that says nothing about the run."""

import logging
import os
import sys
import warnings
from typing import Any

from rlcredit.credit.contract import StackWarning

_as_python_does = warnings.formatwarning


def _format_stack_warning(message: Any, category: type[Warning], *place: Any) -> str:
    """Format a warning about a stack as a sentence, without its line of code."""
    return f"warning: {message}\n" if category is StackWarning else _as_python_does(message, category, *place)


def silence_libraries() -> None:
    """Silence library output that says nothing about the run."""
    os.environ.setdefault("JSONARGPARSE_DEPRECATION_WARNINGS", "off")  # lightning asks jsonargparse
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # there may be a password in it
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    for name in ("lightning.pytorch", "lightning.fabric", "bitsandbytes", "mlflow", "alembic", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.formatwarning = _format_stack_warning
    if transformers := sys.modules.get("transformers"):  # it has read the environment already
        transformers.utils.logging.disable_progress_bar()
    # PolicyModule samples in this hook on purpose.
    warnings.filterwarnings("ignore", message=".*overridden `on_after_batch_transfer` in `LightningModule`.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*exists and is not empty.*")
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")
    # vLLM in this process sets up exchanges between processes, of which there is one.
    warnings.filterwarnings("ignore", message=".*sync_dist=True.*")
    # The order of prompts is a function of the step; the loader has nothing to resume.
    warnings.filterwarnings("ignore", message=".*dataloader.*is not resumable.*")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
