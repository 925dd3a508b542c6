"""Send every data set of reasoning-gym through two steps of the embedded policy, and write down what happens.

    python -m studies.machinery.reasoning_gym_table [NAME ...] --out studies/machinery/results/reasoning_gym.csv

Each run is a process of its own. Lines of data sets that are named are replaced, all others stay. Without a name, those
are run that have no line yet.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

from rlcredit.cli.application import run_lightning_command as command_line
from studies.csv_rows import read_csv_rows, write_csv_rows

ROOT = Path(__file__).parents[2]
COLUMNS = ["name", "outcome", "seconds", "longest_question", "references_right", "message"]
SIZES = [
    *("--threads=1", "--trainer.logger=false", "--trainer.max_steps=2", "--trainer.val_check_interval=2"),
    *("--model.sampling.completions=2", "--model.sampling.max_tokens=8", "--model.validation.max_tokens=8"),
    *("--data.init_args.prompts_per_step=2", "--data.init_args.train_size=16", "--data.init_args.validation_size=4"),
]
LIMIT = 300
"""Seconds of a data set."""


def try_data_set(name: str, results: "multiprocessing.Queue[dict[str, object]]") -> None:
    """Judge the references of a data set, run its two steps, and put down the outcome."""
    from rlcredit.tasks import ReasoningGym  # noqa: PLC0415

    started, errors = time.monotonic(), io.StringIO()
    row: dict[str, object] = {"name": name, "outcome": "runs"}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(errors):
        os.chdir(folder)
        try:
            run = ["fit", f"--config={ROOT / 'configs' / 'tiny.yaml'}", *SIZES, f"--data.init_args.name={name}"]
            command_line([*run, "--data.init_args.config=null"])
        except SystemExit as ended:
            row["outcome"] = "refused" if ended.code == 2 else f"status {ended.code}"
        except Exception as error:  # noqa: BLE001  (recorded)
            row["outcome"], row["message"] = "fails", f"{type(error).__name__}: {error}"
        message = [line for line in errors.getvalue().splitlines() if "error: " in line]
        row.setdefault("message", message[-1].partition("error: ")[2] if message else "")
        with contextlib.suppress(ValueError):
            task = ReasoningGym(name, train_size=16, validation_size=4, prompts_per_step=2)
            task.setup()
            verdicts = task.judge([f"<answer>{each.answer}</answer>" for each in task.train_set], task.train_set)
            row["references_right"] = sum(verdict.name == "RIGHT" for verdict in verdicts)
            row["longest_question"] = max(len(each.question) for each in task.train_set)
    results.put({**row, "seconds": round(time.monotonic() - started)})


def main() -> None:
    """Run what is named, or what has no line yet, and write the table after each."""
    from reasoning_gym.factory import DATASETS  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "reasoning_gym.csv")
    args = parser.parse_args()
    known: dict[str, dict[str, object]] = {}
    if args.out.exists():
        known = {row["name"]: dict(row) for row in read_csv_rows(args.out)}
    for name in args.names or [name for name in sorted(DATASETS) if name not in known]:
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        process = context.Process(target=try_data_set, args=(name, results))
        process.start()
        process.join(LIMIT)
        late = process.is_alive()
        process.kill()
        nothing = {"name": name, "outcome": f"longer than {LIMIT} s" if late else "dies"}
        known[name] = nothing if results.empty() else results.get()
        write_csv_rows(args.out, [dict.fromkeys(COLUMNS, "") | known[each] for each in sorted(known)])
        print(known[name], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
