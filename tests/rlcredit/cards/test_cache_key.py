"""What a card is made again for."""

import pytest

from rlcredit.cards import cache_key
from rlcredit.cards.cache_key import CARD_MODULE, fingerprint_configs
from rlcredit.policy.model_loading import find_embedded_policy

OPERATOR = """
from callbacks import CreditOperator


class OwnScale(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        return {}
"""
CONTENT = {
    "model": {"policy": {"path": "policy"}},
    "data": {"class_path": "Records", "init_args": {"path": "questions.jsonl"}},
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
    before = fingerprint_configs([CONTENT])
    with (folder / name).open("a") as file:
        file.write("\nmore = 1\n")
    assert (fingerprint_configs([CONTENT]) != before) is again


def test_shipped_policies_count_by_what_they_hold(folder, monkeypatch):
    content = {"model": {"policy": {"path": "organisms/decoy"}}}
    decoy, other = find_embedded_policy("organisms/decoy"), find_embedded_policy("organisms/delayed")
    before = fingerprint_configs([content])
    monkeypatch.setattr(cache_key, "find_embedded_policy", lambda word: {"organisms/decoy": decoy}.get(word))
    assert fingerprint_configs([content]) == before
    monkeypatch.setattr(cache_key, "find_embedded_policy", lambda word: {"organisms/decoy": other}.get(word))
    assert fingerprint_configs([content]) != before


def test_a_folder_with_a_slash_counts_whatever_it_is_called(folder):
    content = {"model": {"encoder": "./policy"}}
    before = fingerprint_configs([content])
    (folder / "policy" / "more.txt").write_text("more")
    assert fingerprint_configs([content]) != before


@pytest.mark.parametrize("word", ["openai/gsm8k", "x" * 300, "", "a/" * 200])
def test_a_word_that_is_no_file_is_a_word(folder, word):
    content = {"data": {"path": word}}
    assert list(cache_key._hash_named_files([content])) == []
    assert fingerprint_configs([content]) != fingerprint_configs([{"data": {"path": f"{word}x"}}])


def test_name_and_output_do_not_count(folder):
    other = {**CONTENT, "condition": "mine", "trainer": {**CONTENT["trainer"], "default_root_dir": "elsewhere"}}
    assert fingerprint_configs([other]) == fingerprint_configs([CONTENT])


@pytest.mark.parametrize(
    ("module", "runs", "cards"),
    [
        ("rlcredit.decoding.in_process", True, True),
        ("rlcredit.oracle.credit_agreement", False, True),
        ("rlcredit.statistics.intervals", False, True),
        ("callbacks.tokens.hicra", False, False),
        ("callbacks.episode.grpo", True, True),
    ],
)
def test_runs_depend_on_what_trains_and_cards_also_on_what_measures(folder, monkeypatch, module, runs, cards):
    known = cache_key.fingerprint_modules
    before = [fingerprint_configs([CONTENT]), fingerprint_configs([CONTENT], module=CARD_MODULE)]
    monkeypatch.setattr(
        cache_key,
        "fingerprint_modules",
        lambda reached: {n: v * (1 + (n == module)) for n, v in known(reached).items()},
    )
    after = [fingerprint_configs([CONTENT]), fingerprint_configs([CONTENT], module=CARD_MODULE)]
    assert [one != two for one, two in zip(before, after, strict=True)] == [runs, cards]
