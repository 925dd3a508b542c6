"""``rlcredit``, and ``python -m rlcredit``: one command, whose modules alone are imported."""

import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rlcredit.base.exit_status import FAILED, REFUSED, signal_exit_status
from rlcredit.base.frozen_imports import freeze_imports
from rlcredit.base.interrupts import ENDING_SIGNALS, SignalInterrupt, is_signal, raise_interrupts, read_signal_number
from rlcredit.base.messages import find_closest_name, print_message
from rlcredit.base.process_end import catch_process_end
from rlcredit.base.text_escaping import guard_output
from rlcredit.cli.commands import COMMAND_TABLE, find_foreign_option, load_parser, render_help
from rlcredit.config.arguments import LOOSE_OPTION
from rlcredit.config.paths import prefer_own_callbacks

HELP_OPTIONS = ("-h", "--help")
REQUEST_FUNCTIONS = {
    "--version": "rlcredit.cli.startup:print_versions",
    "--completion": "rlcredit.cli.completion:run_completion",
}
"""What is asked of rlcredit itself, and the functions that answer with the words that follow."""

COMMAND_SYNONYMS = {"train": "fit", "run": "fit", "test": "evaluate", "generate": "sample", "plan": "explain"}
"""What other tools call our commands."""

LIGHTNING_FUNCTION = "rlcredit.cli.application:run_lightning_command"
"""Function that runs the commands of LightningCLI."""


def main() -> None:
    """Run the command line of this process; a signal that no command takes over ends it with a line and its status."""
    guard_output()
    with raise_interrupts(*ENDING_SIGNALS, last=True):
        try:
            with catch_process_end():
                _run_named_command(sys.argv[1:])
        except (SystemExit, KeyboardInterrupt, SignalInterrupt) as ended:
            _refuse_foreign_end(ended)
            if isinstance(ended, SystemExit):
                raise
            number = read_signal_number(ended)
            print_message(f"\ninterrupted by {signal.Signals(number).name}.")
            sys.exit(signal_exit_status(number))


def _run_named_command(words: Sequence[str]) -> None:
    """Run the command that the first word names, or answer what is asked of rlcredit itself."""
    prefer_own_callbacks()
    name, rest = (words[0], words[1:]) if words else ("--help", [])
    if name in HELP_OPTIONS:
        print(render_help())
    elif name in REQUEST_FUNCTIONS:
        sys.exit(_import_function(REQUEST_FUNCTIONS[name])(rest))
    elif name not in COMMAND_TABLE:
        sys.exit(_refuse_unknown_command(name))
    elif any(word in HELP_OPTIONS for word in rest):
        print(load_parser(name).format_help(), end="")
    elif COMMAND_TABLE[name].runs:
        _refuse_options(name, rest)
        sys.exit(_import_function(COMMAND_TABLE[name].runs)(rest))
    else:
        _run_lightning_command()


def _refuse_options(name: str, words: Sequence[str]) -> None:
    """Refuse options that a command does not have before its modules are imported, which takes seconds."""
    parser = load_parser(name)
    if sentence := find_foreign_option(name, words):
        parser.error(sentence)
    if not COMMAND_TABLE[name].is_configured:
        parser.parse_args(words)
        return
    options, loose_words = parser.parse_known_args(words)
    if loose_words and not (options.config or options.ckpt_path):
        parser.error(LOOSE_OPTION.format(loose_words[0]))
    if loose_words:
        from rlcredit.cli.unknown_options import explain_unknown_option  # noqa: PLC0415

        if sentence := explain_unknown_option(loose_words, {}, load_parser("fit")):
            parser.error(sentence)


def _import_function(path: str) -> Callable[..., Any]:
    module, function = path.split(":")
    if module not in sys.modules:
        with freeze_imports():
            importlib.import_module(module)
    return getattr(sys.modules[module], function)


def _run_lightning_command() -> None:
    """Have LightningCLI run a command; a configuration that cannot be read is refused before it is imported."""
    from rlcredit.cli.startup import read_configuration_or_exit  # noqa: PLC0415

    read_configuration_or_exit(sys.argv[1:])
    _import_function(LIGHTNING_FUNCTION)()


def _refuse_foreign_end(ended: BaseException) -> None:
    """End with a sentence and status 1 where it is a file of somebody's own that ends the process."""
    from rlcredit.config.error_messages import describe_exception, find_own_place  # noqa: PLC0415

    # Lightning ends the process after an interrupt, whoever has raised it.
    cause = ended.__context__ if isinstance(ended.__context__, KeyboardInterrupt) else ended
    if not is_signal(cause) and find_own_place(cause):
        print_message(f"error: {describe_exception(cause)} ends the process. Raise an error there, or return.")
        sys.exit(FAILED)


def _refuse_unknown_command(name: str) -> int:
    """Refuse a command that does not exist, with those of a like name; return the status of a refusal."""
    kind = "option" if name.startswith("-") else "command"
    names = [*COMMAND_TABLE, *COMMAND_SYNONYMS, *REQUEST_FUNCTIONS, *HELP_OPTIONS]
    close = find_closest_name(name, names)
    suggestion = f" Did you mean `{COMMAND_SYNONYMS.get(close, close)}`?" if close else ""
    print(f"error: there is no {kind} `{name:.60}`.{suggestion} `rlcredit --help` lists the commands.", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    main()
