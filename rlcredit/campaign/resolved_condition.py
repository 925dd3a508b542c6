"""A condition as the real parser resolves it, with the parameters that its objects report."""

import copy
import dataclasses
import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from lightning.pytorch import Trainer

from rlcredit.campaign.config_differences import hash_config
from rlcredit.campaign.record_schema import find_mlflow_settings
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.cli.application import CreditCLI, instantiate_configuration
from rlcredit.cli.explain import collect_run_parameters, find_trainer_stack, render_call
from rlcredit.config import code_fingerprint
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule


class _SilentCLI(CreditCLI):
    """Command line that does what ``explain`` does and prints nothing."""

    def explain(self, model: PolicyModule, datamodule: Task, **_: Any) -> None:
        """Print nothing."""

    def rehearse(self) -> list[str]:
        """Do nothing; the run rehearses its stack itself."""
        return []

    def refuse_memory(self, trainer: Trainer) -> None:
        """Do nothing; the machine that executes the run checks its memory."""


@dataclasses.dataclass(frozen=True)
class ResolvedCondition:
    """A condition with its complete configuration, before it runs.

    Args:
        leaves: Whole configuration, defaults and nulls included.
        parameters: Parameters that the instantiated objects report, as a run stores them.
        trainer: Trainer that its runs would use.
        module: Training module, its weights not read.
        task: Task, its data not read.

    """

    leaves: dict[str, Any]
    parameters: dict[str, Any]
    trainer: Trainer
    module: PolicyModule
    task: Task

    @property
    def cost_sha256(self) -> str:
        """Hash of all that the time of a step depends on: not seed, names, optimizer, or credit that costs nothing.

        Operators count if they are ``costly``.
        """
        config = copy.deepcopy(self.leaves)
        del config["seed_everything"], config["condition"], config["threads"], config["model"]["optimizer"]
        del config["trainer"]["default_root_dir"], config["trainer"]["callbacks"], config["trainer"]["logger"]
        costly = [render_call(operator) for operator in find_trainer_stack(self.trainer) if operator.costly]
        return hash_config({**config, "costly": costly})

    @property
    def mlflow_settings(self) -> dict[str, str] | None:
        """Experiment and address of the MLflow logger, None if none is configured."""
        return find_mlflow_settings(self.leaves)


def resolve_condition(arguments: Sequence[str]) -> ResolvedCondition:
    """Parse and instantiate the arguments of ``rlcredit fit``; nothing is loaded.

    Raises:
        SystemExit: the arguments are refused; the message has been printed.

    """
    cli = instantiate_configuration(arguments, _SilentCLI)
    leaves = yaml.safe_load(cli.get_subcommand_parser("explain").dump(cli.declared, skip_none=False))
    del leaves["show_prompt"]  # of explain alone
    parameters = collect_run_parameters(cli.trainer, cli.model, cli.datamodule)
    return ResolvedCondition(leaves, parameters, cli.trainer, cli.model, cli.datamodule)


def fingerprint_own_code(resolutions: Iterable[ResolvedCondition]) -> dict[str, str]:
    """Return fingerprints of the user's modules that some conditions name, by module name."""
    return code_fingerprint.fingerprint_modules(
        code_fingerprint.trace_user_modules(
            code_fingerprint.find_dotted_paths([resolution.leaves for resolution in resolutions])
        )
    )


def configure_run(
    leaves: dict[str, Any], spec: RunSpec, threads: int, settings: Iterable[tuple[str, Any]] = ()
) -> dict[str, Any]:
    """Return the configuration of one run of a condition: its own seed, folder and threads, all else the same.

    Args:
        leaves: Resolved configuration of the condition.
        spec: Run to configure.
        threads: CPU threads of the run.
        settings: Further settings that depend on its seed, by dotted keys.

    """
    config = copy.deepcopy(leaves)
    config["seed_everything"], config["threads"] = spec.seed, threads
    config["trainer"]["default_root_dir"] = str(spec.folder)
    for name, value in settings:
        *path, leaf = name.split(".")
        functools.reduce(operator.getitem, path, config)[leaf] = value
    return config
