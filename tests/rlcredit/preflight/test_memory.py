"""What will not fit is refused before anything is loaded, and said beforehand where it is not certain."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch.strategies import SingleDeviceStrategy

from rlcredit.cli.application import run_lightning_command
from rlcredit.policy import memory as memory_sizes
from rlcredit.policy.policy import Policy
from rlcredit.preflight import memory
from rlcredit.training import micro_batches

CONFIGS = Path(__file__).parents[3] / "configs"
TINY = CONFIGS / "tiny.yaml"
EMBEDDED = Path(Policy().location)
GIB = 2**30
SERVER = "--model.engine=VLLMServer(url='http://127.0.0.1:1')"
ORACLE = "--config={trainer: {callbacks: [{class_path: MonteCarloCredit, init_args: {samples: 2}}]}}"
LOOKAHEAD = "--config={trainer: {callbacks: [GRPO, HeadCritic, ExpectedGradient]}}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])


@pytest.fixture
def machine(monkeypatch):
    """Give this machine, or its GPU, so many bytes."""

    def sized(there, where="this machine"):
        for module in (memory, micro_batches):
            monkeypatch.setattr(module, "find_memory_share", lambda device, processes: (there, where))

    return sized


SIZES = ("--model.engine=InProcessEngine(decode_batch_size=128)",)


def model(name):
    configs = [f"--config={CONFIGS / 'base.yaml'}", f"--config={CONFIGS / 'models' / name}"]
    return [*configs, "--trainer.accelerator=cpu", *SIZES]


def said(capsys, *arguments):
    """Return the part about memory."""
    run_lightning_command(["explain", *map(str, arguments)])
    lines = capsys.readouterr().out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("memory"))
    return lines[start : lines.index("", start)]


def refused(capsys, command, *arguments):
    with pytest.raises(SystemExit) as stop:
        run_lightning_command([command, *map(str, arguments)])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("command", ["explain", "fit", "validate"])
def test_thirty_billion_weights_do_not_fit_into_24_gib(command, machine, capsys, tmp_path):
    machine(24 * GIB)
    (tmp_path / "q.yaml").write_text("data: {class_path: Records, init_args: {path: q.jsonl, prompts_per_step: 1}}")
    (tmp_path / "q.jsonl").write_text("".join(f'{{"prompt": "1 + {n}", "answer": {n + 1}}}\n' for n in range(60)))
    data = [] if command == "explain" else ["--config=q.yaml"]
    error = refused(capsys, command, *model("qwen3_30b.yaml"), *data)
    assert "Qwen/Qwen3-30B-A3B-Instruct-2507 takes at least 5" in error
    assert "(30,532,122,624 weights in bfloat16: 56.9 GiB; 53,477,376 of the adapter" in error
    # Experts stay as they are in 4 bits. In parts they fit, but one prompt is not shared among processes.
    shared = "--trainer.strategy=sharded_base --trainer.devices=4 with completions from a server"
    repair = f"Hold the weights in parts ({shared}), or use" if command == "explain" else "Use"
    assert f"and this machine has 24.0 GiB. {repair} a smaller model or a larger machine." in error
    assert {path.name for path in tmp_path.iterdir()} == {"q.jsonl", "q.yaml"}


def test_a_model_that_fits_in_fewer_bits_is_refused_with_the_setting(machine, capsys):
    machine(12 * GIB)
    error = refused(capsys, "explain", *model("qwen3_4b.yaml"), "--model.policy.dtype=float32")
    assert "4,022,468,096 weights in float32: 15.0 GiB; " in error
    shared = "--trainer.strategy=sharded_base --trainer.devices={} with completions from a server"
    few = "model.policy.dtype: bfloat16 or model.policy.quantization: 4bit"
    assert f"Hold the weights in fewer bits or in parts ({few} or {shared.format(4)}), or use a smaller model" in error
    machine(6 * GIB)
    error = refused(capsys, "explain", *model("qwen3_4b.yaml"), "--data.init_args.prompts_per_step=1")
    assert "Hold the weights in fewer bits (model.policy.quantization: 4bit), or use" in error


def test_the_ways_to_hold_the_weights_stand_below_each_other_with_their_settings(machine, capsys):
    machine(19 * GIB)
    small = ["--model.micro_batch_tokens=50", "--model.sampling.max_tokens=64", "--model.validation.max_tokens=64"]
    small += ["--model.engine.init_args.decode_batch_size=16"]
    whole, few, parts = said(capsys, *model("qwen3_4b.yaml"), *small)[-3:]
    assert whole.split()[-3:] == ["fits", "in", "use"]
    assert few.endswith("fits          model.policy.quantization: 4bit")
    ending = "--trainer.strategy=sharded_base --trainer.devices=2 with completions from a server"
    assert parts.endswith(f"fits          {ending}")
    assert len({line.index("fits") for line in (whole, few, parts)}) == 1
    sizes = [float(line.split()[2]) for line in (whole, few, parts)]
    assert 7.5 + 2.0 < sizes[0] < 19  # weights; the adapter of rank 64 with gradients and moments
    saved = 2 - memory_sizes.QUANTIZED_BYTES["4bit"]
    assert sizes[0] - sizes[1] == pytest.approx(3_633_315_840 * saved / GIB, abs=0.3)
    few = said(capsys, *model("qwen3_4b.yaml"), *small, "--model.policy.quantization=4bit")[-3:]
    assert few[1].endswith("in use")
    assert few[0].endswith("--model.policy.quantization=null")


def test_a_way_that_may_not_fit_is_told_with_the_share_of_each_process(monkeypatch, capsys):
    monkeypatch.setattr(memory_sizes, "read_machine_memory", lambda: int(1.5 * GIB))
    whole, _, parts = said(capsys, f"--config={TINY}")[-3:]
    assert " of 1.5 GiB " in whole
    assert whole.endswith("fits          in use")
    assert " of 768.0 MiB in each of 2 processes  may not fit " in parts
    taken = float(parts.partition("about")[2].split()[0])
    assert 768 < taken < 1024  # MiB: less than the whole, and more than half of the machine


def test_weights_that_leave_no_room_for_libraries_do_not_fit(machine, capsys):
    machine(int(9.8 * GIB))  # weights and adapter take 9.5
    error = refused(capsys, "explain", *model("qwen3_4b.yaml"))
    assert "takes at least 10.0 GiB (" in error
    assert "; libraries: 540.0 MiB), and this machine has 9.8 GiB. Hold the weights in fewer bits or in parts" in error


def test_of_ways_that_all_fit_with_ease_nothing_is_said(machine, capsys):
    machine(8 * GIB)
    assert said(capsys, f"--config={TINY}")[-1].endswith("this machine has 8.0 GiB")


def test_continuations_that_are_trained_on_are_rows_of_the_update(machine, capsys):
    machine(64 * GIB)
    stack = "--config={trainer: {callbacks: [{class_path: Branches, init_args: {forks: 2, width: 3}}]}}"
    lines = said(capsys, f"--config={TINY}", stack, "--data.init_args.validation_batch=1")
    assert "update of 573,440 tokens" in lines[2]  # 8 x 16, each with 2 x 3, of 512 + 128 tokens
    assert lines[1].strip().startswith("decoding 128 continuations at a time, 512 (assumed) + 256 tokens")
    stack = stack.replace("forks: 2, width: 3", "samples: 2, cuts: sentence, train: equal").replace(
        "Branches", "MonteCarloCredit"
    )
    assert "update of at least 81,920 tokens" in said(capsys, f"--config={TINY}", stack)[2]


def test_of_a_mixture_of_experts_the_adapted_weights_are_said(machine, capsys):
    machine(999 * GIB)
    run_lightning_command(["explain", *model("qwen3_30b.yaml")])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("adapter")]
    assert line == (
        "adapter    on 192 linear layers with 905,969,664 of 30,532,122,624 weights; none on the 48 routers and their "
        "128 experts each, which are stacked"
    )


def test_what_may_not_fit_is_said_and_not_refused(machine, capsys):
    machine(40 * GIB, "the GPU")
    few = "--model.engine.init_args.decode_batch_size=4"
    *_, most, advice, _, _, _ = said(capsys, *model("qwen3_4b.yaml"), few, "--model.sampling.max_tokens=99999")
    assert most.endswith("the GPU has 40.0 GiB")
    assert advice.strip().startswith("it may not fit: lower model.engine.init_args.decode_batch_size or max_tokens of")
    advice = said(capsys, *model("qwen3_4b.yaml"))[-4]
    assert advice.strip().startswith("it may not fit: lower model.engine.init_args.decode_batch_size")
    assert "it may not fit" not in said(capsys, f"--config={TINY}")[-1]


def test_the_parts_of_the_embedded_policy(machine, capsys):
    machine(8 * GIB)
    assert said(capsys, f"--config={TINY}", "--model.micro_batch_tokens=2560") == [
        "memory     172,576 weights in float32: 0.7 MiB; 58,368 of the adapter with gradients and moments: 0.9 MiB",
        "           decoding 256 completions at a time, 512 (assumed) + 128 tokens: keys, values and weights merged "
        "with the adapter 120.6 MiB",
        "           update of 81,920 tokens, 2,560 at a time: activations 16.7 MiB",
        "           about 710.1 MiB at once, give or take 30%, with logits 48.0 MiB and libraries 540.0 MiB; "
        "this machine has 8.0 GiB",
    ]


def test_an_engine_elsewhere_has_its_own_memory(machine, capsys):
    machine(8 * GIB)
    line = said(capsys, f"--config={TINY}", SERVER)[1].strip()
    assert line.startswith("decoding by VLLMServer, whose memory is its own; scoring what it has drawn ")


def test_auto_is_as_many_tokens_as_the_machine_holds(machine, capsys, monkeypatch):
    machine(8 * GIB)
    assert said(capsys, f"--config={TINY}")[2].strip().startswith("update of 81,920 tokens, 81,920 at a time: ")
    machine(1.5 * GIB)
    part = said(capsys, f"--config={TINY}")[2].strip()
    assert part.startswith("update of 81,920 tokens, 81,920 at a time: activations 534.0 MiB")
    machine(GIB)
    assert said(capsys, f"--config={TINY}")[2].strip().startswith("update of 81,920 tokens, 60,")
    monkeypatch.setattr(SingleDeviceStrategy, "root_device", property(lambda strategy: torch.device("cuda")))
    machine(80 * GIB)
    line = said(capsys, *model("qwen3_4b.yaml"), "--model.sampling.max_tokens=512")[2].strip()
    assert line.startswith("update of 139,264 tokens, 9,905 at a time: activations 45.4 GiB")


@pytest.mark.parametrize(
    "change",
    [
        [ORACLE],
        [LOOKAHEAD],
        ["--data.init_args.validation_size=1"],
        ["--data.init_args.prompts_per_step=4", "--model.minibatches=4", "--model.updates_per_rollout=4"],
    ],
    ids=["oracle", "lookahead", "one question", "mini-batches"],
)
def test_layers_in_parts_are_not_offered_where_setup_would_refuse_them(change, machine, capsys):
    machine(19 * GIB)
    assert "sharded_base" in "".join(said(capsys, *model("qwen3_4b.yaml")))
    assert "sharded_base" not in "".join(said(capsys, *model("qwen3_4b.yaml"), *change))


def test_an_adapter_that_is_merged_into_packed_weights_is_neither_offered_nor_taken(machine, capsys):
    machine(19 * GIB)
    merge = "--model.engine.init_args.merge=true"
    assert "4bit" not in "".join(said(capsys, *model("qwen3_4b.yaml"), merge))
    error = refused(capsys, "explain", *model("qwen3_4b.yaml"), merge, "--model.policy.quantization=4bit")
    assert "model.engine: merge adds the adapter into the weights, and those in 4bit are packed." in error


def test_few_held_out_questions_are_few_rows(machine, capsys):
    machine(64 * GIB)
    few = ("--data.init_args.validation_size=1", "--data.init_args.prompts_per_step=2")
    assert "decoding 32 completions at a time" in said(capsys, f"--config={TINY}", *few)[1]  # 16 of each prompt


def test_where_a_server_decodes_no_batch_of_an_engine_is_to_be_lowered(machine, capsys):
    machine(12 * GIB)
    small = ("--model.micro_batch_tokens=auto", "--model.sampling={completions: 2, max_tokens: 16}")
    small += ("--data.init_args.prompts_per_step=1", "--data.init_args.validation_batch=512")
    lines = said(capsys, *model("qwen3_4b.yaml"), SERVER, *small)
    (advice,) = [line.strip() for line in lines if "it may not fit" in line]
    assert advice.endswith(": lower model.micro_batch_tokens or max_tokens of model.sampling and model.validation.")


def test_states_that_a_critic_reads_are_kept(machine, capsys):
    machine(64 * GIB)
    flat = ("--config={trainer: {callbacks: [GRPO]}}", "--data.init_args.validation_size=1")
    critic = ("--config={trainer: {callbacks: [HeadCritic, {class_path: GAE}]}}", flat[1])
    without, kept = (said(capsys, f"--config={TINY}", *change) for change in (flat, critic))
    states = 128 * 128 * 64 * 4 / 2**20  # 128 completions of 128 tokens, 64 numbers of four bytes
    for line, copies in ((1, 3), (2, 1)):
        sizes = [sum(float(size) for size in re.findall(r"([\d.]+) MiB", lines[line])) for lines in (without, kept)]
        assert sizes[1] - sizes[0] == pytest.approx(copies * states, abs=0.3)


def test_of_what_is_in_no_reach_nothing_is_said_or_refused(machine, capsys):
    machine(1)
    assert said(capsys, f"--config={TINY}", "--model.policy.path=nobody/knows-this-model") == [
        "memory     not known: the sizes of nobody/knows-this-model are neither listed nor downloaded"
    ]


def test_of_an_unknown_architecture_the_weights_alone_decide(machine, capsys, tmp_path):
    folder = tmp_path / "another"
    folder.mkdir()
    shutil.copy(EMBEDDED / "model.safetensors", folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "another"}))
    machine(2 * GIB)
    lines = said(capsys, f"--config={TINY}", f"--model.policy.path={folder}")
    assert "172,576 weights, at least 0.7 MiB; what else it takes is not known" in lines[0]
    machine(1000)
    assert "takes at least 540.7 MiB" in refused(capsys, "explain", f"--config={TINY}", f"--model.policy.path={folder}")


def test_explain_names_the_layers_that_can_get_an_adapter(capsys):
    error = refused(capsys, "explain", *model("qwen3_0.6b.yaml"), "--model.policy.lora.targets=[q_proj, query]")
    assert "model.policy.lora.targets: no linear layer is called 'query'. There are down_proj, gate_proj, k_p" in error


@pytest.mark.slow
def test_explain_does_not_import_the_models():
    code = (
        "import sys; from rlcredit.cli.application import run_lightning_command; run_lightning_command(); "
        "assert not [name for name in sys.modules if name.startswith('transformers.models.qwen')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "explain", *model("qwen3_0.6b.yaml")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_processes_on_one_machine_share_its_memory():
    whole, where = memory.find_memory_share(torch.device("cpu"), 1)
    assert memory.find_memory_share(torch.device("cpu"), 4) == (whole // 4, "each of 4 processes of this machine")
    assert where == "this machine"
