"""What a run that has ended early is told to do."""

import pytest

from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint
from rlcredit.run_folder.continuation import explain_continuation


@pytest.mark.parametrize(
    ("replaces", "said"),
    [
        (False, "nothing has been saved yet, and the same command begins anew."),
        (True, "no checkpoint has been saved yet, and the same command with --replace begins anew."),
    ],
)
def test_without_a_checkpoint_none_is_advised(replaces, said, tmp_path):
    assert explain_continuation(tmp_path, ["fit", "--config=a.yaml"], replaces) == said


def test_with_one_the_command_goes_on_from_it(tmp_path):
    with (tmp_path / "step=3.ckpt").open("w+b") as file:
        write_sealed_checkpoint({"global_step": 3}, file)
    said = explain_continuation(tmp_path, ["fit", "--config=a.yaml", "--replace"], replaces=True)
    assert said == "to go on from step 3: rlcredit fit --config=a.yaml --ckpt_path last"
