"""Agreement of two expressions of sympy: at which points they are compared, and how exactly."""

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from zlib import crc32

_POINTS = (
    ("0.7315", "2.3319"),
    ("1.6127", "0.4471"),
    ("2.9713", "3.1771"),
    ("-1.3137", "-0.8123"),
    ("0.2391", "-2.7093"),
)
"""Values for the names in an expression, alternating by their order; some positive, some not."""

_BROKEN = frozenset(re.findall(r"\w+", "Abs sign log arg Heaviside asin acos atan acot asec acsc acosh atanh acoth"))
"""Functions of sympy that are not smooth everywhere, or have several values."""
_SATURATED = frozenset(["tanh", "coth", "sech", "csch", "erf", "erfc"])
"""Functions whose values approach a number as fast as an exponential function does."""
_POWERS = range(-2, 10)
_FAR_AWAY, _BETWEEN, _MOST_SEAMS, _HIGHEST_DEGREE = 1000, Fraction("0.6180339"), 16, 8
_FEWEST_BITS, _MOST_BITS, _MOST_FUNCTION_BITS = 200, 600_000, 30_000
"""To which a difference is computed before it is zero; of what would need more nothing is said."""

Point = dict[Any, Any]
"""A value for each name."""


def is_same_function(ours: Any, theirs: Any) -> bool | None:
    """Whether two expressions agree wherever both are real; None if nowhere both have a value.

    Complex values count where an expression names the imaginary unit, and where nothing else can be compared.
    """
    import sympy  # noqa: PLC0415

    imaginary = ours.has(sympy.I) or theirs.has(sympy.I)
    agreements, complex_agreements = list[bool](), list[bool]()
    for our, their, kind, is_seam in _list_values(ours, theirs):
        results = agreements if imaginary or kind == "real" else complex_agreements
        is_same = is_zero(our - their)
        if results is agreements and is_same is False:
            return False
        results += [is_same] * (is_same is not None and not is_seam)
    decisive = agreements or complex_agreements
    return all(decisive) if decisive else None


def has_constant_ratio(ours: Any, theirs: Any, positive: bool) -> bool:
    """Whether the ratio of two expressions is one number other than zero, greater than zero if ``positive``."""
    reference_pair, count = None, 0
    for our, their, *_ in _list_values(ours, theirs):
        zeros = is_zero(our), is_zero(their)
        if None in zeros or all(zeros):
            continue
        reference_pair = reference_pair or (our, their)
        is_same = not any(zeros) and is_zero(our * reference_pair[1] - their * reference_pair[0])
        if is_same is False or (positive and not (our / their).evalf() > 0):
            return False
        count += is_same is True
    return count > 1


def _list_values(ours: Any, theirs: Any) -> Iterator[tuple[Any, Any, str, bool]]:
    """Yield both values at each point where they are of one kind, the kind, and whether the point is on a seam."""
    for point, is_seam in _list_points(ours, theirs):
        our, their = ours.subs(point), theirs.subs(point)
        kind = _find_number_kind(our)
        if kind is not None and kind == _find_number_kind(their):
            yield our, their, kind, is_seam


def _find_number_kind(value: Any) -> str | None:
    """Return the kind of a value without names, real or complex; None if it is no finite number."""
    import sympy  # noqa: PLC0415

    number = value.evalf()
    if not (number.is_number and number.is_finite):
        return None
    return "real" if abs(sympy.im(number)) <= abs(number) / 10**10 else "complex"


def is_zero(value: Any) -> bool | None:
    """Whether a number is zero: exactly for rational ones, by a bound on their size for others; None if too long.

    A sum, product or root of integers that is not zero is at least ``2 ** -(degree * bits)`` (Burnikel, Funke,
    Mehlhorn, Schirra and Schmitt, "A separation bound for real algebraic expressions", 2001). The same bound, with four
    times the degree, stands for numbers with other functions, of which none is known.
    """
    import sympy  # noqa: PLC0415

    if value.is_Rational:
        return bool(value == 0)
    if abs(value.evalf()) > sympy.Float("1e-25"):
        return False
    functions = value.atoms(sympy.Function, sympy.NumberSymbol)
    roots = {(power.base, power.exp.q) for power in value.atoms(sympy.Pow) if power.exp.is_Rational and power.exp.q > 1}
    bits = _measure_bits(value)
    min_bits = max(_FEWEST_BITS, bits * math.prod(degree for _, degree in roots) * (4 if functions else 1))
    if min_bits > (_MOST_FUNCTION_BITS if functions else _MOST_BITS):
        return None
    digits = int((2 * min_bits + bits) * math.log10(2)) + 20
    return bool(abs(value.evalf(5, maxn=digits)) < sympy.Float(2) ** -min_bits)


def _measure_bits(value: Any) -> float:
    """Return the logarithm of what the numerator and the denominator of a number stay below."""
    import sympy  # noqa: PLC0415

    if value.is_Rational:
        return max(abs(value.p), value.q).bit_length()
    parts = sum(map(_measure_bits, value.args))
    if value.is_Add or value.is_Mul:
        return parts + len(value.args)
    if value.is_Pow and value.exp.is_Rational:
        return _measure_bits(value.base) * max(1, abs(value.exp))
    if type(value).__name__ == "Tuple":  # the limits of a sum
        return parts
    size = abs(value.evalf(5))
    if type(value).__name__ in _SATURATED:
        parts += 4 * abs(value.args[0].evalf(5))
    return float(parts + (abs(sympy.log(size, 2).evalf(5)) if size.is_finite and size > 0 else 0))


def _list_points(ours: Any, theirs: Any) -> Iterator[tuple[Point, bool]]:
    """Yield points, and whether each lies on a seam of an expression, where it may be something else than beside it.

    Where both are smooth the first points decide. They depend on the expressions, so that none can be made to vanish
    there.
    """
    import sympy  # noqa: PLC0415

    names = sorted(ours.free_symbols | theirs.free_symbols, key=str)
    shift = sympy.Rational(crc32(f"{ours} {theirs}".encode()) % 1000, 10**5)
    places = [
        {name: sympy.Rational(point[n % 2]) + sympy.Rational(n // 2, 7) + shift for n, name in enumerate(names)}
        for point in _POINTS
    ]
    yield from ((place, False) for place in (places if names else places[:1]))
    seam_parts = [part for expression in (ours, theirs) for part in _find_broken_parts(expression)]
    numbers = {number for expression in (ours, theirs) for number in expression.atoms(sympy.Rational)}
    for name in names if seam_parts else ():
        values = {symbol: value for symbol, value in places[0].items() if symbol != name}
        seams = [sympy.Integer(0), *_find_seams(seam_parts, name, values), *sorted(numbers, key=abs)]
        seams = sorted(dict.fromkeys(seams[:_MOST_SEAMS]))
        yield from (({**values, name: seam}, True) for seam in seams)
        ends = [seams[0] - _FAR_AWAY, *seams, seams[-1] + _FAR_AWAY]
        yield from (({**values, name: low + (high - low) * _BETWEEN}, False) for low, high in itertools.pairwise(ends))


def _find_broken_parts(expression: Any) -> list[Any]:
    """Return the parts of an expression that are zero, or a whole number, where it is not smooth."""
    import sympy  # noqa: PLC0415

    parts = list[Any]()
    for part in sorted(expression.atoms(sympy.core.function.Application, sympy.Pow), key=str):
        kind = type(part).__name__
        if kind in ("Max", "Min"):
            parts += [our - their for our, their in itertools.combinations(part.args, 2)]
        elif kind in ("floor", "ceiling"):
            parts += [part.args[0] - 3, part.args[0] + 2]
        elif kind in _BROKEN or (part.is_Pow and part.exp.is_Rational and not part.exp.is_Integer):
            parts.append(part.args[0])
    return parts


def _find_seams(parts: list[Any], name: Any, values: Point) -> list[Any]:
    """Return the values of a name at which one of some parts is zero, where they are polynomials in it."""
    import sympy  # noqa: PLC0415

    seams = list[Any]()
    for part in parts:
        top = sympy.numer(sympy.together(part.subs(values)))
        if top.free_symbols != {name}:
            continue
        if not top.is_polynomial(name):
            seams += _bracket_zeros(top, name)
            continue
        polynomial = sympy.Poly(top, name)
        if polynomial.degree() == 1 and all(number.is_Rational for number in polynomial.all_coeffs()):
            seams.append(-polynomial.nth(0) / polynomial.nth(1))
        elif polynomial.degree() <= _HIGHEST_DEGREE:
            roots = [complex(root) for root in polynomial.nroots(maxsteps=200)]
            seams += [sympy.Rational(repr(root.real)) for root in roots if abs(root.imag) < 1e-9]
    return seams


def _bracket_zeros(part: Any, name: Any) -> list[Any]:
    """Return values of a name between which the sign of an expression changes, among powers of ten."""
    import sympy  # noqa: PLC0415

    places = [sign * sympy.Integer(10) ** power for sign in (-1, 1) for power in _POWERS[::sign]]
    values = [part.subs(name, place).evalf(5) for place in places]
    pairs = itertools.pairwise(zip(places, values, strict=True))
    seams = list[Any]()
    for (low, low_value), (high, high_value) in pairs:
        if low_value.is_real and high_value.is_real and low_value * high_value < 0:
            seams += [low, high]
    return seams
