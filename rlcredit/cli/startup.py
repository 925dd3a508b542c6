"""Work done before a command is imported: versions, and reading its configuration."""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

import rlcredit
from rlcredit.base.exit_status import FINISHED, REFUSED
from rlcredit.base.messages import print_message
from rlcredit.cli.commands import COMMAND_TABLE, find_foreign_option, load_parser
from rlcredit.cli.config_checks import refuse_unusable_groups
from rlcredit.cli.run_words import resolve_run_words
from rlcredit.cli.unknown_options import explain_unknown_option, find_synonym
from rlcredit.config.arguments import CONFIG_KEYS, find_similar_name
from rlcredit.config.class_paths import patch_jsonargparse, refuse_misplaced_class
from rlcredit.config.paths import extend_import_path
from rlcredit.config.reader import Configuration, Roots, read_configuration

UNDER_IT = ("torch", "lightning", "transformers", "peft")


def print_versions(words: Sequence[str]) -> int:
    """Print the versions, and return the exit status."""
    print(render_versions())
    return FINISHED


def render_versions() -> str:
    """Return the versions of rlcredit and its main dependencies, one per line, without importing them."""
    return "\n".join(
        [f"rlcredit {rlcredit.__version__}", *(f"{name} {_find_package_version(name)}" for name in UNDER_IT)]
    )


def _find_package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def read_configuration_or_exit(args: Sequence[str], roots: Roots = MappingProxyType({})) -> Configuration:
    """Return the configuration of files and flags, or exit with a message if it cannot be read.

    Args:
        args: Arguments of the command line.
        roots: Type behind each top-level key, if they are imported; then what it names is imported too.

    """
    configuration = Configuration()
    try:
        patch_jsonargparse()
        if not roots:
            _refuse_unknown_options(args)
        words = resolve_run_words(args)
        extend_import_path(words)
        configuration = read_configuration(words, roots)
        if (
            not roots
            and configuration.command in COMMAND_TABLE
            and (sentence := explain_unknown_option(words, configuration.values, load_parser(configuration.command)))
        ):
            raise ValueError(sentence)
        if not configuration.values:
            raise ValueError("no configuration is named. Say which one, as `--config configs/tiny.yaml`.")
        for flag, origin in configuration.lost_flags.items() if roots else ():
            print_message(f"warning: {flag} has no effect: {origin} sets it again. Put `{flag}` behind that file.")
        refuse_unusable_groups(configuration.values)
        for key in roots:
            refuse_misplaced_class(configuration.values.get(key), roots[key], key)
        return configuration
    except ValueError as error:
        print(f"error: {configuration.locate(str(error))}", file=sys.stderr)
        sys.exit(REFUSED)


def _refuse_unknown_options(words: Sequence[str]) -> None:
    """Refuse flags that are spelt nearly as an option, or that other commands have.

    What else a flag may mean is known once classes are imported.
    """
    if not words or words[0] not in COMMAND_TABLE:
        return
    options = [*load_parser(words[0]).options, *(f"--{key}" for key in CONFIG_KEYS)]
    names = [option for option in options if "." not in option]
    for flag in (word.partition("=")[0] for word in words):
        is_known = flag[:2] != "--" or "." in flag or flag in names
        if not is_known and (close := find_synonym(flag) or find_similar_name(flag, names)):
            raise ValueError(f"{flag}: no such option. Did you mean `{close}`?")
    if sentence := find_foreign_option(words[0], words[1:]):
        raise ValueError(sentence)
