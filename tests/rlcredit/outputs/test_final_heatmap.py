"""The heat-map of the last step."""

from callbacks.episode.grpo import GRPO
from callbacks.probes.credit_heatmap import CreditHeatmap
from rlcredit.outputs.final_heatmap import FinalHeatmap
from rlcredit.run_folder.layout import RunFolder


def pages(folder):
    return sorted(path.name for path in (folder / "heatmap").glob("*"))


def test_the_last_step_alone_has_a_page(fit, tmp_path):
    fit(steps=2, stack=[GRPO(), FinalHeatmap()])
    assert pages(tmp_path) == ["step_000001.html"]
    page = RunFolder(tmp_path).last_heatmap
    assert f"{tmp_path.name}: credit at step 1" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 200_000


def test_a_stack_with_heatmaps_of_its_own_writes_no_second_one(fit, tmp_path):
    fit(steps=1, stack=[GRPO(), CreditHeatmap(), FinalHeatmap()])
    assert pages(tmp_path) == ["CreditHeatmap_step_000000.html"]


def test_a_run_that_is_stopped_has_the_page_of_its_last_step(fit, tmp_path):
    class Stop(FinalHeatmap):
        def on_train_batch_start(self, trainer, *_):
            trainer.should_stop = trainer.global_step == 1

    fit(steps=3, stack=[GRPO(), Stop()])
    assert pages(tmp_path) == ["step_000001.html"]
