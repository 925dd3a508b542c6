"""Give rlcredit thousands of faulty inputs, and count how it answers.

Every input is a valid one with something changed: a configuration, a file of questions, a campaign file, a ledger, a
held-out evaluation, a checkpoint, a policy's description. It must be refused in one sentence or accepted. A
traceback, a file that a refusal leaves behind and more than ten seconds are faults; the exit status is then 1.

    python tests/batteries/fuzz_inputs.py --count 10000 --seed 0
"""

import argparse
import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import fuzz_kinds as kinds

from rlcredit.pages.tables import Table

SECONDS = 10
OUTCOMES = ("refused", "legal", "traceback", "timeout", "left behind")


class AttemptTimeout(BaseException):
    """Not an Exception, so that nobody catches it."""


def _raise_timeout(*_: object) -> None:
    raise AttemptTimeout


def run_fuzz_attempt(attempt: kinds.Attempt, folder: Path) -> tuple[str, str]:
    """Return how an attempt ended, and its error output.

    Args:
        attempt: Function that does what a command line would do.
        folder: Working directory; a refusal must leave it as it was.

    """
    before, output = _list_folder_files(folder), io.StringIO()
    former = signal.signal(signal.SIGALRM, _raise_timeout)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()):
            status = attempt()
        result = _classify_refusal(status, output.getvalue()) if status == 2 else "legal"
    except SystemExit as stop:
        result = _classify_refusal(stop.code, output.getvalue())
    except AttemptTimeout:
        result = "timeout"
    except BaseException:  # noqa: BLE001 (any is a fault, to be counted)
        result = "traceback"
        output.write(traceback.format_exc())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    if result == "refused" and _list_folder_files(folder) != before:
        result = "left behind"
        output.write(str(_list_folder_files(folder) - before))
    return result, output.getvalue()


def _classify_refusal(status: object, output: str) -> str:
    """``refused`` if a command ended with status 2 and an error line without a password, else ``traceback``."""
    return "refused" if status == 2 and output.startswith("error: ") and "SECRET" not in output else "traceback"


def _list_folder_files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def fuzz_all_inputs(count: int, seed: int, only: str | None = None) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return counts by kind and outcome, and the error output of each fault.

    Args:
        count: Number of all inputs; each kind has its share.
        seed: Seed of the changes.
        only: Name of one kind; all if None.

    """
    counts: dict[str, Counter[str]] = {}
    faults: list[str] = []
    original_directory = Path.cwd()
    for kind in kinds.KINDS if only is None else [kind for kind in kinds.KINDS if kind.name == only]:
        rng, outcomes = random.Random(f"{seed} {kind.name}"), Counter[str]()
        with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
            stack.callback(os.chdir, original_directory)
            os.chdir(temporary)
            valid = kind.prepared(Path(temporary))
            for number in range(max(1, round(count * (kind.share if only is None else 1)))):
                result, output = run_fuzz_attempt(kind.attempt(valid, rng), Path(temporary))
                outcomes[result] += 1
                if result not in ("refused", "legal"):
                    faults.append(f"{kind.name} {number}: {result}\n{output[-1500:]}")
        counts[kind.name] = outcomes
    return counts, faults


def render_fuzz_table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts in Markdown."""
    rows = [
        [name, f"{outcomes.total():,}", *(f"{outcomes[outcome]:,}" for outcome in OUTCOMES)]
        for name, outcomes in [*counts.items(), ("all", sum(counts.values(), Counter()))]
    ]
    return Table(["input", "tried", *OUTCOMES], rows).to_markdown()


def main() -> int:
    """Print the table; return 1 if there was any fault."""
    parser = argparse.ArgumentParser(description="Count what rlcredit says to inputs that somebody might get wrong.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[kind.name for kind in kinds.KINDS])
    parser.add_argument("--faults", type=int, default=20, help="how many are printed")
    args, sys.argv = parser.parse_args(), sys.argv[:1]
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    counts, faults = fuzz_all_inputs(args.count, args.seed, args.only)
    print("\n\n".join(faults[: args.faults]), file=sys.stderr)
    print(render_fuzz_table(counts))
    print(f"\nseed {args.seed}, {time.perf_counter() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
