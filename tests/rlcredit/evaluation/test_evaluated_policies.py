"""Run folders, checkpoints, adapter folders and models are found to be what they are."""

from pathlib import Path

import pytest
import torch

from rlcredit.evaluation.evaluated_policies import (
    find_trained_policy,
    make_base_policy,
    override_policy_settings,
    strip_adapter,
)
from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint

CONFIG = """
condition: grpo
seed_everything: 3
model:
  policy:
    class_path: rlcredit.policy.policy.Policy
    init_args: {path: tiny, lora: {rank: 4, alpha: 8.0, targets: [q_proj]}, dtype: float32, quantization: null}
"""


@pytest.fixture
def run(here):
    """A run folder with two checkpoints."""
    folder = here / "runs" / "somewhere"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG)
    for step in (20, 40):
        with (folder / "checkpoints" / f"step={step}.ckpt").open("w+b") as file:
            write_sealed_checkpoint({"state_dict": {"policy.lm.x": torch.zeros(step)}, "global_step": step}, file)
    return folder


def test_a_run_is_its_newest_checkpoint_read_as_it_was_trained(run):
    found = find_trained_policy(run)
    assert found.name == "grpo-seed3"
    assert found.adapter == run / "checkpoints" / "step=40.ckpt"
    policy = found.build_policy()
    assert (policy.path, policy.lora.rank, policy.lora.targets) == ("tiny", 4, ["q_proj"])


def test_a_checkpoint_is_named_by_its_step(run):
    assert find_trained_policy(run / "checkpoints" / "step=20.ckpt").name == "grpo-seed3-step20"


def test_a_checkpoint_without_its_configuration_is_refused(run):
    (run / "config.yaml").unlink()
    with pytest.raises(ValueError, match=r"weights of the adapter and not its scale; config.yaml .* --adapter"):
        find_trained_policy(run / "checkpoints" / "step=20.ckpt")


def test_an_adapter_of_the_embedded_policy_is_found_wherever_it_was_saved(here, adapter):
    found = find_trained_policy(Path(adapter))
    assert found.name == "taught"  # the folder `adapter` of a run says nothing
    assert found.build_policy().path == "tiny"
    assert found.build_policy().lora.rank == 16


def test_the_model_of_an_adapter_can_be_elsewhere(here, adapter):
    found = find_trained_policy(Path(adapter), model="some/folder", name="mine")
    assert (found.name, found.build_policy().path, found.build_policy().lora.rank) == ("mine", "some/folder", 16)


def test_a_file_with_a_model_is_read(here):
    (here / "model.yaml").write_text("model: {policy: {path: Qwen/Qwen3-0.6B, dtype: bfloat16}}")
    assert make_base_policy("model.yaml").build_policy().dtype == "bfloat16"
    (here / "none.yaml").write_text("data: {}")
    with pytest.raises(ValueError, match="a model's configuration must have the keys"):
        make_base_policy("none.yaml")


def test_arguments_of_the_policy_are_merged(run):
    changed = {"dtype": "bfloat16", "lora": {"alpha": 1.0}}
    other = override_policy_settings(find_trained_policy(run), changed).build_policy()
    assert (other.dtype, other.lora.alpha, other.lora.rank) == ("bfloat16", 1.0, 4)
    with pytest.raises(ValueError, match=r"grpo-seed3: .*dtyp"):
        override_policy_settings(find_trained_policy(run), {"dtyp": "bfloat16"}).build_policy()


def test_the_base_of_a_run_is_read_in_the_same_way(run):
    alone = strip_adapter(find_trained_policy(run))
    assert (alone.name, alone.adapter, alone.settings) == ("base", None, find_trained_policy(run).settings)


def test_what_is_nothing_is_refused(here):
    (here / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty is no run folder \(config.yaml\), no checkpoint, and no adapter"):
        find_trained_policy(here / "empty")
    (here / "text.ckpt").write_text("no checkpoint")
    with pytest.raises(ValueError, match="damaged"):
        find_trained_policy(here / "text.ckpt")


def test_identity_sees_other_weights_and_other_models(run, here):
    first = find_trained_policy(run).identity()
    newest = run / "checkpoints" / "step=40.ckpt"
    with newest.open("w+b") as file:
        write_sealed_checkpoint({"state_dict": {"policy.lm.x": torch.ones(40)}, "global_step": 40}, file)
    second = find_trained_policy(run).identity()
    assert first["adapter_sha256"] != second["adapter_sha256"]
    assert first["model_sha256"] == second["model_sha256"] is not None
    (here / "other").mkdir()
    (here / "other" / "config.json").write_text("{}")
    assert make_base_policy("other").identity()["model_sha256"] != first["model_sha256"]
    assert make_base_policy("hub/id").identity()["model_sha256"] is None
