"""``rlcredit deliver RUN ...``: send MLflow the records that it did not receive during the runs."""

import argparse
import dataclasses
import os
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.exit_status import FAILED, FINISHED, REFUSED
from rlcredit.cli.command_options import make_deliver_parser
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.cli.shared_options import MLFLOW_OF_ENVIRONMENT, NO_MLFLOW
from rlcredit.config.passwords import redact_passwords, refuse_passwords
from rlcredit.config.stored_records import read_stored_record
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.record.delivery import RecordDelivery
from rlcredit.record.destination import URI_VARIABLE, USUAL_TRACKER, MLflowDestination, resolve_tracking_uri
from rlcredit.record.record_checks import refuse_invalid_record
from rlcredit.record.tracker_refusals import TrackerRefusal, describe_tracker_trouble
from rlcredit.run_folder.layout import RunFolder

TRACKER_SILENCE_SECONDS = 120.0
"""Seconds that a tracker may let pass without taking anything; one more for each 100 kB of the largest file."""

_REMOVAL_ADVICE = "Remove it if it is not to be delivered."


def run_deliver_command(args: Sequence[str]) -> int:
    """Deliver records; return 0 if everything has arrived, 1 if something has not, 2 if refused."""
    silence_libraries()
    options = make_deliver_parser().parse_args(args)
    try:
        refuse_passwords(options.mlflow, "--mlflow")
        if options.mlflow == NO_MLFLOW:
            raise ValueError("--mlflow: none would deliver nothing. Name a tracker, or leave it out.")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    silent: set[str] = set()
    statuses = [_deliver_run(run, options, silent) for folder in options.runs for run in _find_recorded_runs(folder)]
    if not statuses:
        names = ", ".join(shorten_name(str(run)) for run in options.runs)
        print(f"error: there is no run with a record for MLflow in {names}.", file=sys.stderr)
        return REFUSED
    return max(statuses)


def _find_recorded_runs(folder: Path) -> list[RunFolder]:
    return [RunFolder(path.parent) for path in sorted(folder.rglob(RunFolder(folder).tracking.name))]


def _deliver_run(run: RunFolder, options: argparse.Namespace, silent: set[str]) -> int:
    """Deliver the record of a run, unless its tracker did not answer before."""
    try:
        refuse_invalid_record(run)
        destination = choose_destination(run, options)
        if destination.address in silent:
            print(f"error: {run.path}: not tried, for the same reason.", file=sys.stderr)
            return FAILED
        with run.lock_folder():
            return _deliver_record(run, destination, silent)
    except ValueError as error:
        print(f"error: {run.path}: {redact_passwords(str(error))}", file=sys.stderr)
        return REFUSED


def choose_destination(run: RunFolder, options: argparse.Namespace) -> MLflowDestination:
    """Return the destination of a run's record, which must be a tracker that the caller has named.

    That is ``--mlflow``, or else the usual database of the working directory if the folder names that one, or
    else the address in the environment.

    Args:
        run: Folder of a run from this machine or another.
        options: Options of the command line.

    Raises:
        ValueError: the folder is damaged, or only the folder names a tracker; with the flag that would.

    """
    destination = read_stored_record(run.tracking, MLflowDestination, _REMOVAL_ADVICE)
    fallback = os.environ.get(URI_VARIABLE)
    if options.mlflow == MLFLOW_OF_ENVIRONMENT:
        address = None
    elif options.mlflow:
        address = resolve_tracking_uri(options.mlflow)
    elif destination.tracking_uri is None or resolve_tracking_uri(destination.tracking_uri) == resolve_tracking_uri(
        USUAL_TRACKER
    ):
        address = destination.tracking_uri
    elif fallback:
        address = (
            destination.tracking_uri
            if resolve_tracking_uri(fallback) == resolve_tracking_uri(destination.tracking_uri)
            else None
        )
    else:
        raise ValueError(
            f"tracker {destination.tracking_uri} is named by this folder alone. Confirm it: "
            f"{destination.delivery_command(run.path)}; or name another with --mlflow."
        )
    assert MLflowDestination(address, "", "", {}).address
    if destination.artifact_location and not options.artifact_location:
        raise ValueError(
            f"{destination.artifact_location} for files of a new experiment is named by this folder alone. Confirm it: "
            f"--artifact_location {shlex.quote(destination.artifact_location)}; or name another place."
        )
    target = destination.redirect(address, options.experiment or destination.experiment_name)
    return dataclasses.replace(target, artifact_location=options.artifact_location)


def _deliver_record(run: RunFolder, destination: MLflowDestination, silent: set[str]) -> int:
    former_id = destination.run_id
    delivery = RecordDelivery(run, destination)
    try:
        if not _deliver_with_timeout(delivery, destination.status or "KILLED"):
            silent.add(destination.address)
            print(
                f"error: {run.path}: MLflow at {destination.shown_address} has taken nothing for "
                f"{TRACKER_SILENCE_SECONDS:.0f} s. What has "
                "arrived is noted; the same command brings the rest, once it answers.",
                file=sys.stderr,
            )
            return FAILED
    except TrackerRefusal as refused:
        print(f"error: {run.path}: MLflow at {destination.shown_address} refuses it: {refused}.", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001  (any error of a tracker; its message may hold an address)
        trouble = describe_tracker_trouble(error)
        print(
            f"error: {run.path}: MLflow at {destination.shown_address} has not taken it ({trouble}). Try the same "
            "command again "
            "when it does.",
            file=sys.stderr,
        )
        return FAILED
    remark = (
        " (a new one: what it had before is not there, or is ahead of the record)"
        if former_id != destination.run_id
        else ""
    )
    print(
        f"{run.path}: all of it is in MLflow at {destination.shown_address}, run "
        f"{destination.run_id}{remark if former_id else ''}."
    )
    return FINISHED


def _deliver_with_timeout(delivery: RecordDelivery, status: str) -> bool:
    """Deliver in a thread that is abandoned if nothing arrives for too long; return whether all has arrived."""
    errors: list[Exception] = []

    def deliver() -> None:
        try:
            delivery.send_new_entries()
            delivery.end_run(status)
        except Exception as error:  # noqa: BLE001  (raised again where it is waited for)
            errors.append(error)

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    patience = TRACKER_SILENCE_SECONDS + _measure_largest_file(delivery.folder.path) / 1e5
    while thread.is_alive() and time.monotonic() - delivery.moved < patience:
        thread.join(0.1)
    if errors:
        raise errors[0]
    return not thread.is_alive()


def _measure_largest_file(folder: Path) -> int:
    return max((file.stat().st_size for file in folder.rglob("*") if file.is_file()), default=0)
