"""Checkpoints that are none: refused, nothing of them executed or unpacked."""

import os
import pickle
import zipfile

import pytest
import torch

from rlcredit.checkpoint_file import read_checkpoint


class Touch:
    def __reduce__(self):
        return os.system, ("touch canary",)


def test_a_checkpoint_is_read(tmp_path):
    torch.save({"global_step": 3, "parameters": {}, "state_dict": {"a": torch.zeros(2)}}, tmp_path / "x.ckpt")
    assert read_checkpoint(tmp_path / "x.ckpt")["global_step"] == 3


def test_code_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"global_step": 1, "x": Touch()}, tmp_path / "packed.ckpt")
    (tmp_path / "plain.ckpt").write_bytes(pickle.dumps(Touch()))
    for name in ("packed.ckpt", "plain.ckpt"):
        with pytest.raises(ValueError, match=rf"^ckpt_path: .*{name} is not a checkpoint \(UnpicklingError\)\.$"):
            read_checkpoint(tmp_path / name)
    assert not (tmp_path / "canary").exists()


def test_a_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.ckpt", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x/data.pkl", b"\0" * 10**8)
    with pytest.raises(ValueError, match="its parts are compressed, which no checkpoint's are"):
        read_checkpoint(tmp_path / "x.ckpt")


@pytest.mark.parametrize(
    "content", [[1], {"parameters": [1]}, {"global_step": "1"}, {"run_name": 3}, {"state_dict": None}]
)
def test_another_structure_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "x.ckpt")
    with pytest.raises(ValueError, match=r"x\.ckpt is not a checkpoint"):
        read_checkpoint(tmp_path / "x.ckpt")
