"""Planning a campaign from its declaration, and running the plan."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rlcredit.base.files import write_atomically
from rlcredit.campaign import plan_text, run_view
from rlcredit.campaign.campaign_record import FAILED, CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration, DeclaredBudget, HeldOutChoice
from rlcredit.campaign.launchers.run_launcher import RunLauncher, Share
from rlcredit.campaign.metric_definition import define_held_out_metric, list_metric_differences
from rlcredit.campaign.mlflow_parent import MLflowParentRun
from rlcredit.campaign.resolved_condition import (
    ResolvedCondition,
    configure_run,
    fingerprint_own_code,
    resolve_condition,
)
from rlcredit.campaign.run_spec import QUESTIONS, RunSpec, build_fit_arguments, list_run_specs, list_seed_settings
from rlcredit.campaign.run_state import can_continue_run, read_run_status
from rlcredit.campaign.scheduler import RunScheduler
from rlcredit.campaign.step_timing import measure_conditions
from rlcredit.supervision.token_budget import refuse_step_schedule


@dataclasses.dataclass(frozen=True)
class CampaignPlan:
    """Plan of the runs of a campaign.

    Args:
        resolutions: Resolved configurations of all conditions, by name.
        evaluations: Steps after which a run is evaluated, or tokens of the budget.
        launcher: Launcher that starts the runs.
        text: Plan in words, for people.

    """

    resolutions: dict[str, ResolvedCondition]
    evaluations: list[int]
    launcher: RunLauncher
    text: str


def plan_campaign(
    declaration: CampaignDeclaration,
    root: Path,
    settings: Path,
    share: Share,
    threads: int | None,
    *,
    measure: bool = True,
) -> CampaignPlan:
    """Resolve every condition, choose the slots, and measure the time of a step.

    Args:
        declaration: Declaration of the campaign.
        root: Folder of the campaign.
        settings: File with the settings of the declaration.
        share: Function that opens the launcher for runs like the baseline's.
        threads: CPU threads per run, if given; those fixed with the declaration otherwise.
        measure: Whether to measure the step time of conditions that have not been measured before.

    """
    specs = {name: RunSpec(name, declaration.seeds[0], root) for name in declaration.conditions}
    shared = dataclasses.replace(declaration, held_out=HeldOutChoice())  # a task may not accept the seeds' settings
    resolutions = {
        name: resolve_condition(build_fit_arguments(spec, shared, 1, settings)) for name, spec in specs.items()
    }
    refuse_fixed_questions(declaration, resolutions)
    for name, spec in specs.items():
        leaves = configure_run(resolutions[name].leaves, spec, 1, list_seed_settings(spec, declaration))
        resolutions[name] = dataclasses.replace(resolutions[name], leaves=leaves)
    refuse_unlike_metrics(declaration, {name: resolution.leaves for name, resolution in resolutions.items()})
    baseline = resolutions[declaration.baseline]
    for name, resolution in resolutions.items() if declaration.budget else ():
        try:
            refuse_step_schedule(resolution.module)
        except ValueError as error:
            raise ValueError(f"conditions.{name}: {error}") from None
    evaluations = [plan_text.list_evaluations(declaration, resolution) for resolution in resolutions.values()]
    if any(steps != evaluations[0] for steps in evaluations):
        raise ValueError(
            "trainer.val_check_interval differs between conditions. Give all of them the same value, so that their "
            "curves can be compared."
        )
    launcher = share(baseline, threads or CampaignRecord(root).content.get("threads"))
    run_arguments = {
        name: build_fit_arguments(spec, declaration, launcher.threads, settings, ends=False)
        for name, spec in specs.items()
    }
    counts = declaration.budget is not None
    timings = measure_conditions(run_arguments, resolutions, launcher, root, measure=measure, counts=counts)
    text = "\n".join(plan_text.describe_campaign(declaration, baseline, launcher, timings))
    if short := plan_text.explain_seed_shortfall(declaration):
        text += f"\nshort      {short}"
    return CampaignPlan(resolutions, evaluations[0], launcher, text)


def refuse_fixed_questions(declaration: CampaignDeclaration, resolutions: Mapping[str, ResolvedCondition]) -> None:
    """Refuse questions by seed where the task does not generate its questions.

    Raises:
        ValueError: with the condition and the repair.

    """
    leaf = QUESTIONS.rpartition(".")[2]
    for name, resolution in resolutions.items() if declaration.held_out.questions == "by_seed" else ():
        if leaf not in resolution.leaves["data"]["init_args"]:
            raise ValueError(
                f"held_out.questions: by_seed needs a task that generates its questions, but {name} asks "
                f"{type(resolution.task).__name__}, whose held-out questions are fixed. Set questions: shared."
            )


def refuse_unlike_metrics(declaration: CampaignDeclaration, configs: Mapping[str, Any]) -> None:
    """Refuse a family whose conditions define the primary metric differently.

    Raises:
        ValueError: with what differs.

    """
    measures = {name: define_held_out_metric(declaration, config) for name, config in configs.items()}
    for family, members in declaration.comparison_families.items():
        for name in members.conditions:
            if reasons := list_metric_differences(measures[name], measures[members.baseline], (name, members.baseline)):
                raise ValueError(
                    f"families.{family}: {declaration.primary} differs between its conditions: {'; '.join(reasons)}. "
                    "Evaluate them alike."
                )


def run_campaign(
    declaration: CampaignDeclaration,
    root: Path,
    settings: str,
    share: Share,
    threads: int | None,
    *,
    measure: bool = True,
    screen: TextIO | None = None,
) -> int:
    """Print the plan, fix the declaration, and start the missing runs; return the exit status.

    Args:
        declaration: Declaration of the campaign.
        root: Folder of the campaign.
        settings: Settings of the declaration, as YAML.
        share: Function that opens the launcher for runs like the baseline's.
        threads: CPU threads per run, if given.
        measure: Whether to measure step times, without which the plan says nothing of time that is not known already.
        screen: Terminal for the progress of the runs, if standard output goes elsewhere.

    """
    ledger, file = CampaignRecord(root), root / "settings.yaml"
    short = None if declaration.exploratory else plan_text.explain_seed_shortfall(declaration)
    added = ledger.added_seeds(declaration.to_json())
    if ledger.is_fixed and not added:
        ledger.fix_declaration({"declaration": declaration.to_json()})
    write_atomically(file, settings)
    ready = plan_campaign(declaration, root, file, share, threads, measure=measure and short is None)
    print(ready.text, flush=True)
    if short:
        raise ValueError(short)
    _refuse_unknown_runs(list_run_specs(declaration, root), ledger, ready.evaluations, declaration.budget)
    if added:
        print(
            f"seeds      {', '.join(map(str, added))} are added to an exploratory campaign; no verdict will come of it."
        )
        ledger.add_seeds(declaration.to_json(), declaration.sha256)
    named = ready.resolutions.items()
    ledger.fix_declaration(
        {
            "declaration": declaration.to_json(),
            "sha256": declaration.sha256,
            "threads": ready.launcher.threads,
            "configs": {name: resolution.leaves for name, resolution in named},
            "parameters": {name: resolution.parameters for name, resolution in named},
            "code": fingerprint_own_code(ready.resolutions.values()),
        }
    )
    parent = MLflowParentRun(ready.resolutions[declaration.baseline].mlflow_settings, declaration, ledger)
    scheduler = RunScheduler(declaration, ready.resolutions, ready.evaluations, ready.launcher, file, ledger, parent)
    runs = list_run_specs(declaration, root)
    missing = [spec for spec in runs if not ledger.is_finished(spec)]
    for spec in missing:
        if ledger.run_entry(spec):
            ledger.update_run(spec, state="waiting")  # the state that an earlier process noted no longer holds
    if len(missing) < len(runs):
        print(f"{len(runs) - len(missing)} of {len(runs)} runs are finished.", flush=True)

    def rows() -> Iterator[run_view.Row]:
        return (
            run_view.describe_run_row(
                run.name, ledger.run_entry(run), read_run_status(run), declaration.steps, ready.evaluations
            )
            for run in runs
        )

    try:
        with run_view.open_run_view(rows, screen) as view:
            scheduler.run_missing(missing, view)
    except KeyboardInterrupt:
        parent.end_run("KILLED", ledger.path)
        raise
    except Exception:
        parent.end_run("FAILED", ledger.path)
        raise
    return _conclude_campaign(ledger, runs, parent)


def _refuse_unknown_runs(
    runs: Sequence[RunSpec], ledger: CampaignRecord, evaluations: Sequence[int], budget: DeclaredBudget | None
) -> None:
    """Refuse to restart a run in a folder whose run is not in the ledger and cannot be continued.

    Raises:
        ValueError: with what lies there and the repair.

    """
    for spec in runs:
        known = ledger.run_entry(spec) or can_continue_run(spec, evaluations, budget)
        if not known and (results := spec.run_folder.describe_results()):
            raise ValueError(
                f"{spec.folder} holds a run that {ledger.path} does not know: {'; '.join(results)}. Restore the ledger "
                "from a copy (MLflow keeps one with the campaign), or move that folder away."
            )


def _conclude_campaign(ledger: CampaignRecord, runs: list[RunSpec], parent: MLflowParentRun) -> int:
    """Print how all runs ended, close the MLflow run, and return the exit status."""
    failed = [spec.name for spec in runs if ledger.run_entry(spec).get("state") == FAILED]
    differing = [spec.name for spec in runs if ledger.run_entry(spec).get("differences")]
    print(f"{len(runs) - len(failed)} of {len(runs)} runs are finished; the ledger is {ledger.path}.")
    if failed:
        print(f"failed: {', '.join(failed)}. Their logs say why; the same command tries them again.")
    if differing:
        print(f"executed otherwise than declared: {', '.join(differing)}. A report will refuse them.")
    parent.end_run("FAILED" if failed or differing else "FINISHED", ledger.path)
    return 1 if failed or differing else 0
