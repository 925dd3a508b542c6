import pytest
from reasoning_gym.factory import DATASETS

from rlcredit.verification.reasoning_gym_answers import ANSWER_SHAPES
from rlcredit.verification.reasoning_gym_scorers import EVALUATING_DATASETS
from studies.csv_rows import read_csv_rows
from studies.machinery.reasoning_gym_battery import KINDS, is_same_answer, judge_data_set
from studies.numbers import find_results

ROWS = {row["name"]: row for row in read_csv_rows(find_results("reasoning_gym_battery.csv"))}
GENEROUS = {"propositional_logic", "sokoban", "polynomial_equations", "pool_matrix"}
"""Anything follows from contradictory premises, a solved board may stay solved, 5.00 is 5.0; the study says so."""


def counts(row, *columns):
    return [int(row[column]) for column in columns]


def test_every_data_set_has_been_asked():
    assert ROWS.keys() == DATASETS.keys()
    assert all(int(row["wrong_asked"]) > 400 for row in ROWS.values())


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_nothing_wrong_was_right_and_nothing_right_was_wrong(name):
    row = ROWS[name]
    assert name in GENEROUS or sum(counts(row, *KINDS)) == 0
    assert row["references"] == row["references_right"]
    assert row["others"] == row["others_right"]


def test_what_the_scorers_take_is_what_has_a_shape():
    taken = {name for name, row in ROWS.items() if sum(counts(row, *(f"{kind}_scorer" for kind in KINDS)))}
    assert taken <= ANSWER_SHAPES.keys() | EVALUATING_DATASETS.keys() | {"composite"}


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [("0 days", "0", True), ("a = 1", "1", True), ("'None'", "none", True), ("not 5", "5", False), ("-5", "5", False)],
)
def test_a_constant_that_is_the_reference_is_not_counted(answer, gold, expected):
    assert is_same_answer(answer, gold) is expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*arcagi.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", sorted(DATASETS))
def test_the_battery(name):
    row, accepted = judge_data_set(name, 2)
    assert name in GENEROUS or [case for case, here in accepted if here] == []
    assert counts(row, "references", "others") == counts(row, "references_right", "others_right")
