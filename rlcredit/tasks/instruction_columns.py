r"""Instructions that name columns of a table: ``{Body} {Question}``."""

import re
from collections.abc import Callable, Iterator

QUESTION = "{question}"

_BRACES = re.compile(r"(\\[A-Za-z]+(?:\{[^{}\n]*\})*|[\\^_])?\{([^{}\n]+)\}")
"""Text in braces, with the LaTeX command whose argument it is."""


def find_braced_names(instruction: str) -> list[str]:
    r"""Return the names in braces of an instruction, except arguments of LaTeX commands.

    Example:
        >>> find_braced_names(r"{Body}{Question} Write \boxed{answer}, \frac{1}{2} or {{json}}.")
        ['Body', 'Question', 'json']

    """
    return [match[2] for match in _find_braces(instruction)]


def split_instruction(instruction: str, is_column: Callable[[str], bool]) -> tuple[str, str]:
    r"""Split an instruction into the template of the question and the text around it.

    Args:
        instruction: Instruction as the configuration has it.
        is_column: Function that tells whether a name in braces is one of a column; ``question`` always is.

    Returns:
        The first part reaches from the first to the last column that is named; the second is the instruction with
        ``{question}`` in its place.

    Example:
        >>> split_instruction("Read: {Body} {Question} Box it.", {"Body", "Question"}.__contains__)
        ('{Body} {Question}', 'Read: {question} Box it.')
        >>> split_instruction("{question} Say {answer}, not {question}.", {"Body"}.__contains__)
        ('{question}', '{question} Say {answer}, not {question}.')

    """
    places = [match for match in _find_braces(instruction) if match[2] == "question" or is_column(match[2])]
    if all(match[2] == "question" for match in places):
        return QUESTION, instruction
    start, end = places[0].start(2) - 1, places[-1].end()
    return instruction[start:end], instruction[:start] + QUESTION + instruction[end:]


def fill_template(template: str, text_of: Callable[[str], str | None]) -> str:
    """Fill a template with the texts of columns.

    Args:
        template: First part of :func:`split_instruction`.
        text_of: Function that returns the text of a name in braces; None where it is no column, and stays as it is
            written.

    """

    def text(match: re.Match[str]) -> str:
        written = None if match[1] else text_of(match[2])
        return match[0] if written is None else written

    return _BRACES.sub(text, template).strip()


def _find_braces(instruction: str) -> Iterator[re.Match[str]]:
    return (match for match in _BRACES.finditer(instruction) if not match[1])
