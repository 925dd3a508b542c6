"""A run writes into its own folder, wherever links in it lead."""

import os

import pytest

from rlcredit.run_folder.layout import RunFolder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").mkdir()
    return RunFolder(tmp_path / "run")


@pytest.mark.parametrize(
    "name",
    [
        *("config.yaml", "parameters.json", "record.jsonl", "tracking.json", "status.json", "lock"),
        *("learning_curve.png", "held_out", "checkpoints", "adapter", "adapter.part", "former", "heatmap"),
    ],
)
def test_a_link_that_leads_out_is_refused(folder, name):
    os.symlink("../outside", folder.path / name)
    with pytest.raises(ValueError, match=r"is a link that leads out of the folder. A run writes only into its own"):
        folder.refuse_outward_links()


def test_a_link_to_nothing_is_one_too(folder):
    os.symlink("../outside/not_yet", folder.lock)
    with pytest.raises(ValueError, match="lock is a link that leads out"):
        folder.refuse_outward_links()


def test_so_is_one_inside_of_a_folder(folder):
    folder.held_out.mkdir()
    os.symlink("../../outside", folder.held_out / "step_000002.json")
    with pytest.raises(ValueError, match=r"step_000002\.json is a link"):
        folder.refuse_outward_links()


def test_links_inside_the_folder_own_files_and_a_folder_that_is_a_link_pass(folder, tmp_path):
    os.symlink("../outside", folder.path / "notes")
    folder.checkpoints.mkdir()
    (folder.checkpoints / "step=2.ckpt").touch()
    os.symlink("step=2.ckpt", folder.last_checkpoint)
    os.symlink("run", tmp_path / "other")
    folder.refuse_outward_links()
    RunFolder(tmp_path / "other").refuse_outward_links()
