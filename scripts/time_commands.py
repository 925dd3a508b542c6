"""Time the commands whose wait people feel, on this machine: processor seconds and seconds by the clock.

python scripts/time_commands.py                                # refusals, help and explain: in a minute
python scripts/time_commands.py card site --rounds 1           # a whole card, and the site: in minutes

Times are medians over rounds that take the commands in turn. A machine that does nothing else gives times to compare.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.exit_status import FINISHED, REFUSED
from rlcredit.pages.tables import Table

SOURCE_ROOT = Path(__file__).parents[1]
RUN_RLCREDIT = [sys.executable, "-m", "rlcredit"]

TIMED_COMMANDS = {
    "refusal of an option of fit": [*RUN_RLCREDIT, "fit", "--config", "configs/tiny.yaml", "--sed_everything", "1"],
    "refusal of an option like none": [*RUN_RLCREDIT, "fit", "--config", "configs/tiny.yaml", "--jobs", "1"],
    "refusal of an option inside": [*RUN_RLCREDIT, "fit", "--config", "configs/tiny.yaml", "--model.lr", "1"],
    "refusal of an option of card": [*RUN_RLCREDIT, "card", "SEPA", "--budgt", "quick"],
    "refusal of an option of campaign": [
        *RUN_RLCREDIT,
        "campaign",
        "configs/campaigns/tiny_smoke.yaml",
        "--thread",
        "1",
    ],
    "refusal of an option of export": [*RUN_RLCREDIT, "export", "--ckpt_pth", "runs/x"],
    "help of fit": [*RUN_RLCREDIT, "fit", "--help"],
    "explain": [*RUN_RLCREDIT, "explain", "--config", "configs/tiny.yaml"],
    "card": [*RUN_RLCREDIT, "card", "SEPA", "--budget", "quick", "--mlflow", "none", "--out", "{folder}"],
    "site": [sys.executable, "-m", "sphinx", "-j", "auto", "-q", "-W", "-b", "html", "docs", "{folder}"],
}
"""By what people wait for; ``{folder}`` is an empty one."""

LONG_COMMANDS = ("card", "site")
"""Those that take minutes, and run only if they are named."""


def time_command(command: Sequence[str], status: int = FINISHED) -> tuple[float, float]:
    """Return the processor seconds of a command and its seconds by the clock.

    Raises:
        SystemExit: it ends otherwise than it should; with what it printed.

    """
    with tempfile.TemporaryDirectory() as folder:
        words = [word.format(folder=folder) for word in command]
        begin, start = os.times(), time.perf_counter()
        done = subprocess.run(words, cwd=SOURCE_ROOT, capture_output=True, text=True)
        wall_seconds, end = time.perf_counter() - start, os.times()
    if done.returncode != status:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}, not {status}:\n{done.stderr[-2000:]}")
    return end.children_user + end.children_system - begin.children_user - begin.children_system, wall_seconds


def main() -> None:
    """Print a table of times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(TIMED_COMMANDS)}; all quick ones if none is named")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if strangers := set(args.commands) - set(TIMED_COMMANDS):
        parser.error(f"{sorted(strangers)[0]}: no such command; there are {', '.join(TIMED_COMMANDS)}.")
    names = args.commands or [name for name in TIMED_COMMANDS if name not in LONG_COMMANDS]
    times = {name: [] for name in names}
    for _ in range(args.rounds):
        for name in names:
            status = REFUSED if name.startswith("refusal") else FINISHED
            times[name].append(time_command(TIMED_COMMANDS[name], status))
    rows = [
        (name, *(f"{statistics.median(kind):.2f} s" for kind in zip(*pairs, strict=True)))
        for name, pairs in times.items()
    ]
    print(Table(("command", "processor", "clock"), rows).to_markdown())


if __name__ == "__main__":
    main()
