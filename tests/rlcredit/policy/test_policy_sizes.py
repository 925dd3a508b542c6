import json
import shutil
from pathlib import Path

import huggingface_hub
import pytest

from rlcredit.policy.policy import Policy
from rlcredit.policy.policy_sizes import find_policy_sizes

EMBEDDED = Path(Policy().location)


def test_a_folder_says_its_sizes_in_its_configuration():
    found = find_policy_sizes(str(EMBEDDED))
    assert found.parameters == 172_576
    assert (found.architecture.kind, found.architecture.layers) == ("qwen3", 3)


def test_of_another_architecture_the_weights_are_counted_without_reading_them(tmp_path):
    shutil.copy(EMBEDDED / "model.safetensors", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "another"}))
    assert find_policy_sizes(str(tmp_path)) == (172_576, None)


def test_a_model_of_the_hub_is_listed():
    assert find_policy_sizes("Qwen/Qwen3-30B-A3B-Instruct-2507").parameters == 30_532_122_624


def test_what_has_been_downloaded_says_more_than_the_list(tmp_path, monkeypatch):
    file = shutil.copy(EMBEDDED / "config.json", tmp_path)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda repository, name: str(file))
    assert (
        find_policy_sizes("Qwen/Qwen3-30B-A3B-Instruct-2507").parameters
        == find_policy_sizes("some/model").parameters
        == 172_576
    )


@pytest.mark.parametrize("location", ["nobody/knows-this-model", "no such name", "policies/not_there", ""])
def test_of_what_is_in_no_reach_nothing_is_known(location, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_policy_sizes(location) is None


@pytest.mark.parametrize(
    "content", [b"", b"\x08\0\0\0\0\0\0\0nonsense", b"\x02\0\0\0\0\0\0\0[]", b'\x05\0\0\0\0\0\0\0{"a":']
)
def test_a_file_that_cannot_be_read_says_nothing(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    (tmp_path / "config.json").write_bytes(content)
    assert find_policy_sizes(str(tmp_path)) is None
