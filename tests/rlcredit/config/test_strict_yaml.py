"""Texts that are no configuration, each refused in one sentence, quickly."""

import time

import pytest

from rlcredit.config.strict_yaml import MAX_CONFIG_BYTES, UnreadableError, parse_yaml, read_yaml

BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: 1\nname: x\nsteps: 2", "line 3: steps occurs twice; the second would replace the first."),
        (BOMB, "more than 20,000 values, aliases written out"),
        ("&a [*a]", "an alias refers to a node that contains it"),
        ("[" * 5000 + "]" * 5000, "nested more than 40 deep"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested more than 40 deep"),
        ("x" * (MAX_CONFIG_BYTES + 1), "more than 1,048,576 characters"),
        ("a: [1", "not YAML: "),
        ("a\0b", "not YAML: "),
        ("!!python/object/apply:os.system [touch canary]", "not YAML: "),
        ("!!bool maybe", "not YAML: "),
        ("2026-99-99", "not YAML: "),
        ("a: 1\nseed_everything: 1" + ":59" * 80_000, "line 2: YAML reads 1:59"),
        ("at: 12:30", "line 1: YAML reads 12:30 as a number in base sixty. Put quotes around it."),
        ("at: 190:20:30.15", "as a number in base sixty"),
        ("at: !!int '1:59'", "as a number in base sixty"),
        ("effect: " + "9" * 400, "line 1: a number of 400 digits; none needs more than 60. Shorten it."),
        ("effect: 0." + "9" * 400, "a number of 401 digits"),
        ("seed: 0x" + "f" * 5000, "a number of 5,002 digits"),
        ("threads: 010", "YAML reads 010 in base eight. Leave out the zero, or put quotes around it."),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_at_once(text, message):
    began = time.perf_counter()
    with pytest.raises(UnreadableError) as refused:
        parse_yaml(text, "x.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith("x.yaml: ")
    assert time.perf_counter() - began < 2


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    (tmp_path / "long.yaml").write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    for name, message in {
        "latin.yaml": "latin.yaml: not UTF-8 at byte 9. Save it as UTF-8.",
        "long.yaml": "long.yaml: longer than 1,048,576 bytes.",
        "": "a folder, and no file. Name a file in it.",
        "x" * 300: "cannot be read (File name too long).",
        "a\0b": "a\\0b: cannot be read (embedded null byte).",
        "none.yaml": "none.yaml: there is no such file. Name one that there is.",
    }.items():
        with pytest.raises(UnreadableError) as refused:
            read_yaml(tmp_path / name)
        assert str(refused.value).endswith(message)


def test_aliases_that_stay_small_are_allowed():
    assert parse_yaml("a: &a [1, 2]\nb: *a\nc: {<<: {d: 1}, e: 2}") == {"a": [1, 2], "b": [1, 2], "c": {"d": 1, "e": 2}}


def test_numbers_as_people_write_them_are_read():
    text = "[0, -3, 1_000, 0x1f, 0.70, -1.5e-3, .inf, '010', '12:30', 3.141592653589793]"
    assert parse_yaml(text) == [0, -3, 1000, 31, 0.7, -0.0015, float("inf"), "010", "12:30", 3.141592653589793]
