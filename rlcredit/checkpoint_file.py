"""Reading a checkpoint that somebody has named: tensors and plain values only, and no more than the file holds."""

import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

UNREADABLE = (
    *(UnpicklingError, RuntimeError, EOFError, OSError, zipfile.BadZipFile, ValueError, TypeError, LookupError),
    *(AttributeError, AssertionError, ArithmeticError, MemoryError, ImportError),
)
"""What torch raises of bytes that are no checkpoint."""

TYPES = {"state_dict": dict, "parameters": dict, "global_step": int, "run_name": str, "mlflow_run_id": str}
"""Of the entries that a run is continued by, where they are present."""


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint; no code in it is run.

    Raises:
        ValueError: it is none, or would unpack to more than its file holds.

    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                if any(each.file_size > each.compress_size for each in packed.infolist()):
                    raise ValueError("its parts are compressed, which no checkpoint's are")
        with warnings.catch_warnings(action="ignore"):  # of unusual pickles, which the error names
            content = torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        told = f": {error}" if type(error) is ValueError else ""
        raise ValueError(f"ckpt_path: {path} is not a checkpoint ({type(error).__name__}{told}).") from None
    if not isinstance(content, dict):
        raise ValueError(f"ckpt_path: {path} is not a checkpoint, but a {type(content).__name__}.")
    for name, kind in TYPES.items():
        if not isinstance(content.get(name, kind()), kind):
            raise ValueError(f"ckpt_path: {path} is not a checkpoint of a run: {name} is {content[name]!r:.80}.")
    return content
