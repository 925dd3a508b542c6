"""Lines that are no questions, each refused with its file and number."""

import pytest

from rlcredit.tasks import Records

GOOD = "".join(f'{{"prompt": "{n} + 1 =", "answer": {n + 1}}}\n' for n in range(40)).encode()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"prompt": "caf\xe9", "answer": 1}', "not UTF-8 (invalid continuation byte). Save the file as UTF-8."),
        (b'{"prompt": "\\ud800", "answer": 1}', "not UTF-8 (surrogates not allowed). Save the file as UTF-8."),
        (b'{"prompt": "a", "answer": NaN}', "column `answer` must be a non-empty text or a number, got nan."),
        (b'{"prompt": "a", "answer": -1e999}', "column `answer` must be a non-empty text or a number, got -inf."),
        (b'{"prompt": "a", "answer": 1, "prompt": "b"}', "field `prompt` occurs twice. Remove one."),
        (b'{"prompt": "a", "answer": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep."),
        (
            b'{"prompt": "a", "answer": {"value": 1}}',
            "is an object with the fields ['value']. Name one of them in",
        ),
        (
            b'{"prompt": "a' + b"a" * 2**20 + b'", "answer": 1}',
            "longer than any prompt.",
        ),
        (b'{"prompt": "a\0', "not JSON (Invalid control character at at column 14)."),
    ],
    ids=range(9),
)
def test_a_line_that_is_no_question_is_named(tmp_path, line, message):
    (tmp_path / "train.jsonl").write_bytes(GOOD + line + b"\n")
    with pytest.raises(ValueError, match=r"train\.jsonl, line 41: ") as refused:
        Records(str(tmp_path / "train.jsonl")).setup()
    assert message in str(refused.value)


def test_training_without_a_held_out_question_is_refused(tmp_path):
    train, validation = tmp_path / "train.jsonl", tmp_path / "validation.jsonl"
    train.write_bytes(b'{"prompt": "4 - 1 =", "answer": 3}\n' * 9)
    validation.write_bytes(b"\n")
    with pytest.raises(ValueError, match=r"no question is held out; it has one alone"):
        Records(str(train), prompts_per_step=1).setup()
    with pytest.raises(ValueError, match=r"validation.jsonl: there is no question in it"):
        Records(str(train), str(validation), prompts_per_step=1).setup()


def test_a_file_that_is_none_is_named(tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    for name, reason in {
        "folder": "Is a directory",
        "none": "No such file or directory",
        "x" * 300: "File name too long",
    }.items():
        with pytest.raises(ValueError, match=reason):
            Records(str(tmp_path / f"{name}.jsonl")).setup()
