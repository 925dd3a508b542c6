"""``rlcredit new operator FILE``: a file with a working operator, to be changed into one's own."""

import keyword
import re
from pathlib import Path

from rlcredit.base.exit_status import REFUSED
from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.cli.command_options import make_new_parser

_OPERATOR_TEMPLATE = Path(__file__).with_name("operator_template.txt")
"""Text of the file, in which ``CLASSNAME`` stands for the name of the class."""


def run_new_command(args: list[str]) -> int:
    """Write the file, say what to do with it, and return the exit status."""
    options = make_new_parser().parse_args(args)
    try:
        name = name_operator_class(options.file)
        if options.file.exists():
            raise ValueError(f"{options.file} exists. Name another file, or remove this one.")
        options.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(options.file, render_operator(name))
    except (ValueError, OSError) as error:
        print_message(f"error: {error}")
        return REFUSED
    print(describe_next_steps(options.file, name))
    return 0


def name_operator_class(file: Path) -> str:
    """Return the name of the class for a file.

    Raises:
        ValueError: the file's name is not that of a module of Python.

    Example:
        >>> name_operator_class(Path("my_operator.py"))
        'MyOperator'

    """
    if file.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", file.stem) or keyword.iskeyword(file.stem):
        raise ValueError(
            f"{file.name} cannot be imported by name. Use small letters, digits and underscores, and end in .py."
        )
    return "".join(word.capitalize() for word in file.stem.split("_"))


def render_operator(name: str) -> str:
    """Return the file's content; ``name`` is that of the class."""
    return _OPERATOR_TEMPLATE.read_text(encoding="utf-8").replace("CLASSNAME", name)


def describe_next_steps(file: Path, name: str) -> str:
    """Return the next steps with the file.

    Example:
        >>> print(describe_next_steps(Path("my_operator.py"), "MyOperator"))
        wrote my_operator.py with the operator MyOperator. Change token_weights, then
          judge it:         rlcredit card my_operator.py
          train with it:    rlcredit fit --config configs/tiny.yaml --trainer.callbacks "[GRPO, my_operator.MyOperator]"

    """
    stack = f'"[GRPO, {file.stem}.{name}]"'
    return "\n".join(
        [
            f"wrote {file} with the operator {name}. Change token_weights, then",
            f"  judge it:         rlcredit card {file}",
            f"  train with it:    rlcredit fit --config configs/tiny.yaml --trainer.callbacks {stack}",
        ]
    )
