r"""Normalise notation: Unicode, LaTeX and plain text become the same LaTeX.

Nothing here changes a value or drops a word. What only changes how mathematics looks is taken off; what is left is
compared by :mod:`rlcredit.verification.mathematics.reference_kinds`.
"""

import re
import unicodedata

_INVISIBLE = dict.fromkeys([0x00AD, *range(0x200B, 0x2010), 0x2060, *range(0xFE00, 0xFE10), 0xFEFF])
_SIGNS = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\u2008", r"\,"),
    **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u22c5\u00b7\u2219", r"\cdot "),
    **dict.fromkeys("\u00d7\u2715\u2a09", r"\times "),
    **dict.fromkeys("\u2264\u2a7d\u2266", r"\le "),
    **dict.fromkeys("\u2265\u2a7e\u2267", r"\ge "),
    **dict.fromkeys("\u221e", r"\infty "),
    **dict.fromkeys("\u00b0\u00ba", r"^{\circ}"),
    **dict.fromkeys("\u2026\u22ef", r"\ldots "),
    **{"\u00f7": r"\div ", "\u2217": "*", "\u2044": "/", "\u2215": "/", "\u2236": ":", "\u2260": r"\ne "},
    **{"\u00b1": r"\pm ", "\u2213": r"\mp ", "\u222a": r"\cup ", "\u2229": r"\cap ", "\u2208": r"\in "},
    **{"\u2205": r"\emptyset ", "\u2300": r"\emptyset ", "\u2220": r"\angle ", "\u2261": r"\equiv "},
    **{"\u2248": r"\approx ", "\u2192": r"\to ", "\u21d2": r"\Rightarrow ", "\u2228": r"\lor ", "\u2227": r"\land "},
    **{"\u27e8": r"\langle ", "\u27e9": r"\rangle ", "\u230a": r"\lfloor ", "\u230b": r"\rfloor "},
    **{"\u2308": r"\lceil ", "\u2309": r"\rceil ", "\u2223": "|", "\u2216": r"\setminus ", "\u00ac": r"\neg "},
    **{"\u211d": r"\mathbb{R}", "\u2124": r"\mathbb{Z}", "\u2115": r"\mathbb{N}", "\u211a": r"\mathbb{Q}"},
    **{
        "\u0000": " ",
        "\u066c": ",",
        "\u2102": r"\mathbb{C}",
        "\u212f": "e",
        "\u2148": "i",
        "\u3002": ".",
        "\u3001": ",",
        "\uffe5": "\u00a5",
    },
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code != 0xFF0D},
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon "
    "phi chi psi omega"
)
_LETTERS = dict(zip(range(0x3B1, 0x3CA), _GREEK.split(), strict=True))
_CAPITALS = {"Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi"}
_NAMES = {**{chr(code): name for code, name in _LETTERS.items()}, **_CAPITALS, "Ψ": "Psi", "Ω": "Omega"}
_TRANSLATED = str.maketrans(
    {**_SIGNS, **{sign: rf"\{name} " for sign, name in _NAMES.items()}, "\u00b5": r"\mu ", "\u2126": r"\Omega "}
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ", "0123456789+-()nix")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙₓ", "0123456789+-nx")
_RAISED_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ]+")
_LOWERED_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₙₓ]+")
_FRACTION_SIGN = re.compile("[¼-¾⅐-⅞↉]")
_STYLED = re.compile("[\U0001d400-\U0001d7ff]")
_SLASHED = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹]+)[\u2044/]([₀₁₂₃₄₅₆₇₈₉]+)")
_OVERLINED = re.compile("((?:[0-9]\u0305)+)")
_ROOT_SIGN = re.compile(r"([√∛∜])\s*(\d+(?:\.\d+)?|\\?[A-Za-z]+(?: |\b)|\((?:[^()]|\([^()]*\))*\)|\{[^{}]*\})")
_DEGREES = {"√": "", "∛": "[3]", "∜": "[4]"}


def write_unicode_as_latex(text: str) -> str:
    r"""Write the signs of Unicode as LaTeX.

    Example:
        >>> tuple(map(write_unicode_as_latex, ("2√3", "x²", "–½", "∞")))
        ('2\\sqrt{3}', 'x^{2}', '-\\frac{1}{2}', '\\infty ')

    """
    text = unicodedata.normalize("NFC", text).translate(_INVISIBLE)
    text = _STYLED.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), text)
    text = _SLASHED.sub(lambda pair: rf"\frac{{{pair[1].translate(_RAISED)}}}{{{pair[2].translate(_LOWERED)}}}", text)
    text = _OVERLINED.sub(lambda run: rf"\overline{{{run[1].replace(chr(0x305), '')}}}", text)
    text = _RAISED_RUN.sub(lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
    text = _LOWERED_RUN.sub(lambda run: f"_{{{run[0].translate(_LOWERED)}}}", text)
    text = _FRACTION_SIGN.sub(_expand_fraction_sign, text).translate(_TRANSLATED)
    text = _ROOT_SIGN.sub(lambda root: rf"\sqrt{_DEGREES[root[1]]}{{{_strip_braces(root[2])}}}", text)
    return "".join(
        character if unicodedata.decimal(character, None) is None else str(unicodedata.decimal(character))
        for character in text
    )


def _expand_fraction_sign(sign: re.Match[str]) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", sign[0]).partition("\u2044")
    return rf"\frac{{{top}}}{{{bottom}}}"


def _strip_braces(text: str) -> str:
    return text[1:-1] if text[:1] + text[-1:] in ("()", "{}") else text


_WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_DOLLARS = re.compile(r"(?<!\\)\$\$?((?:[^$\\]|\\.)*)(?<!\\)\$\$?")
_TEXT = re.compile(r"\\(?:text|mbox)\{[^{}]*\}")
_WORDS = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}(?:[\s'-]+[^\W\d_]{2,})*")


def drop_dollars(text: str) -> str:
    r"""Remove math delimiters; words beside ``$...$`` become texts, so that none of them is lost.

    Example:
        >>> drop_dollars("$5$"), drop_dollars(r"not $\frac{1}{2}$"), drop_dollars("-$5.50")
        ('5', '\\text{not} \\quad \\frac{1}{2}\\quad ', '-\\$5.50')

    """
    text = text.strip()
    for opening, closing in _WRAPPERS:
        inner = text[len(opening) : -len(closing)]
        is_enclosed = text == opening + inner + closing and len(text) > len(opening + closing)
        if is_enclosed and opening not in inner and closing not in inner:
            return drop_dollars(inner)
    text = _TEXT.sub(_end_text_at_dollars, text.replace(r"\(", "$").replace(r"\)", "$"))
    parts = _DOLLARS.split(text)
    if len(parts) > 1 and len(re.findall(r"(?<!\\)\$", text.replace("$$", "$"))) % 2 == 0:
        texts = [_WORDS.sub(lambda words: rf"\text{{{words[0]}}}", part) for part in parts[::2]]
        text = "".join(
            word + (r"\quad " + formula + r"\quad ") for word, formula in zip(texts, [*parts[1::2], ""], strict=True)
        ).removesuffix(r"\quad \quad ")
    return re.sub(r"(?<!\\)\$", r"\\$", text)


def _end_text_at_dollars(text: re.Match[str]) -> str:
    return re.sub(r"(?<!\\)\$([^$]*)(?<!\\)\$", r"}\1\\text{", text[0])


_LOOKS = re.compile(
    r"\\(?:displaystyle|textstyle|scriptstyle|large|Large|LARGE|huge|Huge|small|normalsize|limits|nolimits|left\s*\.|right\s*\.|left|right|middle|bigg?[lrm]?|Bigg?[lrm]?)"
    r"(?![A-Za-z])"
)
_SAME = (
    (re.compile(r"\\(?:text)?color\s*\{[A-Za-z]+\}"), ""),
    (re.compile(r"\\(?:[dtc]|nice|s)frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\{([^{}\\]*)\\over(?![A-Za-z])([^{}]*)\}"), r"{\\frac{\1}{\2}}"),
    (re.compile(r"^([^{}\\]*)\\over(?![A-Za-z])([^{}]*)$"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\R(?![A-Za-z])|\\mathbf\{R\}"), r"\\mathbb{R}"),
    (re.compile(r"\\smallsetminus(?![A-Za-z])"), r"\\setminus "),
    (re.compile(r"\\\\\*|\\(?:cr|newline)(?![A-Za-z])"), r"\\\\"),
    (re.compile(r"\\ast(?![A-Za-z])"), "*"),
    (re.compile(r"(?<![\^_\\A-Za-z}])\{\s*([-+])\s*\}"), r"\1"),
    (re.compile(r"\{\}(?=\s*\^)"), ""),
    (re.compile(r"(?<![\w\\}\]^_ ])\{(\d+(?:\.\d+)?)\}(?=\s*\^)"), r"\1"),
    (re.compile(r"(?<=\d)\s*\^\s*\{?o(?![A-Za-z])\}?"), r"^{\\circ}"),
    (re.compile(r"\\(?:text|mathrm)\s*\{\s*\^\{\\circ\}\s*\}"), r"^{\\circ}"),
    (re.compile(r"\\(?:measured|spherical)angle(?![A-Za-z])"), r"\\angle "),
    (re.compile(r"\\euro(?![A-Za-z])(?:\{\})?"), "€"),
    (re.compile(r"\\(?:pounds|textsterling)(?![A-Za-z])(?:\{\})?"), "£"),
    (re.compile(r"\\(?:textdollar|mathdollar)(?![A-Za-z])(?:\{\})?|(?<![A-Za-z])\{\\\$\}"), r"\\$"),
    (re.compile(r"(^|\\(?:cup|in)(?![A-Za-z])\s*|=\s*)\]([^\[\]]*[,;][^\[\]]*)(?=[\[\]])"), r"\1(\2"),
    (re.compile(r"(?<=[(\[])([^()\[\]]*[,;][^()\[\]]*)\[(?=\s*(?:$|\\cup))"), r"\1)"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}"), r"\\binom{\1}{\2}"),
    (re.compile(r"(?<=\d) X (?=10\s*\^)"), r"\\times "),
    (re.compile(r"\\(?:leq|leqslant|leqq|le)(?![A-Za-z])|<=|=<"), r"\\le "),
    (re.compile(r"\\(?:geq|geqslant|geqq|ge)(?![A-Za-z])|>=(?!>)"), r"\\ge "),
    (re.compile(r"\\(?:neq|ne)(?![A-Za-z])|\\not\s*=|!=|<>"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:varnothing|empty)(?![A-Za-z])"), r"\\emptyset "),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\lbrack(?![A-Za-z])"), "["),
    (re.compile(r"\\rbrack(?![A-Za-z])"), "]"),
    (re.compile(r"\\[lr]?vert(?![A-Za-z])"), "|"),
    (re.compile(r"\\(?:dots|dotsc|dotsb|cdots|ldots)(?![A-Za-z])|\.\.\.+"), r"\\ldots "),
    (re.compile(r"\\(?:land|wedge)(?![A-Za-z])"), r"\\text{and}"),
    (re.compile(r"\\(?:lor|vee)(?![A-Za-z])"), r"\\text{or}"),
    (re.compile(r"\\(?:varepsilon)(?![A-Za-z])"), r"\\epsilon "),
    (re.compile(r"\\(?:varphi)(?![A-Za-z])"), r"\\phi "),
    (re.compile(r"\\(?:colon)(?![A-Za-z])"), ":"),
    (re.compile(r"\^\s*\{\s*\\(?:circ|degree)\s*\}|\^?\s*\\(?:circ|degree)(?![A-Za-z])"), r"^{\\circ}"),
    (re.compile(r"\^\s*\{\s*((?:\\prime\s*)+)\}|\^\s*\\prime(?![A-Za-z])"), "'"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"(?<=\d)\{,\}(?=\d\d\{,\})"), ","),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\^\s*\(([^()]*)\)"), r"^{\1}"),
    (re.compile(r"^\s*~"), r"\\sim "),
    (re.compile(r"\*"), r"\\cdot "),
)
_SEPARATOR = (
    r"\{,\}|\{\\,\}|\s*\\,|\\thinspace(?![A-Za-z])\s*|'(?!')|_"
    r"|,(?:\\[,;: ]|~|\s)*\\!(?:\\[,;:! ]|~|\s)*|\{,\\!\}|\\[,;:! ]|~| "
)
_GROUPED = re.compile(rf"(?<![\d.,_])(\d{{1,3}})((?:(?:{_SEPARATOR}|,)\d{{3}})+)(?!\d|,\d|\s*/\s*\d)")
_OPENED, _CLOSED = re.compile(r"[(\[]|\\\{|\\begin"), re.compile(r"[)\]]|\\\}|\\end")
_GROUP = re.compile(r"\D+")
_SPACES = re.compile(
    r"(\\\\)|\\(?:[,;:!> ]|quad(?![A-Za-z])|qquad(?![A-Za-z])|thinspace(?![A-Za-z])|enspace(?![A-Za-z])"
    r"|negthinspace(?![A-Za-z])|medspace(?![A-Za-z])|[hm]space\*?\{[^{}]*\})|~|\s+"
)
_UNARY_PLUS = re.compile(r"(^|[(\[{,=])\s*\+\s*(?=[\d.A-Za-z\\(])")
_REPEATING = re.compile(r"(?<!\d)(\d*)\.(\d*)(?:\{?\\(?:overline|bar|dot)\s*\{?\s*|\()(\d+)\s*[})]?\}?")
_DOTTED = re.compile(r"(?<=\d|\.)\\dot\s*\{?(\d)\}?\s*(\d*)\s*\\dot\s*\{?(\d)\}?")
_GOING_ON = re.compile(r"(?<![\d.])(\d+\.\d*?)((\d)\3{2,}|(\d{2,9}?)\4{2,})\s*\\ldots\s*$")
_LONGEST_NUMBER = 60


def unify_latex(text: str) -> str:
    r"""Normalise LaTeX signs, separators in numbers, and spaces.

    Example:
        >>> unify_latex(r"\dfrac{1}{2}"), unify_latex(r"10{,}000"), unify_latex(r"\left( 1, \, 2 \right]")
        ('\\frac{1}{2}', '10000', '( 1,   2 ]')
        >>> unify_latex(r"0.\overline{3}"), unify_latex("1.2(34)")
        ('\\frac{3}{9}', '\\frac{1222}{990}')

    """
    text = _LOOKS.sub("", re.sub(r"[\r\n\t\f\v]+", " ", text))
    for pattern, replacement in _SAME:
        text = pattern.sub(replacement, text)
    text = _GROUPED.sub(_join_digit_groups, text)
    text = _UNARY_PLUS.sub(r"\1", _SPACES.sub(lambda space: space[1] or " ", text))
    text = _GOING_ON.sub(lambda number: rf"{number[1]}\overline{{{number[3] or number[4]}}}", text)
    return _REPEATING.sub(_expand_repeating_decimal, _DOTTED.sub(r"\\overline{\1\2\3}", text)).strip()


def _join_digit_groups(number: re.Match[str]) -> str:
    """Return a number without its separators; commas between brackets separate elements, not digits."""
    separators = {separator.strip() or " " for separator in _GROUP.findall(number[2])}
    prefix = number.string[: number.start()]
    is_bracketed = "," in separators and len(_OPENED.findall(prefix)) > len(_CLOSED.findall(prefix))
    return number[1] + _GROUP.sub("", number[2]) if len(separators) == 1 and not is_bracketed else number[0]


def _expand_repeating_decimal(decimal: re.Match[str]) -> str:
    whole, fixed_digits, period = decimal[1] or "0", decimal[2], decimal[3]
    if len(whole + fixed_digits + period) > _LONGEST_NUMBER:
        return decimal[0]
    top = int(whole + fixed_digits + period) - int(whole + fixed_digits)
    return rf"\frac{{{top}}}{{{'9' * len(period)}{'0' * len(fixed_digits)}}}"


_STRESSING = (
    r"text(?:bf|it|rm|sf|tt|sc|normal|up)?|emph|[mh]box|math(?:rm|bf|it|sf|tt|normal)|boldsymbol|bm|pmb|operatorname\*?|"
    "underline|boxed|fbox|ensuremath"
)
_SWITCHES = r"\\(?:bf|rm|it|bfseries|itshape)(?![A-Za-z])\s*"
_INNERMOST = r"((?:[^{}\\]|\\.)*)"
_WRAPPED = re.compile(rf"\\(?:{_STRESSING})\s*\{{{_INNERMOST}\}}|\{{\s*{_SWITCHES}{_INNERMOST}\}}")
_UPRIGHT_UNITS = re.compile(r"\\(?:mathrm|text|rm)\{\s*((?:[A-Za-z/\s]|\\cdot|\^(?:\{-?\d\}|-?\d)){1,80})\}")
_JOINED_UNITS = re.compile(r"\^|/|\\cdot")
_COMMAND_END = re.compile(r"\\[A-Za-z]+$")
_STRESS = re.compile(rf"\\(?:{_STRESSING})\s*\{{")
FUNCTION_NAMES = (
    *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln"),
    *("exp", "lg", "gcd", "lcm", "max", "min", "det"),
)
UNIT_LETTERS = frozenset("msghJNWVAKCFLlTHM")
"""Single letters that are units where they are upright: ``5\\text{ m}`` is a length, ``5\\mathrm{i}`` a number."""
_INNER_WORDS = re.compile(r"[^\W\d_]{2,}")
_WORD_SIGNS = (
    (re.compile(r"(?<![A-Za-z\\])(?:infinity|infty|oo|inf)(?![A-Za-z])", re.IGNORECASE), r"\\infty "),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![A-Za-z\\])sqrt\s*(?=[({\[\d])"), r"\\sqrt"),
    (re.compile(rf"(?<![A-Za-z\\])({'|'.join(FUNCTION_NAMES)})(?=[\s({{^_]|\d|$)"), r"\\\1 "),
    (re.compile(r"\\(?:hat|vec|widehat)\s*\{?\s*\\?([ijk])(?:math)?(?![A-Za-z])\s*\}?"), r"\1"),
    (re.compile(r"\\sqrt\s*\(((?:[^()]|\([^()]*\))*)\)"), r"\\sqrt{\1}"),
)


def _separate_units(upright: re.Match[str]) -> str:
    """Return each unit of an upright product as a text of its own, so that its power stands beside it."""
    units = re.findall(r"(?<!\\)\b[A-Za-z]+", upright[1])
    if not (units and (_JOINED_UNITS.search(upright[1]) or UNIT_LETTERS.issuperset(units))):
        return upright[0]
    return re.sub(r"(?<!\\)\b[A-Za-z]+", r"\\text{\g<0>}", upright[1])


def unwrap_texts(text: str) -> str:
    r"""Take off what only stresses; what is written upright is a text if it has a word in it, and mathematics if not.

    Example:
        >>> unwrap_texts(r"\mathbf{6}"), unwrap_texts(r"1-\mathrm{i}"), unwrap_texts(r"6 \textit{ cm}")
        ('6', '1-i', '6 \\text{cm}')
        >>> unwrap_texts(r"{\bf 6}"), unwrap_texts(r"\operatorname{arcsin} x"), unwrap_texts("sqrt(2)pi")
        ('6', '\\arcsin  x', '\\sqrt{2}\\pi ')

    """
    texts = list[str]()

    def hide(match: re.Match[str]) -> str:
        content = match[1] if match[1] is not None else match[2]
        word = content.strip()
        if word in FUNCTION_NAMES:
            return rf"\{word} "
        upright = _INNER_WORDS.search(re.sub(r"\\[A-Za-z]+", "", content)) or word in UNIT_LETTERS
        if word and not re.search(r"[\w,;.:%$\\\0]", word):
            return hidden(content)
        if match[0].startswith((r"\mathbf", r"\boldsymbol", r"\bm", r"\mathit")) and word in UNIT_LETTERS:
            return word
        if not upright or "\0" in content:
            if len(word) == 1:
                return " " * (_COMMAND_END.search(match.string, 0, match.start()) is not None) + word
            return f" {content} " if "\\" in content else content
        if re.search(r"\d", content):
            return _WORDS.sub(lambda words: hidden(words[0]), content)
        return hidden(content)

    def hidden(content: str) -> str:
        texts.append(" ".join(content.replace("\\", " ").split()))
        return f"\0{len(texts) - 1}\0"

    text = _UPRIGHT_UNITS.sub(_separate_units, text)
    for _ in range(8):
        text, count = _WRAPPED.subn(hide, text)
        if not count:
            break
    text = _drop_stress_commands(re.sub(_SWITCHES, "", text))
    for pattern, replacement in _WORD_SIGNS:
        text = pattern.sub(replacement, text)
    return re.sub("\0(\\d+)\0", lambda place: rf"\text{{{texts[int(place[1])]}}}", text).replace("\0", "")


def _drop_stress_commands(text: str) -> str:
    """Remove emphasis commands around content with braces, which is not plain text."""
    while command := _STRESS.search(text):
        closing = find_closing_brace(text, command.end() - 1)
        if closing is None:
            return text
        text = text[: command.start()] + text[command.end() - 1 : closing + 1] + text[closing + 1 :]
    return text


_TAKES = re.compile(r"\\(frac|binom|sqrt)(?![A-Za-z])\s*(\[[^\[\]{}]*\])?")
_ARGUMENTS = {"frac": 2, "binom": 2, "sqrt": 1}
_SCRIPT = re.compile(r"([\^_])\s*([+-]?\d+|[+-]?\\[A-Za-z]+|[+-]?[A-Za-z])(?!\s*\{)")
_ARGUMENT = re.compile(r"\s*(\\[A-Za-z]+|[^\s\\{}])")


def brace_arguments(text: str) -> str:
    r"""Put the arguments of fractions and roots, exponents and indices into braces.

    Example:
        >>> brace_arguments(r"\frac12"), brace_arguments(r"\frac\pi{2}"), brace_arguments(r"\sqrt3x^10")
        ('\\frac{1}{2}', '\\frac{\\pi}{2}', '\\sqrt{3}x^{10}')

    """
    text = _SCRIPT.sub(r"\1{\2}", text)
    output, end = "", 0
    while command := _TAKES.search(text, end):
        output += text[end : command.start()] + rf"\{command[1]}" + (command[2] or "")
        end = command.end()
        for _ in range(_ARGUMENTS[command[1]]):
            argument, end = _read_argument(text, end)
            if end < 0:
                return output + text[command.end() :]
            output += argument
    return output + text[end:]


def _read_argument(text: str, start: int) -> tuple[str, int]:
    """Return the argument of a command in braces, and where it ends: at -1 if it never does."""
    single = _ARGUMENT.match(text, start)
    if single:
        return f"{{{single[1]}}}", single.end()
    opening = start + len(text[start:]) - len(text[start:].lstrip())
    closing = find_closing_brace(text, opening)
    if closing is None:
        return "", -1 if text[opening : opening + 1] == "{" else start
    return f"{{{brace_arguments(text[opening + 1 : closing])}}}", closing + 1


def find_closing_brace(text: str, opening: int) -> int | None:
    """Return the place at which a brace is closed; None where there is no brace, or it never closes."""
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text[opening:], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if brace.start() == 0 and depth == 0:
            return None
        if depth == 0:
            return opening + brace.start()
    return None


_QUOTED = re.compile(r"""(["']|``)([^"'`]+)(?:\1|'')""")
_FULL_STOP = re.compile(r"(?<![.\s])\s*\.$")


def write_normal_form(text: str) -> str:
    r"""Return a text in normal form.

    Example:
        >>> write_normal_form(r"$\dfrac34$."), write_normal_form("2√3")
        ('\\frac{3}{4}', '2\\sqrt{3}')
        >>> write_normal_form(r"\left\{1,\,2\right\}"), write_normal_form("{5}")
        ('\\{1, 2\\}', '5')

    """
    text = _FULL_STOP.sub("", write_unicode_as_latex(text).strip())
    text = unwrap_texts(unify_latex(drop_dollars(text)))
    text = _FULL_STOP.sub("", " ".join(brace_arguments(text).split()))
    text = re.sub(r"(\\text\{[^{}]*)\.\}$", r"\1}", text)
    while text.startswith("{") and find_closing_brace(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    quotation = _QUOTED.fullmatch(text)
    return quotation[2] if quotation else text
