import json
import os
from fractions import Fraction

import pytest

from rlcredit.tasks import Example, ReasoningGym, question_cache, reasoning_gym
from rlcredit.tasks.question_cache import cache_questions, load_cached_questions, locate_question_cache

KEY = {"name": "maze", "seed": 0}
METADATA = {"size": (3, 4), "grid": [[1, 2.5], [None, True]], "by_number": {1: "a", (2, 3): {"x": "y"}}, "tuple": []}
SETS = ([Example("1+1?", "2", METADATA), Example("\N{SNOWMAN}?", "\ud800", {})], [Example("2+2?", "4", {}, ("four",))])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def files():
    return sorted(locate_question_cache().glob("*"))


def test_what_is_kept_comes_back_as_it_was():
    assert load_cached_questions(KEY) is None
    assert cache_questions(KEY, SETS)
    assert load_cached_questions(KEY) == SETS
    assert type(load_cached_questions(KEY)[0][0].metadata["size"]) is tuple
    assert load_cached_questions({**KEY, "seed": 1}) is None
    assert len(files()) == 1
    assert locate_question_cache().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("strange", [Fraction(1, 2), {1}, object()])
def test_what_json_cannot_give_back_is_not_kept(strange):
    assert not cache_questions(KEY, ([Example("1?", "1", {"value": strange})], []))
    assert load_cached_questions(KEY) is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"key": 1}', "null", "[" * 100_000, '{"key": "K", "train": [[{"a": 1}]]}']
)
def test_a_file_that_cannot_be_read_whole_is_as_good_as_none(content):
    cache_questions(KEY, SETS)
    files()[0].write_text(content.replace('"K"', json.dumps(json.loads(files()[0].read_text())["key"])))
    assert load_cached_questions(KEY) is None
    assert cache_questions(KEY, SETS)
    assert load_cached_questions(KEY) == SETS


def test_another_question_set_under_the_same_name_is_none():
    cache_questions(KEY, SETS)
    files()[0].rename(question_cache._build_cache_path({"name": "other"}))
    assert load_cached_questions({"name": "other"}) is None


def test_a_folder_that_takes_nothing_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not cache_questions(KEY, SETS)
    assert load_cached_questions(KEY) is None


def test_files_and_all_of_them_together_have_a_largest_size(monkeypatch):
    for seed in range(4):
        assert cache_questions({"seed": seed}, SETS)
        os.utime(question_cache._build_cache_path({"seed": seed}), (seed, seed))
    monkeypatch.setattr(question_cache, "MAX_CACHE_BYTES", 3 * files()[0].stat().st_size)
    assert cache_questions({"seed": 9}, SETS)
    assert [load_cached_questions({"seed": seed}) is not None for seed in (0, 1, 2, 3, 9)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    monkeypatch.setattr(question_cache, "MAX_CACHE_FILE_BYTES", 10)
    assert load_cached_questions({"seed": 9}) is None
    assert not cache_questions(KEY, SETS)


def test_questions_that_take_long_are_generated_once_and_announced(monkeypatch, capsys):
    sizes = {"train_size": 12, "validation_size": 2, "prompts_per_step": 2}
    plain = ReasoningGym("spiral_matrix", **sizes)
    plain.setup()
    assert files() == []
    for name, value in (("WORTH_KEEPING", 0), ("PATIENCE_SECONDS", -1), ("REPORT_SECONDS", 0)):
        monkeypatch.setattr(reasoning_gym, name, value)
    first = ReasoningGym("spiral_matrix", **sizes)
    first.setup()
    assert "reasoning-gym generates 14 questions of spiral_matrix: 1 drawn" in capsys.readouterr().err
    second = ReasoningGym("spiral_matrix", **sizes)
    second.setup()
    assert "source" not in vars(second)
    assert second.train_set == first.train_set == plain.train_set
    assert second.held_out_set == first.held_out_set == plain.held_out_set
    assert capsys.readouterr().err == ""
    other = ReasoningGym("spiral_matrix", {"max_n": 4}, **sizes)
    other.setup()
    assert other.train_set != first.train_set
