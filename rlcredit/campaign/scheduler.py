"""The scheduler of a campaign, which starts missing runs in free slots and tries each at most twice."""

import dataclasses
import shlex
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import format_duration
from rlcredit.campaign import run_state
from rlcredit.campaign.campaign_record import FAILED_STATE, FINISHED_STATE, CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.launchers.run_launcher import RunLauncher, RunProcess
from rlcredit.campaign.mlflow_parent import MLflowParentRun
from rlcredit.campaign.resolved_condition import ResolvedCondition, configure_run, fingerprint_own_code
from rlcredit.campaign.run_process import POLL_SECONDS, stop_processes
from rlcredit.campaign.run_spec import RunSpec, build_fit_arguments, list_seed_settings
from rlcredit.campaign.run_state import summarise_finished_run
from rlcredit.campaign.run_view import RunEventLines

_MAX_TRIES = 2


@dataclasses.dataclass
class RunAttempt:
    """A run that is executing."""

    spec: RunSpec
    process: RunProcess
    began: float


@dataclasses.dataclass
class RunScheduler:
    """Start the missing runs, watch them, and record their results.

    Args:
        declaration: Declaration of the campaign.
        resolutions: Resolved configurations of the campaign's conditions, by name.
        evaluations: Steps after which a run is evaluated, or tokens of the budget.
        launcher: Launcher that starts the runs.
        settings: Overlay file applied on top of all files.
        ledger: Record of what is done.
        parent: MLflow run of the campaign.

    """

    declaration: CampaignDeclaration
    resolutions: Mapping[str, ResolvedCondition]
    evaluations: Sequence[int]
    launcher: RunLauncher
    settings: Path
    ledger: CampaignRecord
    parent: MLflowParentRun
    tries: Counter[str] = dataclasses.field(default_factory=Counter)

    def run_missing(self, missing: Sequence[RunSpec], view: RunEventLines) -> None:
        """Execute all missing runs; a crash of one does not stop the others.

        Raises:
            ValueError: the user's code has changed since the campaign began; executing runs are waited for.

        """
        waiting, running, refusal = deque(missing), list[RunAttempt](), None
        try:
            while running or (waiting and not refusal):
                while waiting and not refusal and len(running) < self.launcher.slots:
                    if not (refusal := self._find_edited_code()):
                        running.append(self._start_attempt(waiting.popleft(), view))
                for attempt in list(running):
                    if (status := attempt.process.poll()) is not None:
                        running.remove(attempt)
                        waiting.extendleft([attempt.spec] if self._conclude_attempt(attempt, status, view) else [])
                view.redraw()
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            view.print_event(f"{'stops':<10} {', '.join(attempt.spec.name for attempt in running)}")
            raise
        finally:
            stop_processes([attempt.process for attempt in running])
        if refusal:
            raise refusal

    def _find_edited_code(self) -> ValueError | None:
        """Return an error if the user's own code has changed since the campaign began."""
        try:
            self.ledger.fix_declaration({"code": fingerprint_own_code(self.resolutions.values())})
        except ValueError as error:
            return error
        return None

    def declared_config(self, spec: RunSpec) -> dict[str, object]:
        """Return the declared configuration of a run."""
        settings = list_seed_settings(spec, self.declaration)
        return configure_run(self.resolutions[spec.condition].leaves, spec, self.launcher.threads, settings)

    def render_command(self, spec: RunSpec) -> str:
        """Return the shell command that begins a run or continues it, wherever it is executed."""
        args = build_fit_arguments(spec, self.declaration, self.launcher.threads, self.settings)
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.parent.child_environment(spec).items()]
        return " ".join([*variables, shlex.join(["rlcredit", "fit", *args, "--ckpt_path=auto"])])

    def _start_attempt(self, spec: RunSpec, view: RunEventLines) -> RunAttempt:
        """Continue a run if possible, otherwise restart it."""
        self.launcher.end_leftover_run(spec.run_folder.process)
        args = build_fit_arguments(spec, self.declaration, self.launcher.threads, self.settings)
        if can_continue := run_state.can_continue_run(spec, self.evaluations, self.declaration.budget):
            args.append("--ckpt_path=last")
        else:
            self.parent.kill_open_attempts(spec)
            args.append("--replace")
        write_atomically(spec.run_folder.declared_config, yaml.safe_dump(self.declared_config(spec), sort_keys=False))
        self.tries[spec.name] += 1
        attempts = self.ledger.run_entry(spec).get("attempts", 0) + 1
        self.ledger.update_run(spec, state="running", attempts=attempts)
        view.print_event(f"{'continues' if can_continue else 'begins':<10} {spec.name}")
        process = self.launcher.start_run(spec.folder, args, self.parent.child_environment(spec))
        return RunAttempt(spec, process, time.monotonic())

    def _conclude_attempt(self, attempt: RunAttempt, status: int, view: RunEventLines) -> bool:
        """Record in the ledger how an attempt ended; return whether the run is tried again."""
        spec, duration = attempt.spec, time.monotonic() - attempt.began
        seconds = self.ledger.run_entry(spec).get("seconds", 0.0) + duration
        evaluated_marks = run_state.locate_run_evaluations(spec, self.declaration.budget)
        if status == 0 and set(self.evaluations) <= evaluated_marks.keys():
            outcome = summarise_finished_run(
                spec, self.declaration, self.declared_config(spec), self.resolutions[spec.condition].parameters
            )
            self.ledger.update_run(spec, state=FINISHED_STATE, seconds=seconds, **outcome)
            value = f"{self.declaration.primary} {outcome['primary']:.3f}"
            view.print_event(f"{'finished':<10} {spec.name}   {value}   {format_duration(duration)}")
            for difference in outcome["differences"]:
                view.print_event(f"{'DIFFERS':<10} {spec.name}   {difference}")
            return False
        has_retry = self.tries[spec.name] < _MAX_TRIES
        self.ledger.update_run(spec, state="retrying" if has_retry else FAILED_STATE, seconds=seconds, status=status)
        reason = f"status {status}" if status else "an evaluation missing"
        view.print_event(
            f"{'crashed' if has_retry else 'FAILED':<10} {spec.name}   {reason}, {format_duration(duration)}; "
            "the end of its log:"
        )
        view.print_event("\n".join(f"    {line}" for line in run_state.read_log_tail(spec.folder)))
        return has_retry
