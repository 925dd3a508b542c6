"""Files of a run: written when the disk takes them, told when they are written."""

import errno
import json
import os
from types import SimpleNamespace

import pytest

from rlcredit.record import RunRecord, artifacts
from rlcredit.record.artifacts import is_picture_due, publish_table, publish_text, warn_on_write_error
from rlcredit.record.journal import read_journal_entries
from rlcredit.run_folder.layout import RunFolder
from tests.conftest import make_rollout


@pytest.mark.parametrize(
    ("updates", "every", "expected"), [(1, 20, [0, 20, 40]), (3, 20, [0, 18, 39]), (8, 20, [0, 16, 40])]
)
def test_pictures_come_as_often_as_they_are_asked_for(updates, every, expected):
    trainer = SimpleNamespace(
        lightning_module=SimpleNamespace(updates_per_rollout=updates), global_step=1, max_steps=99, should_stop=False
    )
    rollout, shown = make_rollout(), []
    for rollout.step in range(0, 42, updates):
        shown += [rollout.step] if is_picture_due(trainer, rollout, every) else []
    assert shown == expected


class Trainer:
    def __init__(self, folder):
        self.default_root_dir, self.loggers = folder, [RunRecord(RunFolder(folder))]


@pytest.fixture
def trainer(tmp_path):
    return Trainer(tmp_path)


def told(trainer):
    return [entry for entry, _ in read_journal_entries(RunFolder(trainer.default_root_dir).record)]


def test_a_text_and_a_table_are_written_and_told(trainer, tmp_path):
    publish_text(trainer, "heatmap/a.html", "<p>")
    publish_table(trainer, "tokens/b.json", [{"token": "é"}])
    assert (tmp_path / "heatmap" / "a.html").read_text() == "<p>"
    assert json.loads((tmp_path / "tokens" / "b.json").read_text()) == [{"token": "é"}]
    assert told(trainer) == [{"file": "heatmap/a.html", "to": "heatmap"}, {"table": "tokens/b.json"}]


def test_what_a_full_disk_refuses_is_written_with_what_comes_next(trainer, tmp_path, monkeypatch, capsys):
    replace = os.replace

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    publish_text(trainer, "first.json", "1")
    publish_text(trainer, "second.json", "2")
    assert told(trainer) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.jsonl"]
    monkeypatch.setattr(os, "replace", replace)
    publish_text(trainer, "third.json", "3")
    assert [entry["file"] for entry in told(trainer)] == ["first.json", "second.json", "third.json"]
    assert (tmp_path / "first.json").read_text() == "1"
    assert artifacts._waiting == {}
    assert "No space left on device" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_stops_nothing(tmp_path, capsys):
    with warn_on_write_error(tmp_path / "signal" / "step.png"):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    assert "Read-only file system" in capsys.readouterr().err
