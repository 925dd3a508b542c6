"""The help of a run against the parser that reads its options."""

import importlib
import re

import pytest

from rlcredit.cli.run_options import (
    LINKED_PARAMETERS,
    OPTION_SECTIONS,
    make_explain_parser,
    make_fit_parser,
    make_validate_parser,
)
from rlcredit.cli.source_options import read_class_parameters
from rlcredit.cli.unknown_options import explain_unknown_option

OWN = {"--out", "--mlflow", "-h", "--help", "--print_config"}
"""What is said in other words to the parser of Lightning, or asked of every parser."""

GROUPS = {"--trainer", "--model", "--checkpoint", "--completions", "--weights_only"}
"""Files in place of groups, and a flag that this project has no use for."""

NESTED = ("--model.policy.", "--model.sampling.", "--data.init_args.")
"""Options inside of classes, which Lightning's parser knows once it knows the class."""


@pytest.fixture(scope="module")
def parsers():
    """The parsers that read the options of each command."""
    from rlcredit.cli.application import CreditCLI, run_credit_cli

    class StoppedError(Exception):
        pass

    found = {}

    class Described(CreditCLI):
        def parse_arguments(self, parser, args):
            found[name] = {
                option for action in self.get_subcommand_parser(name)._actions for option in action.option_strings
            }
            raise StoppedError

    for name in ("fit", "validate", "explain"):
        with pytest.raises(StoppedError):
            run_credit_cli([name, "--config=configs/tiny.yaml"], Described)
    return found


@pytest.mark.parametrize(
    ("name", "make_parser"),
    [("fit", make_fit_parser), ("validate", make_validate_parser), ("explain", make_explain_parser)],
)
def test_the_help_has_the_options_of_the_parser_and_no_others(name, make_parser, parsers):
    told = {option for action in make_parser()._actions for option in action.option_strings}
    read = {option for option in parsers[name] - GROUPS if re.fullmatch(r"--?[\w.]*\w", option)}
    read = {option for option in read if not option.endswith(".help")}
    assert {option for option in told - read if not option.startswith(NESTED)} <= OWN
    assert explain_unknown_option(sorted(read), {}, make_fit_parser()) is None
    left_out = {option for option in read - told if not option.startswith("--checkpoint.")}
    assert left_out <= {"--print_config", "--ckpt_path", "--verbose"}


@pytest.mark.parametrize("section", OPTION_SECTIONS)
def test_parameters_read_from_the_source_are_those_of_the_class(section):
    import inspect

    _, module, name = OPTION_SECTIONS[section]
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    named = [each.name for each in parameters.values() if each.kind is not each.VAR_KEYWORD]
    assert [each.name for each in read_class_parameters(module, name)] == named


def test_options_of_rlcredit_stand_before_those_of_lightning():
    groups = [group.title for group in make_fit_parser()._action_groups if group._group_actions]
    shown = [title for title in groups if title not in ("options", "arguments")]
    assert shown[0] == "run"
    assert shown[-1] == "Lightning's Trainer (--trainer)"


def test_what_the_seed_of_a_run_sets_is_no_option():
    options = {option for action in make_fit_parser()._actions for option in action.option_strings}
    assert not {f"--model.{name}" for name in LINKED_PARAMETERS} & options
