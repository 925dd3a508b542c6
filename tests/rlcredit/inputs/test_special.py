"""What is no file is never opened."""

import os

import pytest

from rlcredit.inputs.arguments import CommandParser
from rlcredit.inputs.special import find_special_kind, refuse_special_files
from rlcredit.inputs.strict_yaml import UnreadableError, read_yaml


def test_a_pipe_is_named_and_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert find_special_kind(tmp_path / "pipe") == "a pipe"
    with pytest.raises(UnreadableError, match="pipe is a pipe, not a file"):
        read_yaml(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"^data\.path: .*pipe is a pipe, not a file\. Write what it says"):
        refuse_special_files({"data": {"path": str(tmp_path / "pipe")}})
    with pytest.raises(SystemExit):
        CommandParser("rlcredit x").parse_known_args([f"--file={tmp_path / 'pipe'}"])
    assert "is a pipe, not a file" in capsys.readouterr().err


def test_devices_and_the_running_system_are_named():
    for value, kind in {"/dev/zero": "a device", "/proc/self/mem": "a part of the running system"}.items():
        with pytest.raises(ValueError, match=rf"a\[1\]: {value} is {kind}, not a file"):
            refuse_special_files({"a": ["tiny", value]})
    refuse_special_files({"a": ["tiny", ".", "", "x" * 5000, "a\0b", "no/such/file", 3, None]})
