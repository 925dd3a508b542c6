"""Forecast times are the limit over shares of it that were measured; without measurements nothing is said."""

import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight import memory
from rlcredit.preflight.time import CARD_RATES, LIMIT_SHARES, SHARE_NOTE, find_least_seconds, forecast_seconds

CONFIGS = Path(__file__).parents[3] / "configs"
SMOLLM2, QWEN3_4B = "HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen3-4B-Instruct-2507"
ORACLE = "--config={trainer: {callbacks: [{class_path: MonteCarloCredit, init_args: {samples: 2}}]}}"
SERVER = "--config={model: {engine: {class_path: VLLMServer, init_args: {url: 'http://127.0.0.1:1'}}}}"


def read_shape(repository):
    return find_policy_sizes(repository).architecture


def test_the_least_of_a_step_is_what_is_read_and_what_is_multiplied():
    shape = read_shape(SMOLLM2)
    weights = 106_168_320 + 49_152 * 576  # linear layers and output embedding, 134.5 M
    assert shape.linear_parameters + shape.vocabulary * shape.hidden == weights
    least = find_least_seconds(shape, {"operations": 1e15, "bytes": 1e12}, prompts=2, prompt=10, rows=8, tokens=100)
    # 800 + 20 tokens, two operations for each weight forwards and two backwards
    assert least["update"] == pytest.approx(4 * weights * 820 / 1e15)
    # weights for each of 100 tokens; 30 layers x 3 heads x 64 keys and values of 2 bytes for 8 x (100 x 10 + 100^2 / 2)
    assert least["rollout"] == pytest.approx((100 * 2 * weights + 2 * 2 * 30 * 192 * 8 * 6000) / 1e12)


@pytest.mark.parametrize(("repository", "tokens", "update"), [(SMOLLM2, 1024, (1.6, 1.7)), (QWEN3_4B, 512, (7.2, 8.1))])
def test_the_slow_end_is_what_an_h200_took(repository, tokens, update):
    fast, slow = forecast_seconds(read_shape(repository), "NVIDIA H200", 16, 256, tokens)["update"]
    assert update[0] < slow < update[1]
    assert LIMIT_SHARES[read_shape(repository).parameters]["update"][0] * slow == pytest.approx(
        LIMIT_SHARES[read_shape(repository).parameters]["update"][1] * fast
    )


def test_other_cards_lose_the_host_seconds_of_the_h200_and_no_more():
    shape = read_shape(QWEN3_4B)
    lost = {}
    for card in ("NVIDIA H200", "NVIDIA L4"):
        fast, slow = forecast_seconds(shape, card, 16, 256, 512)["update"]
        lost[card] = slow - fast
        assert fast == pytest.approx(
            find_least_seconds(shape, {"operations": 0.8e12 * CARD_RATES[card][0], "bytes": 1}, 16, 512, 256, 512)[
                "update"
            ]
            / 0.38
        )
    assert lost["NVIDIA L4"] == pytest.approx(lost["NVIDIA H200"])


def test_between_the_measured_sizes_shares_lie_between_and_beyond_them_the_nearer_holds():
    middle, large, larger = (
        forecast_seconds(read_shape(name), "NVIDIA H200", 16, 256, 512)["update"]
        for name in ("Qwen/Qwen2.5-0.5B", QWEN3_4B, "Qwen/Qwen2.5-Math-7B")
    )
    assert larger[1] / larger[0] == pytest.approx(large[1] / large[0]) == pytest.approx(0.38 / 0.35)
    assert 0.38 / 0.35 < middle[1] / middle[0] < 0.15 / 0.11


@pytest.fixture
def describe_time(capsys, monkeypatch, tmp_path):
    """Return the lines about time that the command prints on a card."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])

    def explain(card, *arguments, model="qwen3_4b"):
        monkeypatch.setattr(memory, "find_memory_share", lambda device, processes: (139 * 2**30, f"the {card}"))
        configs = [f"--config={CONFIGS / 'base.yaml'}", f"--config={CONFIGS / 'models' / model}.yaml"]
        run_lightning_command(["explain", *configs, "--trainer.accelerator=cpu", *arguments])
        lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("time")]
        return [line.removeprefix("time").strip() for line in lines[starts[0] :]] if starts else []

    return explain


def test_explain_forecasts_step_and_run(describe_time):
    sizes = ("--model.sampling.max_tokens=512", "--model.validation={completions: 4, max_tokens: 512}")
    evaluated = ("--trainer.val_check_interval=40", "--data.init_args.validation_size=128")
    assert describe_time("NVIDIA H200", *sizes, *evaluated) == [
        "rollout 14 to 16 s, update 7.5 to 8.1 s on one NVIDIA H200, at full length",
        # 128 questions x 4 are two rollouts of 256, before the first step and after 40, 80 and 100:
        # 100 x (14.1 + 7.5) + 4 x 28.2 = 2,273 s, and 100 x (16.5 + 8.1) + 4 x 32.9 = 2,592 s
        "100 steps and 4 evaluations of 28 to 33 s: 0.6 to 0.7 hours, without judging",
        SHARE_NOTE,
    ]


def test_a_rollout_of_a_server_is_not_forecast(describe_time):
    lines = describe_time("NVIDIA H200", SERVER, "--model.sampling.max_tokens=512")
    assert lines == ["update 7.5 to 8.1 s on one NVIDIA H200; rollouts of VLLMServer: not known", SHARE_NOTE]


@pytest.mark.parametrize(
    ("card", "model", "arguments"),
    [
        ("NVIDIA GeForce RTX 3090", "qwen3_4b", []),
        ("NVIDIA H200", "qwen3_30b", []),
        ("NVIDIA H200", "qwen3_4b_4bit", []),
        ("NVIDIA H200", "qwen3_4b", ["--model.policy.dtype=float32"]),
        ("NVIDIA H200", "qwen3_4b", [ORACLE]),
        ("NVIDIA H200", "qwen3_4b", ["--model.policy.path=nobody/knows-this-model"]),
    ],
    ids=["card", "experts", "4 bits", "float32", "oracle", "sizes"],
)
def test_of_what_was_not_measured_no_time_is_said(describe_time, card, model, arguments):
    assert describe_time(card, *arguments, model=model) == []
