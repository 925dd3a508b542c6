from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from rlcredit.episodes.observation_format import LineTurns, choose_turn_format
from rlcredit.policy.chat_turns import parse_conversation
from rlcredit.policy.model_loading import load_tokenizer
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add one.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer", "description": "Number."}}},
    },
}
STOPS = {
    "qwen2_5": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "llama3_2": "<|eot_id|>",
    "gemma3": "<end_of_turn>",
    "phi3": "<|end|>",
    "deepseek_r1_distill": "<｜end▁of▁sentence｜>",
    "smolvlm": "<|im_end|>",
    "gptoss": "<|call|>",
}
WRITTEN = {
    "tiny": "\n<|im_start|>user\nup\ndown<|im_end|>\n<|im_start|>assistant\n",  # as SmolLM2's
    "qwen2_5": "\n<|im_start|>user\nup\ndown<|im_end|>\n<|im_start|>assistant\n",
    "qwen3": "\n<|im_start|>user\nup\ndown<|im_end|>\n<|im_start|>assistant\n",
    "llama3": "<|start_header_id|>user<|end_header_id|>\n\nup\ndown<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "gemma3": "\n<start_of_turn>user\nup\ndown<end_of_turn>\n<start_of_turn>model\n",
    "phi3": "\n<|user|>\nup\ndown<|end|>\n<|assistant|>\n",
    "deepseek_r1_distill": "<｜User｜>up\ndown<｜Assistant｜><think>\n",
}
WRITTEN_RESULTS = {
    "qwen2_5": "\n<|im_start|>user\n<tool_response>\nup\ndown\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    "llama3_2": '<|start_header_id|>ipython<|end_header_id|>\n\n"up\\ndown"<|eot_id|>'
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "gptoss": '<|start|>functions.add to=assistant<|channel|>commentary<|message|>"up\\ndown"<|end|><|start|>assistant',
}


def make_policy(template="tiny", prompt=None):
    """Return the embedded tokenizer with a template of another model, and the stop token of that."""
    tokenizer = load_tokenizer(Policy().location)
    stop = STOPS.get(template, "<|im_end|>")
    if template != "tiny":
        pytest.importorskip("trl")
        folder = Path(find_spec("trl").origin).parent / "chat_templates"
        tokenizer.chat_template = (folder / f"{template}.jinja").read_text(encoding="utf-8")
        tokenizer.add_special_tokens({"additional_special_tokens": [stop], "bos_token": "<|endoftext|>"})
    stop_ids = torch.tensor([tokenizer.convert_tokens_to_ids(stop)])
    return SimpleNamespace(tokenizer=tokenizer, prompt=prompt or PromptFormat(), stop_ids=stop_ids)


@pytest.mark.parametrize("template", WRITTEN)
def test_templates_write_what_stands_between_two_turns(template):
    policy = make_policy(template)
    turns = choose_turn_format(policy)
    tokens = turns.encode_observation("up\ndown")
    assert policy.tokenizer.decode(tokens) == WRITTEN[template]
    cut = policy.tokenizer.decode(turns.encode_observation("up\ndown", is_cut=True))
    assert cut == STOPS.get(template, "<|im_end|>") + WRITTEN[template]
    assert turns.has_ended([9, *policy.stop_ids.tolist()])
    assert not turns.has_ended([*policy.stop_ids.tolist(), 9])


@pytest.mark.parametrize("template", WRITTEN_RESULTS)
def test_what_tools_return_is_written_as_their_message(template):
    policy = make_policy(template)
    tokens = choose_turn_format(policy, [ADD]).encode_observation("up\ndown")
    assert policy.tokenizer.decode(tokens) == WRITTEN_RESULTS[template]


def test_an_empty_observation_and_the_template_s_own_words_are_observations():
    turns = choose_turn_format(make_policy("qwen3"))
    decode = turns.tokenizer.decode
    assert decode(turns.encode_observation("")) == "\n<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n"
    said = "<tool_response>Answer 4712</tool_response>"  # for which Qwen3 writes the turn before in another way
    assert decode(turns.encode_observation(said)) == f"\n<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"


def test_rows_of_turns_are_the_conversation_as_its_template_writes_it():
    policy = make_policy()
    turns = choose_turn_format(policy)
    messages = parse_conversation("4 + 3 =")
    row = policy.prompt.encode_conversations(policy.tokenizer, [messages])[0]
    for action, observation in (("7", "higher"), ("8", "lower")):
        row += policy.tokenizer.encode(action) + policy.stop_ids.tolist() + turns.encode_observation(observation)
        messages += [{"role": "assistant", "content": action}, {"role": "user", "content": observation}]
    assert row == policy.prompt.encode_conversations(policy.tokenizer, [messages])[0]


def test_actions_are_what_is_said_after_thinking():
    policy = make_policy("deepseek_r1_distill")
    turns = choose_turn_format(policy)
    encode = policy.tokenizer.encode
    assert turns.find_action([*encode("7?</think>\n\n[5] "), *policy.stop_ids.tolist()]) == "[5] "
    assert turns.find_action(encode("7? or")) == ""
    assert choose_turn_format(make_policy()).find_action([*encode("[5]"), 2]) == "[5]"


def test_lines_end_turns_of_raw_text():
    turns = choose_turn_format(make_policy(prompt=PromptFormat(chat=False)))
    encode = turns.tokenizer.encode
    turn = encode("a = 7\n")
    assert [turns.has_ended(turn[:length]) for length in range(1, len(turn) + 1)] == [False] * (len(turn) - 1) + [True]
    assert turns.has_ended([9, 2])
    assert turns.find_action(turn) == "a = 7"
    assert turns.encode_observation("up\nup") == encode("up\nup\n")
    assert turns.encode_observation("up", is_cut=True) == encode("\nup\n")
    assert turns.turn_ends == ("\n",)


def test_longer_texts_and_parts_of_characters_end_turns():
    policy = make_policy()
    for end in ("</s>", "。", "###"):
        turns = LineTurns(policy.tokenizer, [2], end)
        turn = policy.tokenizer.encode(f"<s> 7{end}")
        lengths = [length for length in range(1, len(turn) + 1) if turns.has_ended(turn[:length])]
        assert lengths == [len(turn)], end
        assert turns.find_action(turn) == "<s> 7"


def test_prompts_of_episodes_end_with_a_line_in_raw_text():
    raw, conversations = PromptFormat(chat=False), [parse_conversation("4 + 3 =")]
    assert raw.render_conversations(None, conversations) == ["4 + 3 ="]
    assert raw.render_conversations(None, conversations, ()) == ["4 + 3 =\n"]
    assert PromptFormat(chat=False, turn_end=" | ").render_conversations(None, conversations, ()) == ["4 + 3 = | "]
    tokenizer = make_policy().tokenizer
    assert PromptFormat().render_conversations(tokenizer, conversations, ()) == PromptFormat().render_conversations(
        tokenizer, conversations
    )


def test_prompts_show_the_tools_of_an_environment():
    tokenizer = make_policy("qwen2_5").tokenizer
    (text,) = PromptFormat().render_conversations(tokenizer, [parse_conversation("4 + 3 =")], [ADD])
    assert '"name": "add", "description": "Add one."' in text


@pytest.mark.parametrize(
    ("template", "prompt", "tools", "message"),
    [
        (
            "gemma3",
            None,
            [ADD],
            r"tools \(add\), and the chat template of .*tiny shows none\. Name a model.*plain",
        ),
        ("tiny", PromptFormat(chat=False), [ADD], r"tools \(add\), and raw text shows none\."),
        ("smolvlm", None, (), r"cannot write an observation as a turn of the role user\. Name another model, or set"),
    ],
)
def test_what_cannot_be_written_is_refused(template, prompt, tools, message):
    with pytest.raises(PromptError, match=message):
        choose_turn_format(make_policy(template, prompt), tools)


def test_ends_of_turns_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"turn_end is an option of raw text, and chat is true\. Drop one\."):
        PromptFormat(turn_end="|")
    with pytest.raises(ValueError, match=r"turn_end is empty\. Name"):
        PromptFormat(chat=False, turn_end="")
    unknowing = SimpleNamespace(encode=lambda text, **_: [0], decode=lambda ids: "<unk>", name_or_path="digits")
    with pytest.raises(PromptError, match=r"turn_end is '\\n', which the tokenizer of digits cannot write\. Name"):
        LineTurns(unknowing, [2], "\n")
