r"""Single values: which texts are one finished expression, and what can be said of two of them without algebra."""

import re
from fractions import Fraction

from rlcredit.verification.mathematics.equality import UndecidedError, UnreadableReferenceError
from rlcredit.verification.mathematics.notation import FUNCTION_NAMES
from rlcredit.verification.mathematics.numbers import is_within_tolerance, read_normal_rational
from rlcredit.verification.mathematics.structure import squeeze_blanks

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_WORK = ("int", "sum", "prod", "lim", "max", "min", "gcd", "lcm", "det", "to", "partial", "iint", "oint")
"""Commands that ask for the work that the question asks for: an answer may have them where its reference has them."""
_ATOMS = ("infty", "ell", "hbar", "circ", "imath", "angle", *_GREEK.split())
_TAKING = re.findall(r"\w+", "frac sqrt binom overline bar vec hat widehat tilde mathbb mathcal log text")
_JOINING = ("cdot", "times", "div", "pm", "mp")
_OTHERS = ("lfloor", "rfloor", "lceil", "rceil", "prime", "begin", "end")
KNOWN_COMMANDS = frozenset([*FUNCTION_NAMES, *_ATOMS, *_TAKING, *_JOINING, *_OTHERS]) - frozenset(_WORK)
"""Commands of LaTeX that a value may have."""

_TOKEN = re.compile(
    r"\s+|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<command>\\[A-Za-z]+)|(?P<letter>[A-Za-z])|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<script>[\^_])|(?P<sign>[-+])|(?P<operator>[/])|(?P<after>[!'])|(?P<bar>\|)"
)
_CLOSES = {")": "(", "]": "[", "}": "{"}
_WORD = re.compile(r"(?<![A-Za-z\\])(?:[A-Za-z]{3,}|(?:or|no|is|to|vs|if|in|of|as|by)(?![A-Za-z]))")
_RELATIONS = frozenset(
    re.findall(
        r"\S+",
        """
        approx equiv sim simeq cong propto ne neq le ge lt gt in notin cup cap subset subseteq supset to rightarrow
        Rightarrow implies iff leftrightarrow Leftrightarrow mid parallel perp quad qquad ldots cdots dots land lor
        wedge vee neg setminus forall exists mapsto colon therefore because pmod bmod mod phantom hspace
        """,
    )
)
"""Commands that no value has, whatever its reference has."""
_BOUND = re.compile(r"(\\(?:sum|prod)\s*_\{\s*[A-Za-z]\s*)=")
LIST_FUNCTION = re.compile(r"(\\(?:max|min|gcd|lcm))\s*(?:\(|\\\{)((?:[^(){}]|\([^()]*\)|\{[^{}]*\})*)(?:\)|\\\})")
"""Functions of several values, which commas separate."""
_SCIENTIFIC = re.compile(r"(\d)[eE]([+-]?\d{1,3})(?!\d)")


def is_finished_expression(text: str, reference: str = "") -> bool:
    r"""Whether a text in normal form is one finished value and nothing beside it.

    Two numbers side by side are no value, and no word is: whatever stands there must be read by computer algebra as it
    is meant, with nothing left over.

    Args:
        text: Text in normal form.
        reference: Text whose commands and words are allowed too.

    Example:
        >>> [is_finished_expression(text) for text in (r"2\sqrt{3}", "x^{2}+1")]
        [True, True]
        >>> [is_finished_expression(text) for text in ("3 4", "5 or 6", "5-", r"\int x", "1,2")]
        [False, False, False, False, False]

    """
    text = _BOUND.sub(r"\1-", _SCIENTIFIC.sub(r"\1 \\cdot 10^{\2}", text))
    text = LIST_FUNCTION.sub(lambda call: f"{call[1]}({call[2].replace(',', ')+(')})", text)
    tokens, end = list[tuple[str, str]](), 0
    while end < len(text):
        token = _TOKEN.match(text, end)
        if token is None:
            return False
        if token.lastgroup:
            tokens.append((token.lastgroup, token[0]))
        end = token.end()
    commands = {value[1:] for kind, value in tokens if kind == "command"}
    if not tokens or not commands <= KNOWN_COMMANDS | set(re.findall(r"\\([A-Za-z]+)", reference)) - _RELATIONS:
        return False
    products = {"".join(sorted(word)) for word in _WORD.findall(reference)}
    words = {word for word in _WORD.findall(text) if word not in reference and "".join(sorted(word)) not in products}
    return not words and _has_balanced_brackets(tokens) and _is_well_formed(tokens)


def _has_balanced_brackets(tokens: list[tuple[str, str]]) -> bool:
    open_brackets = ""
    for _, value in tokens:
        if value in _CLOSES.values():
            open_brackets += value
        elif value in _CLOSES:
            if open_brackets[-1:] != _CLOSES[value]:
                return False
            open_brackets = open_brackets[:-1]
    return not open_brackets


def _is_well_formed(tokens: list[tuple[str, str]]) -> bool:
    command_kinds = {**{rf"\{name}": "operator" for name in _JOINING}, r"\pm": "sign", r"\mp": "sign"}
    kinds = [command_kinds.get(value, kind) for kind, value in tokens]
    taking = {rf"\{name}" for name in (*_TAKING, *FUNCTION_NAMES)}
    ends = {"number", "letter", "close", "after", "bar"}
    if kinds[-1] in ("sign", "operator", "script") or kinds[0] in ("operator", "after", "script"):
        return False
    if tokens[-1][1] in taking - {r"\text"} or kinds.count("bar") % 2:
        return False
    steps = zip(tokens, kinds, tokens[1:], kinds[1:], strict=False)
    for place, ((previous_kind, value), kind, (_, next_value), next_kind) in enumerate(steps):
        if (kind == "number" and next_value == "_") or (value == "!" and next_value == "!"):
            return False
        if next_value == "'" and value != "'" and kind != "letter":
            return False
        if value == ")" and next_kind == "number" and kinds[place + 2 : place + 3] != ["script"]:
            return False  # (n-2) 2^{n} is a product; in (2) 3 nobody knows
        if next_kind == "number" and (
            (kind in ends - {"bar"} and value not in ("}", "]", "!", ")")) or previous_kind == "number"
        ):
            return False
        if kind in ("sign", "operator", "script", "open") and next_kind in ("operator", "script", "after"):
            return False
        if kind in ("sign", "operator") and (next_kind == "close" or (kind == "sign" and next_kind == "sign")):
            return False
        if kind == "open" and next_kind == "close" and value != "{":
            return False
    return True


_SHORT_WORDS = frozenset(
    re.findall(r"\w+", "ad ah am an as at be do go ha he hi id if in is it me my no of oh ok on or ox so to up us we")
)


def is_product_of_letters(reference: str) -> bool:
    """Whether a reference is two letters that are no word: ``ax``."""
    return re.fullmatch(r"[a-z]{2}", reference) is not None and reference not in _SHORT_WORDS


class ExactEquality:
    """Equality of rational numbers, and of texts; all else is left to computer algebra.

    Args:
        tolerance: How far two numbers may differ, as a share of the reference.

    """

    def __init__(self, tolerance: float = 0.0) -> None:
        self.tolerance = tolerance

    def is_equal(self, answer: str, reference: str, factor: Fraction = Fraction(1)) -> bool:
        """Whether an answer, multiplied by a factor, has the value of its reference.

        Raises:
            UndecidedError: only computer algebra can tell.
            UnreadableReferenceError: the reference is no value.

        """
        if not answer:
            return False
        if factor == 1 and squeeze_blanks(answer) == squeeze_blanks(reference):
            return True
        value, expected_value = read_normal_rational(answer), read_normal_rational(reference)
        if value is not None and expected_value is not None:
            return is_within_tolerance(value * factor, expected_value, self.tolerance)
        if not is_finished_expression(reference, reference):
            raise UnreadableReferenceError(reference)
        if not is_finished_expression(answer, reference):
            return False
        raise UndecidedError

    def is_proportional(self, answer: str, reference: str, positive: bool) -> bool:
        """Whether their ratio is a constant other than zero; greater than zero if ``positive``.

        Raises:
            UndecidedError: only computer algebra can tell.
            UnreadableReferenceError: the reference is no value.

        """
        if not is_finished_expression(reference, reference):
            raise UnreadableReferenceError(reference)
        if not is_finished_expression(answer, reference):
            return False
        raise UndecidedError
