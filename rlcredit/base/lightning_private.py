"""All that rlcredit reads or replaces of Lightning beyond its public interface.

Written for Lightning 2.6. Every entry says what it reads or changes, and what breaks without it; another version may
break each of them, and ``tests/rlcredit/base/test_lightning_private.py`` says which.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from lightning.fabric.strategies.launchers import subprocess_script
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI


def read_callbacks(trainer: Trainer) -> list[Callback]:
    """Return the list of a trainer's callbacks.

    Lightning sets the attribute where no type checker sees it; without this every use needs an exception.
    """
    return trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]


def read_datamodule(trainer: Trainer) -> Any:
    """Return the data of a trainer; the attribute is as hidden as that of the callbacks."""
    return trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]


def build_state_key(callback: Callback, arguments: Mapping[str, Any]) -> str:
    """Return the key of a callback's state in a checkpoint, made of its class and arguments.

    Without it two operators of one class share a key, and Lightning refuses the second.
    """
    return callback._generate_state_key(**arguments)


def read_loop_states(trainer: Trainer) -> dict[str, Any]:
    """Return the state of a trainer's loops as a checkpoint would store it now.

    Without it a checkpoint written between two steps stores loops that have begun the next step, which is then left
    out when the run is continued.
    """
    return trainer._checkpoint_connector._get_loops_state_dict()


class CheckpointTimes(NamedTuple):
    """When a callback saves.

    Attributes:
        every_n_train_steps: Updates between two checkpoints; 0 if updates are not counted.
        has_other_time: Whether it saves at any other time.

    """

    every_n_train_steps: int
    has_other_time: bool


def read_checkpoint_times(callback: ModelCheckpoint) -> CheckpointTimes:
    """Return when a callback saves; without it nobody could refuse checkpoints inside a rollout."""
    other_time = callback._every_n_epochs or callback._train_time_interval or callback.save_on_exception
    return CheckpointTimes(callback._every_n_train_steps, bool(other_time))


def set_evaluation_interval(trainer: Trainer, updates: int) -> None:
    """Set after how many updates Lightning evaluates, from the end of this one on; read after the hooks of every step.

    Without it evaluations could only follow fixed numbers of steps, and not numbers of tokens.
    """
    trainer.val_check_batch = updates


def replace_end_of_failed_run(end: Callable[[list[Any]], None]) -> None:
    """Have a function end a run after one of the processes that Lightning has started failed.

    Without it Lightning kills the first process, which then prints no message and has no status of ours.

    Args:
        end: Function that is given the processes, and ends this one.

    """
    observer: Any = subprocess_script._ChildProcessObserver
    observer._terminate_all = lambda observer: end(observer._child_processes)


class DeferredCheckpoint(ModelCheckpoint):
    """Note where Lightning would save that a checkpoint is due, and save when told to.

    Replaces four private methods of ModelCheckpoint. Without them checkpoints are written before the metrics of their
    step are logged and before the evaluation that follows it, and the checkpoint a run was continued from stays for
    ever.

    Attributes:
        is_due: Whether Lightning would have saved since the last checkpoint.

    """

    is_due = False
    _notes_only = False

    def link_checkpoint(self, path: str, link: str) -> None:
        """Give a checkpoint a second name."""
        super()._link_checkpoint(None, path, link)  # pyright: ignore[reportArgumentType]

    def is_superseded(self, previous: str, current: str) -> bool:
        """Whether a checkpoint is removed once another is written."""
        return previous != current

    @property
    def saved_step(self) -> int:
        """Step of the last checkpoint."""
        return self._last_global_step_saved

    @saved_step.setter
    def saved_step(self, step: int) -> None:
        self._last_global_step_saved = step

    def save_candidate(self, trainer: Trainer) -> None:
        """Save the state, as one of the checkpoints to keep."""
        candidates = self._monitor_candidates(trainer)
        super()._save_topk_checkpoint(trainer, candidates)
        super()._save_last_checkpoint(trainer, candidates)

    def overwrite_best(self, trainer: Trainer) -> None:
        """Save the state in place of the best checkpoint."""
        self._save_checkpoint(trainer, self.best_model_path)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Determine whether a checkpoint is due after this step."""
        with self._only_noting():
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Determine whether a checkpoint is due after this evaluation."""
        with self._only_noting():
            super().on_validation_end(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Determine whether a checkpoint is due after this pass over the prompts."""
        with self._only_noting():
            super().on_train_epoch_end(trainer, pl_module)

    @contextmanager
    def _only_noting(self) -> Iterator[None]:
        self._notes_only = True
        try:
            yield
        finally:
            self._notes_only = False

    def _save_topk_checkpoint(self, trainer: Trainer, monitor_candidates: dict[str, Any]) -> None:
        if self._notes_only:
            self.is_due = True
        else:
            super()._save_topk_checkpoint(trainer, monitor_candidates)

    def _save_last_checkpoint(self, trainer: Trainer, monitor_candidates: dict[str, Any]) -> None:
        if not self._notes_only:
            super()._save_last_checkpoint(trainer, monitor_candidates)

    def _should_remove_checkpoint(self, trainer: Trainer, previous: str, current: str) -> bool:
        return self.is_superseded(previous, current)

    def _link_checkpoint(self, trainer: Trainer, filepath: str, linkpath: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.link_checkpoint(filepath, linkpath)


class OpenCLI(LightningCLI):
    """LightningCLI with public methods where it has private ones.

    Without it no subcommand can have an option of its own, or be run inside a lock, a checkpoint named by
    ``--ckpt_path`` would change the configuration, class paths included, and every start would describe the arguments
    of all subcommands, which takes a quarter of a second.

    Args:
        classes: Classes of the model and of the data.
        command: Subcommand to run; only it gets its arguments.
        values: Values of the configuration, by key.
        words: Words that ask for the help of an option, to be parsed in place of the values; empty if none do.
        settings: Other arguments of Lightning's command line.

    """

    def __init__(
        self, *classes: Any, command: str, values: Mapping[str, Any], words: Sequence[str] = (), **settings: Any
    ) -> None:
        self.command = command
        self.values = values
        self.words = words
        super().__init__(*classes, **settings)

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the values that were given."""
        if self.words:
            self.config = parser.parse_args([self.command, *self.words])
        else:
            self.config = parser.parse_object(
                {"subcommand": self.command, self.command: copy.deepcopy(dict(self.values))}
            )

    def add_subcommand_arguments(self, subcommand: str, parser: LightningArgumentParser) -> None:
        """Add the options of one subcommand."""

    def run_subcommand(self, subcommand: str) -> None:
        """Run a subcommand."""
        super()._run_subcommand(subcommand)

    def get_subcommand_parser(self, subcommand: str) -> LightningArgumentParser:
        """Return the parser of a subcommand."""
        return self._parser(subcommand)

    def get_instantiated(self, key: str) -> Any:
        """Return the object that a key of the configuration has become."""
        return self._get(self.config_init, key)

    def _prepare_subcommand_parser(self, klass: type, subcommand: str, **kwargs: Any) -> LightningArgumentParser:
        if subcommand != self.command:
            return self.init_parser(**kwargs)
        parser = super()._prepare_subcommand_parser(klass, subcommand, **kwargs)
        self.add_subcommand_arguments(subcommand, parser)
        return parser

    def _run_subcommand(self, subcommand: str) -> None:
        self.run_subcommand(subcommand)

    def _parse_ckpt_path(self) -> None:
        """Read no settings from a checkpoint."""
