"""The folder of a run: one writer, and nothing of anybody else's removed."""

from pathlib import Path

import pytest

from rlcredit.run_folder.layout import RunFolder


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with (
        folder.lock_folder(),
        pytest.raises(ValueError, match=r"another process writes to .*run\. Wait for it or end it"),
        folder.lock_folder(),
    ):
        pass
    with folder.lock_folder():
        pass


def test_what_a_run_has_left_is_removed_and_nothing_else(tmp_path):
    folder = RunFolder(tmp_path)
    for path in (
        *(folder.config, folder.parameters, folder.record, folder.status, folder.learning_curve),
        *(folder.evaluation_file(20), folder.completions_file(0), folder.adapter / "adapter_config.json"),
        *(folder.last_checkpoint, folder.postmortem_file(3), folder.path / "heatmap" / "GRPO_step_000000.html"),
        *(folder.log, folder.tracking, folder.declared_config, tmp_path / "notes.txt", tmp_path / "mine" / "data.json"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert folder.has_begun_run
    folder.remove_contents()
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"log.txt", "tracking.json", "declared.yaml", "notes.txt", "mine/data.json"}
    assert not folder.has_begun_run


def test_the_last_heatmap_is_that_of_the_latest_step(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.last_heatmap is None
    (tmp_path / "heatmap").mkdir()
    for page in (folder.heatmap_file(99), tmp_path / "heatmap" / "CreditHeatmap_step_000050.html"):
        page.write_text("")
    assert folder.last_heatmap == folder.heatmap_file(99) == tmp_path / "heatmap" / "step_000099.html"


def test_evaluations_after_a_step_are_forgotten(tmp_path):
    folder = RunFolder(tmp_path)
    folder.held_out.mkdir()
    for step in (0, 20, 40):
        folder.evaluation_file(step).write_text("{}")
    folder.remove_later_evaluations(20)
    assert folder.evaluated_steps() == [0, 20]


def test_a_path_with_two_dots_is_the_folder_that_lightning_writes_to():
    assert RunFolder("runs/../elsewhere/./a").path == Path("elsewhere/a")
