"""Give rlcredit thousands of inputs that somebody might get wrong, and count what it says.

Every input is a sound one with something changed: a configuration, a file of questions, a campaign file, a ledger, a
held-out evaluation, a checkpoint, a policy's description. It must be refused in one sentence or mean something. A
traceback, a file that a refusal leaves behind and more than ten seconds are faults; the exit status is then 1.

    python scripts/fuzz_inputs.py --count 10000 --seed 0
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

SECONDS = 10
OUTCOMES = ("refused", "legal", "traceback", "timeout", "left behind")


class TookTooLong(BaseException):
    """Not an Exception, so that nobody catches it."""


def _alarm(*_: object) -> None:
    raise TookTooLong


def outcome(attempt: kinds.Attempt, folder: Path) -> tuple[str, str]:
    """Return how an attempt ended, and what it said.

    Args:
        attempt: what a command line would do.
        folder: the working directory; a refusal must leave it as it was.

    """
    before, said = _files(folder), io.StringIO()
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = attempt()
        ended = _told(status, said.getvalue()) if status == 2 else "legal"
    except SystemExit as stop:
        ended = _told(stop.code, said.getvalue())
    except TookTooLong:
        ended = "timeout"
    except BaseException:  # noqa: BLE001 (any is a fault, to be counted)
        ended = "traceback"
        said.write(traceback.format_exc())
    finally:
        signal.alarm(0)
    if ended == "refused" and _files(folder) != before:
        ended = "left behind"
        said.write(str(_files(folder) - before))
    return ended, said.getvalue()


def _told(status: object, said: str) -> str:
    """Whether a command that ended has said why, in one line that begins as all do, and kept a password to itself."""
    return "refused" if status == 2 and said.startswith("error: ") and "SECRET" not in said else "traceback"


def _files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def fuzzed(count: int, seed: int, only: str | None = None) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return counts by kind and outcome, and what was said at each fault.

    Args:
        count: of all inputs; each kind has its share.
        seed: of the changes.
        only: the one kind wanted.

    """
    counts: dict[str, Counter[str]] = {}
    faults: list[str] = []
    here = Path.cwd()
    for kind in kinds.KINDS if only is None else [each for each in kinds.KINDS if each.name == only]:
        rng, found = random.Random(f"{seed} {kind.name}"), Counter[str]()
        with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
            stack.callback(os.chdir, here)
            os.chdir(temporary)
            sound = kind.prepared(Path(temporary))
            for number in range(max(1, round(count * (kind.share if only is None else 1)))):
                ended, said = outcome(kind.attempt(sound, rng), Path(temporary))
                found[ended] += 1
                if ended not in ("refused", "legal"):
                    faults.append(f"{kind.name} {number}: {ended}\n{said[-1500:]}")
        counts[kind.name] = found
    return counts, faults


def table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts in Markdown."""
    rows = ["| input | tried | " + " | ".join(OUTCOMES) + " |", "|---|" + "---|" * (len(OUTCOMES) + 1)]
    for name, found in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        cells = [f"{found.total():,}", *(f"{found[each]:,}" for each in OUTCOMES)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Print the table; return 1 if there was any fault."""
    parser = argparse.ArgumentParser(description="Count what rlcredit says to inputs that somebody might get wrong.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[kind.name for kind in kinds.KINDS])
    parser.add_argument("--faults", type=int, default=20, help="how many are printed")
    given, sys.argv = parser.parse_args(), sys.argv[:1]
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    counts, faults = fuzzed(given.count, given.seed, given.only)
    print("\n\n".join(faults[: given.faults]), file=sys.stderr)
    print(table(counts))
    print(f"\nseed {given.seed}, {time.perf_counter() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
