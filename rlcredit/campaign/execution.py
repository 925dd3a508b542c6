"""Planning a campaign from its declaration, and running the plan."""

import dataclasses
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rlcredit.base.files import write_atomically
from rlcredit.campaign import plan_text, run_view
from rlcredit.campaign.campaign_record import FAILED_STATE, CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration, DeclaredBudget, HeldOutChoice
from rlcredit.campaign.launchers.run_launcher import LauncherFactory, RunLauncher
from rlcredit.campaign.metric_definition import define_held_out_metric, list_metric_differences
from rlcredit.campaign.mlflow_parent import MLflowParentRun
from rlcredit.campaign.resolved_condition import (
    ResolvedCondition,
    configure_run,
    fingerprint_own_code,
    resolve_condition,
)
from rlcredit.campaign.run_spec import (
    QUESTION_SETTING,
    RunSpec,
    build_fit_arguments,
    list_run_specs,
    list_seed_settings,
)
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
    make_launcher: LauncherFactory,
    threads: int | None,
    *,
    measure: bool = True,
) -> CampaignPlan:
    """Resolve every condition, choose the slots, and measure the time of a step.

    Args:
        declaration: Declaration of the campaign.
        root: Folder of the campaign.
        settings: File with the settings of the declaration.
        make_launcher: Function that makes the launcher for runs like the baseline's.
        threads: CPU threads per run, if given; those fixed with the declaration otherwise.
        measure: Whether to measure the step time of conditions that have not been measured before.

    """
    specs = {name: RunSpec(name, declaration.seeds[0], root) for name in declaration.conditions}
    # Without the settings of the seeds, which a task may not accept.
    shared_declaration = dataclasses.replace(declaration, held_out=HeldOutChoice())
    resolutions = {
        name: resolve_condition(build_fit_arguments(spec, shared_declaration, 1, settings))
        for name, spec in specs.items()
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
    launcher = make_launcher(baseline, threads or CampaignRecord(root).content.get("threads"))
    run_arguments = {
        name: build_fit_arguments(spec, declaration, launcher.threads, settings, ends=False)
        for name, spec in specs.items()
    }
    timings = measure_conditions(run_arguments, resolutions, launcher, root, measure=measure)
    text = "\n".join(plan_text.describe_campaign(declaration, baseline, launcher, timings))
    if short := plan_text.explain_seed_shortfall(declaration):
        text += f"\nshort      {short}"
    return CampaignPlan(resolutions, evaluations[0], launcher, text)


def refuse_fixed_questions(declaration: CampaignDeclaration, resolutions: Mapping[str, ResolvedCondition]) -> None:
    """Refuse questions by seed where the task does not generate its questions.

    Raises:
        ValueError: with the condition and the repair.

    """
    leaf = QUESTION_SETTING.rpartition(".")[2]
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
                    f"{f'families.{family}: ' if family else ''}{declaration.primary} differs between conditions that "
                    f"are compared: {'; '.join(reasons)}. "
                    "Evaluate them alike."
                )


def fix_campaign(
    declaration: CampaignDeclaration,
    root: Path,
    settings: str,
    make_launcher: LauncherFactory,
    threads: int | None,
    *,
    measure: bool = True,
    output: TextIO | None = None,
) -> RunScheduler:
    """Print the plan and fix the declaration; return the scheduler of the campaign's runs.

    Args:
        declaration: Declaration of the campaign.
        root: Folder of the campaign.
        settings: Settings of the declaration, as YAML.
        make_launcher: Function that makes the launcher for runs like the baseline's.
        threads: CPU threads per run, if given.
        measure: Whether to measure step times, without which the plan says nothing of time that is not known already.
        output: Stream for the plan; standard output if None.

    Raises:
        ValueError: the campaign is refused; with the repair.

    """
    ledger = CampaignRecord(root)
    file = root / "settings.yaml"
    plain = declaration.to_json()
    shortfall = None if declaration.exploratory else plan_text.explain_seed_shortfall(declaration)
    new_seeds = ledger.added_seeds(plain)
    ledger.refuse_changed_declaration(plain)
    write_atomically(file, settings)
    plan = plan_campaign(declaration, root, file, make_launcher, threads, measure=measure and shortfall is None)
    print(plan.text, flush=True, file=output)
    if shortfall:
        raise ValueError(shortfall)
    _refuse_unknown_runs(list_run_specs(declaration, root), ledger, plan.evaluations, declaration.budget)
    if new_seeds:
        seeds = ", ".join(map(str, new_seeds))
        print(f"seeds      {seeds} are added to an exploratory campaign; no verdict will come of it.", file=output)
        ledger.add_seeds(plain, declaration.sha256)
    ledger.fix_declaration(
        {
            "declaration": plain,
            "sha256": declaration.sha256,
            "threads": plan.launcher.threads,
            "configs": {name: resolution.leaves for name, resolution in plan.resolutions.items()},
            "parameters": {name: resolution.parameters for name, resolution in plan.resolutions.items()},
            "code": fingerprint_own_code(plan.resolutions.values()),
        }
    )
    parent = MLflowParentRun(plan.resolutions[declaration.baseline].mlflow_settings, declaration, ledger)
    return RunScheduler(declaration, plan.resolutions, plan.evaluations, plan.launcher, file, ledger, parent)


def print_run_commands(
    declaration: CampaignDeclaration, root: Path, settings: str, make_launcher: LauncherFactory, threads: int | None
) -> int:
    """Fix the declaration, and print one command a line for each missing run; the plan goes to standard error.

    The commands may be executed in any order, and more than once: a run continues from its newest checkpoint.
    """
    scheduler = fix_campaign(declaration, root, settings, make_launcher, threads, measure=False, output=sys.stderr)
    for spec in list_run_specs(declaration, root):
        if not scheduler.ledger.is_finished(spec):
            print(scheduler.render_command(spec))
    return 0


def run_campaign(
    declaration: CampaignDeclaration,
    root: Path,
    settings: str,
    make_launcher: LauncherFactory,
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
        make_launcher: Function that makes the launcher for runs like the baseline's.
        threads: CPU threads per run, if given.
        measure: Whether to measure step times.
        screen: Terminal for the progress of the runs, if standard output goes elsewhere.

    """
    scheduler = fix_campaign(declaration, root, settings, make_launcher, threads, measure=measure)
    ledger = scheduler.ledger
    parent = scheduler.parent
    runs = list_run_specs(declaration, root)
    missing = [spec for spec in runs if not ledger.is_finished(spec)]
    for spec in missing:
        if ledger.run_entry(spec):
            ledger.update_run(spec, state="waiting")  # the state that an earlier process noted no longer holds
    if len(missing) < len(runs):
        print(f"{len(runs) - len(missing)} of {len(runs)} runs are finished.", flush=True)

    def describe_rows() -> Iterator[run_view.Row]:
        for spec in runs:
            status = read_run_status(spec)
            entry = ledger.run_entry(spec)
            yield run_view.describe_run_row(spec.name, entry, status, declaration.steps, scheduler.evaluations)

    try:
        with run_view.open_run_view(describe_rows, screen) as view:
            scheduler.run_missing(missing, view)
    except BaseException as error:
        parent.end_run("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED", ledger.path)
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
        is_known = ledger.run_entry(spec) or can_continue_run(spec, evaluations, budget)
        if not is_known and (results := spec.run_folder.describe_results()):
            raise ValueError(
                f"{spec.folder} holds a run that {ledger.path} does not know: {'; '.join(results)}. Restore the ledger "
                "from a copy (MLflow keeps one with the campaign), or move that folder away."
            )


def _conclude_campaign(ledger: CampaignRecord, runs: list[RunSpec], parent: MLflowParentRun) -> int:
    """Print how all runs ended, close the MLflow run, and return the exit status."""
    failed_runs = [spec.name for spec in runs if ledger.run_entry(spec).get("state") == FAILED_STATE]
    differing_runs = [spec.name for spec in runs if ledger.run_entry(spec).get("differences")]
    print(f"{len(runs) - len(failed_runs)} of {len(runs)} runs are finished; the ledger is {ledger.path}.")
    print(f"What they show: rlcredit report {shlex.quote(str(ledger.path.parent))}")
    if failed_runs:
        print(f"failed: {', '.join(failed_runs)}. Their logs say why; the same command tries them again.")
    if differing_runs:
        print(f"executed otherwise than declared: {', '.join(differing_runs)}. A report will refuse them.")
    parent.end_run("FAILED" if failed_runs or differing_runs else "FINISHED", ledger.path)
    return 1 if failed_runs or differing_runs else 0
