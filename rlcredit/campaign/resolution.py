"""The configuration of a run as the real parser resolves it, and what its objects say they are."""

import copy
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from lightning.pytorch import Trainer

from rlcredit.campaign.differences import sha256
from rlcredit.campaign.recorded import mlflow_of
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.command_line.cli import CreditCLI, instantiated
from rlcredit.command_line.explain import call, run_parameters, stack_of
from rlcredit.inputs import code
from rlcredit.module import PolicyModule
from rlcredit.tasks import Task


class _Resolve(CreditCLI):
    """Do what ``explain`` does, and print nothing."""

    def explain(self, model: PolicyModule, datamodule: Task, **_: Any) -> None:
        """Be silent."""

    def rehearse(self) -> list[str]:
        """Leave that to the run."""
        return []

    def refuse_memory(self, trainer: Trainer) -> None:
        """Leave that to the machine that will run it."""


@dataclasses.dataclass(frozen=True)
class Resolution:
    """A condition before it runs.

    Args:
        leaves: its whole configuration, defaults and nulls included.
        parameters: what the instantiated objects say, as a run stores it.
        trainer: as it would train.
        module: with weights not read.
        task: with data not read.

    """

    leaves: dict[str, Any]
    parameters: dict[str, Any]
    trainer: Trainer
    module: PolicyModule
    task: Task

    @property
    def cost(self) -> str:
        """A hash of what a step's time is known to depend on: all but seed, names, optimizer, and credit that is free.

        Operators count if they are ``costly``.
        """
        config = copy.deepcopy(self.leaves)
        del config["seed_everything"], config["condition"], config["threads"], config["model"]["optimizer"]
        del config["trainer"]["default_root_dir"], config["trainer"]["callbacks"], config["trainer"]["logger"]
        return sha256({**config, "costly": [call(operator) for operator in stack_of(self.trainer) if operator.costly]})

    @property
    def mlflow(self) -> dict[str, str] | None:
        """Experiment and address of the configured MLflow logger, None if there is none."""
        return mlflow_of(self.leaves)


def resolved(arguments: Sequence[str]) -> Resolution:
    """Parse and instantiate what ``rlcredit fit`` would be given; nothing is loaded.

    Raises:
        SystemExit: the arguments are refused; the message has been printed.

    """
    cli = instantiated(arguments, _Resolve)
    leaves = yaml.safe_load(cli._parser("explain").dump(cli.declared, skip_none=False))
    del leaves["show_prompt"]  # of explain alone
    described = run_parameters(cli.trainer, cli.model, cli.datamodule)
    return Resolution(leaves, described, cli.trainer, cli.model, cli.datamodule)


def own_code(resolutions: Iterable[Resolution]) -> dict[str, str]:
    """Identify what the modules of one's own say now that some conditions name, by the names of these modules."""
    return code.meanings(code.own(code.named([resolution.leaves for resolution in resolutions])))


def of_spec(leaves: dict[str, Any], spec: RunSpec, threads: int) -> dict[str, Any]:
    """Return the configuration of one run of a condition: its seed, folder and threads, all else the same."""
    config = copy.deepcopy(leaves)
    config["seed_everything"], config["threads"] = spec.seed, threads
    config["trainer"]["default_root_dir"] = str(spec.folder)
    return config
