"""``rlcredit fit | validate | explain``: LightningCLI with a checked stack, tracking, and errors for people."""

import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI

import callbacks  # noqa: F401  (so that a configuration may name every operator)
from callbacks.base import check_stack
from rlcredit.explain import explanation, parameters
from rlcredit.messages import ReadableParser
from rlcredit.module import PolicyModule
from rlcredit.quiet import quiet
from rlcredit.schema import merged_configs
from rlcredit.tasks import Task
from rlcredit.tracking.adapter import SaveAdapter
from rlcredit.tracking.completions import CompletionTable
from rlcredit.tracking.config import SaveConfig
from rlcredit.tracking.curve import LearningCurve
from rlcredit.tracking.identity import RunIdentity, tags
from rlcredit.tracking.progress import progress

MLFLOW = "lightning.pytorch.loggers.MLFlowLogger"
TRAINER_DEFAULTS = {
    "logger": {
        "class_path": MLFLOW,
        "init_args": {"experiment_name": "rlcredit", "tracking_uri": "sqlite:///mlflow.db"},
    },
    "max_epochs": -1,
    "log_every_n_steps": 1,
    "check_val_every_n_epoch": None,
    "num_sanity_val_steps": 0,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "use_distributed_sampler": False,
}


class Trainer(pl.Trainer):
    """Lightning's trainer with one more thing to do."""

    def explain(
        self, model: PolicyModule, datamodule: Task, ckpt_path: str | None = None, weights_only: bool | None = None
    ) -> None:
        """Check a configuration and print it as the program it is; nothing is loaded.

        Args:
            model: not loaded.
            datamodule: not loaded.
            ckpt_path: accepted, as by ``fit``, so that the configuration of a run can be explained.
            weights_only: likewise.

        """


class CreditCLI(LightningCLI):
    """The command line; see :func:`main`."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add what belongs to every run."""
        parser.add_argument(
            "--condition", type=str, default="unnamed", help="Name of the condition, for run and folder."
        )
        parser.add_argument(
            "--threads", type=int | None, default=None, help="CPU threads of torch; its own choice if null."
        )
        parser.add_lightning_class_args(ModelCheckpoint, "checkpoint")
        parser.add_lightning_class_args(CompletionTable, "completions")
        checkpoint = {
            "every_n_train_steps": 20,
            "save_last": True,
            "filename": "{step}",
            "enable_version_counter": False,
        }
        parser.set_defaults({f"checkpoint.{name}": value for name, value in checkpoint.items()})
        parser.link_arguments("seed_everything", "model.seed")
        parser.link_arguments("seed_everything", "data.init_args.seed")

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Offer what exists."""
        offered = {name: LightningCLI.subcommands()[name] for name in ("fit", "validate")}
        return {**offered, "explain": {"model", "datamodule"}}

    def before_instantiate_classes(self) -> None:
        """Name the run and choose its folder; ``explain`` leaves no trace."""
        config = self.config[str(self.subcommand)]
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        trainer = config.trainer
        name = f"{config.condition}-seed{config.seed_everything}"
        if trainer.default_root_dir is None:
            trainer.default_root_dir = str(Path("runs") / name)
        if config.checkpoint.dirpath is None:
            config.checkpoint.dirpath = str(Path(trainer.default_root_dir) / "checkpoints")
        if self.subcommand != "fit":
            trainer.logger = False
        elif trainer.logger and trainer.logger.get("class_path") == MLFLOW:
            logger = trainer.logger.init_args
            logger.run_name = logger.run_name or name
            logger.tags = {**tags(config.condition, config.seed_everything), **(logger.tags or {})}
            logger.run_id = logger.run_id or self._interrupted_run(config)

    @staticmethod
    def _interrupted_run(config: Any) -> str | None:
        """Return the MLflow run that the checkpoint to be continued belongs to."""
        last = Path(config.checkpoint.dirpath) / "last.ckpt"
        path = last if config.ckpt_path == "last" else config.ckpt_path
        if path is None or not Path(path).is_file():
            return None
        return torch.load(path, map_location="cpu", weights_only=True).get("mlflow_run_id")

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Check stack and data before a logger opens its database; add the callbacks that no condition has to list."""
        check_stack(self._get(self.config_init, "trainer")["callbacks"] or [])
        if self.subcommand != "explain":
            self.datamodule.setup()
        trainer = super().instantiate_trainer(**kwargs)
        if self.subcommand == "fit":
            config = self.config.fit
            identity = RunIdentity(parameters(trainer, self.model, self.datamodule))
            title = f"{config.condition}, seed {config.seed_everything}"
            trainer.callbacks.extend([identity, LearningCurve(title), SaveAdapter(), progress()])  # pyright: ignore
        return trainer

    def instantiate_classes(self) -> None:
        """Turn a refused value into one message."""
        try:
            super().instantiate_classes()
            self.model.check(self.trainer)
        except (ValueError, OSError) as error:
            self.parser.error(str(error))

    def explain(self, model: PolicyModule, datamodule: Task, **_: Any) -> None:
        """Print the configuration as the program it is."""
        print(explanation(self.trainer, model, datamodule, self.config.explain.condition))

    def before_fit(self) -> None:
        """Measure the policy as it comes, unless a run is continued."""
        if self.config.fit.ckpt_path is None and self.trainer.val_check_interval:
            self.trainer.validate(self.model, self.datamodule, verbose=False)


def main(args: list[str] | None = None) -> None:
    """Run the command line; ``args`` defaults to that of the process."""
    quiet()
    ReadableParser.given = merged_configs(sys.argv[1:] if args is None else args)
    ReadableParser.roots = {
        "condition": str,
        "seed_everything": int,
        "threads": int,
        "trainer": Trainer,
        "model": PolicyModule,
        "data": Task,
        "checkpoint": ModelCheckpoint,
        "completions": CompletionTable,
    }
    CreditCLI(
        PolicyModule,
        Task,
        subclass_mode_data=True,
        trainer_class=Trainer,
        trainer_defaults=TRAINER_DEFAULTS,
        save_config_callback=SaveConfig,
        save_config_kwargs={"save_to_log_dir": False},
        seed_everything_default=0,
        auto_configure_optimizers=False,
        parser_class=ReadableParser,
        args=args,
    )
