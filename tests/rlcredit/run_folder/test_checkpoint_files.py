"""Files of checkpoints: what is damaged is recognised, named, and passed over."""

import io
import os
import random
import zipfile

import pytest
import torch

from rlcredit.run_folder.checkpoint_files import (
    _LENGTH,
    _SEAL_PREFIX,
    _digest_leading_bytes,
    find_checkpoint_damage,
    find_newest_checkpoint,
    read_checkpoint,
    write_sealed_checkpoint,
)


def written(path, step, weights=1000):
    with path.open("w+b") as file:
        write_sealed_checkpoint({"global_step": step, "state_dict": {"w": torch.arange(float(weights))}}, file)
    return path


def test_a_whole_checkpoint_is_read(tmp_path):
    path = written(tmp_path / "step=2.ckpt", 2)
    assert find_checkpoint_damage(path) is None
    assert read_checkpoint(path)["global_step"] == 2


def test_every_flipped_bit_of_the_weights_is_recognised(tmp_path):
    path = written(tmp_path / "step=2.ckpt", 2)
    whole = path.read_bytes()
    start = whole.index(torch.arange(1000.0).numpy().tobytes())
    dice = random.Random(0)
    for place in dice.sample(range(start, start + 4000), 100):
        changed = bytearray(whole)
        changed[place] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        assert "checksum" in find_checkpoint_damage(path)


@pytest.mark.parametrize("length", [0, 1, 100, -1000, -1])
def test_a_truncated_one_is_recognised(tmp_path, length):
    path = written(tmp_path / "step=2.ckpt", 2)
    path.write_bytes(path.read_bytes()[:length])
    assert "cut short" in find_checkpoint_damage(path)
    with pytest.raises(ValueError, match=r"step=2\.ckpt is damaged"):
        read_checkpoint(path)


def test_whatever_byte_is_changed_it_is_recognised(tmp_path):
    path = written(tmp_path / "step=2.ckpt", 2, weights=10)
    whole, dice = path.read_bytes(), random.Random(1)
    for place in dice.sample(range(len(whole)), 1000):
        changed = bytearray(whole)
        changed[place] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"step=2\.ckpt is damaged"):
            read_checkpoint(path)


def test_no_code_in_one_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'pwned'}",)

    path = tmp_path / "last.ckpt"
    with path.open("w+b") as file:
        write_sealed_checkpoint({"global_step": 1, "evil": Evil()}, file)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        read_checkpoint(path)
    assert not (tmp_path / "pwned").exists()


def test_the_newest_that_is_whole_is_found_and_the_damaged_are_named(tmp_path):
    for place, step in enumerate((2, 4, 6)):
        os.utime(written(tmp_path / f"step={step}.ckpt", step), (place, place))
    written(tmp_path / "last.ckpt", 6)
    assert find_newest_checkpoint(tmp_path) == (tmp_path / "last.ckpt", [])
    (tmp_path / "last.ckpt").write_bytes(b"PK")
    (tmp_path / "step=6.ckpt").write_bytes(b"")
    os.utime(tmp_path / "step=6.ckpt", (2, 2))
    path, damaged = find_newest_checkpoint(tmp_path)
    assert path == tmp_path / "step=4.ckpt"
    assert [each.partition(" is damaged")[0] for each in damaged] == [
        str(tmp_path / "last.ckpt"),
        str(tmp_path / "step=6.ckpt"),
    ]
    assert find_newest_checkpoint(tmp_path / "nowhere") == (None, [])


def sealed(path, content):
    """Seal bytes that no run has written, as somebody could who knows how it is done."""
    path.write_bytes(content[:-2])
    with path.open("r+b") as file:
        digest = _digest_leading_bytes(file, len(content) - 2)
        file.seek(0, os.SEEK_END)
        file.write(_LENGTH + _SEAL_PREFIX + digest)
    return path


def test_a_bomb_is_not_unpacked(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x/data.pkl", b"\0" * 10**8)
    with pytest.raises(ValueError, match="its parts are compressed, which no checkpoint's are"):
        read_checkpoint(sealed(tmp_path / "x.ckpt", buffer.getvalue()))


@pytest.mark.parametrize(
    "content", [[1], {"parameters": [1]}, {"global_step": "1"}, {"global_step": 1, "run_name": 3}, {"state_dict": None}]
)
def test_another_structure_is_refused(tmp_path, content):
    with (tmp_path / "a.ckpt").open("w+b") as file:
        write_sealed_checkpoint(content, file)
    with pytest.raises(ValueError, match=r"a\.ckpt is not a checkpoint of a run"):
        read_checkpoint(tmp_path / "a.ckpt")


def test_a_clock_that_goes_back_hides_no_checkpoint(tmp_path):
    for step, time in ((20, 2_000_000_000), (40, 1_000_000_000), (100, 500_000_000)):
        os.utime(written(tmp_path / f"step={step}.ckpt", step), (time, time))
    assert find_newest_checkpoint(tmp_path) == (tmp_path / "step=100.ckpt", [])
    os.link(tmp_path / "step=100.ckpt", tmp_path / "last.ckpt")
    assert find_newest_checkpoint(tmp_path) == (tmp_path / "last.ckpt", [])
    written(tmp_path / "mine.ckpt", 60)  # a name that says nothing
    assert find_newest_checkpoint(tmp_path)[0].name == "last.ckpt"
    (tmp_path / "mine.ckpt").write_bytes(b"")
    assert find_newest_checkpoint(tmp_path)[1] == [
        f"{tmp_path / 'mine.ckpt'} is damaged: it is cut short, or no checkpoint of a run."
    ]
