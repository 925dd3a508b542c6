"""``rlcredit fit | validate | explain``: LightningCLI with a checked stack, tracking, and errors for people."""

import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from jsonargparse import Namespace
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities import rank_zero_only

import callbacks  # noqa: F401  (so that a configuration may name every operator)
from callbacks.contract import operators
from callbacks.lints import bounds, check_stack
from rlcredit import inputs, loggers
from rlcredit.checkpoint_file import read_checkpoint
from rlcredit.exits import REFUSED
from rlcredit.explain import explanation, parameters
from rlcredit.feasible import REFUSALS, reason, refuse_infeasible
from rlcredit.messages import ReadableParser
from rlcredit.module import PolicyModule
from rlcredit.quiet import quiet
from rlcredit.targets import refuse_policy
from rlcredit.tasks import Task
from rlcredit.tracking.adapter import SaveAdapter
from rlcredit.tracking.completions import CompletionTable
from rlcredit.tracking.config import SaveConfig
from rlcredit.tracking.curve import LearningCurve
from rlcredit.tracking.held_out import HeldOut
from rlcredit.tracking.identity import RunIdentity, tags
from rlcredit.tracking.progress import progress
from rlcredit.tracking.standing import Standing

MLFLOW = "lightning.pytorch.loggers.MLFlowLogger"
DESCRIPTION = (
    "Credit assignment in reinforcement learning with verifiable rewards, as stacks of callbacks. Beside the "
    "subcommands below, `rlcredit campaign FILE` runs conditions x seeds, and `rlcredit report CAMPAIGN` says "
    "what they found."
)

TRAINER_DEFAULTS = {
    "logger": {
        "class_path": MLFLOW,
        "init_args": {"experiment_name": "rlcredit", "tracking_uri": "sqlite:///mlflow.db"},
    },
    "max_epochs": -1,
    "log_every_n_steps": 1,
    "val_check_interval": 20,
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

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Refuse what the parser accepts and no run could begin with."""
        super().parse_arguments(parser, args)
        try:
            inputs.refuse_values(self.config[str(self.config.subcommand)], ReadableParser.roots)
        except ValueError as error:
            parser.error(str(error))

    def _parse_ckpt_path(self) -> None:
        """Take nothing from a checkpoint: Lightning would let it change the configuration, class paths included."""

    def before_instantiate_classes(self) -> None:
        """Name the run and choose its folder; ``explain`` leaves no trace."""
        config = self.config[str(self.subcommand)]
        self.declared = config.clone()  # what is saved: names and folders follow from it anew when it is used again
        self.declared.ckpt_path = None
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        trainer = config.trainer
        name = self._run_name(config)
        if trainer.default_root_dir is None:
            trainer.default_root_dir = str(Path("runs") / name)
        if config.checkpoint.dirpath is None:
            config.checkpoint.dirpath = str(Path(trainer.default_root_dir) / "checkpoints")
        self.continued = {} if self.subcommand == "explain" else self._checkpoint(config)
        if self.subcommand != "fit":
            trainer.logger = False
        for logger in trainer.logger if isinstance(trainer.logger, list) else [trainer.logger]:
            if isinstance(logger, Namespace) and logger.class_path == MLFLOW:
                self._identify(logger.init_args, name, config)
        self.described_loggers, trainer.logger = loggers.deferred(trainer.logger)

    def _identify(self, logger: Namespace, name: str, config: Namespace) -> None:
        """Name the MLflow run; a checkpoint of the same run goes on in it, any other begins a new one."""
        logger.run_name = logger.run_name or name
        logger.tags = {**tags(config.condition, config.seed_everything), **(logger.tags or {})}
        if self.continued.get("run_name") == name:
            logger.run_id = logger.run_id or self.continued["mlflow_run_id"]

    def _checkpoint(self, config: Namespace) -> dict[str, Any]:
        """Read the checkpoint that is asked for; nothing if none is."""
        if config.ckpt_path is None:
            return {}
        last = Path(config.checkpoint.dirpath) / "last.ckpt"
        path = last if config.ckpt_path == "last" else Path(config.ckpt_path)
        if not path.is_file():
            self.parser.error(f"ckpt_path: there is no checkpoint {path}.")
        try:
            return read_checkpoint(path)
        except ValueError as error:
            self.parser.error(str(error))

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Check stack, data and policy before a run is opened; add the callbacks that no condition has to list."""
        settings = self._get(self.config_init, "trainer")
        listed = settings["callbacks"] or []
        settings["callbacks"] = listed if isinstance(listed, list) else [listed]
        check_stack(settings["callbacks"])
        bounds(operators(settings["callbacks"]), self.model.sampling.completions)  # some want larger groups
        if not isinstance(settings["val_check_interval"] or 1.0, int) or settings["val_check_interval"] < 1:
            raise ValueError(f"trainer.val_check_interval counts steps, got {settings['val_check_interval']}.")
        if self.subcommand != "explain":
            self.datamodule.setup()
            refuse_policy(self.model.policy)
        if self.subcommand != "fit":
            return self._feasible_trainer(**kwargs)
        identity = RunIdentity(self._run_name(self.config.fit))
        settings["callbacks"] += [
            identity,
            HeldOut(),
            LearningCurve(identity.name),
            SaveAdapter(),
            progress(),
            Standing(),
        ]
        trainer = self._feasible_trainer(**kwargs)
        identity.parameters = parameters(trainer, self.model, self.datamodule)
        self._check_continuation(identity.parameters)
        for callback in trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
            if isinstance(callback, SaveConfig):
                callback.config, callback.parameters = self.declared, identity.parameters
        return trainer

    def _feasible_trainer(self, **kwargs: Any) -> pl.Trainer:
        trainer = super().instantiate_trainer(**kwargs)
        refuse_infeasible(trainer, self.model, self.datamodule)
        return trainer

    @staticmethod
    def _run_name(config: Namespace) -> str:
        return f"{config.condition}-seed{config.seed_everything}"

    def _check_continuation(self, described: dict[str, Any]) -> None:
        """Refuse to continue a run as another one."""
        before = self.continued.get("parameters", {})
        for name, value in described.items():
            if name != "max_steps" and before.get(name, value) != value:
                raise ValueError(
                    f"ckpt_path: the checkpoint was made with {name} {before[name]!r}, but the configuration says "
                    f"{value!r}. Continue it as it was, or start anew without ckpt_path."
                )
        done, updates = self.continued.get("global_step", 0), self.model.updates_per_rollout
        if done % updates:
            raise ValueError(
                f"ckpt_path: the checkpoint was written after step {done}, inside a rollout of {updates} updates, "
                "which it does not hold. Continue from another one."
            )
        folder = Path(self.config.fit.trainer.default_root_dir)
        if not self.continued and (folder / "config.yaml").exists():
            rank_zero_only(print)(f"{folder} holds an earlier run, which this one overwrites.")

    def instantiate_classes(self) -> None:
        """Turn a refused value into one message."""
        try:
            super().instantiate_classes()
            self.model.check(self.trainer, self.datamodule)
            if self.described_loggers:
                self.trainer.loggers = loggers.made(self.described_loggers)
        except REFUSALS as error:
            self.parser.error(reason(error))

    def explain(self, model: PolicyModule, datamodule: Task, **_: Any) -> None:
        """Print the configuration as the program it is."""
        print(explanation(self.trainer, model, datamodule, self.config.explain.condition))

    def before_fit(self) -> None:
        """Measure the policy as it comes, unless a run is continued."""
        if self.config.fit.ckpt_path is None and self.trainer.val_check_interval:
            self.trainer.validate(self.model, self.datamodule, verbose=False)


def main(args: list[str] | None = None) -> None:
    """Run the command line; ``args`` defaults to that of the process."""
    command_line(args)


def command_line(args: list[str] | None = None, cli: type[CreditCLI] = CreditCLI) -> CreditCLI:
    """Run the command line as ``cli`` understands it, and return it for what it has made."""
    quiet()
    sys.path.append(str(Path.cwd()))  # operators of one's own lie beside their configuration
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
    try:
        ReadableParser.given = inputs.given(sys.argv[1:] if args is None else args, ReadableParser.roots)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    return cli(
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
        parser_kwargs={"description": DESCRIPTION},
        args=args,
    )
