"""Formulas that a browser draws."""

from xml.etree import ElementTree

import pytest

from rlcredit.pages.formulas import render_formula


@pytest.mark.parametrize(
    ("latex", "drawn"),
    [
        (r"a^2_i", "<msubsup><mi>a</mi><mi>i</mi><mn>2</mn></msubsup>"),
        (r"\tfrac14", "<mfrac><mn>1</mn><mn>4</mn></mfrac>"),
        (r"a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
    ],
)
def test_a_formula_is_mathml(latex, drawn):
    rendered = render_formula(latex)
    ElementTree.fromstring(rendered)
    assert drawn in rendered


@pytest.mark.parametrize("latex", [r"\text", "a^", r"\href{javascript:alert(1)}{x}", r"\style{position:fixed}{x}"])
def test_a_formula_that_cannot_be_read_or_acts_on_its_page_stays_latex(latex):
    assert render_formula(latex) == f"<pre>{latex}</pre>"


def test_no_text_of_a_formula_is_markup():
    rendered = render_formula(r"\text{<script>alert(1)</script>} <b>")
    assert "<script" not in rendered
    assert "<b>" not in rendered
