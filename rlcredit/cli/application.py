"""``rlcredit fit | validate | explain``: LightningCLI with a checked stack, tracking, and errors for people."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import lightning.pytorch as pl
import torch
from jsonargparse import Namespace
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities import rank_zero_only

# A configuration may name the classes of these modules.
import rlcredit.decoding.vllm_in_process
import rlcredit.decoding.vllm_server
import rlcredit.supervision.linear_rate
import rlcredit.supervision.token_budget  # noqa: F401
from rlcredit.base.exit_status import FAILED, FINISHED, RunStopped
from rlcredit.base.interrupts import SignalInterrupt
from rlcredit.base.lightning_private import OpenCLI, read_callbacks
from rlcredit.base.messages import print_message
from rlcredit.cli import config_checks, deferred_loggers
from rlcredit.cli.episode_text import find_turn_excess
from rlcredit.cli.explain import collect_run_parameters, describe_configuration, find_trainer_stack
from rlcredit.cli.prompt_preview import preview_first_prompt
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.cli.readable_parser import ReadableParser
from rlcredit.cli.run_options import TRAINER_DEFAULTS
from rlcredit.cli.run_session import RunSession, describe_run_results
from rlcredit.cli.startup import read_configuration_or_exit
from rlcredit.cli.validation_report import report_validation
from rlcredit.config import strict_yaml
from rlcredit.config.call_form import CallFormError
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.error_messages import UNORDERED_MARK, describe_exception, find_raised_error
from rlcredit.config.reader import Roots
from rlcredit.credit.catalogue import import_operators
from rlcredit.credit.contract import StackError, select_operators
from rlcredit.credit.stack_checks import bound_advantages, check_stack
from rlcredit.outputs.adapter import SaveAdapter
from rlcredit.outputs.checkpoints import Checkpoints, DurableCheckpoints
from rlcredit.outputs.completion_table import CompletionTable
from rlcredit.outputs.final_heatmap import FinalHeatmap
from rlcredit.outputs.held_out import FinalEvaluation, HeldOutSummary, HeldOutVerdicts
from rlcredit.outputs.learning_curve import LearningCurve
from rlcredit.outputs.run_identity import RunIdentity, collect_flat_parameters, make_run_tags
from rlcredit.outputs.run_status import RunStatus
from rlcredit.outputs.saved_config import SaveConfig
from rlcredit.preflight.dry_run import REFUSAL_TYPES, explain_refusal, refuse_impossible_run, refuse_large_row
from rlcredit.preflight.memory import refuse_excess_memory
from rlcredit.preflight.policy import refuse_unloadable_policy
from rlcredit.preflight.prompts import refuse_unreadable_prompts
from rlcredit.preflight.settings import RATE_KEY, find_learning_rate, refuse_unusable_settings
from rlcredit.preflight.stack_rehearsal import open_local_data, refuse_unwritable_folder, rehearse_stack
from rlcredit.record import MLflowDestination
from rlcredit.record.destination import make_destination
from rlcredit.run_folder.continuation import refuse_foreign_checkpoint, resolve_ckpt_path
from rlcredit.run_folder.layout import RunFolder
from rlcredit.supervision.graceful_stop import GracefulStop, SignalHandler
from rlcredit.supervision.no_reward import NoReward
from rlcredit.supervision.process_watchdog import ProcessWatchdog
from rlcredit.supervision.progress import make_progress_display
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule
from rlcredit.training.setup_checks import refuse_unfit_setup

_MLFLOW_LOGGER = "lightning.pytorch.loggers.MLFlowLogger"


class Trainer(pl.Trainer):
    """Lightning's trainer with the additional command ``explain``."""

    def explain(
        self, model: PolicyModule, datamodule: Task, ckpt_path: str | None = None, weights_only: bool | None = None
    ) -> None:
        """Check a configuration and print it as a program; nothing is loaded.

        Args:
            model: Training module; it is not loaded.
            datamodule: Task; it is not loaded.
            ckpt_path: Checkpoint, accepted as ``fit`` accepts it so that the configuration of a run can be explained.
            weights_only: Restriction of what a checkpoint may hold, accepted for the same reason.

        """


CONFIG_ROOTS: Roots = {
    "condition": str,
    "seed_everything": int,
    "threads": int,
    "unsafe_scorers": bool,
    "trainer": Trainer,
    "model": PolicyModule,
    "data": Task,
    "checkpoint": Checkpoints,
    "completions": CompletionTable,
    "ckpt_path": str,
    "verbose": bool,
    "weights_only": bool,
}
"""Type behind each top-level key of a configuration."""


def read_expanded_config(file: Path) -> Any:
    """Return the content of a configuration file, with every entry in call form expanded.

    Raises:
        ValueError: names the file, the place, and the repair.

    """
    try:
        return expand_call_forms(strict_yaml.read_yaml(file), CONFIG_ROOTS)
    except CallFormError as error:
        raise ValueError(f"{strict_yaml.shorten_name(file)}: {error}") from None


class CreditCLI(OpenCLI):
    """The command line; see :func:`run_lightning_command`."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the arguments that every run has."""
        parser.add_argument(
            "--condition", type=str, default="unnamed", help="Name of the condition, for run and folder."
        )
        parser.add_argument(
            "--threads", type=int | None, default=None, help="CPU threads of torch; its own choice if null."
        )
        parser.add_argument(
            "--unsafe_scorers",
            type=bool,
            default=False,
            help="Use scorers that evaluate answers even where no sandbox can hold them.",
        )
        parser.add_lightning_class_args(Checkpoints, "checkpoint")
        parser.add_lightning_class_args(CompletionTable, "completions")
        parser.link_arguments("seed_everything", "model.seed")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("unsafe_scorers", "data.init_args.unsafe_scorers")

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Return the commands that are offered."""
        commands = {name: LightningCLI.subcommands()[name] for name in ("fit", "validate")}
        return {**commands, "explain": {"model", "datamodule"}}

    def add_subcommand_arguments(self, subcommand: str, parser: LightningArgumentParser) -> None:
        """Add the options that only one command has."""
        if subcommand == "explain":
            shows = "Print one prompt as the model reads it, and how answers to it are judged; reads the tokenizer."
            parser.add_argument("--show_prompt", action="store_true", help=shows)
        if subcommand == "fit":
            removes = "Replace the run in this folder: it is removed once the new one has a checkpoint."
            parser.add_argument("--replace", action="store_true", help=removes)

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Refuse values that the parser accepts but that no run could start with."""
        super().parse_arguments(parser, args)
        config = self.config[self.command]
        try:
            config_checks.refuse_unusable_values(config, ReadableParser.roots)
        except ValueError as error:
            self.refuse(str(error))
        if "print_config" in ReadableParser.configuration.switches:
            print(self.get_subcommand_parser(self.command).dump(config, skip_none=False), end="")
            sys.exit(FINISHED)

    def refuse(self, sentence: str) -> NoReturn:
        """Print a sentence, and exit with status 2."""
        assert isinstance(self.parser, ReadableParser)
        self.parser.refuse(sentence)

    def before_instantiate_classes(self) -> None:
        """Name the run and choose its folder; ``explain`` writes nothing."""
        config = self.config[str(self.subcommand)]
        self.declared = config.clone()  # saved with the run; names and folders are derived from it again
        self.declared.ckpt_path = None
        replaces = bool(self.declared.pop("replace", None))
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        trainer = config.trainer
        if trainer.default_root_dir is None:
            trainer.default_root_dir = str(Path("runs") / self._run_name(config))
        folder = RunFolder(trainer.default_root_dir)
        if config.checkpoint.dirpath is None:
            config.checkpoint.dirpath = str(folder.checkpoints)
        checkpoints = Path(config.checkpoint.dirpath)
        try:
            path, checkpoint = resolve_ckpt_path(
                None if self.subcommand == "explain" else config.ckpt_path, checkpoints
            )
            destination = self._take_destination(config)
        except ValueError as error:
            self.refuse(str(error))
        wishes = {"replaces": replaces, "restarts": config.ckpt_path == "auto"}
        config.ckpt_path = None if path is None else str(path)
        self.session = RunSession(self._run_name(config), folder, checkpoints, path, checkpoint, destination, **wishes)
        if self.subcommand != "fit":
            trainer.logger = False
        if self.subcommand == "validate":
            config.verbose = False  # Lightning's table shows a step where there is none
        self.described_loggers, trainer.logger = deferred_loggers.defer_loggers(trainer.logger)

    def _refuse_overwriting(self) -> None:
        """Refuse to overwrite another run, once nothing else is wrong; the first of several processes checks."""
        try:
            with self.session.folder.lock_folder() if self.session.folder.lock.exists() else contextlib.nullcontext():
                self.session.refuse_overwriting()
        except ValueError as error:
            self.refuse(str(error))

    def _take_destination(self, config: Namespace) -> MLflowDestination | None:
        """Remove Lightning's MLflow logger, which waits at every step; return where the record is delivered."""
        entries = config.trainer.logger if isinstance(config.trainer.logger, list) else [config.trainer.logger]
        mlflow = [entry for entry in entries if isinstance(entry, Namespace) and entry.class_path == _MLFLOW_LOGGER]
        if not mlflow:
            return None
        if len(mlflow) > 1:
            raise ValueError("trainer.logger: a run has one record in MLflow. Keep one MLFlowLogger of the list.")
        config.trainer.logger = [entry for entry in entries if entry not in mlflow] or False
        settings = mlflow[0].init_args.as_dict()
        return make_destination(
            settings, self._run_name(config), make_run_tags(config.condition, config.seed_everything)
        )

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Check stack, data and policy before a run is opened, and add the callbacks that every run has."""
        settings = self.get_instantiated("trainer")
        entries = settings["callbacks"] or []
        settings["callbacks"] = entries if isinstance(entries, list) else [entries]
        check_stack(settings["callbacks"])
        bound_advantages(
            select_operators(settings["callbacks"]), self.model.sampling.completions
        )  # some want larger groups
        if not isinstance(settings["val_check_interval"] or 1.0, int) or settings["val_check_interval"] < 1:
            raise ValueError(
                f"trainer.val_check_interval: expected a number of steps, got {settings['val_check_interval']}. Say 20."
            )
        if self.subcommand != "explain":
            self.datamodule.setup(str(self.subcommand))
        if self.subcommand != "fit":
            return self._make_feasible_trainer(**kwargs)
        if not any(isinstance(plugin, CheckpointIO) for plugin in settings["plugins"] or []):
            settings["plugins"] = [*(settings["plugins"] or []), DurableCheckpoints()]
        self.identity = identity = RunIdentity(self._run_name(self.config.fit))
        settings["callbacks"] += [
            identity,
            FinalEvaluation(),
            HeldOutVerdicts(),
            NoReward(),
            HeldOutSummary(),
            LearningCurve(identity.name),
            FinalHeatmap(),
            SaveAdapter(identity),
            make_progress_display(),
            RunStatus(),
            GracefulStop(SIGNAL_HANDLER, self.get_instantiated("checkpoint")),
            ProcessWatchdog(),
        ]
        trainer = self._make_feasible_trainer(**kwargs)
        identity.parameters = collect_run_parameters(trainer, self.model, self.datamodule)
        identity.flat = collect_flat_parameters(trainer, self.model, self.datamodule)
        refuse_foreign_checkpoint(self.session.checkpoint, identity.parameters, self.model.updates_per_rollout)
        for callback in read_callbacks(trainer):
            if isinstance(callback, SaveConfig):
                callback.config, callback.parameters = self.declared, identity.parameters
        return trainer

    def _make_feasible_trainer(self, **kwargs: Any) -> pl.Trainer:
        trainer = super().instantiate_trainer(**kwargs)
        refuse_impossible_run(trainer, self.model, self.datamodule)
        self.refuse_memory(trainer)
        if self.subcommand != "validate" and find_learning_rate(self.config[str(self.subcommand)]) == 0:
            rank_zero_only(print_message)(f"warning: {RATE_KEY} is 0, so that the policy stays as it is.")
        if self.subcommand == "fit" and not any(operator.writes for operator in find_trainer_stack(trainer)):
            rank_zero_only(print_message)("note: the stack has no operator: credit is the reward (REINFORCE).")
        if self.subcommand != "explain":
            refuse_unloadable_policy(self.model.policy)
            refuse_unreadable_prompts(self.model, self.datamodule)
            if excess := find_turn_excess(self.datamodule, self.model.sampling):
                rank_zero_only(print_message)(excess)
        return trainer

    def refuse_memory(self, trainer: pl.Trainer) -> None:
        """Refuse a policy that does not fit on this machine; warn of one that may not fit."""
        learns = self.subcommand != "validate"
        forecast = refuse_excess_memory(trainer, self.model, self.datamodule, learns=learns)
        if forecast is not None and learns:
            refuse_large_row(trainer, self.model, forecast)
        if forecast is not None and forecast.peak_bytes > forecast.room and self.subcommand != "explain":
            lines = ["warning: memory may not suffice", *forecast.report_lines()]
            rank_zero_only(print_message)("\n  ".join(lines))

    @staticmethod
    def _run_name(config: Namespace) -> str:
        return f"{config.condition}-seed{config.seed_everything}"

    def instantiate_classes(self) -> None:
        """Turn the error for a refused value into one message."""
        try:
            refuse_unusable_settings(self.config[str(self.subcommand)])
            super().instantiate_classes()
            refuse_unfit_setup(self.model, self.trainer, self.datamodule)
            self.passed_over = self.rehearse()
            if self.subcommand == "fit" and not rank_zero_only.rank:  # pyright: ignore[reportFunctionMemberAccess]
                self._refuse_overwriting()
            if self.described_loggers:
                self.trainer.loggers = deferred_loggers.instantiate_loggers(self.described_loggers)
        except Exception as error:
            if isinstance(error, RunStopped) and not isinstance(error, ValueError):
                raise
            cause = find_raised_error(error, "jsonargparse")
            self.refuse(explain_refusal(cause if isinstance(cause, (ValueError, OSError)) else error))

    def rehearse(self) -> list[str]:
        """Try the stack, local data and the output folder; return what was not tried."""
        if self.subcommand == "validate":
            return []
        for folder in (self.session.folder.path, self.session.checkpoints):
            refuse_unwritable_folder(folder)
        omission = open_local_data(self.datamodule) if self.subcommand == "explain" else None
        stack = find_trainer_stack(self.trainer)
        names = dict.fromkeys(rehearse_stack(stack, self.model.sampling.completions))
        return [
            *([f"stack, on made-up completions: {', '.join(names)}, for want of a run"] if names else []),
            *([omission] if omission else []),
        ]

    def explain(self, model: PolicyModule, datamodule: Task, **_: Any) -> None:
        """Print the configuration as a program, and what was not tried of it."""
        print(describe_configuration(self.trainer, model, datamodule, self.config.explain.condition))
        print(
            *[f"not tried: {omission}" for omission in self.passed_over], sep="\n", end="\n" if self.passed_over else ""
        )
        try:
            self.session.refuse_overwriting()
        except ValueError as error:
            print(f"warning: {error}")
        if self.config.explain.show_prompt:
            try:
                refuse_unloadable_policy(model.policy)
                print("", *preview_first_prompt(model.policy, datamodule), sep="\n")
            except REFUSAL_TYPES as error:
                self.refuse(explain_refusal(error))

    def run_subcommand(self, subcommand: str) -> None:
        """Run the command; in ``fit`` the first process locks the run's folder and keeps its record."""
        if subcommand != "fit" or rank_zero_only.rank:  # pyright: ignore[reportFunctionMemberAccess]
            super().run_subcommand(subcommand)
            return
        try:
            with self.session.hold_run(self.trainer, self.identity, SIGNAL_HANDLER):
                super().run_subcommand(subcommand)
            print(describe_run_results(self.session.folder, self.session.to), flush=True)
        except (ValueError, OSError) as error:
            if self.identity.record is None:  # nothing has been begun
                self.refuse(str(error))
            raise

    def before_fit(self) -> None:
        """Evaluate the policy before the first step, or repeat an evaluation that was interrupted."""
        steps_done, steps = self.session.checkpoint.get("global_step", 0), self.trainer.max_steps
        if 0 < steps <= steps_done and not self.session.checkpoint.get("evaluation_owed"):
            advice = f"To go on, ask for more: --trainer.max_steps {2 * steps_done}"
            print(f"{self.session.folder.path} is finished: all {steps} steps are taken. {advice}", flush=True)
        if not self.trainer.val_check_interval:
            return
        self.model.keeps_engine = True
        if self.config.fit.ckpt_path is None:
            self.trainer.validate(self.model, self.datamodule, verbose=False)
        elif self.session.checkpoint.get("evaluation_owed"):
            steps = self.trainer.fit_loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step
            steps.total.completed = self.session.checkpoint["global_step"]  # what the evaluation is named by
            self.trainer.validate(self.model, self.datamodule, ckpt_path=self.config.fit.ckpt_path, verbose=False)
        self.model.keeps_engine = False

    def after_validate(self) -> None:
        """Print and record the results."""
        parameters = collect_run_parameters(self.trainer, self.model, self.datamodule)
        step = self.session.checkpoint.get("global_step", 0)
        report_validation(self.trainer.callback_metrics, parameters, step, self.session.folder.path, self.session.to)


SIGNAL_HANDLER = SignalHandler()


def run_lightning_command(args: list[str] | None = None) -> None:
    """Run the command line; ``args`` defaults to the arguments of the process.

    Statuses are those of :mod:`rlcredit.base.exit_status`.
    """
    with SIGNAL_HANDLER.handle_signals():
        try:
            run_credit_cli(args)
        except SignalInterrupt as interrupted:
            is_unbegun = (args or sys.argv[1:])[:1] == ["fit"] and SIGNAL_HANDLER.training is None
            moment = " before the first step" if is_unbegun else ""
            rank_zero_only(print_message)(f"interrupted by {interrupted}{moment}.")
            sys.exit(interrupted.status)
        except RunStopped as ended:
            rank_zero_only(print_message)(f"error: {ended}")
            sys.exit(ended.status)
        except StackError as error:  # an operator that does not do what its header says: known at the first step
            rank_zero_only(print_message)(f"error: {error}")
            sys.exit(FAILED)
        except RuntimeError as error:
            if UNORDERED_MARK not in str(error):
                raise
            rank_zero_only(print_message)(f"error: {describe_exception(error)}")
            sys.exit(FAILED)


def instantiate_configuration(arguments: Sequence[str], cli: type[CreditCLI]) -> CreditCLI:
    """Return a command line that has instantiated the configuration in ``arguments``; nothing is loaded.

    Args:
        arguments: Arguments of ``explain``; those of the process are left alone.
        cli: Command-line class whose ``explain`` prints nothing.

    Raises:
        SystemExit: they are refused; the message has been printed.

    """
    return run_credit_cli(["explain", *arguments], cli)


def run_credit_cli(args: list[str] | None = None, cli: type[CreditCLI] = CreditCLI) -> CreditCLI:
    """Run the command line with the class ``cli``, and return it with the objects it has made."""
    silence_libraries()
    import_operators()  # so that a configuration may name every operator
    args = sys.argv[1:] if args is None else args
    ReadableParser.roots = CONFIG_ROOTS
    ReadableParser.configuration = configuration = read_configuration_or_exit(args, CONFIG_ROOTS)
    switches = dict.fromkeys([name for name in configuration.switches if name != "print_config"], True)
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
        load_from_checkpoint_support=False,  # it would keep the configuration twice; the run's record has it
        parser_class=ReadableParser,
        command=configuration.command,
        values={**configuration.values, **switches},
        words=args[1:] if any(word.partition("=")[0].endswith(".help") for word in args) else (),
    )
