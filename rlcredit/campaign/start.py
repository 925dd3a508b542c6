"""A declaration becomes a plan, and a plan that is accepted becomes runs."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.campaign import plan, table
from rlcredit.campaign.declaration import Declaration
from rlcredit.campaign.launchers.launcher import Launcher, Share
from rlcredit.campaign.ledger import FAILED, Ledger
from rlcredit.campaign.measure import by_condition
from rlcredit.campaign.metric import held_out_metric, unlike
from rlcredit.campaign.parent import Parent
from rlcredit.campaign.resolution import Resolution, own_code, resolved
from rlcredit.campaign.run_spec import RunSpec, arguments, specs
from rlcredit.campaign.runs import continuable, status
from rlcredit.campaign.scheduler import Scheduler
from rlcredit.files import write_atomically


@dataclasses.dataclass(frozen=True)
class Planned:
    """What would run.

    Args:
        resolutions: of all conditions.
        evaluations: steps after which a run is evaluated.
        launcher: of the runs.
        text: the plan, for people.

    """

    resolutions: dict[str, Resolution]
    evaluations: list[int]
    launcher: Launcher
    text: str


def planned(
    declaration: Declaration, root: Path, settings: Path, share: Share, threads: int | None, *, measure: bool = True
) -> Planned:
    """Resolve every condition, share out the machines, measure steps.

    Args:
        declaration: of the campaign.
        root: folder of the campaign.
        settings: the declaration's, as a file.
        share: what there is to run on.
        threads: of a run, if given; those fixed with the declaration otherwise.
        measure: whether to measure what has not been measured before.

    """
    firsts = {name: RunSpec(name, declaration.seeds[0], root) for name in declaration.conditions}
    resolutions = {name: resolved(arguments(spec, declaration, 1, settings)) for name, spec in firsts.items()}
    refuse_unlike(declaration, {name: resolution.leaves for name, resolution in resolutions.items()})
    baseline = resolutions[declaration.baseline]
    evaluations = [plan.evaluated(resolution) for resolution in resolutions.values()]
    if any(steps != evaluations[0] for steps in evaluations):
        raise ValueError("trainer.val_check_interval differs between conditions, whose curves could not be compared.")
    launcher = share(baseline, threads or Ledger(root).content.get("threads"))
    run_arguments = {name: arguments(spec, declaration, launcher.threads, settings) for name, spec in firsts.items()}
    timings = by_condition(run_arguments, resolutions, launcher, root, measure=measure)
    text = "\n".join(plan.lines(declaration, baseline, launcher, timings))
    if short := plan.shortfall(declaration):
        text += f"\nshort      {short}"
    return Planned(resolutions, evaluations[0], launcher, text)


def refuse_unlike(declaration: Declaration, configs: Mapping[str, Any]) -> None:
    """Refuse a family whose conditions are not measured alike.

    Raises:
        ValueError: with what differs.

    """
    measures = {name: held_out_metric(declaration, config) for name, config in configs.items()}
    for family, members in declaration.compared.items():
        for name in members.conditions:
            if reasons := unlike(measures[name], measures[members.baseline], (name, members.baseline)):
                raise ValueError(
                    f"families.{family}: {declaration.primary} is not one metric in all of it: {'; '.join(reasons)}. "
                    "Evaluate its conditions alike."
                )


def started(
    declaration: Declaration, root: Path, settings: str, share: Share, threads: int | None, *, measure: bool = True
) -> int:
    """Print the plan, fix the declaration, and run what is missing; return the exit status.

    Without ``measure`` the plan says nothing of time that is not known already.
    """
    ledger, file = Ledger(root), root / "settings.yaml"
    short = None if declaration.exploratory else plan.shortfall(declaration)
    added = ledger.added_seeds(declaration.plain())
    if ledger.fixed and not added:
        ledger.fix({"declaration": declaration.plain()})
    write_atomically(file, settings)
    ready = planned(declaration, root, file, share, threads, measure=measure and short is None)
    print(ready.text, flush=True)
    if short:
        raise ValueError(short)
    _refuse_unknown_runs(specs(declaration, root), ledger, ready.evaluations)
    if added:
        print(
            f"seeds      {', '.join(map(str, added))} are added to an exploratory campaign; no verdict will come of it."
        )
        ledger.add_seeds(declaration.plain(), declaration.sha256)
    named = ready.resolutions.items()
    ledger.fix(
        {
            "declaration": declaration.plain(),
            "sha256": declaration.sha256,
            "threads": ready.launcher.threads,
            "configs": {name: resolution.leaves for name, resolution in named},
            "parameters": {name: resolution.parameters for name, resolution in named},
            "code": own_code(ready.resolutions.values()),
        }
    )
    parent = Parent(ready.resolutions[declaration.baseline].mlflow, declaration, ledger)
    scheduler = Scheduler(declaration, ready.resolutions, ready.evaluations, ready.launcher, file, ledger, parent)
    runs = specs(declaration, root)
    missing = [spec for spec in runs if not ledger.finished(spec)]
    for spec in missing:
        if ledger.of(spec):
            ledger.note(spec, state="waiting")  # the state that an earlier process noted no longer holds
    if len(missing) < len(runs):
        print(f"{len(runs) - len(missing)} of {len(runs)} runs are finished.", flush=True)

    def rows() -> Iterator[table.Row]:
        return (table.row(run.name, ledger.of(run), status(run), declaration.steps, ready.evaluations) for run in runs)

    try:
        with table.view(rows) as view:
            scheduler.through(missing, view)
    except KeyboardInterrupt:
        parent.close("KILLED", ledger.path)
        raise
    except Exception:
        parent.close("FAILED", ledger.path)
        raise
    return _concluded(ledger, runs, parent)


def _refuse_unknown_runs(runs: Sequence[RunSpec], ledger: Ledger, evaluations: Sequence[int]) -> None:
    """Refuse to begin a run anew where one lies that the ledger has lost, and that cannot be continued.

    Raises:
        ValueError: with what lies there and the repair.

    """
    for spec in runs:
        known = ledger.of(spec) or continuable(spec, evaluations)
        if not known and (results := spec.run.results()):
            raise ValueError(
                f"{spec.folder} holds a run that {ledger.path} does not know: {'; '.join(results)}. Restore the ledger "
                "from a copy (MLflow keeps one with the campaign), or move that folder away."
            )


def _concluded(ledger: Ledger, runs: list[RunSpec], parent: Parent) -> int:
    """Print how all runs ended, close the MLflow run, and return the exit status."""
    failed = [spec.name for spec in runs if ledger.of(spec).get("state") == FAILED]
    differing = [spec.name for spec in runs if ledger.of(spec).get("differences")]
    print(f"{len(runs) - len(failed)} of {len(runs)} runs are finished; the ledger is {ledger.path}.")
    if failed:
        print(f"failed: {', '.join(failed)}. Their logs say why; the same command tries them again.")
    if differing:
        print(f"executed otherwise than declared: {', '.join(differing)}. A report will refuse them.")
    parent.close("FAILED" if failed or differing else "FINISHED", ledger.path)
    return 1 if failed or differing else 0
