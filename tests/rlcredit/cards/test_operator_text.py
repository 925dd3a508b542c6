"""What an operator's file says of it."""

import pytest

from callbacks import GRPO, GTPO, HICRA, MTGRPO
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.cards.operator_text import (
    ArgumentText,
    OperatorText,
    describe_operator,
    describe_own_operators,
    list_formulas,
)
from rlcredit.config.stored_records import make_record_adapter, parse_record
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.pages.formulas import render_formula


def test_only_what_the_baseline_lacks_is_described():
    assert [text.name for text in describe_own_operators([GRPO(), GTPO(), HICRA()], [GRPO()])] == ["GTPO", "HICRA"]
    assert [text.name for text in describe_own_operators([GRPO()], [GRPO()])] == ["GRPO"]


def test_formula_arguments_and_source_are_those_of_the_file():
    text = describe_operator(GTPO(beta=0.2))
    assert text.summary == "More credit to the tokens at which the policy was undecided."
    assert text.formulas == [r"w_t = \max\bigl(0,\; 1 + \beta\,(S_t / \bar S - 1)\bigr)"]
    meaning = "Strength of the reweighting. The SEPA paper uses 0.1."
    assert text.arguments == [ArgumentText("beta", "0.2", meaning)]
    assert "Multiply the advantages by gtpo_weights." in text.prose
    assert "class GTPO(CreditOperator" in text.source
    continued = [paragraph for paragraph in describe_operator(MTGRPO()).prose if "with the outcome" in paragraph]
    assert continued[0].startswith("\N{HORIZONTAL ELLIPSIS} with the outcome")
    assert parse_record(make_record_adapter(OperatorText).dump_json(text).decode(), OperatorText) == text


def test_an_operator_of_ones_own_is_described_by_its_class(own):
    condition = resolve_card_condition(str(own))
    import own_doubled

    text = describe_operator(own_doubled.Doubled())
    assert condition.name == text.name == "Doubled"
    assert (text.formulas, text.arguments) == ([], [])
    assert text.source == own.read_text()


@pytest.mark.parametrize("cls", find_operator_classes(), ids=lambda cls: cls.__name__)
def test_every_formula_of_a_shipped_operator_is_drawn(cls):
    for formula in list_formulas(cls):
        assert render_formula(formula).startswith("<math"), formula
