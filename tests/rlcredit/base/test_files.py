"""What is no file is never opened."""

import os

import pytest

from rlcredit.base.files import (
    find_special_kind,
    lock_file,
    refuse_special_files,
    render_csv,
    replace_file,
    suggest_path,
    write_atomically,
    write_folder_atomically,
)
from rlcredit.config.arguments import CommandParser
from rlcredit.config.strict_yaml import UnreadableError, read_yaml


def test_a_file_is_replaced_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "new" / "ledger.json"
    write_atomically(path, "first")

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "second, cut sh")
    assert path.read_text() == "first"


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("mien.jsonl", "mine.jsonl"),
        ("grpo", "grpo-seed0"),
        ("mine.jsonl", None),
        ("x", None),
        ("nowhere/mine", None),
        ("x" * 300, None),
        ("a\0b", None),
    ],
)
def test_a_misspelt_path_is_asked_after(tmp_path, name, question):
    (tmp_path / "mine.jsonl").touch()
    (tmp_path / "grpo-seed0").mkdir()
    assert suggest_path(tmp_path / name) == (f" Did you mean {tmp_path / question}?" if question else "")


def test_a_folder_is_there_when_all_is_in_it(tmp_path):
    def interrupted():
        with write_folder_atomically(tmp_path / "model") as unfinished:
            (unfinished / "a").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model").mkdir()  # empty
    with write_folder_atomically(tmp_path / "model") as unfinished:
        (unfinished / "a").write_text("whole")
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["model", "model/a"]


def test_a_link_beside_a_file_is_not_written_through(tmp_path):
    (tmp_path / "other").write_text("kept")
    for write, name in ((write_atomically, "a"), (replace_file, "b")):
        os.symlink(tmp_path / "other", tmp_path / f"{name}.part")
        write(tmp_path / name, "new")
    os.symlink(tmp_path / "other", tmp_path / "lock")
    with lock_file(tmp_path / "lock"):
        pass
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "\r=1", "-cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(text):
    head, line = render_csv([{text: text, "b": 1}]).partition(",b\n")[::2]
    assert head.lstrip('"').startswith("'")
    assert line.lstrip('"').startswith("'")


def test_numbers_stay_numbers():
    row = {"a": -1.5, "b": "-1.5", "c": "+2e-05", "d": -3, "e": None, "f": "nan", "g": "-inf"}
    assert render_csv([row]).splitlines()[1] == "-1.5,-1.5,+2e-05,-3,,nan,-inf"


def test_a_pipe_is_named_and_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert find_special_kind(tmp_path / "pipe") == "a pipe"
    with pytest.raises(UnreadableError, match="pipe is a pipe, not a file"):
        read_yaml(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"^data\.path: .*pipe is a pipe, not a file\. Write its content"):
        refuse_special_files({"data": {"path": str(tmp_path / "pipe")}})
    with pytest.raises(SystemExit):
        CommandParser("rlcredit x").parse_known_args([f"--file={tmp_path / 'pipe'}"])
    assert "is a pipe, not a file" in capsys.readouterr().err


def test_devices_and_the_running_system_are_named():
    for value, kind in {"/dev/zero": "a device", "/proc/self/mem": "a part of the running system"}.items():
        with pytest.raises(ValueError, match=rf"a\[1\]: {value} is {kind}, not a file"):
            refuse_special_files({"a": ["tiny", value]})
    refuse_special_files({"a": ["tiny", ".", "", "x" * 5000, "a\0b", "no/such/file", 3, None]})
