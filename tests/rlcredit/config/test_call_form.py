"""An entry in call form means a class with its arguments, and an error says what to write."""

import pytest

from rlcredit.config.call_form import CallFormError, expand_call_form


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("F(x=1)", {"x": 1}),
        (" F( x = 1 , ) ", {"x": 1}),
        ("F(x=1.0e-4, y=null, z=true)", {"x": 1e-4, "y": None, "z": True}),
        ("F(betas=[0.9, 0.95], name='a, b) c')", {"betas": [0.9, 0.95], "name": "a, b) c"}),
        ('F(x="a=b, \\"c\\" )", y={share: 0.5, decay: 0.9})', {"x": 'a=b, "c" )', "y": {"share": 0.5, "decay": 0.9}}),
        ("F(x='it''s, so', y=2)", {"x": "it's, so", "y": 2}),
        ("F(x=Don't, y=2)", {"x": "Don't", "y": 2}),
        ("F(x=a=b)", {"x": "a=b"}),
        ("F(uri=sqlite:///mlflow.db)", {"uri": "sqlite:///mlflow.db"}),
        ("F(loss=G(high=0.28, low=H(a=1)))", {"loss": "G(high=0.28, low=H(a=1))"}),
        ("F(of=[A(x=1, y=2), B, 'C(z=3)'])", {"of": ["A(x=1, y=2)", "B", "C(z=3)"]}),
        ("F(of={one: A(x=1, y=2)})", {"of": {"one": "A(x=1, y=2)"}}),
        ("F(say=[say f(x) twice])", {"say": ["say f(x) twice"]}),
    ],
)
def test_values_are_yaml_and_call_forms(text, arguments):
    assert expand_call_form(text) == {"class_path": "F", "init_args": arguments}


@pytest.mark.parametrize("text", ["GRPO", "my.module.Operator", "conf(1).yaml", "", "a (b)", "[F(x=1)]", "f(x) twice"])
def test_every_other_text_stays(text):
    assert expand_call_form(text) == text


def test_a_dotted_path_and_no_arguments():
    assert expand_call_form("my.module.Operator(x=1)")["class_path"] == "my.module.Operator"
    assert expand_call_form("GRPO()") == "GRPO"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GTPO(0.1)", "`0.1` has no name. Write GTPO(beta=0.1)."),
        ("GTPO(beta=1, 2)", "`2` has no name. Write GTPO(NAME=2)."),
        ("GTPO(beta=0.1", "`GTPO(beta=0.1` has no closing parenthesis. Add it."),
        ("GTPO(beta=[0.1)", "`GTPO(beta=[0.1)` has no closing parenthesis."),
        ("GTPO(beta=1, beta=2)", "GTPO.beta is given twice. Remove one."),
        ("GTPO(beta=)", "GTPO.beta has no value. Write GTPO(beta=...), or leave it out."),
        ("GTPO(beta={a: b: c})", "GTPO.beta: line 1: not YAML"),
        ("GTPO(beta={a: 1, a: 2})", "GTPO.beta: line 1: a occurs twice"),
    ],
)
def test_an_error_says_what_to_write(text, message):
    with pytest.raises(CallFormError) as refused:
        expand_call_form(text, ["beta"])
    assert str(refused.value).startswith(message)
