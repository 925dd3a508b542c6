"""From docstrings, which are reStructuredText, to Markdown."""

import re

from docstring_parser import DocstringParam, DocstringStyle, parse

_CODE_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
_MATH_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*|\s*(?=\n\1 +)))*)", re.MULTILINE)
_SECTION_HEAD = re.compile(r"\n*^(?:Args|Returns|Raises|Example|Attributes):$", re.MULTILINE)
_AUTHOR_NAMES = r"[A-Z][\w-]+(?: et al\.| and [A-Z]\w+)?"
_CITED_PAPER = re.compile(rf"(?:({_AUTHOR_NAMES})(?:,| \()? ?\(?(\d{{4}}),? )?\(?(?:arXiv:)?(\d{{4}}\.\d{{5}})")


def render_one_line(text: str) -> str:
    """Return a text as one line of Markdown."""
    return " ".join(convert_to_markdown(text).split())


def render_first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, in Markdown."""
    return re.split(r"(?<=\.)\s+(?=[A-Z])", render_one_line(text.split("\n\n")[0]))[0]


def convert_to_markdown(text: str) -> str:
    r"""Return a paragraph of a docstring as Markdown.

    Example:
        >>> convert_to_markdown("Multiply by :func:`rlcredit.formulas.gates.gate_statistics`, ``b`` or :math:`b^2`.")
        'Multiply by `gate_statistics`, `b` or $b^2$.'

    """
    text = re.sub(r"(?<!:):math:`([^`]*)`", r"$\1$", text)
    text = _CODE_ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    return text.replace("``", "`").strip()


def parse_parameters(text: str) -> list[DocstringParam]:
    """Return the parameters that a docstring describes."""
    return parse(text, DocstringStyle.GOOGLE).params


def render_docstring_prose(text: str) -> str:
    r"""Return a docstring without its sections, displayed formulas as blocks; nothing of one that only applies another.

    Example:
        >>> print(render_docstring_prose("Add.\n\n.. math:: a +\n    b\n\nThat is it.\n\nArgs:\n    a: one"))
        Add.
        <BLANKLINE>
        ```math
        a +
        b
        ```
        <BLANKLINE>
        That is it.

    """
    text = _SECTION_HEAD.split(text)[0]
    text = re.sub(r"^Apply :func:`\w+` to the (?:ledger|\w+ \w+)\.\s*", "", text)
    return _MATH_BLOCK.sub(lambda match: f"```math\n{unindent_formula(match[2])}\n```", convert_to_markdown(text))


def unindent_formula(block: str) -> str:
    """Return a displayed formula without its indentation."""
    return "\n".join(line.strip() for line in block.strip().splitlines())


def link_cited_papers(texts: list[str]) -> str:
    """Return the papers that docstrings name, as links.

    Example:
        >>> link_cited_papers(["Eq. 6 of Tan et al. (2025, arXiv:2508.04349), reconstructed."])
        'Tan et al. 2025, [2508.04349](https://arxiv.org/abs/2508.04349); reconstruction'

    """
    text = " ".join("\n".join(texts).split())
    papers: dict[str, str] = {}
    for authors, year, number in _CITED_PAPER.findall(text):
        papers[number] = papers.get(number) or (f"{authors} {year}, " if authors and year else "")
    links = [f"{prefix}[{number}](https://arxiv.org/abs/{number})" for number, prefix in papers.items()]
    links += ["SEPA paper"] if "SEPA paper" in text or "teilomillet" in text else []
    links += ["reconstruction"] if links and re.search(r"reconstruct", text, re.IGNORECASE) else []
    return "; ".join(links)
