"""``rlcredit``, and ``python -m rlcredit``: some subcommands parse for themselves, the rest is LightningCLI's."""

import difflib
import importlib
import sys

from rlcredit.inputs.found import import_own_callbacks, with_configs_found

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
    """Run the command line of this process."""
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
    from rlcredit.exits import REFUSED  # noqa: PLC0415

    every = sorted([*COMMANDS, *LIGHTNING])
    close = difflib.get_close_matches(name, every, n=1)
    meant = f" Did you mean `{close[0]}`?" if close else ""
    print(f"error: there is no command `{name}`.{meant} There are {', '.join(every)}.", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    main()
