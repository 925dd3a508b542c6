"""One's own questions, in every form that they may have, and what is said where they cannot be used."""

import json
import random
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict
from fuzz_mutations import damage_bytes

from rlcredit.tasks import JSONL, Records
from rlcredit.tasks.example import Shot
from rlcredit.verification.verifiers import Verdict

NUMBERS = range(40)
ROWS = [{"question": f"What is {n} + 2?", "answer": n + 2, "level": 1} for n in NUMBERS]


def csv(path, header="question,answer,level", row="What is {n} + 2?,{answer},1", end="\n"):
    path.write_text(end.join([header, *(row.format(n=n, answer=n + 2) for n in NUMBERS)]), newline="")
    return path


def parquet(path, answers):
    table = {"question": [row["question"] for row in ROWS], "answer": answers, "level": [1] * len(ROWS)}
    pq.write_table(pa.table(table), path)
    return path


def saved(path, parts):
    parts.save_to_disk(path)
    return path


FORMS = {
    "jsonl": lambda folder: (folder / "q.jsonl", "\n".join(map(json.dumps, ROWS))),
    "json": lambda folder: (folder / "q.json", json.dumps(ROWS, indent=1)),
    "json lines in .json": lambda folder: (folder / "q.json", "\n".join(map(json.dumps, ROWS))),
    "csv": lambda folder: csv(folder / "q.csv"),
    "csv of Excel": lambda folder: csv(
        folder / "q.csv", "\ufeffquestion;answer;level", "What is {n} + 2?;{answer};1", "\r\n"
    ),
    "tsv": lambda folder: csv(folder / "q.tsv", "question\tanswer\tlevel", "What is {n} + 2?\t{answer}\t1"),
    "integers": lambda folder: parquet(folder / "q.parquet", [row["answer"] for row in ROWS]),
    "floats": lambda folder: parquet(folder / "q.parquet", [float(row["answer"]) for row in ROWS]),
    "decimals": lambda folder: parquet(
        folder / "q.parquet", pa.array([row["answer"] for row in ROWS], pa.decimal128(9, 2))
    ),
    "texts": lambda folder: parquet(folder / "q.parquet", [str(row["answer"]) for row in ROWS]),
    "one split saved": lambda folder: saved(folder / "q", Dataset.from_list(ROWS)),
    "splits saved": lambda folder: saved(folder / "q", DatasetDict(train=Dataset.from_list(ROWS))),
    "folder of files": lambda folder: (folder / "train.jsonl", "\n".join(map(json.dumps, ROWS)), folder),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_questions_and_answers(tmp_path, form):
    made = FORMS[form](tmp_path)
    if isinstance(made, tuple):
        made[0].write_text(made[1])
        made = made[-1] if len(made) == 3 else made[0]
    task = Records(str(made), prompts_per_step=4)
    task.setup()
    examples = [*task.train_set, *task.held_out_set]
    assert {(each.question, each.answer) for each in examples} == {
        (row["question"], str(row["answer"])) for row in ROWS
    }
    assert {str(each.metadata["level"]) for each in examples} == {"1"}
    assert 0 < len(task.held_out_set) < 10
    assert (
        task.judge(["the answer is 42.", r"\boxed{42.0}"], [each for each in examples if each.answer == "41"] * 2)
        == [Verdict.WRONG] * 2
    )
    assert task.judge([r"\boxed{41.0}"], [each for each in examples if each.answer == "41"]) == [Verdict.RIGHT]


def test_columns_are_named_by_arguments_or_found_by_their_usual_names(tmp_path):
    for question, answer in (("prompt", "answer"), ("problem", "ground_truth"), ("question", "final_answer")):
        csv(tmp_path / "q.csv", f"{question},{answer},level")
        task = Records(str(tmp_path / "q.csv"))
        task.setup()
        assert task.train_set[0].answer.isdigit()
    csv(tmp_path / "q.csv", "Aufgabe,answer,Ergebnis")
    task = Records(str(tmp_path / "q.csv"), question="Aufgabe", answer="Ergebnis")
    task.setup()
    assert task.train_set[0].answer == "1"
    assert set(task.train_set[0].metadata) == {"answer"}


def test_what_a_csv_file_says_is_a_text(tmp_path):
    row = '"What is {n} + 2?\nSay it, ""exactly"".",1/{answer},1'
    task = Records(str(csv(tmp_path / "q.csv", row=row)))
    task.setup()
    assert task.train_set[0].question.endswith('\nSay it, "exactly".')
    assert task.train_set[0].answer.startswith("1/")


def test_training_and_held_out_questions_may_lie_in_different_places(tmp_path):
    csv(tmp_path / "a.csv")
    (tmp_path / "b.jsonl").write_text('{"prompt": "What is 3 + 2?", "answer": 5}\n{"prompt": "new?", "answer": 1}\n')
    task = Records(str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl"), prompts_per_step=4)
    task.setup()
    assert [example.question for example in task.held_out_set] == ["What is 3 + 2?", "new?"]
    assert len(task.train_set) == len(ROWS) - 1


def test_one_split_may_be_trained_on_or_held_out(tmp_path):
    folder = str(saved(tmp_path / "q", DatasetDict(test=Dataset.from_list(ROWS))))
    dealt = Records(folder, train_split="test")
    dealt.setup()
    assert 0 < len(dealt.held_out_set) < len(dealt.train_set)
    held_out = Records(folder, train_split=None, validation_split="test")
    held_out.setup("validate")
    assert (len(held_out.held_out_set), held_out.train_set) == (len(ROWS), [])
    with pytest.raises(ValueError, match="all questions of this task are held out"):
        Records(folder, train_split=None, validation_split="test").setup("fit")
    with pytest.raises(ValueError, match="no question is left"):
        Records(folder, train_split=None)


def test_no_split_is_read_that_is_not_asked_for(tmp_path):
    parts = DatasetDict(train=Dataset.from_list([{"question": "", "answer": ""}]), test=Dataset.from_list(ROWS))
    task = Records(str(saved(tmp_path / "q", parts)), validation_split="test")
    task.setup("validate")
    assert len(task.held_out_set) == len(ROWS)
    with pytest.raises(ValueError, match="split train, row 0: column `question` must be a non-empty text"):
        Records(str(tmp_path / "q"), validation_split="test").setup()


def test_of_a_set_too_small_for_chance_those_with_the_smallest_hash_are_held_out(tmp_path, capsys):
    (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(f"{n}+1,{n + 1}\n" for n in range(1, 21)))
    task = Records(str(tmp_path / "sums.csv"), prompts_per_step=2)
    task.setup("fit")
    every = [*task.train_set, *task.held_out_set]
    assert len({example.question for example in every}) == 20
    order = sorted(every, key=lambda example: zlib.crc32(example.question.encode()))
    assert {example.question for example in task.held_out_set} == {example.question for example in order[:2]}
    assert zlib.crc32(order[0].question.encode()) > 0.1 * 2**32
    assert "2 of 20 are held out, and more questions may change which." in capsys.readouterr().err


def test_a_worked_solution_states_its_answer(tmp_path):
    path = csv(tmp_path / "q.csv", row="What is {n} + 2?,so it is <answer>{answer}</answer>,1")
    task = Records(str(path), reference="tag")
    task.setup()
    assert task.train_set[0].answer.isdigit()
    with pytest.raises(ValueError, match=r"q.csv, line 2: column `answer` has no `####` that states its answer"):
        Records(str(path), reference="hashes").setup()


def test_repeated_questions_count_once_and_contradictions_are_named(tmp_path, capsys):
    path = csv(tmp_path / "q.csv")
    text = path.read_text()
    path.write_text(f"{text}\nWhat is 3 + 2?,5,9\n")
    task = Records(str(path))
    task.setup()
    assert len(task.train_set) + len(task.held_out_set) == len(ROWS)
    path.write_text(f"{text}\nWhat is 3 + 2?,6,9\n")
    with pytest.raises(
        ValueError, match=r"q.csv, line 42: asks what .*q.csv, line 5 asks, and answers '6' instead of '5'"
    ):
        Records(str(path)).setup()
    twice = Dataset.from_list([*ROWS, {"question": ROWS[3]["question"], "answer": 6, "level": 1}])
    published = Records(str(saved(tmp_path / "q", twice)))
    published.setup()
    assert "1 records repeat a question with another answer" in capsys.readouterr().err
    assert "5" in {each.answer for each in [*published.train_set, *published.held_out_set] if "3 + 2" in each.question}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1.0", True),
        ("1,000", "1000", True),
        ("0.5", "1/2", True),
        (" Paris", "Paris", True),
        ("(1,2)", "(1, 2)", True),
        (["1", "2"], ["2", "1.0"], True),
        (["1", "2"], ["1", "3"], False),
        ("3", "4", False),
        ("A", "B", False),
    ],
)
def test_equal_answers_to_one_question_are_no_contradiction(tmp_path, one, other, same):
    path = lines(tmp_path / "q.jsonl", *({"question": "Which?", "answer": answer} for answer in (one, other)))
    asked = Records(str(path), answers="any", train_split=None, validation=str(path))
    if same:
        (example,) = asked.held_out_examples()
        assert example.answer == (one if isinstance(one, str) else one[0])
        return
    with pytest.raises(ValueError, match=r"q.jsonl, line 2: asks what .*, line 1 asks"):
        asked.held_out_examples()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "q.csv: there is no question in it."),
        ("question,answer\n", "q.csv: there is no question in it."),
        (
            "Frage,Antwort\n1+1,2\n",
            "q.csv, line 2: no column is called `question`, `prompt`, `problem`; found ['Antwort', ",
        ),
        (
            "question,solution\n1+1,2\n",
            "no column is called `answer`, `final_answer`, `ground_truth`; found ['question', ",
        ),
        (
            "question,prompt,answer\na,b,2\n",
            "the question may be in `question` or `prompt`. Name the column in data.init",
        ),
        ("question,answer\n1+1,\n", "q.csv, line 2: column `answer` must be a non-empty text or a number, got ''."),
        ("question,answer\n , 2\n", "q.csv, line 2: column `question` must be a non-empty text or a number, got ' '."),
        (
            "question,answer\na, b,2\n",
            "q.csv, line 2: 3 values under a header of 2. Put a text that holds a comma into ",
        ),
        ("question,answer\na\n", "q.csv, line 2: 1 values under a header of 2."),
        ("question,answer,answer\na,1,2\n", "q.csv, line 1: the column `answer` occurs twice. Rename or remove one."),
        (
            'question,answer\nc,3\n"a,1\nb,2\n',
            "q.csv, line 3: not CSV (unexpected end of data). Look for a quotation mark that is not closed.",
        ),
        ('question,answer\n"a"b,1\n', "q.csv, line 2: not CSV (',' expected after '\"')."),
        ('question,answer\n"a\nb",1\n"c\nd",1,2\n', "q.csv, line 4: 3 values under a header of 2."),
        (b"question,answer\ncaf\xe9,2\n", "q.csv: not UTF-8 (invalid continuation byte). Save the file as UTF-8."),
        (f"question,answer\n{'a' * 2**21},2\n", "q.csv, line 2: the question is longer than 1,048,576 "),
    ],
)
def test_a_csv_file_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, content, message):
    (tmp_path / "q.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        Records(str(tmp_path / "q.csv")).setup()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "nowhere.csv"}, "data.init_args.path: nowhere.csv cannot be read (No such file or directory)."),
        ({"path": "no/such/place"}, "data.init_args.path: there is no file or folder no/such/place."),
        (
            {"path": "q.xlsx"},
            "data.init_args.path: q.xlsx is a file of unknown format. Those that ",
        ),
        ({"path": "q.csv", "validation_split": "test"}, "q.csv is one file, whose only split is `train`, not `test`."),
        ({"path": "q.csv", "name": "main"}, "data.init_args.name: q.csv is one file and has no configurations."),
        (
            {"path": "saved", "train_split": "training"},
            "There is no split `training` in saved: it has `train`, `test`.",
        ),
        (
            {"path": "saved", "train_split": None, "validation": "saved"},
            "Name one split of saved: it has `train`, `test`.",
        ),
        (
            {"path": "files", "train_split": "dev"},
            """cannot be read: Unknown split "dev". Should be one of ['train'].""",
        ),
        ({"path": "files", "name": "hard"}, "cannot be read: BuilderConfig 'hard' not found. Available: ['default']."),
        ({"path": "empty"}, "data.init_args.path: the folder empty cannot be read: "),
        ({"path": "broken.parquet"}, "broken.parquet is not a readable Parquet file"),
        ({"path": "list.json"}, "list.json, entry 2: expected an object with a question and an answer, got int."),
        ({"path": "cut.json"}, "cut.json: not JSON (Expecting "),
        ({"path": "nan.parquet"}, "nan.parquet, row 1: column `answer` must be a non-empty text or a number, got nan."),
        ({"path": "turns.jsonl"}, "the last turn must be the user's or a tool's, for the policy answers it."),
        ({"path": "deep.jsonl", "answer": "a.c"}, "has no column `a.c`. It has a, question."),
        ({"path": "same.csv", "validation": "same.csv"}, "no question is left for training; all of them are held out."),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "q.csv")
    (tmp_path / "q.xlsx").touch()
    saved("saved", DatasetDict(train=Dataset.from_list(ROWS), test=Dataset.from_list(ROWS)))
    for folder in ("files", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "files" / "train.jsonl").write_text(json.dumps(ROWS[0]))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough PAR1")
    (tmp_path / "list.json").write_text('[{"question": "a", "answer": 1}, 2]')
    (tmp_path / "cut.json").write_text('[{"question": "a", ')
    parquet(tmp_path / "nan.parquet", [1.0, float("nan"), *[1.0] * 38])
    (tmp_path / "turns.jsonl").write_text('{"question": [{"role": "assistant", "content": "a"}], "answer": 1}')
    (tmp_path / "deep.jsonl").write_text('{"question": "a", "a": {"b": 1}}')
    csv(tmp_path / "same.csv")
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        Records(**arguments).setup()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_damaged_csv_file_is_read_or_refused(tmp_path):
    content, path, rng = csv(tmp_path / "q.csv").read_bytes(), tmp_path / "q.csv", random.Random(0)
    messages = []
    for _ in range(300):
        path.write_bytes(damage_bytes(content, rng))
        try:
            Records(str(path)).setup()
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert [
        message for message in messages if str(path) not in message and "data.init_args.prompts_per" not in message
    ] == []


def test_a_recorded_run_finds_its_file_under_the_former_name(tmp_path):
    (tmp_path / "q.jsonl").write_text("\n".join(json.dumps({"prompt": f"{n}?", "answer": n}) for n in NUMBERS))
    task = JSONL(train=tmp_path / "q.jsonl", validation=None, prompts_per_step=2)
    task.setup()
    assert len(task.train_set) + len(task.held_out_set) == len(NUMBERS)


def test_several_columns_that_may_be_meant_are_told_apart_by_name(tmp_path):
    line = '{"prompt": "1 + 1", "answer": 2, "problem": "a", "final_answer": 3}'
    (tmp_path / "a.jsonl").write_text(f"{line}\n" + '{"prompt": "1 + 2", "answer": 3}\n')
    task = Records(str(tmp_path / "a.jsonl"), question="prompt", answer="answer", validation_size=1)
    assert ("1 + 1", "2") in [(each.question, each.answer) for part in task.examples() for each in part]
    with pytest.raises(ValueError, match="may be in `prompt` or `problem`"):
        Records(str(tmp_path / "a.jsonl")).examples()


def lines(path, *records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def every(path, **arguments):
    """Return all examples of a file, those for training first."""
    task = Records(str(path), validation_size=arguments.pop("validation_size", None), **arguments)
    return [example for part in task.examples() for example in part]


MARKED = {
    "a byte order mark before lines": (
        "q.jsonl",
        b"\xef\xbb\xbf" + b"\n".join(json.dumps(row).encode() for row in ROWS),
    ),
    "a byte order mark before a list": ("q.json", b"\xef\xbb\xbf" + json.dumps(ROWS).encode()),
    "a list called lines": ("q.jsonl", json.dumps(ROWS, indent=1).encode()),
    "carriage returns": ("q.jsonl", b"\r".join(json.dumps(row).encode() for row in ROWS)),
    "both line ends": ("q.jsonl", b"\r\n\r\n".join(json.dumps(row).encode() for row in ROWS)),
    "carriage returns in a table": (
        "q.csv",
        b"question,answer\r" + b"\r".join(b"What is %d + 2?,%d" % (n, n + 2) for n in NUMBERS),
    ),
}


@pytest.mark.parametrize("form", MARKED)
def test_files_are_read_as_other_programs_write_them(tmp_path, form):
    name, content = MARKED[form]
    (tmp_path / name).write_bytes(content)
    assert {(each.question, each.answer) for each in every(tmp_path / name)} == {
        (row["question"], str(row["answer"])) for row in ROWS
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", '{"question": "a"}'.encode("utf-16"), "q.jsonl: not UTF-8 (it is UTF-16). Save the file as UTF-8."),
        ("q.json", "[]".encode("utf-16"), "q.json: not UTF-8 (it is UTF-16). Save the file as UTF-8."),
        ("q.csv", "question,answer".encode("utf-16"), "q.csv: not UTF-8 (it is UTF-16). Save the file as UTF-8."),
        ("q.json", b'{\n"train": [],\n"test": []}', "one object with the fields ['test', 'train'], where a list of"),
        ("q.json", b'{\n"train": [', "q.json, line 1: not JSON"),
        ("q.jsonl.gz", b"\x1f\x8b", "Unpack it. Those that are read end in .jsonl, "),
        ("q.json", b"[]", "q.json: there is no question in it."),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        every(tmp_path / name)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "other", ["z" * 1_200_000, float("nan"), float("-inf"), "9" * 5000, "\ud800", None, [{"a": 1}]]
)
def test_a_column_that_nobody_reads_refuses_no_record(tmp_path, other):
    written = other if other == "9" * 5000 else json.dumps(other)
    rows = [f'{{"question": "{n}+1", "answer": {n + 1}, "other": {written if n == 7 else 0}}}' for n in NUMBERS]
    (tmp_path / "q.jsonl").write_text("\n".join(rows))
    assert len(every(tmp_path / "q.jsonl")) == len(NUMBERS)


def test_a_table_may_have_long_columns_but_no_longer_question(tmp_path):
    csv(tmp_path / "q.csv", row="What is {n} + 2?,{answer}," + "z" * 50_000)
    assert len(every(tmp_path / "q.csv")) == len(NUMBERS)
    lines(tmp_path / "q.jsonl", {"question": "a" * (2**20 + 1), "answer": 1})
    with pytest.raises(ValueError, match=r"q.jsonl, line 1: the question is longer than 1,048,576 characters"):
        every(tmp_path / "q.jsonl")


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    lines(tmp_path / "q.jsonl", *ROWS)
    assert len(every("~/q.jsonl")) == len(ROWS)
    task = Records("~/q.jsonl", "~/q.jsonl")
    assert len(task.held_out_examples()) == len(ROWS)


def test_turns_of_a_table_have_keys_without_values(tmp_path):
    turn = pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())])
    asked = [[{"role": "system", "content": "Be short."}, {"role": "user", "content": f"{n}+1"}] for n in NUMBERS]
    answers = [n + 1 for n in NUMBERS]
    pq.write_table(pa.table({"prompt": pa.array(asked, pa.list_(turn)), "answer": answers}), tmp_path / "q.parquet")
    (first, *_) = every(tmp_path / "q.parquet")
    assert first.question == [{"role": "system", "content": "Be short."}, {"role": "user", "content": "0+1"}]
    lines(tmp_path / "q.jsonl", {"prompt": [{"role": "user", "content": "a", "id": "m1"}], "answer": 1})
    with pytest.raises(ValueError, match=r"q.jsonl, line 1: a turn has id: 'm1'"):
        every(tmp_path / "q.jsonl")


def test_an_instruction_may_name_several_columns(tmp_path):
    rows = [{"Body": f"There are {n} cows.", "Question": "How many?", "Answer": float(n)} for n in NUMBERS]
    path = lines(tmp_path / "q.jsonl", *rows)
    arguments = {"answer": "Answer", "instruction": "Read. {Body} {Question} Write \\boxed{Answer}."}
    task = Records(str(path), prompts_per_step=2, shots=(Shot("1 cow. How many?", "1"),), **arguments)
    task.setup()
    assert len(task.train_set) + len(task.held_out_set) == len(NUMBERS), "the same question about other cows is another"
    said = task.build_conversation(task.train_set[0])
    assert [turn["content"] for turn in said] == [
        "Read. 1 cow. How many? Write \\boxed{Answer}.",
        "1",
        "Read. There are 0 cows. How many? Write \\boxed{Answer}.",
    ]


def test_columns_stand_beside_the_question_in_turns_and_lists_and_may_be_empty(tmp_path):
    turns = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Which?"}]
    path = lines(
        tmp_path / "q.jsonl",
        {"question": "Which?", "context": None, "options": ["A) 1", "B) 2"], "answer": "A"},
        {"question": turns, "context": "Look.", "options": [], "answer": "B"},
    )
    first, second = every(path, instruction="{context}\n{question}\n{options}", train_split=None, validation=str(path))
    assert first.question == "Which?\nA) 1\nB) 2"
    assert second.question == [turns[0], {"role": "user", "content": "Look.\nWhich?"}]


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("Think hard.", "data.init_args.instruction must contain {question}"),
        (
            "{Bodi} {Questoin}",
            "data.init_args.instruction names neither {question} nor a column beside the answer's: "
            "'{Bodi} {Questoin}'.",
        ),
        ("{Answer}", "names neither {question} nor a column"),
    ],
)
def test_an_instruction_that_names_no_column_is_refused(tmp_path, instruction, message):
    path = lines(tmp_path / "q.jsonl", {"Body": "a", "Question": "b", "Answer": 1})
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        every(path, answer="Answer", instruction=instruction)
    assert message in str(refused.value)


def test_the_answer_is_never_written_into_the_question(tmp_path, capsys):
    rows = [{"question": f"{n}?", "reward": {"truth": "secret", "style": "x"}} for n in NUMBERS]
    path = lines(tmp_path / "q.jsonl", *rows)
    arguments = {"answer": "reward.truth", "instruction": "{question} {reward} {reward.truth} {styel}"}
    task = Records(str(path), prompts_per_step=2, **arguments)
    task.setup()
    (said,) = task.build_conversation(task.train_set[0])
    assert said["content"] == "0? {reward} {reward.truth} {styel}"
    told = capsys.readouterr().err
    assert "data.init_args.instruction: `reward` has the answer. The policy reads {reward} as it is written." in told
    assert "data.init_args.instruction: `styel` is no column; there are ['question', 'reward']." in told


def test_records_without_an_answer_are_counted_and_may_be_left_out(tmp_path, capsys):
    rows = [*ROWS, {"question": "a", "answer": ""}, {"question": "b"}, {"question": "c", "answer": None}]
    path = lines(tmp_path / "q.jsonl", *rows)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        every(path)
    assert str(refused.value) == (
        f"{path}, line 41: column `answer` must be a non-empty text or a number, got ''. 3 of 43 records have no "
        "answer. Fill it in, or set data.init_args.skip_unanswered: true to leave them out."
    )
    assert len(every(path, skip_unanswered=True)) == len(ROWS)
    assert f"q.jsonl: 3 of 43 records have no answer and are left out. {path}, line 41: " in capsys.readouterr().err


def test_the_first_record_may_be_the_one_that_lacks_its_answer(tmp_path):
    path = lines(tmp_path / "q.jsonl", {"question": "b"}, *ROWS)
    with pytest.raises(ValueError, match=r"line 1: column `answer` is missing; .* 1 of 41 records have no answer\."):
        every(path)
    assert len(every(path, skip_unanswered=True)) == len(ROWS)
    with pytest.raises(ValueError, match=r"line 1: no column is called `answer`"):
        every(lines(tmp_path / "none.jsonl", {"question": "b"}, {"question": "c"}))


def test_questions_beyond_a_length_are_left_out_and_counted(tmp_path, capsys):
    path = lines(tmp_path / "q.jsonl", *ROWS, {"question": "a" * 100, "answer": 1})
    assert len(every(path, max_question_characters=99)) == len(ROWS)
    assert "q.jsonl: 1 of 41 records ask more than 99 characters and are left out." in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"data.init_args.max_question_characters: expected a number from 1 on, got 0"):
        Records(str(path), max_question_characters=0)


def test_questions_worded_like_held_out_ones_are_left_out_of_training(tmp_path, capsys):
    lines(
        tmp_path / "a.jsonl",
        *ROWS,
        {"question": "what is  3+2", "answer": 5},
        {"question": "What is 3+22?", "answer": 25},
    )
    lines(tmp_path / "b.jsonl", {"question": "What is 3 + 2?", "answer": 5})
    task = Records(str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), prompts_per_step=2)
    task.setup()
    asked = {example.question for example in task.train_set}
    assert len(asked) == len(ROWS)
    assert not {"What is 3 + 2?", "what is  3+2"} & asked
    told = capsys.readouterr().err
    assert (
        "1 questions differ from held-out ones in spaces, case or punctuation alone and are left out of training, "
        f"first: {tmp_path / 'a.jsonl'}, line 41" in told
    )


def test_a_held_out_set_of_training_questions_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "a.jsonl", *ROWS)
    lines(tmp_path / "b.jsonl", {"question": "WHAT IS 3+2", "answer": 5}, {"question": "new?", "answer": 1})
    (tmp_path / "b.yaml").write_text(
        "data: {class_path: Records, init_args: {path: ~/b.jsonl, train_split: null, validation_split: train}}"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    Records("a.jsonl", held_out={"b": "~/b.yaml"}, validation_size=0, prompts_per_step=2).setup()
    assert (
        "warning: data.init_args.held_out.b asks 1 of the 40 training questions, or asks them in "
        "other" in capsys.readouterr().err
    )


def test_each_alternative_is_right_and_counts_in_what_tells_questions_apart(tmp_path):
    path = lines(tmp_path / "q.jsonl", {"question": "a", "answer": ["0.01\n", "Paris"]}, {"question": "b", "answer": 1})
    examples = every(path, answers="any", train_split=None, validation=str(path))
    task = Records(str(path), answers="any")
    said = [r"\boxed{1e-2}", "The answer is Paris.", r"\boxed{0.02}", "I do not know", r"\boxed{1}"]
    verdicts = task.judge(said, [examples[0]] * 4 + [examples[1]])
    assert verdicts == [Verdict.RIGHT, Verdict.RIGHT, Verdict.WRONG, Verdict.NO_ANSWER, Verdict.RIGHT]
    assert [example.reference for example in examples] == ["0.01 or Paris", "1"]
    with pytest.raises(ValueError, match=r"line 1: column `answer` lists 2 answers.* 1 of 2 records list several."):
        every(path)
    with pytest.raises(ValueError, match="data expects answers to be one of any, all, got 'some'"):
        Records(str(path), answers="some")


def test_answers_that_look_like_decimals_with_commas_are_told(tmp_path, capsys):
    path = tmp_path / "q.csv"
    path.write_text("question;answer\n" + "".join(f"Half of {n}?;{n // 2},{n % 2 * 5}\n" for n in NUMBERS))
    assert {example.answer for example in every(path)} >= {"0,5", "1,0"}
    told = capsys.readouterr().err
    assert (
        f"q.csv: 40 of 40 answers look like decimals with a comma and are read as lists, first: {path}, line 2" in told
    )
    assert {example.answer for example in every(path, decimal_comma=True)} >= {"0.5", "1.0"}
    assert capsys.readouterr().err == ""


def test_contradictions_of_a_file_are_counted(tmp_path):
    path = lines(tmp_path / "q.jsonl", *ROWS, *({**row, "answer": -1} for row in ROWS[:3]))
    with pytest.raises(
        ValueError, match=r"line 41: asks what .*line 1 asks.* Remove one of the two. 3 records contradict"
    ):
        every(path)
