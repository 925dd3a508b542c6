"""What a card is made again for."""

import pytest

from rlcredit.card.dependence import depends

OPERATOR = """
from callbacks import CreditOperator


class OwnScale(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        return {}
"""
CONTENT = {
    "model": {"policy": {"path": "policy"}},
    "data": {"class_path": "JSONL", "init_args": {"train": "questions.jsonl"}},
    "trainer": {"default_root_dir": "runs", "callbacks": ["GRPO", "own_scale.OwnScale"]},
}
FILES = {
    "own_scale.py": OPERATOR,
    "policy/model.safetensors": "weights",
    "questions.jsonl": "{}",
    "runs/log.txt": "",
    "other.txt": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("own_scale.py", True),
        ("policy/model.safetensors", True),
        ("questions.jsonl", True),
        ("runs/log.txt", False),
        ("other.txt", False),
    ],
)
def test_code_weights_and_questions_count(folder, name, again):
    before = depends([CONTENT])
    with (folder / name).open("a") as file:
        file.write("\nmore = 1\n")
    assert (depends([CONTENT]) != before) is again


def test_shipped_policies_count_by_what_they_hold(folder):
    one, two = ({"model": {"policy": {"path": f"organisms/{name}"}}} for name in ("decoy", "delayed"))
    assert depends([one]) == depends([one]) != depends([two])


def test_a_word_that_is_no_file_is_none(folder):
    assert depends([{"data": {"path": "openai/gsm8k", "question": "x" * 300, "empty": ""}}])
