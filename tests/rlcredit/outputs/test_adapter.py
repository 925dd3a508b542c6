import yaml

from rlcredit.outputs.adapter import render_adapter_card

PARAMETERS = {"stack": "GRPO() > GTPO()", "task": "Mine(pattern='a|b')", "temperature": 0.7}
VERSIONS = {"git_commit": "abc", "version.torch": "2.13.0"}


def test_a_hub_model_is_named_in_the_header_and_a_folder_is_not(tmp_path):
    hub = render_adapter_card("grpo-seed0", "Qwen/Qwen3-4B", "Qwen/Qwen3-4B", 100, PARAMETERS, VERSIONS, None)
    folder = render_adapter_card("grpo-seed0", str(tmp_path), str(tmp_path), 100, PARAMETERS, VERSIONS, None)
    headers = [yaml.safe_load(text.split("---")[1]) for text in (hub, folder)]
    assert headers[0]["base_model"] == "Qwen/Qwen3-4B"
    assert "base_model" not in headers[1]


def test_the_card_says_what_was_done_and_how_it_is_loaded():
    text = render_adapter_card("grpo-seed0", "Qwen/Qwen3-4B", "Qwen/Qwen3-4B", 100, PARAMETERS, VERSIONS, None)
    for row in ("run | grpo-seed0", "steps | 100", "stack | GRPO() > GTPO()", "task | Mine(pattern='a\\|b')"):
        assert f"\n| {row} |\n" in text
    assert "\n| made with | git_commit abc, torch 2.13.0 |\n" in text
    assert "AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B')" in text
    assert "temperature 0.7" in text
