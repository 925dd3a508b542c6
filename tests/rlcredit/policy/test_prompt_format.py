import copy

import pytest
import torch

from rlcredit.policy.chat_turns import parse_conversation
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import (
    PADDING,
    PromptError,
    PromptFormat,
    find_context_length,
)
from rlcredit.verification.verifiers import MathVerifier, Verdict

SAID = [
    {"role": "system", "content": "Add."},
    {"role": "user", "content": "1 + 1 ="},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "2 + 1 ="},
]
QUESTIONS = ["4 + 3", "State the final answer to the following arithmetic problem: 7 - 6 + 6 + 0 =", "naïve ☃ 漢字"]


@pytest.fixture
def own(policy):
    """The embedded policy, with a tokenizer and a prompt that a test may change."""
    other = copy.copy(policy)
    other.tokenizer = copy.deepcopy(policy.tokenizer)
    other.prompt = PromptFormat()
    return other


def test_by_default_ids_are_those_of_one_turn_in_the_chat_template(policy):
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    texts = policy.tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
    encoded = policy.tokenizer(
        texts, add_special_tokens=False, padding=True, pad_to_multiple_of=16, return_tensors="pt"
    )
    expected = encoded["input_ids"].where(encoded["attention_mask"].bool(), PADDING)
    assert torch.equal(policy.encode_questions(QUESTIONS), expected)
    assert torch.equal(policy.encode_questions(chats), expected)


def test_a_prompt_of_the_embedded_policy_has_these_ids(policy):
    ids = policy.encode_questions(["4 + 3 ="])[0]
    text = "<|im_start|>user\n4 + 3 =<|im_end|>\n<|im_start|>assistant\n"
    assert policy.tokenizer.decode(ids[policy.prompt_mask(ids[None])[0]]) == text
    assert ids.tolist().count(policy.tokenizer.convert_tokens_to_ids("<|im_start|>")) == 2


def test_raw_text_is_blocks_with_each_answer_behind_its_question():
    assert PromptFormat(chat=False).render_conversations(None, [SAID]) == ["Add.\n\n1 + 1 = 2\n\n2 + 1 ="]
    lines = [{**SAID[1], "content": "Q: 1\nA:\n"}, SAID[2], SAID[3]]
    assert PromptFormat(chat=False).render_conversations(None, [lines]) == ["Q: 1\nA:\n2\n\n2 + 1 ="]
    empty = [{"role": "system", "content": ""}, SAID[3]]
    assert PromptFormat(chat=False).render_conversations(None, [empty]) == ["2 + 1 ="]


def with_bos(tokenizer):
    """Let a tokenizer begin every plain text with a special token, and its template write one too."""
    from tokenizers.processors import TemplateProcessing

    bos = tokenizer.convert_tokens_to_ids("<|im_start|>")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", bos)]
    )
    return bos


def test_the_tokenizer_adds_its_special_tokens_to_raw_text_and_none_to_a_chat(own):
    bos = with_bos(own.tokenizer)
    chat = own.encode_questions(["4 + 3"])[0].tolist()
    assert chat.count(bos) == 2  # the template's own, one for each turn
    own.prompt = PromptFormat(chat=False)
    raw = own.encode_questions(["4 + 3"])[0].tolist()
    assert raw.count(bos) == 1
    assert own.tokenizer.decode([token for token in raw if token != PADDING]) == "<|im_start|>4 + 3"


def test_thinking_reaches_a_template_that_knows_it(own):
    own.tokenizer.chat_template = "{{ messages[-1].content }}{% if enable_thinking is false %} quickly{% endif %}"
    written = {
        thinking: PromptFormat(thinking=thinking).render_conversations(own.tokenizer, [SAID])[0]
        for thinking in (None, True, False)
    }
    assert written == {None: "2 + 1 =", True: "2 + 1 =", False: "2 + 1 = quickly"}


@pytest.mark.parametrize(
    ("prompt", "template", "message"),
    [
        (PromptFormat(), None, r"tiny has no chat template.*Set model\.policy\.prompt\.chat to false"),
        (
            PromptFormat(thinking=True),
            "{{ messages }}",
            r"prompt\.thinking is true, but the chat template of tiny knows no",
        ),
    ],
)
def test_a_tokenizer_that_cannot_write_prompts_is_refused_by_name(own, prompt, template, message):
    own.tokenizer.chat_template = template
    with pytest.raises(PromptError, match=message):
        prompt.refuse_tokenizer(own.tokenizer, "tiny")
    own.prompt = prompt
    with pytest.raises(PromptError, match=r"model\.policy\.prompt"):
        own.encode_questions(["4 + 3"])


def test_a_base_model_is_refused_before_its_weights_are_read_and_loads_as_raw_text(tmp_path):
    import shutil

    folder = shutil.copytree(Policy().location, tmp_path / "base")
    (folder / "chat_template.jinja").unlink()
    weights = (folder / "model.safetensors").rename(tmp_path / "weights")
    with pytest.raises(PromptError, match="base has no chat template"):
        Policy(str(folder)).load()
    weights.rename(folder / "model.safetensors")
    raw = Policy(str(folder), prompt=PromptFormat(chat=False))
    raw.load()
    ids = raw.encode_questions([SAID])
    assert raw.tokenizer.decode(ids[raw.prompt_mask(ids)]).endswith("Add.\n\n1 + 1 = 2\n\n2 + 1 =")


def test_what_a_template_refuses_is_said_with_the_option(own):
    own.tokenizer.chat_template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(PromptError, match=r"refuses a conversation: System role.*data\.init_args\.system"):
        own.encode_questions([SAID])


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused(own):
    own.prompt = PromptFormat(chat=False)
    assert find_context_length(own.lm.config) == 1024
    assert own.encode_questions(["1" * 1023]).shape == (1, 1024)
    with pytest.raises(PromptError, match=r"a prompt has 1,024 tokens, and tiny reads 1,024, its answer included"):
        own.encode_questions(["3", "1" * 1024])


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ([], "the last turn must be the user's"),
        (SAID[:3], "the last turn must be the user's"),
        ([{"role": "human", "content": "x"}], "a turn is"),
        ([{"role": "user", "content": 3}], "the content of a turn is a text"),
        ([{"role": "user"}], "a turn has no content"),
        (["x"], "a turn is"),
    ],
)
def test_malformed_turns_are_refused(question, message):
    with pytest.raises(ValueError, match=f"row 3: {message}"):
        parse_conversation(question, "row 3")


def test_thinking_without_a_template_is_refused():
    with pytest.raises(ValueError, match="thinking is an option of chat templates"):
        PromptFormat(chat=False, thinking=True)


@pytest.mark.parametrize(
    ("ending", "mark", "verdict"),
    [
        ("<think>\n", "<think>", Verdict.NO_ANSWER),
        ("<think>\n\n</think>\n", "", Verdict.RIGHT),
        ("", "", Verdict.RIGHT),
    ],
)
def test_a_completion_that_begins_in_the_middle_of_thinking_states_nothing_before_its_end(own, ending, mark, verdict):
    own.tokenizer.chat_template = "{{ messages[-1]['content'] }}" + ending
    assert own.prompt.find_thinking_mark(own.tokenizer) == mark
    cut, whole = own.prepend_thinking_mark([r"So \boxed{5}", r"So \boxed{7}</think>\boxed{5}"])
    assert MathVerifier().judge([cut, whole], ["5", "5"]) == [verdict, Verdict.RIGHT]


CALLED = [
    SAID[1],
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "add"}}]},
    {"role": "tool", "content": "2", "tool_call_id": "c1", "name": "add"},
]
WRITES_CALLS = "{% for m in messages %}{{ m.role }} {{ m.content }}{{ m.tool_calls }}\n{% endfor %}"


@pytest.mark.parametrize(
    ("template", "turns", "lost"),
    [
        (None, SAID, None),
        (None, [*SAID[:3], {"role": "tool", "content": "2"}], None),
        (WRITES_CALLS, CALLED, None),  # the name of the tool stands in its call
        (None, CALLED, "`tool_calls` of a turn whose role is assistant"),
        (None, [{**SAID[1], "name": "Eve"}], "`name` of a turn whose role is user: 'Eve'"),
        (None, [*SAID[:2], {**SAID[2], "reasoning_content": "So."}, SAID[3]], "`reasoning_content` of a turn"),
        ("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}", SAID, "`content` of a turn whose"),
        (WRITES_CALLS, [SAID[1], {**CALLED[2]}], "`name` of a turn whose role is tool: 'add'"),
    ],
)
def test_a_part_of_a_turn_that_stands_in_no_prompt_is_refused(own, template, turns, lost):
    own.tokenizer.chat_template = template or own.tokenizer.chat_template
    if lost is None:
        own.prompt.refuse_lost_parts(own.tokenizer, turns)
        return
    with pytest.raises(PromptError, match=f"^The chat template of .* leaves out {lost}"):
        own.prompt.refuse_lost_parts(own.tokenizer, turns)


def test_raw_text_shows_the_turn_of_a_tool_and_no_calls(own):
    raw = PromptFormat(chat=False)
    raw.refuse_lost_parts(own.tokenizer, [SAID[1], {"role": "tool", "content": "2"}])
    with pytest.raises(PromptError, match=r"^Raw text leaves out `tool_calls`"):
        raw.refuse_lost_parts(own.tokenizer, CALLED)
