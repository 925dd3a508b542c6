import functools
import json

import pytest
import reasoning_gym
from reasoning_gym.factory import DATASETS

from rlcredit.verification.reasoning_gym_answers import ANSWER_SHAPES, has_answer_shape

CONFIGS = {
    "coin_flip": {"min_trials": 15},
    "figlet_font": {"min_word_len": 10, "max_word_len": 12},
    "graph_color": {"size": 2},
    "number_format": {"max_delta": 0.005},
    "puzzle24": {"size": 12},
    "rush_hour": {"max_moves": 3},
    "sokoban": {"size": 1},
}


@functools.cache
def source(name):
    return reasoning_gym.create_dataset(name, seed=3, **{"size": 60, **CONFIGS.get(name, {})})


def find_entry(name, wanted):
    return next(entry for entry in source(name) if wanted(entry))


def anything(entry):
    return True


def begins(text):
    return lambda entry: entry["answer"].startswith(text)


def takes(format_of_answer):
    return lambda entry: entry["metadata"]["expected_format"] == format_of_answer


HOLES = [
    ("advanced_geometry", begins("("), lambda gold: f"{gold}, (1.5, 2.5)"),
    ("rearc", anything, lambda gold: f"Shape: anything but\n{gold}"),
    ("chain_sum", lambda entry: len(entry["answer"]) == 2, ",".join),
    ("codeio", begins('{"root"'), lambda gold: '{"root": 1, ' + gold[1:]),
    ("coin_flip", begins("3.05"), lambda _: "0"),
    ("complex_arithmetic", anything, lambda _: "nan"),
    ("complex_arithmetic", anything, lambda _: "nan+nani"),
    ("cryptarithm", anything, lambda gold: f"{gold[0]}=9,{gold}"),
    ("decimal_arithmetic", begins("0.0"), lambda gold: f"{float(gold) + 0.0009}"),
    ("figlet_font", lambda entry: len(entry["answer"]) > 9, lambda gold: f"{gold}XYZ"),
    ("fraction_simplification", begins("$\\frac"), lambda gold: f"{gold} or 1/2"),
    ("game_of_life", anything, lambda gold: gold[:-1] + ",[1,1,1]]"),
    ("game_of_life_halting", anything, lambda _: "I cannot tell"),
    ("gsm_symbolic", anything, lambda gold: f"not {gold}"),
    ("gsm_symbolic", anything, lambda gold: f"{gold} or 3"),
    ("gsm_symbolic", anything, lambda gold: f"-{gold}"),
    ("jugs", anything, lambda gold: gold.replace('"]', ' or not"]')),
    ("kakurasu", anything, lambda gold: f"2 3 {gold}"),
    ("knights_knaves", anything, lambda gold: f"not {gold}"),
    ("knights_knaves", anything, lambda gold: f"{gold} And nobody else"),
    ("letter_jumble", lambda entry: len(entry["answer"].split()) == 4, lambda gold: f"{gold} {gold}"),
    ("number_format", anything, lambda gold: f"{float(gold) + 0.004}"),
    ("number_sorting", lambda entry: entry["metadata"]["numbers"] == 3, lambda _: '["nan", "nan", "nan"]'),
    ("palindrome_partitioning", anything, lambda gold: f"{gold[:-1]}, {gold[1:]}"),
    ("polynomial_equations", anything, lambda gold: f"{gold}, or 7"),
    ("pool_matrix", anything, lambda gold: f"# anything but\n{gold}"),
    ("puzzle24", anything, lambda _: "6*4*1*1"),
    ("puzzle24", anything, lambda _: "(10*10 - 1)/4"),
    ("quantum_lock", anything, lambda gold: f"not {gold}"),
    ("rush_hour", anything, lambda _: "not B-1 C+3 A+4"),
    ("rush_hour", anything, lambda _: "B-9 C+9 A+9"),
    ("sokoban", anything, lambda gold: f"not {gold}"),
    ("spell_backward", lambda entry: len(entry["answer"]) == 9, lambda gold: f"{gold} or not"),
    ("survo", anything, lambda gold: f"not {gold}"),
    ("time_intervals", takes("D days"), lambda gold: f"{gold} or 3 days"),
    ("time_intervals", takes("HH:MM:SS"), lambda gold: f"{gold}:99"),
    ("time_intervals", lambda entry: entry["answer"].startswith("00:"), lambda gold: f"-{gold}"),
    ("time_intervals", takes("D days, HH:MM"), lambda gold: f"{gold}, or less"),
    ("word_sorting", anything, lambda gold: f"{gold}, {gold}"),
]


@pytest.mark.parametrize(("name", "wanted", "answer_beside"), HOLES, ids=[name for name, *_ in HOLES])
def test_what_a_generous_scorer_calls_right_has_no_shape_of_an_answer(name, wanted, answer_beside):
    entry = find_entry(name, wanted)
    answer = answer_beside(entry["answer"])
    assert source(name).score_answer(answer, entry) >= 1, answer
    assert not has_answer_shape(name, answer, entry)


KEPT = [
    ("advanced_geometry", begins("("), lambda gold: gold.strip("()")),
    ("chain_sum", anything, lambda gold: f"{int(gold):+,}.00"),
    ("codeio", begins('{"root"'), lambda gold: gold.replace(": ", " :  ")),
    ("coin_flip", begins("0.0175"), lambda _: "0.0176"),
    ("complex_arithmetic", anything, lambda gold: f"({gold.replace(' ', '')})"),
    ("countdown", anything, lambda gold: f"-(-({gold}))"),
    ("cryptarithm", anything, lambda gold: ", ".join(reversed(gold.split(",")))),
    ("decimal_arithmetic", begins("0."), lambda gold: gold[:6]),
    ("figlet_font", anything, lambda gold: " ".join(gold.lower())),
    ("fraction_simplification", begins("$\\frac"), lambda gold: gold.strip("$")),
    ("fraction_simplification", lambda entry: entry["answer"][0].isdigit(), lambda gold: gold.replace("/", " / ")),
    ("game_of_life", anything, lambda gold: gold.replace(",", ", ")),
    ("gsm_symbolic", anything, lambda gold: f"{gold}.0"),
    ("kakurasu", anything, lambda gold: "\n".join(f"[{', '.join(line.split())}]" for line in gold.splitlines())),
    ("knights_knaves", anything, lambda gold: ", and ".join(reversed(gold.strip(".").split(", and ")))),
    ("letter_jumble", anything, str.lower),
    ("number_sorting", anything, lambda gold: gold.replace("'", "")),
    ("palindrome_partitioning", anything, lambda gold: json.dumps(json.loads(gold)[::-1])),
    ("pool_matrix", anything, lambda gold: gold.replace(" ", "   ")),
    ("power_function", begins("0.0"), lambda gold: gold[:9]),
    ("quantum_lock", anything, lambda gold: gold.replace(" \N{RIGHTWARDS ARROW} ", ", ").lower()),
    ("rush_hour", anything, lambda _: "B-1, C+3, A+4"),
    ("sokoban", anything, " ".join),
    ("survo", anything, lambda gold: gold.replace(" ", "   ")),
    ("time_intervals", takes("D days"), lambda gold: gold.removesuffix(" days")),
    ("time_intervals", lambda entry: entry["answer"].startswith("0"), lambda gold: gold[1:]),
    ("tower_of_hanoi", anything, lambda gold: gold.replace("\n", "\n\n")),
    ("word_sorting", anything, lambda gold: gold.replace(", ", ",")),
]


@pytest.mark.parametrize(("name", "wanted", "rewritten"), KEPT, ids=[name for name, *_ in KEPT])
def test_the_same_answer_in_another_notation_keeps_its_shape(name, wanted, rewritten):
    entry = find_entry(name, wanted)
    answer = rewritten(entry["answer"])
    assert source(name).score_answer(answer, entry) >= 1, answer
    assert has_answer_shape(name, answer, entry)


STRANGE = [
    *("", " ", "[" * 5000, "{}", "[[]]", "[{}]", "[1]", "null", "1e999", "[1.e99999999]", "['1e9_999_999']", "1/0"),
    *("Z+1", "A -> ", "\x00", "(" * 99, "-", "=", "5" * 9999, "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT FIVE}"),
]


@pytest.mark.parametrize("name", ANSWER_SHAPES)
def test_any_text_has_the_shape_or_has_not(name):
    entry = {"answer": "5", "metadata": {}}
    assert {type(has_answer_shape(name, text, entry)) for text in STRANGE} == {bool}


def test_puzzles_without_a_reference_have_shapes():
    graph = find_entry("graph_color", anything)
    colors = json.dumps(graph["metadata"]["possible_answer"])
    assert has_answer_shape("graph_color", colors, graph)
    assert not has_answer_shape("graph_color", colors.replace("{", '{"0": 7, "0": 8, ', 1), graph)
    cube = {"answer": None, "metadata": {}}
    assert [has_answer_shape("rubiks_cube", moves, cube) for moves in ("R U' Fw2", "not R", "R2x R")] == [
        True,
        False,
        False,
    ]
    formulas = ("(P \u2228 Q) \u2192 \u00acR", "P or Q", "P Q", "\u00acP \u00acP", "(P", "p \u2228 Q")
    assert [has_answer_shape("propositional_logic", text, cube) for text in formulas] == [True] + 5 * [False]
    plan = '[{"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])"}, {"Agent[0.5, 1.5]": "move(box_red, target_red)"}]'
    assert has_answer_shape("boxnet", plan, cube)
    assert not has_answer_shape("boxnet", plan.replace("box_red, square", "target_red, square"), cube)


def test_a_game_of_24_is_won_exactly_and_with_its_own_numbers():
    entry = {"answer": "", "metadata": {"numbers": [8, 3, 8, 3]}}
    exact = (
        "8/(3 - 8/3)",
        "8*3*(8/8)",
        "8/(3 - 8/3) + 0",
        "(8 + 3/8)*3 - 1.125",
        "8//3*8 + 8",
        "[8, 3, 8, 3]",
        "8/(3 - 3) + 8*8",
    )
    assert [has_answer_shape("puzzle24", text, entry) for text in exact] == [True] + 6 * [False]


def test_an_event_that_never_happens_is_not_on_any_day():
    # exp(-5 * |5 + 1| / -1): the scorer takes every day for right where the reference is -1.
    entry = {"answer": "-1", "metadata": {"task": "recurring_event_day"}}
    assert source("calendar_arithmetic").score_answer("5", entry) > 1
    assert not has_answer_shape("calendar_arithmetic", "5", entry)
    assert has_answer_shape("calendar_arithmetic", "-1", entry)


def test_an_equation_without_real_roots_is_answered_by_quotes_around_nothing():
    entry = {"answer": "", "metadata": {}}
    assert source("polynomial_equations").score_answer("whatever", entry) == 1
    assert [has_answer_shape("polynomial_equations", text, entry) for text in ('""', "whatever", "nan")] == [
        True,
        False,
        False,
    ]


COMPARING = """
    ab binary_matrix bitwise_arithmetic circuit_logic color_cube_rotation dice emoji_mystery family_relationships
    futoshiki group_anagrams intermediate_integration knight_swap manipulate_matrix mini_sudoku n_queens needle_haystack
    palindrome_generation path_star polynomial_multiplication prime_factorization rectangle_count self_reference
    shortest_path simple_integration spiral_matrix string_insertion sudoku tsumego word_ladder
    zebra_puzzles composite
"""
"""Data sets with scorers of their own that call nothing right but a whole answer."""


def test_every_scorer_has_been_read():
    own = {name for name, (kind, _) in DATASETS.items() if "score_answer" in vars(kind)}
    assert own - set(COMPARING.split()) == ANSWER_SHAPES.keys()
