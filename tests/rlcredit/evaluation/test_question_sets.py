"""Task files give their held-out questions, or one sentence."""

from pathlib import Path

import pytest

from rlcredit.evaluation.question_sets import read_question_set


def test_the_first_held_out_questions_are_asked(tasks):
    every, some = read_question_set(Path(tasks[0])), read_question_set(Path(tasks[0]), 3)
    assert (every.name, every.size, some.size) == ("three", 8, 3)
    asked = some.task.held_out_prompts(0, 3)
    assert asked.questions == every.task.held_out_prompts(0, 8).questions[:3]
    assert asked.numbers == [0, 1, 2]
    assert some.task.held_out_prompts(2, 1).numbers == [2]


def test_more_questions_than_a_file_asks_for_begin_with_the_same(tasks):
    few, many = read_question_set(Path(tasks[0])), read_question_set(Path(tasks[0]), 20)
    assert many.size == 20
    assert many.task.held_out_prompts(0, 8).questions == few.task.held_out_prompts(0, 8).questions


def test_a_file_with_fewer_says_how_many(here):
    lines = [f'{{"prompt": "{n} + 1?", "answer": {n + 1}}}' for n in range(60)]
    (here / "q.jsonl").write_text("\n".join(lines))
    (here / "own.yaml").write_text("data: {class_path: Records, init_args: {path: q.jsonl, prompts_per_step: 1}}")
    found = read_question_set(Path("own.yaml"), "all").size
    assert 2 <= found < 20
    with pytest.raises(ValueError, match=f"own holds out only {found} questions, not 50. Say --questions all"):
        read_question_set(Path("own.yaml"), 50)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model: {}", "a.yaml: a task file holds"),
        ("data: {class_path: ReasoningGym, init_args: {name: chain_summ}}", "a.yaml.*no data set 'chain_summ'"),
        ("data: {class_path: ReasoningGym, init_args: {nme: chain_sum}}", "a.yaml.*nme"),
        ("data: {class_path: Nothing}", "a.yaml.*Nothing"),
        ("data: {class_path: Records, init_args: {path: none.jsonl}}", "a.yaml.*none.jsonl cannot be read"),
    ],
)
def test_a_file_that_describes_no_task_is_refused_by_name(here, content, message):
    (here / "a.yaml").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_question_set(Path("a.yaml"))


def test_identity_sees_other_questions_and_other_words(tasks):
    first = read_question_set(Path(tasks[0])).identity()
    assert read_question_set(Path(tasks[0])).identity() == first
    text = Path(tasks[0]).read_text()
    Path(tasks[0]).write_text(text + '    instruction: "Please: {question}"\n')
    second = read_question_set(Path(tasks[0])).identity()
    assert first["questions_sha256"] != second["questions_sha256"]
    assert first["file_sha256"] != second["file_sha256"]


def test_another_verifier_is_another_evaluation(here):
    (here / "sums.csv").write_text("question,answer\n" + "".join(f"{n} + 1,{n + 1}\n" for n in range(40)))
    (here / "own.yaml").write_text(
        "data: {class_path: Records, init_args: {path: sums.csv, validation_size: 4, verifier: mine.judge}}"
    )
    identities = []
    for body in ("answer in completion", "True"):
        (here / "mine.py").write_text(f"def judge(completion, answer, metadata):\n    return {body}\n")
        identities.append(read_question_set(Path("own.yaml")).identity())
    first, second = identities
    assert first.keys() == second.keys()
    assert {key for key in first if first[key] != second[key]} == {"verifier_sha256"}


def test_a_task_file_that_comes_with_rlcredit_is_found_from_anywhere(here):
    assert read_question_set(Path("configs/tasks/chain_sum_2.yaml")).identity()["questions"] == 12
