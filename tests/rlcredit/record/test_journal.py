"""The journal: every line whole, whatever the disk does."""

import errno
import os

import pytest

from rlcredit.record.journal import Journal, read_journal_entries


def kept(path):
    return [entry["n"] for entry, _ in read_journal_entries(path)]


def test_lines_are_appended_and_read_back(tmp_path):
    journal = Journal(tmp_path / "record.jsonl")
    for number in range(3):
        journal.append({"n": number})
    assert kept(journal.path) == [0, 1, 2]
    assert journal.sync() == journal.path.stat().st_size == 3 * len(b'{"n":0}\n')


def test_a_run_goes_on_from_what_its_checkpoint_has_seen(tmp_path):
    first = Journal(tmp_path / "record.jsonl")
    first.append({"n": 0})
    seen = first.sync()
    first.append({"n": 1})
    again = Journal(tmp_path / "record.jsonl", seen)
    again.append({"n": 2})
    assert kept(again.path) == [0, 2]


def test_a_line_that_a_kill_has_torn_is_dropped(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_bytes(b'{"n":0}\n{"n":')
    assert kept(path) == [0]
    Journal(path).append({"n": 1})
    assert kept(path) == [0, 1]


def test_a_record_shorter_than_the_checkpoint_has_seen_is_refused(tmp_path):
    (tmp_path / "record.jsonl").write_bytes(b'{"n":0}\n')
    with pytest.raises(ValueError, match="holds 8 bytes of the 99 that the checkpoint has seen"):
        Journal(tmp_path / "record.jsonl", 99)


def test_what_a_full_disk_refuses_waits_and_is_said_once(tmp_path, monkeypatch, capsys):
    journal, write = Journal(tmp_path / "record.jsonl"), os.pwrite
    journal.append({"n": 0})

    def full(file, line, place):
        write(file, line[:3], place)  # a part of the line, then no more room
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    journal.append({"n": 1})
    journal.append({"n": 2})
    with pytest.raises(OSError, match="cannot be written"):
        journal.sync()
    assert kept(journal.path) == [0]
    monkeypatch.setattr(os, "pwrite", write)
    journal.append({"n": 3})
    assert kept(journal.path) == [0, 1, 2, 3]
    assert capsys.readouterr().err.count("No space left on device") == 1


def test_a_copy_of_the_folder_by_hard_links_keeps_its_record(tmp_path):
    first = Journal(tmp_path / "record.jsonl")
    first.append({"step": 0})
    (tmp_path / "copy.jsonl").hardlink_to(tmp_path / "record.jsonl")
    second = Journal(tmp_path / "record.jsonl")
    second.append({"step": 1})
    assert (tmp_path / "copy.jsonl").read_text() == '{"step":0}\n'
    assert (tmp_path / "record.jsonl").read_text() == '{"step":0}\n{"step":1}\n'
