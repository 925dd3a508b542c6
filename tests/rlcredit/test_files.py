import os

import pytest

from rlcredit.files import lock_file, render_csv, replace_file, write_atomically, write_folder_atomically


def test_a_file_is_replaced_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "new" / "ledger.json"
    write_atomically(path, "first")

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "second, cut sh")
    assert path.read_text() == "first"


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
