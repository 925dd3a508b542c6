"""The time of a step, measured by short runs of which only the times are kept."""

import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.base.files import write_atomically
from rlcredit.campaign.config_differences import hash_config
from rlcredit.campaign.launchers.run_launcher import RunLauncher
from rlcredit.campaign.resolved_condition import ResolvedCondition
from rlcredit.campaign.run_process import POLL_SECONDS
from rlcredit.campaign.run_state import read_log_tail
from rlcredit.config.json_shapes import read_stored_json
from rlcredit.run_folder.layout import RunFolder

_TIMINGS_FILE = "timings.json"
_ROLLOUT_COUNT = 3
_NO_STEP = 10**9

_EVALUATION_COUNT = 2
"""Before the first step and after the last."""

Seconds = dict[str, float]
_TIMINGS_SHAPE = {
    str: {"start": float, "step": float, "validation": float, "decoded": float, "backward": float, "prefill?": float}
}


def measure_conditions(
    arguments: Mapping[str, Sequence[str]],
    resolutions: Mapping[str, ResolvedCondition],
    launcher: RunLauncher,
    root: Path,
    *,
    measure: bool = True,
) -> dict[str, Seconds]:
    """Return the times of every condition by :func:`measure_run_seconds`; conditions of equal cost are measured once.

    Args:
        arguments: Arguments of ``rlcredit fit`` for a run, by condition.
        resolutions: Resolved configurations, by condition.
        launcher: Launcher that will start the runs.
        root: Folder of the campaign, which keeps the measurements.
        measure: Whether to measure conditions that have not been measured before; if not, they are left out.

    """
    file, place = root / _TIMINGS_FILE, (launcher.label, launcher.threads)
    timings: dict[str, Seconds] = {}
    stored_timings: dict[str, Seconds] = read_stored_json(file, _TIMINGS_SHAPE, "Remove it.") if file.is_file() else {}
    for name, resolution in resolutions.items():
        key = hash_config({"cost": resolution.cost_sha256, "place": place})
        if key not in stored_timings and measure:
            print(f"measuring a step of {name} ...", flush=True)
            stored_timings[key] = measure_run_seconds(arguments[name], resolution, launcher, root)
            write_atomically(file, json.dumps(stored_timings))
        if key in stored_timings:
            timings[name] = stored_timings[key]
    return timings


def measure_run_seconds(
    args: Sequence[str], resolution: ResolvedCondition, launcher: RunLauncher, root: Path
) -> Seconds:
    """Return the seconds that a start, a step, and an evaluation of all held-out questions take, and tokens per step.

    Args:
        args: Arguments of ``rlcredit fit``.
        resolution: Resolved configuration of the run's condition.
        launcher: Launcher that will start the runs.
        root: Folder of the campaign.

    Raises:
        ValueError: the run failed; with the end of its log.

    """
    steps = _ROLLOUT_COUNT * resolution.module.updates_per_rollout
    settings = {
        "trainer.max_steps": steps,
        "trainer.val_check_interval": _NO_STEP // steps * steps,
        "checkpoint.every_n_train_steps": _NO_STEP // steps * steps,
        "trainer.limit_val_batches": 1,
        "trainer.logger": "false",
    }
    with tempfile.TemporaryDirectory(prefix=".measured-", dir=root) as temporary:
        folder = Path(temporary)
        short = [*settings.items(), ("trainer.default_root_dir", temporary)]
        words = [*args, *(f"--{name}={value}" for name, value in short)]
        began = time.perf_counter()
        process = launcher.start_run(folder, words, {})
        try:
            while (exit_status := process.poll()) is None:
                time.sleep(POLL_SECONDS)
        except BaseException:
            process.kill()
            raise
        duration = time.perf_counter() - began
        if exit_status:
            condition = resolution.leaves["condition"]
            raise ValueError(f"a short run of {condition} failed: {' '.join(read_log_tail(folder))}")
        status = json.loads(RunFolder(folder).status.read_text(encoding="utf-8"))
        tokens = RunFolder(folder).read_evaluation(steps)["tokens"]
    training, evaluations = steps * status["step_seconds"], _EVALUATION_COUNT * status["validation_seconds"]
    start = max(0.0, duration - training - evaluations)
    return {
        "start": start,
        "step": status["step_seconds"],
        "validation": status["validation_seconds"] * mean_validation_batches(resolution),
        **{kind: tokens[kind] / steps for kind in ("decoded", "backward", "prefill")},
    }


def mean_validation_batches(resolution: ResolvedCondition) -> float:
    """Return the mean number of validation batches per held-out set; one if it is unknown."""
    sets = resolution.task.held_out_sets
    return statistics.fmean(
        max(1.0, (question_set.size or 1) / question_set.task.validation_batch) for question_set in sets
    )
