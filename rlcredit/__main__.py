"""``rlcredit``, and ``python -m rlcredit``: some subcommands parse for themselves, the rest is LightningCLI's."""

import difflib
import importlib
import signal
import sys
from types import FrameType
from typing import NoReturn

from rlcredit.exits import REFUSED, signalled
from rlcredit.inputs.found import import_own_callbacks, with_configs_found
from rlcredit.inspection.visible import guard_output

COMMANDS = {
    "campaign": "rlcredit.campaign.command",
    "card": "rlcredit.card.command",
    "deliver": "rlcredit.command_line.deliver",
    "evaluate": "rlcredit.evaluation.command",
    "export": "rlcredit.command_line.export",
    "list": "rlcredit.command_line.listing",
    "report": "rlcredit.report.command",
    "sample": "rlcredit.command_line.sample",
    "try": "rlcredit.command_line.trial",
}
"""Where the subcommands that parse for themselves have their ``main``; only the one that is asked for is imported."""

LIGHTNING = ("fit", "validate", "explain")
"""Those that LightningCLI parses."""


def main() -> None:
    """Run the command line of this process; a signal that no command takes over ends it with a line and its status."""
    guard_output()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        _run()
    except KeyboardInterrupt as stopped:
        number = next(iter(stopped.args), signal.SIGINT)
        print(f"\ninterrupted by {signal.Signals(number).name}.", file=sys.stderr)
        sys.exit(signalled(number))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """End as after an error, so that what was begun is taken back."""
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    raise KeyboardInterrupt(number)


def _run() -> None:
    """Run the command that the first word names."""
    import_own_callbacks()
    name = next(iter(sys.argv[1:]), "")
    if name and not name.startswith("-") and name not in (*COMMANDS, *LIGHTNING):
        sys.exit(_unknown(name))
    if name in COMMANDS:
        sys.exit(importlib.import_module(COMMANDS[name]).main(sys.argv[2:]))
    from rlcredit.command_line import overview, startup, version  # noqa: PLC0415

    if version.asked_for(sys.argv[1:]):
        print(version.versions())
        return
    if overview.asked_for(sys.argv[1:]):
        print(overview.overview(), end="")
        return
    sys.argv[1:] = with_configs_found(sys.argv[1:])
    startup.configured(sys.argv[1:])
    from rlcredit.command_line.cli import main as lightning  # noqa: PLC0415

    lightning()


def _unknown(name: str) -> int:
    """Say that there is no such command; return the status of what is refused."""
    every = sorted([*COMMANDS, *LIGHTNING])
    close = difflib.get_close_matches(name, every, n=1)
    meant = f" Did you mean `{close[0]}`?" if close else ""
    print(f"error: there is no command `{name}`.{meant} There are {', '.join(every)}.", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    main()
