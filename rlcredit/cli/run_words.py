"""The words of a run's command line: ``--out`` and ``--mlflow`` as a configuration says them, and files as found."""

from collections.abc import Sequence

from rlcredit.cli.shared_options import MLFLOW_OF_ENVIRONMENT, NO_MLFLOW
from rlcredit.config.paths import resolve_config_flags

OUT_FLAG = "--out"
MLFLOW_FLAG = "--mlflow"


def resolve_run_words(args: Sequence[str]) -> list[str]:
    """Return a command line in the words of a configuration, its files where they were found.

    Example:
        >>> resolve_run_words(["fit", "--out", "a", "--mlflow=none"])
        ['fit', '--trainer.default_root_dir=a', '--trainer.logger=false']

    """
    words, iterator = [], iter(resolve_config_flags(args))
    for word in iterator:
        flag, equals, value = word.partition("=")
        if flag not in (OUT_FLAG, MLFLOW_FLAG):
            words.append(word)
            continue
        if not (value if equals else (value := next(iterator, ""))):
            example = "--out runs/mine" if flag == OUT_FLAG else "--mlflow none"
            raise ValueError(f"{flag}: its value is missing. Say it, as `{example}`.")
        words.append(f"--trainer.default_root_dir={value}" if flag == OUT_FLAG else _set_tracker(value))
    return words


def _set_tracker(value: str) -> str:
    """Return the option of a configuration that says where the record is delivered."""
    if value.lower() in ("off", "no", "false", "null"):
        raise ValueError(f"{MLFLOW_FLAG}: expected an address, env or none, got {value}. Did you mean `none`?")
    if value == NO_MLFLOW:
        return "--trainer.logger=false"
    return f"--trainer.logger.init_args.tracking_uri={'null' if value == MLFLOW_OF_ENVIRONMENT else value}"
