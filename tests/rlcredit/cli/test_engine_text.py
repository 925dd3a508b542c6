"""An engine as a command line names it."""

import sys

import pytest

from rlcredit.cli.engine_text import build_engine
from rlcredit.config.class_paths import patch_jsonargparse
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.vllm_in_process import VLLMInProcess
from rlcredit.decoding.vllm_server import VLLMServer

patch_jsonargparse()

OWN = """
from rlcredit.decoding.in_process import InProcessEngine


class Mine(InProcessEngine):
    pass
"""


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("InProcessEngine", InProcessEngine, {"threads": 1}),
        ("InProcessEngine(decode_batch_size=8, threads=2)", InProcessEngine, {"decode_batch_size": 8, "threads": 2}),
        ("VLLMInProcess(max_model_len=512)", VLLMInProcess, {"max_model_len": 512, "gpu_memory_utilization": 0.5}),
        ('VLLMServer(url="http://127.0.0.1:1")', VLLMServer, {"urls": ["http://127.0.0.1:1"]}),
        (
            'VLLMServer(url=["http://127.0.0.1:1", "http://127.0.0.1:2"], patience=0.5)',
            VLLMServer,
            {"urls": ["http://127.0.0.1:1", "http://127.0.0.1:2"], "patience": 0.5},
        ),
        ("{class_path: VLLMServer, init_args: {requests: 4}}", VLLMServer, {"requests": 4}),
    ],
)
def test_a_name_or_a_call_is_an_engine(text, kind, values):
    engine = build_engine(text)
    assert type(engine) is kind
    assert {name: getattr(engine, name) for name in values} == values


def test_a_class_of_ones_own_is_named_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "my_engine_file.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert type(build_engine("my_engine_file.Mine(threads=2)")).__name__ == "Mine"


@pytest.mark.parametrize(
    "text",
    [
        "vLLM",
        "VLLMServer(urll=1)",
        "VLLMServer(url=127.0.0.1)",
        "GRPO()",
        "torch.nn.Linear",
        "{a: 1}",
        "VLLMServer(",
        "null",
        "[]",
    ],
)
def test_what_is_none_is_refused_on_one_line_with_what_there_is(text):
    with pytest.raises(ValueError, match=r"^--engine: ") as refused:
        build_engine(text)
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) <= 200
    assert text in said
    assert "InProcessEngine, VLLMInProcess or VLLMServer" in said
