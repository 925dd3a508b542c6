"""``rlcredit``, and ``python -m rlcredit``: some subcommands parse for themselves, the rest is LightningCLI's."""

import difflib
import importlib
import signal
import sys
from types import FrameType
from typing import NoReturn

from rlcredit.base.exit_status import REFUSED, signal_exit_status
from rlcredit.base.text_escaping import guard_output
from rlcredit.config.paths import prefer_own_callbacks, resolve_config_flags

COMMANDS = {
    "campaign": "rlcredit.campaign.campaign_command:run_campaign_command",
    "card": "rlcredit.cards.card_command:run_card_command",
    "deliver": "rlcredit.cli.deliver:run_deliver_command",
    "evaluate": "rlcredit.evaluation.evaluate_command:run_evaluate_command",
    "export": "rlcredit.cli.export:run_export_command",
    "list": "rlcredit.cli.listing:run_list_command",
    "new": "rlcredit.cli.new_operator:run_new_command",
    "report": "rlcredit.report.report_command:run_report_command",
    "sample": "rlcredit.cli.sample:run_sample_command",
    "try": "rlcredit.cli.question_trial:run_try_command",
}
"""The functions that run the subcommands that parse for themselves; only the one that is asked for is imported."""

LIGHTNING = ("fit", "validate", "explain")
"""Those that LightningCLI parses."""


def main() -> None:
    """Run the command line of this process; a signal that no command takes over ends it with a line and its status."""
    guard_output()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _raise_interrupt)
    try:
        _run_named_command()
    except KeyboardInterrupt as stopped:
        number = next(iter(stopped.args), signal.SIGINT)
        print(f"\ninterrupted by {signal.Signals(number).name}.", file=sys.stderr)
        sys.exit(signal_exit_status(number))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """End as after an error, so that what was begun is taken back."""
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    raise KeyboardInterrupt(number)


def _run_named_command() -> None:
    """Run the command that the first word names."""
    prefer_own_callbacks()
    name = next(iter(sys.argv[1:]), "")
    if name and not name.startswith("-") and name not in (*COMMANDS, *LIGHTNING):
        sys.exit(_refuse_unknown_command(name))
    if name in COMMANDS:
        module, function = COMMANDS[name].split(":")
        sys.exit(getattr(importlib.import_module(module), function)(sys.argv[2:]))
    from rlcredit.cli import startup  # noqa: PLC0415

    if startup.is_version_request(sys.argv[1:]):
        print(startup.render_versions())
        return
    if startup.is_help_request(sys.argv[1:]):
        print(startup.render_help(), end="")
        return
    sys.argv[1:] = resolve_config_flags(sys.argv[1:])
    startup.read_configuration_or_exit(sys.argv[1:])
    from rlcredit.cli.application import run_lightning_command as lightning  # noqa: PLC0415

    lightning()


def _refuse_unknown_command(name: str) -> int:
    """Say that there is no such command; return the status of what is refused."""
    every = sorted([*COMMANDS, *LIGHTNING])
    close = difflib.get_close_matches(name, every, n=1)
    meant = f" Did you mean `{close[0]}`?" if close else ""
    print(f"error: there is no command `{name}`.{meant} There are {', '.join(every)}.", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    main()
