"""What an operator is, from its own file: a summary, its formulas, its arguments and its source."""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlcredit.credit.contract import OperatorContract

FORMULA_PATTERN = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*|\s*(?=\n\1 +)))*)", re.MULTILINE)
ROLE_PATTERN = re.compile(r":(?:func|class|meth|mod|data|attr):`~?(?:[\w.]*\.)?([^`.]+)`")
SECTION_PATTERN = re.compile(r"\n*^(?:Args|Returns|Raises|Example|Attributes):$", re.MULTILINE)
ARGUMENTS_PATTERN = re.compile(r"^Args:\n((?: +.*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class ArgumentText:
    """Name, value and meaning of an argument of an operator, in words."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class OperatorText:
    """What an operator is, in its author's words.

    Args:
        name: Class of the operator.
        summary: One sentence about it.
        formulas: Formulas of its file, in LaTeX.
        prose: Paragraphs about formulas and class.
        arguments: Name, value and meaning of each argument.
        source: Text of its file; empty where it cannot be read.

    """

    name: str
    summary: str
    formulas: Sequence[str] = ()
    prose: Sequence[str] = ()
    arguments: Sequence[ArgumentText] = ()
    source: str = ""


def describe_own_operators(
    stack: Sequence[OperatorContract], baseline: Sequence[OperatorContract]
) -> list[OperatorText]:
    """Return the texts of the operators that a stack has and its baseline has not; all of them where there are none.

    Args:
        stack: Operators that are judged.
        baseline: Operators that they are compared with.

    """
    base_classes = {type(operator) for operator in baseline}
    operators = [operator for operator in stack if type(operator) not in base_classes]
    return [describe_operator(operator) for operator in operators or stack]


def describe_operator(operator: OperatorContract) -> OperatorText:
    """Return the text about an operator.

    Example:
        >>> from callbacks import GTPO
        >>> text = describe_operator(GTPO(beta=0.2))
        >>> text.summary, text.arguments[0].value, len(text.formulas)
        ('More credit to the tokens at which the policy was undecided.', '0.2', 1)

    """
    cls = type(operator)
    module = sys.modules[cls.__module__]
    docstrings = [text for text in _list_docstrings(cls) if text]
    meanings = _parse_arguments(inspect.getdoc(cls) or "")
    arguments = [ArgumentText(name, f"{value}", meanings.get(name, "")) for name, value in operator.arguments.items()]
    whole = (module.__doc__ if cls.__module__.startswith("callbacks.") else None) or inspect.getdoc(cls) or ""
    about = " ".join(_plain_text(whole.split("\n\n")[0]).split())
    summary = about.partition(": ")[2] or about
    return OperatorText(
        cls.__name__,
        summary[:1].upper() + summary[1:],
        list_formulas(cls),
        [paragraph for text in docstrings for paragraph in _list_paragraphs(text) if paragraph != about],
        arguments,
        _read_source(cls),
    )


def list_formulas(cls: type) -> list[str]:
    """Return the displayed formulas of a class and of the functions beside it, in LaTeX."""
    docstrings = filter(None, _list_docstrings(cls))
    return [_unindent_formula(match[2]) for text in docstrings for match in FORMULA_PATTERN.finditer(text)]


def _list_docstrings(cls: type) -> Iterator[str | None]:
    """Yield the docstrings of the functions with a formula that a class's file defines, and that of the class."""
    for thing in vars(sys.modules[cls.__module__]).values():
        if inspect.isfunction(thing) and thing.__module__ == cls.__module__ and ".. math::" in (thing.__doc__ or ""):
            yield inspect.getdoc(thing)
    yield inspect.getdoc(cls)


def _list_paragraphs(docstring: str) -> list[str]:
    """Return the paragraphs of a docstring without its sections and formulas; dots stand where a formula begins one."""
    text = FORMULA_PATTERN.sub("", SECTION_PATTERN.split(docstring)[0])
    parts = filter(None, map(str.strip, re.split(r"\n\s*\n", text)))
    return [
        ("\N{HORIZONTAL ELLIPSIS} " if part[0].islower() else "") + " ".join(_plain_text(part).split())
        for part in parts
    ]


def _plain_text(text: str) -> str:
    """Return a docstring's text without the marks of reStructuredText."""
    return ROLE_PATTERN.sub(r"\1", re.sub(r":math:`([^`]*)`", r"\1", text)).replace("``", "")


def _unindent_formula(formula: str) -> str:
    return "\n".join(line.strip() for line in formula.strip().splitlines())


def _parse_arguments(docstring: str) -> dict[str, str]:
    """Return the meaning of each argument that a docstring describes."""
    block = ARGUMENTS_PATTERN.search(docstring)
    entries = re.split(r"^    (?=\w+:)", block[1], flags=re.MULTILINE)[1:] if block else []
    pairs = (entry.partition(":") for entry in entries)
    return {name: " ".join(_plain_text(meaning).split()) for name, _, meaning in pairs}


def _read_source(cls: type) -> str:
    try:
        return inspect.getsource(sys.modules[cls.__module__])
    except (OSError, TypeError):
        return ""
