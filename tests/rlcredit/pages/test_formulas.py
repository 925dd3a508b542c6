"""Formulas that a browser draws."""

from xml.etree import ElementTree

import pytest

from rlcredit.pages.formulas import render_formula


@pytest.mark.parametrize(
    ("latex", "drawn"),
    [
        (r"a^2_i", "<msubsup><mi>a</mi><mi>i</mi><mn>2</mn></msubsup>"),
        (r"A'_t", "<msubsup><mi>A</mi><mi>t</mi><mo>\u2032</mo></msubsup>"),
        (r"\tfrac14", "<mfrac><mn>1</mn><mn>4</mn></mfrac>"),
        (r"\text{all right}", "<mtext>all\u00a0right</mtext>"),
        (
            r"\sum_{j \ne i} r",
            "<munder><mo>\u2211</mo><mrow><mi>j</mi><mo>\u2260</mo><mi>i</mi></mrow></munder><mi>r</mi>",
        ),
        (r"a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        ("a - 1", "<mi>a</mi><mo>\u2212</mo><mn>1</mn>"),
    ],
)
def test_a_formula_is_mathml(latex, drawn):
    rendered = render_formula(latex)
    ElementTree.fromstring(rendered)
    assert drawn in rendered


@pytest.mark.parametrize("latex", [r"\unknown{<b>}", r"\frac{1}", r"\text", "{a", "a}", "a^"])
def test_what_is_not_understood_stays_latex(latex):
    assert render_formula(latex) == "<pre>" + latex.replace("<", "&lt;").replace(">", "&gt;") + "</pre>"
