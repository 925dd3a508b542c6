import os

import pytest

from rlcredit.files import write_atomically


def test_a_file_is_replaced_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "new" / "ledger.json"
    write_atomically(path, "first")

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "second, cut sh")
    assert path.read_text() == "first"
