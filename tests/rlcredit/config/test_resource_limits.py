import json
import shutil
import time

import pytest

from rlcredit.config import resource_limits
from rlcredit.config.resource_limits import find_resource_excess
from rlcredit.policy.chat_turns import parse_conversation
from rlcredit.policy.model_loading import find_embedded_policy
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat
from rlcredit.preflight import policy as policy_checks
from rlcredit.preflight.policy import refuse_unloadable_policy

LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
GROWTH = "{% set n = namespace(a='x' * 999) %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}"


@pytest.fixture
def model(tmp_path):
    """Return what copies the embedded policy, with another template."""

    def copied(template):
        shutil.copytree(find_embedded_policy("tiny"), tmp_path / "model")
        (tmp_path / "model/chat_template.jinja").write_text(template)
        return Policy(str(tmp_path / "model"))

    return copied


@pytest.mark.parametrize(
    ("template", "excess"), [(LOOP, "longer than 0.3 s"), (GROWTH, "more than 1 GiB of memory")], ids=["loop", "growth"]
)
def test_a_template_that_takes_too_much_is_refused(model, monkeypatch, template, excess):
    monkeypatch.setattr(resource_limits, "TRIAL_MEMORY", 1)
    monkeypatch.setattr(policy_checks, "TEMPLATE_SECONDS", 0.3 if template == LOOP else 60.0)
    with pytest.raises(ValueError, match=f"rendering a prompt for .*model' takes {excess}. Its chat template is at fa"):
        refuse_unloadable_policy(model(template))


@pytest.mark.parametrize("template", ["{{ messages[0].content + 5 }}", "{{ 1 // 0 }}", "{{ raise_exception('no') }}"])
def test_whatever_a_template_raises_is_one_sentence(model, template):
    from rlcredit.policy.model_loading import load_tokenizer

    with pytest.raises(PromptError, match=r"The chat template of .*model refuses a conversation: \S"):
        PromptFormat().render_conversations(load_tokenizer(model(template).location), [parse_conversation("1 + 1 =")])


def test_a_tokenizer_that_cannot_be_read_is_refused_in_one_sentence(model):
    policy = model("{{ messages[0].content }}")
    file = f"{policy.path}/tokenizer.json"
    with open(file) as content:
        described = json.load(content)
    with open(file, "w") as content:
        json.dump({**described, "model": {"type": "Nothing"}}, content)
    with pytest.raises(ValueError, match=r"model.policy.path: .* a folder whose tokenizer and model cannot"):
        refuse_unloadable_policy(policy)


def test_what_sleeps_is_ended_by_the_clock():
    started = time.monotonic()
    assert find_resource_excess(lambda: time.sleep(60), 0.1) == "longer than 0.1 s"
    assert time.monotonic() - started < 30
