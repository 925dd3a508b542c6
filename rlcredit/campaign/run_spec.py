"""One run of a campaign: its name, its folder, and its command."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.config.paths import find_declared_file
from rlcredit.config.reader import SOURCE_MARK
from rlcredit.run_folder.layout import RunFolder


def name_run(condition: str, seed: int) -> str:
    """Return the name of a run, used in the ledger, in MLflow and in messages.

    Example:
        >>> name_run("grpo", 0)
        'grpo/seed0'

    """
    return f"{condition}/seed{seed}"


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """A condition and a seed, which together identify a run.

    Args:
        condition: Name of the condition in the campaign.
        seed: Seed of the data order, the first weights and the sampling noise.
        root: Folder of the campaign.

    """

    condition: str
    seed: int
    root: Path

    @property
    def name(self) -> str:
        """Name of the run in the ledger and in messages."""
        return name_run(self.condition, self.seed)

    @property
    def folder(self) -> Path:
        """Folder that the run writes to."""
        return self.root / self.condition / f"seed{self.seed}"

    @property
    def run_folder(self) -> RunFolder:
        """Layout of that folder."""
        return RunFolder(self.folder)


def list_run_specs(declaration: CampaignDeclaration, root: Path) -> list[RunSpec]:
    """Return all runs, family by family and within each seed by seed, so that one question is answered before the next.

    A condition that is in several families comes with the first, one that is in none comes last.
    """
    groups = [(family.baseline, *family.conditions) for family in declaration.comparison_families.values()]
    pairs = (
        (condition, seed)
        for group in [*groups, tuple(declaration.conditions)]
        for seed in declaration.seeds
        for condition in group
    )
    return [RunSpec(condition, seed, root) for condition, seed in dict.fromkeys(pairs)]


QUESTION_SETTING = "data.init_args.generator_seed"
"""Setting that questions of a generated task depend on."""


def derive_question_seed(seed: int) -> int:
    """Return the generator's seed for the questions of a run's seed, far from those of the seeds beside it.

    reasoning-gym makes question i of seed s from s + i, so that neighbouring seeds would share all questions but one.

    Example:
        >>> derive_question_seed(0), derive_question_seed(1)
        (1484405855, 917752063)

    """
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) >> 1


def list_seed_settings(spec: RunSpec, declaration: CampaignDeclaration) -> list[tuple[str, int | None]]:
    """Return the settings by which a seed gets held-out questions and samples of its own."""
    questions: list[tuple[str, int | None]] = [(QUESTION_SETTING, derive_question_seed(spec.seed))]
    draws: list[tuple[str, int | None]] = [("model.validation_seed", None)]
    choice = declaration.held_out
    return [*(questions if choice.questions == "by_seed" else ()), *(draws if choice.draws == "by_seed" else ())]


def list_end_arguments(declaration: CampaignDeclaration) -> list[str]:
    """Return the arguments of ``rlcredit fit`` that say where a run ends."""
    budget = declaration.budget
    if budget is None:
        return [f"--trainer.max_steps={declaration.end}"]
    evaluations = budget.evaluations or budget.marks[1:]
    ends = f"TokenBudget({budget.key}={budget.tokens}, evaluations={evaluations})"
    return ["--trainer.max_steps=-1", f"--trainer.callbacks+={ends}"]


def build_fit_arguments(
    spec: RunSpec, declaration: CampaignDeclaration, threads: int, settings: Path, *, ends: bool = True
) -> list[str]:
    """Return the arguments of ``rlcredit fit`` for a run; later files win.

    Args:
        spec: Run that is to be started.
        declaration: Declaration of the campaign.
        threads: CPU threads of the run.
        settings: File that holds the campaign's own settings.
        ends: Whether to say where the run ends.

    """
    declared_files = [*declaration.configs, *declaration.conditions[spec.condition]]
    files = [*(find_declared_file(file, declaration.folder) for file in declared_files), settings]
    return [
        *(f"--config={file}" for file in files),
        f"--seed_everything={spec.seed}",
        *(f"--{name}={'null' if value is None else value}" for name, value in list_seed_settings(spec, declaration)),
        f"--condition={spec.condition}",
        f"--threads={threads}",
        *(list_end_arguments(declaration) if ends else ()),
        f"--trainer.default_root_dir={spec.folder}",
    ]


def build_run_command(args: Sequence[str]) -> list[str]:
    """Return the command of a run whose process ends with its parent."""
    return [sys.executable, "-m", "rlcredit.campaign.child_process", "fit", *args]


def render_settings(settings: dict[str, Any], place: str = "") -> str:
    """Render dotted keys as a configuration file, which keeps their types where a command line would guess.

    Args:
        settings: Values by dotted keys.
        place: File, line and key that declare them, which messages then name.

    Example:
        >>> print(render_settings({"data.init_args.seed": 1, "data.init_args.name": "x"}, "a.yaml:9: settings").strip())
        # From a.yaml:9: settings
        data:
          init_args:
            seed: 1
            name: x

    """
    content: dict[str, Any] = {}
    for key, value in settings.items():
        *path, leaf = [key] if key.startswith("trainer.callbacks.") else key.split(".")  # one entry of a list
        group = content
        for part in path:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                raise ValueError(f"settings: {key} lies inside the value of another setting. Keep one of them.")
        group[leaf] = value
    mark = f"{SOURCE_MARK}{place}\n" if place else ""
    return mark + yaml.safe_dump(content, sort_keys=False)
