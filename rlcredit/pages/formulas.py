"""Formulas of docstrings as MathML, which browsers draw by themselves: the part of LaTeX that operators use."""

import html
import re
from collections.abc import Callable

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\S|\s+")

LETTERS = {
    **{"alpha": "\u03b1", "beta": "\u03b2", "gamma": "\u03b3", "delta": "\u03b4", "epsilon": "\u03f5"},
    **{"zeta": "\u03b6", "eta": "\u03b7", "theta": "\u03b8", "kappa": "\u03ba", "lambda": "\u03bb", "mu": "\u03bc"},
    **{"nu": "\u03bd", "xi": "\u03be", "pi": "\u03c0", "rho": "\u03c1", "sigma": "\u03c3", "tau": "\u03c4"},
    **{"phi": "\u03d5", "chi": "\u03c7", "psi": "\u03c8", "omega": "\u03c9", "Delta": "\u0394", "Phi": "\u03a6"},
    **{"Sigma": "\u03a3", "Omega": "\u03a9", "ell": "\u2113", "nabla": "\u2207", "partial": "\u2202"},
    **{"top": "\u22a4", "infty": "\u221e"},
}
SIGNS = {
    **{"le": "\u2264", "ge": "\u2265", "ne": "\u2260", "in": "\u2208", "notin": "\u2209", "times": "\u00d7"},
    **{"cdot": "\u22c5", "leftarrow": "\u2190", "to": "\u2192", "mid": "\u2223", "sim": "\u223c", "approx": "\u2248"},
    **{"lfloor": "\u230a", "rfloor": "\u230b", "lceil": "\u2308", "rceil": "\u2309", "lVert": "\u2016"},
    **{"rVert": "\u2016", "{": "{", "}": "}", "_": "_", "pm": "\u00b1", "ldots": "\u2026", "dots": "\u2026"},
}
FUNCTIONS = frozenset(["max", "min", "log", "exp", "tanh", "sin", "cos", "arcsin", "arccos", "sup", "inf"])
SUMS = {"sum": "\u2211", "prod": "\u220f", "int": "\u222b"}
ACCENTS = {"hat": "^", "tilde": "~", "vec": "\u2192"}
BARS = frozenset(["bar", "overline"])
MINUS = "\u2212"
BACKSLASH = "\\"
FENCES = "()[]|\u2016\u2223"
"""Signs that keep their size beside something tall."""

STACKED = ' linethickness="0"'
"""Attribute of a fraction without a line."""

SPACES = {",": 0.17, ";": 0.28, ":": 0.22, " ": 0.25, "quad": 1.0, "qquad": 2.0}
WORDS = frozenset(["text", "operatorname", "mathrm", "mathbf", "mathbb", "mathcal"])
SIZES = frozenset(["bigl", "bigr", "Bigl", "Bigr", "big", "Big", "left", "right", "biggl", "biggr"])
IGNORED = frozenset(["textstyle", "displaystyle", "limits", "!"])


def render_formula(latex: str) -> str:
    r"""Return a formula as MathML, or as its LaTeX where it uses a command that is not known here.

    Example:
        >>> render_formula(r"w_t = \frac{1}{2}")[28:-14]
        '<msub><mi>w</mi><mi>t</mi></msub><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac>'
        >>> render_formula(r"\unknown")
        '<pre>\\unknown</pre>'

    """
    try:
        return f'<math display="block"><mrow>{_FormulaReader(latex).read_whole()}</mrow></math>'
    except UnknownCommandError:
        return f"<pre>{html.escape(latex)}</pre>"


class UnknownCommandError(ValueError):
    """A command of LaTeX that is not known here, or braces that do not match."""


class _FormulaReader:
    """Reads a formula from left to right."""

    def __init__(self, latex: str) -> None:
        self.tokens = TOKEN.findall(latex)
        self.place = 0

    def read_whole(self) -> str:
        """Return the whole formula."""
        row = self.read_row()
        if self.place < len(self.tokens):
            raise UnknownCommandError
        return row

    def read_row(self) -> str:
        """Return what stands up to the closing brace, or to the end."""
        parts: list[str] = []
        while self.place < len(self.tokens) and self.tokens[self.place] != "}":
            parts.append(self._read_with_scripts())
        return "".join(parts)

    def _next(self) -> str:
        if self.place >= len(self.tokens):
            raise UnknownCommandError
        self.place += 1
        return self.tokens[self.place - 1]

    def _skip_spaces(self) -> None:
        while self.place < len(self.tokens) and self.tokens[self.place].isspace():
            self.place += 1

    def _read_with_scripts(self) -> str:
        """Return an atom with what stands below and above it."""
        sums = self.tokens[self.place].removeprefix("\\") in SUMS
        base, scripts = self._read_atom(), dict[str, str]()
        self._skip_spaces()
        while self.place < len(self.tokens) and self.tokens[self.place] in ("_", "^", "'"):
            kind = self._next()
            scripts["^" if kind == "'" else kind] = "<mo>\u2032</mo>" if kind == "'" else self._read_argument()
            self._skip_spaces()
        if not scripts:
            return base
        below, above = ("munder", "mover") if sums else ("msub", "msup")
        if len(scripts) == 2:
            both = "munderover" if sums else "msubsup"
            return f"<{both}>{base}{scripts['_']}{scripts['^']}</{both}>"
        tag = below if "_" in scripts else above
        return f"<{tag}>{base}{next(iter(scripts.values()))}</{tag}>"

    def _read_argument(self) -> str:
        """Return a group in braces, or a single atom, as one element."""
        self._skip_spaces()
        if self.place < len(self.tokens):
            first = self.tokens[self.place]
            if first == "{":
                return self._read_group()
            if first.isdigit():  # without braces an argument is one digit
                self.tokens[self.place : self.place + 1] = first
        else:
            raise UnknownCommandError
        return self._read_atom()

    def _read_tall_sign(self) -> str:
        """Return a bracket that grows with what it holds."""
        sign = self._next()
        return f"<mo>{html.escape(SIGNS.get(sign[1:], sign) if sign[0] == BACKSLASH else sign)}</mo>"

    def _read_group(self) -> str:
        self._next()
        row = self.read_row()
        self._next()
        return f"<mrow>{row}</mrow>" if row.count("<") != 2 else row

    def _read_text(self) -> str:
        """Return the words of a group in braces."""
        self._skip_spaces()
        words = ""
        if self._next() != "{":
            raise UnknownCommandError
        while (token := self._next()) != "}":
            words += token.removeprefix("\\")
        return html.escape(words).replace(" ", "\u00a0")

    def _read_atom(self) -> str:
        token = self.tokens[self.place]
        if token == "{":
            return self._read_group()
        self.place += 1
        if token.isspace():
            return ""
        if token.startswith("\\"):
            return self._read_command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return self._write_sign(MINUS if token == "-" else token)

    @staticmethod
    def _write_sign(sign: str) -> str:
        fixed = ' stretchy="false" lspace="0" rspace="0"' if sign in FENCES else ""
        return f"<mo{fixed}>{html.escape(sign)}</mo>"

    def _read_command(self, name: str) -> str:
        readers: dict[str, Callable[[], str]] = {
            **dict.fromkeys(("frac", "tfrac", "dfrac"), lambda: self._read_fraction("")),
            "binom": lambda: f"<mrow><mo>(</mo>{self._read_fraction(STACKED)}<mo>)</mo></mrow>",
            "sqrt": lambda: f"<msqrt>{self._read_argument()}</msqrt>",
            **dict.fromkeys(WORDS, lambda: f"<mtext>{self._read_text()}</mtext>"),
            **dict.fromkeys(BARS, lambda: f'<mrow style="border-top: 1px solid">{self._read_argument()}</mrow>'),
            **dict.fromkeys(SIZES, self._read_tall_sign),
            **dict.fromkeys(IGNORED, lambda: ""),
            **dict.fromkeys(ACCENTS, lambda: self._read_accent(ACCENTS[name])),
        }
        if name in readers:
            return readers[name]()
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"/>'
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in SUMS:
            return f"<mo>{SUMS[name]}</mo>"
        if name in SIGNS:
            return self._write_sign(SIGNS[name])
        raise UnknownCommandError(name)

    def _read_fraction(self, attribute: str) -> str:
        return f"<mfrac{attribute}>{self._read_argument()}{self._read_argument()}</mfrac>"

    def _read_accent(self, sign: str) -> str:
        return f'<mover accent="true">{self._read_argument()}<mo stretchy="false">{sign}</mo></mover>'
