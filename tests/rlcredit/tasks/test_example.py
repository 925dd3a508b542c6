import pytest

from rlcredit.tasks import Example, Task
from rlcredit.tasks.example import Shot, build_conversation
from rlcredit.tasks.held_out_split import split_held_out

TURNS = [
    {"role": "user", "content": "Say 2."},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "Add 1."},
]


class Sums(Task):
    """A handful of questions, the last of several turns."""

    def examples(self):
        every = [Example(f"{n} + 1", str(n + 1), {}) for n in range(40)]
        return split_held_out([*every, Example(TURNS, "3", {}), Example(TURNS, "3", {})], None, None)


def contents(said):
    return [(turn["role"][0], turn["content"]) for turn in said]


def test_a_question_alone_is_one_turn():
    assert build_conversation("4 + 3", "{question} = ?") == [{"role": "user", "content": "4 + 3 = ?"}]


def test_system_shots_and_turns_come_in_this_order():
    said = build_conversation(TURNS, "{question} Box it.", "Be short.", [Shot("1 + 1", "2")])
    assert contents(said) == [
        ("s", "Be short."),
        ("u", "1 + 1 Box it."),
        ("a", "2"),
        ("u", "Say 2."),
        ("a", "2"),
        ("u", "Add 1. Box it."),
    ]


def test_braces_of_a_question_are_left_alone():
    assert build_conversation(r"\frac{1}{2} {question}", "{question}!")[0]["content"] == r"\frac{1}{2} {question}!"


def test_an_empty_system_prompt_is_one():
    assert contents(build_conversation("x", system="")) == [("s", ""), ("u", "x")]


def test_a_system_prompt_of_its_own_is_kept_and_two_are_refused():
    own = [{"role": "system", "content": "Own."}, *TURNS]
    assert contents(build_conversation(own, shots=[Shot("q", "a")]))[:2] == [("s", "Own."), ("u", "q")]
    with pytest.raises(ValueError, match=r"data\.init_args\.system: the question already has a system prompt, 'Own\.'"):
        build_conversation(own, system="Other.")


def test_a_task_says_it_to_the_policy_and_counts_equal_turns_once():
    task = Sums(prompts_per_step=2, system="Add.", shots=(Shot("1 + 1", "2"),), instruction="{question} =")
    task.setup()
    every = [*task.train_set, *task.held_out_set]
    assert len(every) == 41
    assert sum(not isinstance(example.question, str) for example in every) == 1
    prompts = task._collate_prompts([(0, every[0])])
    assert contents(prompts.questions[0])[0] == ("s", "Add.")
    assert contents(prompts.questions[0])[-1] == ("u", f"{every[0].question} =")


def test_malformed_turns_fail_at_setup():
    task = Sums(prompts_per_step=2)
    task.examples = lambda: ([Example([{"role": "user"}], "3", {})] * 2, [])
    with pytest.raises(ValueError, match="a turn has no content"):
        task.setup()
