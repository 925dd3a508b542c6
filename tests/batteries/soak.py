"""Kill runs, continue them, and compare what they leave with runs without a fault.

    python tests/batteries/soak.py matrix --jobs 2           every phase x three stacks x three places
    python tests/batteries/soak.py random --faults 1000      chains of random faults, until so many have happened
    python tests/batteries/soak.py random --faults 20 --seed 7

A case ends well if the command that is repeated after each fault (``--ckpt_path auto``) ends with status 0 and leaves
the same weights, optimizer, callbacks, files, record and MLflow history as the run without a fault, bit for bit; times
are the only thing that may differ. The table is printed as Markdown, and every case is a line of ``--out``.

"""

import argparse
import dataclasses
import gc
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from inject_faults import PHASES, InjectedFault, count_phase_calls

from rlcredit.pages.tables import Table
from rlcredit.record.journal import read_journal_entries
from rlcredit.run_folder.layout import RunFolder

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
SMALL = [
    "fit",
    f"--config={ROOT / 'configs' / 'tiny.yaml'}",
    "--threads=1",
    f"--trainer.max_steps={STEPS}",
    "--trainer.val_check_interval=2",
    "--checkpoint.every_n_train_steps=2",
    "--completions.every_n_steps=2",
    "--model.sampling.completions=4",
    "--model.sampling.max_tokens=40",
    "--model.validation.max_tokens=40",
    "--data.init_args.prompts_per_step=2",
    "--data.init_args.train_size=64",
    "--data.init_args.validation_size=8",
    "--ckpt_path=auto",
]
CONDITIONS = ROOT / "configs" / "conditions"
STACKS = {
    "grpo": [],
    "stateful": [f"--config={CONDITIONS / 'sepa_variants' / 'maxrl_sepa_adaptive.yaml'}"],
    "updates": ["--model.updates_per_rollout=2", "--model.minibatches=2"],
}
"""No state; a moving average and a gate; several updates per rollout."""

MATRIX = [
    *("decode", "verify", "credit", "forward", "backward", "optimizer", "step_end", "log", "record", "table"),
    *("question", "held_out", "checkpoint", "replaced", "checkpoint_named", "checkpoint_removed"),
    *("deliver", "upload", "curve", "adapter", "close"),
]
TIMES = ("time/", "train/tokens_per_second")
LIMIT = 240.0
"""Seconds that one attempt may take before it counts as hanging."""


@dataclasses.dataclass
class SoakAttempt:
    """One start of the command.

    Attributes:
        fault: Fault that was to happen in it.
        status: Exit status; negative for a signal, None if it had to be ended.
        happened: Whether the fault happened.

    """

    fault: InjectedFault | None
    status: int | None
    happened: bool


def attempt_run(folder: Path, stack: str, fault: InjectedFault | None, calls: Path | None = None) -> SoakAttempt:
    """Start the command once in a folder, in a fork of this process, which has everything imported.

    Args:
        folder: Folder to run in.
        stack: Name of the stack, one of ``STACKS``.
        fault: Fault that is to happen, if any.
        calls: File for the number of calls of each phase.

    """
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os._exit(_run_in_child(folder, stack, fault, calls))
    deadline, status = time.monotonic() + LIMIT, None
    while time.monotonic() < deadline:
        pid_done, wait_status = os.waitpid(pid, os.WNOHANG)
        if pid_done:
            status = os.waitstatus_to_exitcode(wait_status)
            break
        time.sleep(0.02)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return SoakAttempt(fault, status, fault is None or (folder / "fault").exists())


def _run_in_child(folder: Path, stack: str, fault: InjectedFault | None, calls: Path | None) -> int:
    os.setsid()
    os.chdir(folder)
    log = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    (folder / "fault").unlink(missing_ok=True)
    counts = count_phase_calls() if calls else {}
    try:
        from rlcredit.cli.application import run_lightning_command

        if fault is not None:
            fault.install(folder / "fault")
        sys.argv = ["rlcredit", *SMALL[:2], *STACKS[stack], *SMALL[2:], "--condition=soak"]
        run_lightning_command()
    except SystemExit as exit_call:
        code = exit_call.code if isinstance(exit_call.code, int) else 1
    except BaseException:  # noqa: BLE001  (an uncaught exception ends the process with status 1)
        traceback.print_exc()
        code = 1
    else:
        code = 0
    if calls:
        calls.write_text(json.dumps(counts))
    sys.stdout.flush()
    return code


def collect_run_state(folder: Path) -> dict[str, Any]:
    """Return all that a run has left, without times, in a form that can be compared."""
    run = RunFolder(folder / "runs" / "soak-seed0")
    checkpoint = torch.load(run.last_checkpoint, weights_only=True)
    del checkpoint["record"], checkpoint["tokens_per_second"]  # depend on the clock
    del checkpoint["epoch"]  # one higher after training has ended; Lightning writes it but does not read it
    # Lightning counts the validation batches of this process; nothing depends on it.
    fit_loop = {name: value for name, value in checkpoint.pop("loops")["fit_loop"].items() if "val_loop" not in name}
    checkpoint["loops"] = fit_loop
    postmortems = run.postmortem_file(0).parent  # faults write them on purpose
    skipped = {run.record, run.tracking, run.status, run.lock, run.log, run.process}
    files = {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file() and path not in skipped and not {run.checkpoints, postmortems} & set(path.parents)
    }
    key = next(name for name in checkpoint["callbacks"] if name.startswith("Checkpoints"))
    kept = [sorted(path.name for path in run.checkpoints.iterdir()), checkpoint["callbacks"].pop(key)]
    return {
        **{f"checkpoint {name}": _strip_folder(value, str(folder)) for name, value in checkpoint.items()},
        "kept": _strip_folder(kept, str(folder)),
        "files": files,
        "record": list(_read_record_entries(run)),
        "mlflow": _read_mlflow_runs(folder),
    }


def _strip_folder(value: Any, folder: str) -> Any:
    """Return a state without the folder that it was made in."""
    if isinstance(value, dict):
        return {_strip_folder(key, folder): _strip_folder(item, folder) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strip_folder(item, folder) for item in value]
    return value.replace(folder, "") if isinstance(value, str) else value


def _read_record_entries(run: RunFolder) -> Iterator[Any]:
    written: set[str] = set()
    for entry, _ in read_journal_entries(run.record):
        if "metrics" in entry:
            yield entry["step"], {k: v for k, v in entry["metrics"].items() if not k.startswith(TIMES)}
        elif (text := json.dumps(entry, sort_keys=True)) not in written:
            written.add(text)
    yield sorted(written)


def _read_mlflow_runs(folder: Path) -> Any:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    runs = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    # An attempt that ended before its first checkpoint is closed as killed or failed; the next starts a new MLflow run.
    finished = [run for run in runs if run.info.status not in ("KILLED", "FAILED")]
    summaries = []
    for run in finished:
        histories = {key: client.get_metric_history(run.info.run_id, key) for key in sorted(run.data.metrics)}
        points = {
            key: [(m.step, m.value) for m in sorted(row, key=lambda m: m.step)]
            if not key.startswith(TIMES)
            else sorted(m.step for m in row)
            for key, row in histories.items()
        }
        tags = {key: value for key, value in run.data.tags.items() if key in ("condition", "seed", "mlflow.runName")}
        tags["mlflow.runName"] = tags["mlflow.runName"].partition(" #")[0]  # numbered where a killed run has the name
        listed = sorted(artifact["path"] for artifact in json.loads(run.data.tags.get("mlflow.loggedArtifacts", "[]")))
        artifacts = sorted(_list_artifact_paths(client, run.info.run_id))
        summaries.append((run.info.status, points, dict(run.data.params), tags, listed, artifacts))
    client._tracking_client.store._dispose_engine()
    return summaries


def _list_artifact_paths(client: Any, run_id: str, path: str | None = None) -> Iterator[str]:
    for artifact in client.list_artifacts(run_id, path):
        yield artifact.path
        if artifact.is_dir:
            yield from _list_artifact_paths(client, run_id, artifact.path)


def find_state_differences(expected: Any, actual: Any, place: str = "") -> Iterator[str]:
    """Name the places at which two states differ."""
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        if not torch.equal(expected, actual):
            yield place
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys(), key=str):
            if key not in expected or key not in actual:
                yield f"{place}/{key} is only in {'one' if key in actual else 'the other'}"
            else:
                yield from find_state_differences(expected[key], actual[key], f"{place}/{key}")
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)) and len(expected) == len(actual):
        for number, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from find_state_differences(left, right, f"{place}[{number}]")
    elif expected != actual:
        yield place


@dataclasses.dataclass
class SoakedRun:
    """One run with faults one after the other, and its outcome."""

    name: str
    stack: str
    attempts: list[SoakAttempt]
    differing: list[str]
    seconds: float

    @property
    def ended_well(self) -> bool:
        """Whether the run ended as one without faults."""
        return self.attempts[-1].status == 0 and not self.differing

    def to_json_line(self) -> str:
        """Return it as JSON."""
        attempts = [
            {**(dataclasses.asdict(a.fault) if a.fault else {}), "status": a.status, "happened": a.happened}
            for a in self.attempts
        ]
        facts = {"name": self.name, "stack": self.stack, "well": self.ended_well, "differing": self.differing[:20]}
        return json.dumps({**facts, "seconds": round(self.seconds, 1), "attempts": attempts})


def soak_one_run(name: str, stack: str, faults: Sequence[InjectedFault], home: Path) -> SoakedRun:
    """Let faults happen one after the other, then let the run end, and compare."""
    began = time.monotonic()
    folder = make_fresh_folder(home, home / "cases" / name.replace(":", "-"))
    attempts: list[SoakAttempt] = []
    for fault in [*faults, None, None, None]:
        attempts.append(attempt_run(folder, stack, fault))
        if attempts[-1].status == 0:
            break
    differing = ["the run never ended well"]
    if attempts[-1].status == 0:
        expected, actual = torch.load(home / f"{stack}.pt", weights_only=False), collect_run_state(folder)
        if any(tried.fault and _can_keep_other_checkpoints(tried.fault) for tried in attempts):
            del expected["kept"], actual["kept"]
        differing = list(find_state_differences(expected, actual))
    result = SoakedRun(name, stack, attempts, differing, time.monotonic() - began)
    if result.ended_well:
        shutil.rmtree(folder)
    return result


def _can_keep_other_checkpoints(fault: InjectedFault) -> bool:
    """Whether other checkpoints may be kept: a signal saves one more, and one whose removal fails stays."""
    return fault.action.startswith("SIG") or fault.phase == "checkpoint_removed"


def make_fresh_folder(home: Path, folder: Path) -> Path:
    """Return an empty folder with an MLflow database that has its tables."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(home / "mlflow.db", folder / "mlflow.db")
    return folder


def run_without_faults(home: Path, stacks: Sequence[str]) -> None:
    """Run every stack without a fault, twice; exit if the two runs differ."""
    from rlcredit.record.mlflow_client import make_mlflow_database

    home.mkdir(parents=True, exist_ok=True)
    make_mlflow_database(f"sqlite:///{home / 'mlflow.db'}")
    for stack in stacks:
        states = []
        for number in range(2):
            folder = make_fresh_folder(home, home / "references" / f"{stack}{number}")
            if (status := attempt_run(folder, stack, None, home / f"{stack}.calls.json").status) != 0:
                sys.exit(f"the reference of {stack} ended with status {status}; see {folder / 'output.txt'}")
            states.append(collect_run_state(folder))
        if differing := list(find_state_differences(*states)):
            sys.exit(f"two runs of {stack} without any fault differ in {differing[:5]}")
        torch.save(states[0], home / f"{stack}.pt")


def plan_fault_matrix(stacks: Sequence[str]) -> list[tuple[str, str, list[InjectedFault]]]:
    """Return every phase of every stack at three places: at its first call, in the middle, and near the end."""
    calls = {"question": (1, 2, 4), "held_out": (1, 2, 4), "checkpoint": (1, 2, 3), "checkpoint_named": (1, 2, 3)}
    calls |= {"checkpoint_removed": (1, 1, 1), "replaced": (4, 14, 30), "deliver": (1, 2, 4), "upload": (1, 3, 4)}
    calls |= dict.fromkeys(("curve", "adapter", "close"), (1, 1, 1))
    calls |= {"decode": (2, 5, 9), "verify": (2, 5, 9), "credit": (1, 3, 6), "record": (2, 9, 16), "table": (1, 4, 7)}
    return [
        (f"{phase}:{call}:{stack}", stack, [InjectedFault(phase, "kill", call)])
        for stack in stacks
        for phase in MATRIX
        for call in dict.fromkeys(calls.get(phase, (1, 3, 6)))
    ]


HARMFUL = ("kill", "kill", "kill", "kill", "raise", "SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP", "full", "slow")
SPOILED = ("decode", "forward")
"""Phases whose results are tensors, which may also turn into NaN."""
LONGEST = 6


def draw_faults(seed: str, calls: dict[str, int]) -> Iterator[InjectedFault]:
    """Yield random faults without end, each at a call that a run without faults makes."""
    dice = random.Random(seed)
    while True:
        phase = dice.choice(sorted(calls))
        action = dice.choice(HARMFUL + ("nan",) * (phase in SPOILED))
        yield InjectedFault(phase, action, dice.randint(1, calls[phase]))


def plan_fault_chains(
    first: int, number: int, seed: int, stacks: Sequence[str]
) -> list[tuple[str, str, list[InjectedFault]]]:
    """Return ``number`` chains of ``LONGEST`` random faults; a chain ends early when its run has ended."""
    planned = []
    for index in range(first, first + number):
        name, stack = f"chain:{seed}:{index}", stacks[index % len(stacks)]
        calls = json.loads((_home / f"{stack}.calls.json").read_text())
        planned.append((name, stack, list(itertools.islice(draw_faults(name, calls), LONGEST))))
    return planned


def count_happened_faults(cases: Sequence[SoakedRun]) -> int:
    """Return how many faults happened."""
    return sum(attempt.happened for case in cases for attempt in case.attempts if attempt.fault)


def render_soak_table(cases: Sequence[SoakedRun]) -> str:
    """Return how many cases ended well, by phase and action of their faults."""
    totals: Counter[tuple[str, str]] = Counter()
    well: Counter[tuple[str, str]] = Counter()
    for case in cases:
        for attempt in case.attempts:
            if attempt.fault and attempt.happened:
                totals[attempt.fault.phase, attempt.fault.action] += 1
                well[attempt.fault.phase, attempt.fault.action] += case.ended_well
    actions = sorted({action for _, action in totals})
    rows = []
    for phase in PHASES:
        counts = [(well[phase, action], totals[phase, action]) for action in actions]
        if any(total for _, total in counts):
            rows.append([phase, *(f"{good} of {total}" if total else "" for good, total in counts)])
    return Table(["phase", *actions], rows).to_markdown()


_home = Path()


def _soak_planned_run(planned_case: tuple[str, str, list[InjectedFault]]) -> SoakedRun:
    torch.set_num_threads(1)
    return soak_one_run(*planned_case, _home)


def main(words: Sequence[str] | None = None) -> int:
    """Run the soak; return 0 if every case ended well."""
    parser = argparse.ArgumentParser(description="Kill runs, continue them, and compare what they leave.")
    parser.add_argument("kind", choices=("matrix", "random"))
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name matches this regular expression")
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=list(STACKS))
    parser.add_argument("--home", type=Path, default=Path("soak"))
    parser.add_argument("--out", type=Path, help="a file that gets a line of JSON for every case")
    args = parser.parse_args(words)
    global _home
    _home = args.home.resolve()
    torch.set_num_threads(1)
    import mlflow  # noqa: F401

    import rlcredit.cli.application  # noqa: F401

    gc.freeze()  # spare every fork the garbage collection of all imports
    run_without_faults(_home, args.stacks)
    cases: list[SoakedRun] = []
    began = time.monotonic()
    with multiprocessing.get_context("fork").Pool(args.jobs, maxtasksperchild=50) as pool:
        while (missing := args.faults - count_happened_faults(cases)) > 0:
            number = max(args.jobs, missing // LONGEST)
            planned = plan_fault_chains(len(cases), number, args.seed, args.stacks)
            if args.kind == "matrix":
                planned, args.faults = plan_fault_matrix(args.stacks), 0
            selected = [chain for chain in planned if re.search(args.only, chain[0])]
            for case in pool.imap_unordered(_soak_planned_run, selected):
                cases.append(case)
                if args.out:
                    with args.out.open("a") as file:
                        print(case.to_json_line(), file=file)
                if not case.ended_well:
                    print(f"NOT WELL {case.name}: {[a.status for a in case.attempts]} {case.differing[:6]}", flush=True)
    faults = count_happened_faults(cases)
    print(render_soak_table(cases))
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(
        f"\n{sum(case.ended_well for case in cases)} of {len(cases)} cases ended well; {faults} faults happened; ",
        end="",
    )
    print(f"{time.monotonic() - began:.0f} s, largest process {largest} MiB")
    if args.kind == "matrix":
        return 0 if all(case.ended_well and case.attempts[0].happened for case in cases) else 1
    return 0 if all(case.ended_well for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
