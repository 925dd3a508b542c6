"""Check that an answer is a single answer before a lenient scorer of reasoning-gym sees it.

Most scorers compare texts. Those named here look for the answer in a text, round it, or skip what they cannot read:
``not 279 or 3`` would answer 279, and ``nan`` everything. Where a question has one answer, the text must be the
reference but for notation; where it has several, it must be written in the notation of the question throughout.
"""

import ast
import json
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from rlcredit.verification.mathematics.numbers import is_within_tolerance, read_rational

Shape = Callable[[str, dict[str, Any]], bool]

_SHARE = 0.01
"""How far a number may lie from its reference, as a share of it; the tolerances of the scorers are absolute."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"
_ACTION = re.compile(r"move\(box_\w+,\s(?:target_\w+|square\[\d+\.?\d*,\s*\d+\.?\d*\])\)")
_DISK = re.compile(r"Move disk \d+ from Peg \d+ to Peg \d+", re.ASCII)
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_POUR = re.compile(r"(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z]")
_DURATIONS = {
    wanted: re.compile(f"-?{expression}", re.ASCII)
    for wanted, expression in {
        "HH:MM": r"\d+:[0-5]?\d",
        "HH:MM:SS": r"\d+:[0-5]?\d:[0-5]?\d",
        "HH:MM:SS.mmm": r"\d+:[0-5]?\d:[0-5]?\d\.\d{3}",
        "D days": r"\d+(?: days?)?",
        "D days, HH:MM": r"\d+ days,\s*\d+:[0-5]?\d",
        "D days, HH:MM:SS": r"\d+ days,\s*\d+:[0-5]?\d:[0-5]?\d",
    }.items()
}


def has_answer_shape(name: str, answer: str, entry: dict[str, Any]) -> bool:
    """Whether an answer has the form that the data set asks for, without a hedge, denial or second answer.

    Args:
        name: Data set; one that is not in ``ANSWER_SHAPES`` has a scorer that compares the whole answer.
        answer: Final answer of a completion.
        entry: Question with its reference and metadata.

    Example:
        >>> texts = ("279.0", "not 279", "279 or 3", "nan")
        >>> [has_answer_shape("gsm_symbolic", text, {"answer": "279"}) for text in texts]
        [True, False, False, False]

    """
    try:
        return name not in ANSWER_SHAPES or ANSWER_SHAPES[name](answer, entry)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError):
        return False  # what cannot be read has another shape


def make_pattern_shape(expression: str) -> Shape:
    """Return a test whether an expression matches a whole answer, blanks around it aside."""
    regex = re.compile(expression, re.ASCII)
    return lambda answer, _: bool(regex.fullmatch(answer.strip()))


def _is_reference_text(answer: str, entry: dict[str, Any]) -> bool:
    """Whether the answer is the reference but for case and spaces."""
    return _compact_text(answer) == _compact_text(entry["answer"])


def _compact_text(text: str) -> str:
    return "".join(text.split()).casefold()


def _is_near_number(answer: str, entry: dict[str, Any], share: float = _SHARE) -> bool:
    value, target = (read_rational(text.strip().removesuffix("\N{DEGREE SIGN}")) for text in (answer, entry["answer"]))
    return value is not None and target is not None and is_within_tolerance(value, target, share)


def _is_same_date_or_count(answer: str, entry: dict[str, Any]) -> bool:
    """Whether a weekday, a yes or a count is the same. The scorer rewards any count where the reference is -1."""
    return _is_reference_text(answer, entry) or (
        read_rational(answer) is not None and read_rational(answer) == read_rational(entry["answer"])
    )


def _has_grid_layout(answer: str, entry: dict[str, Any]) -> bool:
    """Whether a grid holds nothing but numbers, in as many lines as the reference."""
    lines = answer.strip().splitlines()
    return bool(re.fullmatch(r"[-+.\deE\s]+", answer)) and len(lines) == len(entry["answer"].strip().splitlines())


def _is_duration(answer: str, entry: dict[str, Any]) -> bool:
    """Whether a duration is in the format asked for, with the sign of the reference: the scorer reads -0:30 as 0:30."""
    match = _DURATIONS[entry["metadata"]["expected_format"]].fullmatch(answer.strip())
    return match is not None and answer.strip().startswith("-") == entry["answer"].startswith("-")


def _is_number_or_point(answer: str, entry: dict[str, Any]) -> bool:
    if "," not in entry["answer"]:
        return _is_near_number(answer, entry)
    return bool(re.fullmatch(rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?", answer.strip(), re.ASCII))


def _is_root_list(answer: str, entry: dict[str, Any]) -> bool:
    """Whether the answer is a list of numbers; where there is none, the question asks for quotes around nothing."""
    if not entry["answer"]:
        return answer.strip() in ('""', "''")
    return all(re.fullmatch(_NUMBER, part.strip(), re.ASCII) for part in answer.split(","))


def _is_same_sorting(answer: str, entry: dict[str, Any]) -> bool:
    """Whether numbers are exactly those of the reference; the scorer lets each of them differ by 1."""
    values, targets = (
        list(map(read_rational, map(str, _parse_quoted_json(text)))) for text in (answer, entry["answer"])
    )
    return values == targets and None not in values


def _parse_quoted_json(text: str) -> Any:
    """Read JSON, with either kind of quotes, in which no key occurs twice."""
    return json.loads(text.replace("'", '"'), object_pairs_hook=_build_unique_mapping)


def _build_unique_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key that occurs twice has two values")
    return dict(pairs)


def _is_code_output(answer: str, entry: dict[str, Any]) -> bool:
    if _is_reference_text(answer, entry):
        return True
    return json.loads(answer, object_pairs_hook=_build_unique_mapping) == json.loads(entry["answer"])


def _is_full_colouring(answer: str, entry: dict[str, Any]) -> bool:
    colors = json.loads(answer, object_pairs_hook=_build_unique_mapping)
    return sorted(colors) == sorted(map(str, entry["metadata"]["puzzle"]["vertices"]))


def _is_box_plan(answer: str, entry: dict[str, Any]) -> bool:
    """Whether agents move only boxes, each agent once per step."""
    plan = json.loads(answer, object_pairs_hook=_build_unique_mapping)
    return isinstance(plan, list) and all(_ACTION.fullmatch(move) for step in plan for move in step.values())


def _is_pouring_list(answer: str, entry: dict[str, Any]) -> bool:
    moves = json.loads(answer)
    return isinstance(moves, list) and all(_POUR.fullmatch(move) for move in moves)


def _is_disk_move_list(answer: str, _: dict[str, Any]) -> bool:
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return all(_DISK.fullmatch(line) for line in lines)


def _is_partition_list(answer: str, entry: dict[str, Any]) -> bool:
    return sorted(json.loads(answer)) == sorted(entry["metadata"]["solution"])


def _is_digit_assignment(answer: str, entry: dict[str, Any]) -> bool:
    """Whether each letter has one digit."""
    pairs = re.fullmatch(r"[A-Z]\s*=\s*\d(?:\s*,\s*[A-Z]\s*=\s*\d)*", answer.strip(), re.ASCII)
    return pairs is not None and answer.count("=") == entry["answer"].count("=")


def _has_same_roles(answer: str, entry: dict[str, Any]) -> bool:
    """Whether each person has one role, and nothing else is said of them."""
    return _parse_roles(answer) == _parse_roles(entry["answer"])


def _parse_roles(text: str) -> list[tuple[str, ...]]:
    words = [word for word in re.sub(r"[.,()]", " ", text.lower()).split() if word not in ("is", "a", "an", "and")]
    return sorted(tuple(words[place : place + 2]) for place in range(0, len(words), 2))


def _is_target_expression(answer: str, entry: dict[str, Any]) -> bool:
    """Whether an expression uses each given number once and has exactly the value asked for."""
    tree = ast.parse(answer.strip(), mode="eval").body
    numbers = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)]
    target = entry["metadata"].get("target", 24)
    return sorted(numbers) == sorted(entry["metadata"]["numbers"]) and _evaluate_arithmetic(tree) == target


def _evaluate_arithmetic(node: ast.AST) -> Fraction:
    match node:
        case ast.Constant(value=int(value)):
            return Fraction(value)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            return _evaluate_arithmetic(operand) * (-1 if isinstance(sign, ast.USub) else 1)
        case ast.BinOp(op=operation, left=left, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_evaluate_arithmetic(left), _evaluate_arithmetic(right))
    raise ValueError(f"{type(node).__name__} is no arithmetic")


def _is_button_sequence(answer: str, entry: dict[str, Any]) -> bool:
    """Whether the answer holds only buttons, each available when it is pressed."""
    if not re.fullmatch(r"[A-C](?:(?:\s|,|\N{RIGHTWARDS ARROW}|->)+[A-C])*", answer.strip(), re.IGNORECASE):
        return False
    color = entry["metadata"]["initial_state"]
    active = {button["name"]: button["active_state"] for button in entry["metadata"]["buttons"]}
    for name in re.findall("[A-C]", answer.upper()):
        if active[name] not in (color, "any"):
            return False
        color = "green" if color == "red" else "red"
    return True


def _is_logic_formula(answer: str, _: dict[str, Any]) -> bool:
    """Whether connectives join letters; the scorer takes whatever else there is for the name of a variable."""
    text, longer = re.sub("[A-Z]", "A", "".join(answer.split())), ""
    while text != longer:
        longer, text = text, re.sub(r"\u00acA|A[\u2227\u2228\u2192\u2194]A|\(A\)", "A", text)
    return text == "A"


def _is_car_move_list(answer: str, entry: dict[str, Any]) -> bool:
    """Whether each car can go as far as it is moved; the scorer stops it at the wall."""
    from reasoning_gym.games.rush_hour import Board  # noqa: PLC0415

    if not re.fullmatch(r"[A-Z][-+]\d(?:[\s,]+[A-Z][-+]\d)*", answer.strip(), re.ASCII):
        return False
    board = Board(entry["metadata"]["board_config"])
    for car, steps in re.findall(r"([A-Z])([-+]\d)", answer):
        piece = board._pieces[ord(car) - ord("A")]
        old_position = piece.position
        board.move(car, int(steps))
        if piece.position - old_position != int(steps) * piece.stride:
            return False
    return True


ANSWER_SHAPES: dict[str, Shape] = {
    # One answer, in other notation: texts, then numbers.
    **dict.fromkeys(("arc_agi", "rearc", "figlet_font", "game_of_life", "game_of_life_halting"), _is_reference_text),
    **dict.fromkeys(("letter_jumble", "sentence_reordering", "spell_backward", "word_sorting"), _is_reference_text),
    **dict.fromkeys(("chain_sum", "coin_flip", "decimal_arithmetic", "decimal_chain_sum"), _is_near_number),
    **dict.fromkeys(("gsm_symbolic", "power_function", "products"), _is_near_number),
    "advanced_geometry": _is_number_or_point,
    "calendar_arithmetic": _is_same_date_or_count,
    "codeio": _is_code_output,
    "complex_arithmetic": make_pattern_shape(r"\(*[-+.\deEijIJ\s]+\)*"),
    "fraction_simplification": make_pattern_shape(
        r"\$?\s*(?:\d+\s*/\s*\d+|\\d?frac\s*\{\s*\d+\s*\}\s*\{\s*\d+\s*\})\s*\$?"
    ),
    "knights_knaves": _has_same_roles,
    "number_format": partial(_is_near_number, share=5e-13),  # the numbers to choose from may differ by 0.001
    "number_sorting": _is_same_sorting,
    "palindrome_partitioning": _is_partition_list,
    "polynomial_equations": _is_root_list,
    "pool_matrix": _has_grid_layout,
    "survo": make_pattern_shape(r"[-+\d\s]+"),
    "time_intervals": _is_duration,
    # Several answers.
    "boxnet": _is_box_plan,
    "countdown": _is_target_expression,
    "cryptarithm": _is_digit_assignment,
    "graph_color": _is_full_colouring,
    "jugs": _is_pouring_list,
    "kakurasu": make_pattern_shape(r"[01\s,\[\]()|]+"),
    "propositional_logic": _is_logic_formula,
    "puzzle24": _is_target_expression,
    "quantum_lock": _is_button_sequence,
    "rubiks_cube": make_pattern_shape(r"(?:[LRDUBF]w?|[XYZMES])'?\d?(?:\s+(?:[LRDUBF]w?|[XYZMES])'?\d?)*"),
    "rush_hour": _is_car_move_list,
    "sokoban": make_pattern_shape(r"[UDLR\s]+"),
    "tower_of_hanoi": _is_disk_move_list,
}
"""Required form of the answer, by data set. The scorers of all others compare the whole answer."""
