"""The policy that a command names: by checkpoint, adapter, model or configuration."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcredit.base.exit_status import REFUSED, RunStopped
from rlcredit.base.files import suggest_path
from rlcredit.cli.application import CreditCLI, instantiate_configuration
from rlcredit.cli.engine_text import build_engine
from rlcredit.config.arguments import LOOSE_OPTION
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.adapters import ADAPTER_CONFIG, install_adapter, load_adapter_weights, read_adapter_settings
from rlcredit.policy.model_loading import find_fastest_device
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.preflight.policy import refuse_unloadable_policy
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule


@dataclass
class NamedPolicy:
    """A policy with what is known about it.

    Attributes:
        policy: Policy, loaded on the accelerator if there is one.
        engine: Engine that decodes its completions.
        sampling: How the policy's run draws completions; the defaults without a configuration.
        task: Task of the policy's configuration, None without one; no data is read.
        name: Name to show to people.
        run: Folder of its run, if one is known.
        step: Optimizer steps taken, if known.

    """

    policy: Policy
    engine: Engine
    sampling: Sampling
    task: Task | None
    name: str
    run: RunFolder | None = None
    step: int | None = None


class _SilentCLI(CreditCLI):
    """Command line that instantiates a configuration and does nothing else, whatever machine it was written for."""

    def before_instantiate_classes(self) -> None:
        super().before_instantiate_classes()
        trainer = self.config.explain.trainer
        trainer.accelerator, trainer.devices, trainer.num_nodes, trainer.strategy = "cpu", 1, 1, "auto"
        trainer.precision = None

    def explain(self, model: PolicyModule, datamodule: Task, **_: object) -> None:
        """Print nothing."""

    def rehearse(self) -> list[str]:
        """Do nothing; the run rehearses its stack itself."""
        return []


def build_module_and_task(arguments: Sequence[str]) -> tuple[PolicyModule, Task]:
    """Return the training module and task of a configuration; nothing is loaded.

    Raises:
        SystemExit: it is refused; the message has been printed.

    """
    cli = instantiate_configuration(arguments, _SilentCLI)
    return cli.model, cli.datamodule


def load_named_policy(args: argparse.Namespace, options: Sequence[str] = ()) -> NamedPolicy:
    """Load the policy that a command line names.

    Args:
        args: Parsed arguments; see :func:`~rlcredit.cli.shared_options.add_policy_options`.
        options: Configuration options, not yet parsed.

    Raises:
        ValueError: none is named, or it does not exist; with the repair.

    """
    adapter, checkpoint, run = args.adapter, None, None
    if args.ckpt_path is not None and (args.ckpt_path / ADAPTER_CONFIG).is_file():
        adapter = args.ckpt_path
    elif args.ckpt_path is not None:
        checkpoint, run = _find_checkpoint(args.ckpt_path)
    files = args.config or ([str(run.config)] if run and run.config.is_file() else [])
    if checkpoint and not files:
        raise ValueError(f"{checkpoint}: there is no configuration beside it. Name the one of its run with --config.")
    if options and not files:
        raise ValueError(LOOSE_OPTION.format(options[0]))
    if files:
        choice = _build_configured_policy([*(f"--config={file}" for file in files), *options])
    else:
        choice = _build_plain_policy(args, adapter)
    if getattr(args, "engine", None):
        choice.engine = build_engine(args.engine)
    refuse_unloadable_policy(choice.policy, None if files else adapter)
    choice.engine.refuse_run(choice.policy, 1)
    choice.policy.load()
    if source := checkpoint or adapter:
        install_adapter(choice.policy, load_adapter_weights(source))
    if checkpoint:
        choice.step = read_checkpoint(checkpoint)["global_step"]
        choice.run, choice.name = run, f"{choice.name}, {checkpoint} (step {choice.step})"
    elif adapter:
        choice.name += f", adapter {adapter}"
    choice.policy.to(find_fastest_device())
    return choice


def _build_configured_policy(arguments: Sequence[str]) -> NamedPolicy:
    module, task = build_module_and_task(arguments)
    return NamedPolicy(module.policy, module.engine, module.sampling, task, module.policy.path)


def _build_plain_policy(args: argparse.Namespace, adapter: Path | None) -> NamedPolicy:
    if adapter is None and args.model is None:
        raise ValueError("no policy is named. Give --ckpt_path, --adapter, --model or --config.")
    lora, base = read_adapter_settings(adapter) if adapter else ({}, "")
    if not (path := args.model or base):
        raise ValueError(f"{adapter}: {ADAPTER_CONFIG} does not name its base model. Name it with --model.")
    policy = Policy(path, LoRA(**lora))
    policy.prompt = PromptFormat(not args.raw, None if args.thinking is None else args.thinking == "on")
    return NamedPolicy(policy, InProcessEngine(), Sampling(), None, policy.path)


def _find_checkpoint(path: Path) -> tuple[Path, RunFolder]:
    """Return a checkpoint and its run's folder; for a run, its newest intact checkpoint."""
    if not path.is_dir():
        if not path.is_file():
            raise ValueError(f"--ckpt_path: there is no file or folder {path}.{suggest_path(path)}")
        return path, RunFolder(path.absolute().parent.parent)
    run = RunFolder(path)
    folders = (run.checkpoints, path)
    newest = next(
        (checkpoint for checkpoint, _ in map(find_newest_checkpoint, folders) if checkpoint is not None), None
    )
    if newest is None:
        raise ValueError(f"--ckpt_path: {path} holds no intact checkpoint and no adapter.")
    return newest, run if newest.parent == run.checkpoints else RunFolder(path.parent)


def run_or_refuse(run: Callable[[], int]) -> int:
    """Run a command; a refusal becomes one message and exit status 2."""
    try:
        return run()
    except (ValueError, OSError, RunStopped) as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
