"""The text of ``rlcredit --help``, without importing what the subcommands need."""

from collections.abc import Sequence

from jsonargparse import ArgumentParser

DESCRIPTION = (
    "Credit assignment in reinforcement learning with verifiable rewards, as stacks of callbacks. Beside the "
    "subcommands below, `rlcredit campaign FILE` runs conditions x seeds, and `rlcredit report CAMPAIGN` says "
    "what they found; `rlcredit card` judges a credit operator. `rlcredit try` answers a few training questions "
    "before anything is trained, `rlcredit sample` asks a policy one question, `rlcredit evaluate` has policies "
    "answer the questions of task files, and `rlcredit export` writes a trained policy as a plain model. "
    "`rlcredit list` says what a configuration can name, `rlcredit --version` what is installed."
)

SUBCOMMANDS = {
    "fit": "Runs the full optimization routine.",
    "validate": "Perform one evaluation epoch over the validation set.",
    "explain": "Check a configuration and print it as the program it is; nothing is loaded.",
}


def render_help() -> str:
    """Return the help text that LightningCLI would print; a test compares the two."""
    parser = ArgumentParser(description=DESCRIPTION)
    parser.add_argument("-c", "--config", action="config", help="Path to a configuration file in json or yaml format.")
    subcommands = parser.add_subcommands()
    for name, description in SUBCOMMANDS.items():
        subcommands.add_subcommand(name, ArgumentParser(), help=description)
    return parser.format_help()


def is_help_request(args: Sequence[str]) -> bool:
    """Whether a command line asks for nothing else.

    Example:
        >>> is_help_request(["--help"]), is_help_request(["fit", "--help"])
        (True, False)

    """
    return list(args) in (["-h"], ["--help"])
