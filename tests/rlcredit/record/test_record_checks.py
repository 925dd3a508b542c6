"""A folder from elsewhere gives what lies in it, and nothing else."""

import json
import os

import pytest

from rlcredit.record.record_checks import refuse_invalid_record
from rlcredit.run_folder.layout import RunFolder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "run" / "adapter").mkdir(parents=True)
    return RunFolder(tmp_path / "run")


def holds(folder, *entries):
    folder.record.write_text(
        "".join(f"{entry if isinstance(entry, str) else json.dumps(entry)}\n" for entry in entries)
    )


def test_what_a_run_writes_is_accepted(folder):
    (folder.path / "adapter" / "a").write_text("x")
    folder.completions_file(0).parent.mkdir()
    folder.completions_file(0).write_text('[{"a": 1}]')
    holds(
        folder,
        {"step": 0, "time": 1, "metrics": {"a": float("nan"), "b": 1}},
        {"parameters": {"a": "b"}},
        {"tags": {"a": "b"}},
        {"file": "adapter", "to": "adapter"},
        {"file": "not/there", "to": None},
        {"table": "completions/step_000000.json"},
    )
    with folder.record.open("a") as file:
        file.write('{"step": ')  # a line that a kill has cut
    refuse_invalid_record(folder)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"file": "/etc/hostname", "to": None}, "line 1: file is '/etc/hostname'"),
        ({"file": "../secret", "to": None}, "file is '../secret'"),
        ({"file": "adapter/../../secret", "to": None}, "not a path inside"),
        ({"table": "../secret"}, "table is '../secret'"),
        ({"file": "adapter", "to": "../elsewhere"}, "to is '../elsewhere'"),
        ({"file": "adapter", "to": 1}, "to is 1, not a text or null"),
        ({"step": 0, "time": 1, "metrics": {"a": "=1"}}, "metrics.a is '=1', not a number"),
        ({"step": 10**400, "time": 1, "metrics": {}}, "step is a number of"),
        ({"step": 0, "time": 1, "metrics": {"a": 10**400}}, "metrics.a is a number of 1329 bits"),
        ({"other": 1}, "{'other': 1} is not a valid entry"),
        ([], "[] is not a valid entry"),
        ("{", "line 1: not JSON"),
        ("[" * 10**5, "line 1: not JSON"),
    ],
)
def test_anything_else_is_refused_with_its_place(folder, entry, words):
    holds(folder, entry)
    with pytest.raises(ValueError, match=r"record\.jsonl") as refused:
        refuse_invalid_record(folder)
    assert words in str(refused.value)


@pytest.mark.parametrize("place", ["link", "adapter/link", "lock", "tracking.json", "record.jsonl"])
def test_no_link_leads_out(folder, tmp_path, place):
    holds(folder, {"file": "link", "to": None}, {"file": "adapter", "to": None})
    (folder.path / place).unlink(missing_ok=True)
    os.symlink(tmp_path / "secret", folder.path / place)
    with pytest.raises(ValueError, match="a link that leads out of the folder"):
        refuse_invalid_record(folder)


def test_a_pipe_is_no_file(folder):
    os.mkfifo(folder.path / "pipe")
    holds(folder, {"file": "pipe", "to": None})
    with pytest.raises(ValueError, match="which is no file"):
        refuse_invalid_record(folder)


@pytest.mark.parametrize("content", ["[]", "{}", "[1]", "x", '[{"a": 1}, {"b": 1}]'])
def test_what_is_no_table_is_named(folder, content):
    (folder.path / "table.json").write_text(content)
    holds(folder, {"table": "table.json"})
    with pytest.raises(ValueError, match=r"table\.json"):
        refuse_invalid_record(folder)
