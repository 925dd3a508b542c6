"""Answers that are nothing but mathematics; all others are refused before a parser sees them, in linear time.

An answer may have whatever its reference has: depth, length, commands.
"""

import re
from collections.abc import Collection

LONGEST = 20_000
"""Characters of any answer: the longest grids of reasoning-gym have 2,000."""

LONGEST_EXPRESSION, DEEPEST, LONGEST_NUMBER = 500, 8, 50
"""Characters, brackets in brackets, digits: beyond them parsing takes seconds. Answers of MATH come nowhere near."""

_BRACKETS = {")": "(", "]": "[", "}": "{"}
_HUGE_DECIMAL = re.compile(r"\d[eE][+-]?\d{4}")
_TOKEN = re.compile(
    r"\s+|(?P<number>(?:\d+\.?\d*|\.\d+)(?![A-Za-z_]))|(?P<name>[A-Za-z]+)|(?P<operator>\*\*|[-+*/(),])", re.ASCII
)
_LATEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.|$)", re.DOTALL)
_LATEX_COMMANDS = {
    *re.findall(
        r"\S+",
        r"""\frac \dfrac \tfrac \cfrac \sqrt \cdot \times \div \pm \mp \left \right \big \Big \bigl \bigr \begin \end
        \text \mathrm \mathbf \mathbb \mathcal \textbf \mbox \operatorname \overline \bar \vec \hat \le \leq \ge
        \geq \lt \gt \ne \neq \in \notin \cup \cap \setminus \subset \subseteq \emptyset \varnothing \infty \sin
        \cos \tan \cot \sec \csc \arcsin \arccos \arctan \sinh \cosh \tanh \log \ln \lg \exp \binom \dbinom \tbinom
        \choose \circ \degree \angle \pi \alpha \beta \gamma \delta \epsilon \varepsilon \theta \lambda \mu \nu
        \omega \phi \varphi \psi \rho \sigma \tau \xi \Delta \Gamma \Omega \Phi \Sigma \Theta \quad \qquad \ldots
        \cdots \dots \sum \prod \int \lim \to \rightarrow \Rightarrow \implies \iff \mid \vert \lvert \rvert \Vert
        \lfloor \rfloor \lceil \rceil \bmod \pmod \mod \gcd \max \min \prime \displaystyle \dollar \imath \forall
        \exists \land \lor \wedge \vee \neg \perp \parallel \equiv \approx \sim \det \Re \Im \langle \rangle \lbrace
        \rbrace \% \$ \{ \} \, \; \: \! \|""",
    ),
    "\\ ",
    "\\\\",
}
_UNFINISHED = re.compile(r"^\s*[*/^_=<>,;.:]\D|[-+*/^_=<>:]\s*$|[-+]\s*[-+]|[#@?`~\"]")
_RARE = (
    (r"\d\s*_", "_"),
    (r"\\\\|&", r"\\\\|&|\\begin"),
    (r"[,;](?!\d{3}(\D|$))", "[,;]|text|cup|pm"),
    ("!.*!", "!.*!"),
    ("%", "%"),
)
"""A number's index, a second row, a second answer, a second factorial, per cent: only where the reference has them."""
_POWER = re.compile(r"(?:\^|\*\*)[\s{(+-]*(\d+)")
_TOWER = re.compile(r"\d[\s})]*(?:\^|\*\*)[\s{(+-]*\d+[\s})]*(?:\^|\*\*)")


def short(answer: str, reference: str) -> bool:
    """Whether a scorer that compares texts may see the answer: not endless, and no decimal of a million digits."""
    return len(answer) <= max(LONGEST, 2 * len(reference)) and not (
        _HUGE_DECIMAL.search(answer) and not _HUGE_DECIMAL.search(reference)
    )


def depth(text: str) -> int | None:
    """Return how deep brackets lie in brackets; None if they do not match. Half-open intervals do.

    Example:
        >>> depth("((1))"), depth("(0, 1]"), depth("5)")
        (2, 1, None)

    """
    opened, deepest = "", 0
    for character in text:
        if character in "([{":
            opened += character
            deepest = max(deepest, len(opened))
        elif character in _BRACKETS:
            if not opened or (opened[-1] == "{") != (character == "}"):
                return None
            opened = opened[:-1]
    return None if opened else deepest


def plain_expression(answer: str, variables: Collection[str] = (), functions: Collection[str] = ()) -> bool:
    """Whether an answer in Python's notation is arithmetic: numbers, operators, these variables, these functions.

    Args:
        answer: for example ``2*x**2/3 + C``.
        variables: names that may stand alone.
        functions: names that a bracket must follow; no other name may have one.

    Example:
        >>> plain_expression("2*x + sin(x)", "x", ["sin"]), plain_expression("x.args", "x"), plain_expression("(3+5)/2")
        (True, False, True)

    """
    if len(answer) > LONGEST_EXPRESSION or not (depth(answer) or 0) <= DEEPEST or _too_large(answer):
        return False
    tokens, end = [], 0
    while end < len(answer):
        token = _TOKEN.match(answer, end)
        if token is None:
            return False
        tokens, end = tokens + [token] * (token.lastgroup is not None), token.end()
    followers = [*(token[0] for token in tokens[1:]), ""]
    return bool(tokens) and all(
        token[0] in (functions if follower == "(" else variables)
        for token, follower in zip(tokens, followers, strict=True)
        if token.lastgroup == "name"
    )


def plain_latex(answer: str, reference: str) -> bool:
    r"""Whether an answer in LaTeX is finished and visible mathematics that a parser reads in little time.

    Example:
        >>> [plain_latex(text, "5") for text in (r"\frac{10}{2}", r"\phantom{5}", "5-", "--5", "5,5", r"5\\6")]
        [True, False, False, False, False, False]

    """
    deep, commands = depth(answer), set(_LATEX_COMMAND.findall(answer))
    if len(answer) > max(LONGEST_EXPRESSION, 2 * len(reference)) or deep is None:
        return False
    if deep > max(DEEPEST, depth(reference) or 0) or not commands <= _LATEX_COMMANDS | set(_commands(reference)):
        return False
    if _UNFINISHED.search(answer) or (_too_large(answer) and not _too_large(reference)):
        return False
    text = re.sub(r"\\[,;]", "", answer)
    return all(re.search(required, reference) for rare, required in _RARE if re.search(rare, text))


def _commands(text: str) -> list[str]:
    return _LATEX_COMMAND.findall(text)


def _too_large(text: str) -> bool:
    """Whether a number has too many digits, or a power is too high."""
    powers = [match[1] for match in _POWER.finditer(text)]
    raised = 1
    for match in re.finditer(r"[)}]\s*(?:\^|\*\*)[\s{(+-]*(\d{1,3})", text):
        raised *= max(1, int(match[1]))
    return bool(
        re.search(rf"\d{{{LONGEST_NUMBER + 1}}}|\d{{4,}}\s*!", text)
        or any(len(power) > 3 for power in powers)
        or _TOWER.search(text)
        or raised > 100_000
    )
