"""Which checkpoints a run may remove."""

import pytest

from rlcredit.outputs.checkpoints import Checkpoints


@pytest.mark.parametrize(
    ("previous", "is_removed"),
    [
        ("run/checkpoints/step=2.ckpt", True),
        ("run/checkpoints/step=4.ckpt", False),
        ("run/step=2.ckpt", False),
        ("run/checkpoints/../../other.ckpt", False),
        ("linked/other.ckpt", True),
    ],
)
def test_only_a_checkpoint_of_the_runs_own_folder_is_removed(previous, is_removed, tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "run" / "checkpoints")
    checkpoints = Checkpoints(dirpath=str(tmp_path / "run" / "checkpoints"))
    current = str(tmp_path / "run" / "checkpoints" / "step=4.ckpt")
    assert checkpoints.is_superseded(str(tmp_path / previous), current) is is_removed
