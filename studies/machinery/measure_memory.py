"""Compare the memory that ``rlcredit explain`` forecasts with what a run takes, phase by phase.

python -m studies.machinery.measure_memory --out studies/machinery/results/performance/memory.json
python -m studies.machinery.measure_memory --device cuda --models qwen3_0.6b qwen3_4b --out memory_cuda.json

Weights are random, prompts have the 512 tokens that the forecast assumes, and each configuration is a run of two steps
in a process of its own. Memory is measured above what the process took before the model was read, which is the row
``libraries``.

On the CPU it is the resident set (``VmHWM``), whose peak is reset before each phase. Two things would blur it:

- Pages of the model's file stay resident after the weights have been converted or cut into parts, until the kernel
  needs the memory. They are given back before each phase (``MADV_DONTNEED``); those that are read again count again.
- glibc raises the size from which blocks are returned at once, up to 32 MiB, and so keeps free blocks between used
  ones. Here that size is fixed at its first value, 128 KiB. ``--malloc default`` measures with what a run has.

On a GPU it is what torch has allocated; context and fragments come on top.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from benchmarks import print_columns, write_measurements
from lightning.pytorch import Callback, Trainer
from model_shapes import PUBLISHED_SHAPES, make_random_model
from short_runs import make_unlogged_trainer
from small_policies import save_as_policy
from torch import Tensor

from callbacks.dense.branches import Branches
from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.policy.model_loading import Precision, Quantization, load_tokenizer
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.preflight.memory import ASSUMED_PROMPT_TOKENS, estimate_memory
from rlcredit.tasks.example import Example
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule
from rlcredit.verification.verifiers import Verdict
from studies import ROOT

STEPS = 2
PHASES = ("weights", "rollout", "update")
DONTNEED = 4
"""Advice to ``madvise`` to give pages back, those of a file until they are read again."""


@dataclass(frozen=True)
class Measured:
    """A run whose memory is measured.

    Args:
        title: What it is, for the table.
        model: Name of a shape, see :data:`~model_shapes.MODEL_SHAPES`.
        prompts: Prompts in a step, P, of all processes together.
        completions: Completions of each, G.
        tokens: Tokens of each completion, T.
        micro: Completions at a time in the update; all if None.
        dtype: Precision of the frozen weights.
        quantization: Quantization of the frozen weights.
        processes: Processes that share the layers; one holds them whole.
        credited: Prompts whose completions have credit, so that updates end in time.
        forks: Forks of each completion, with two continuations.

    """

    title: str
    model: str
    prompts: int
    completions: int
    tokens: int
    micro: int | None = None
    dtype: Precision = "float32"
    quantization: Quantization | None = None
    processes: int = 1
    credited: int | None = None
    forks: int = 0


CPU_RUNS = {
    "decoding": Measured("float32, 48 completions drawn", "llama_70m", 6, 8, 32, micro=1, credited=2),
    "update": Measured("float32, 4 completions in one update", "qwen3_120m", 2, 2, 64),
    "micro": Measured("float32, 2 completions at a time", "qwen3_120m", 4, 2, 32, micro=2),
    "bfloat16": Measured("bfloat16, 1 completion at a time", "qwen3_120m", 2, 2, 64, micro=1, dtype="bfloat16"),
    "sharded": Measured("float32, layers in two processes", "qwen3_120m", 4, 2, 32, micro=1, processes=2),
    "4bit": Measured(
        "4-bit, bfloat16 arithmetic", "qwen3_120m", 2, 2, 32, micro=1, dtype="bfloat16", quantization="4bit"
    ),
    "branches": Measured("float32, 2 completions and 4 continuations", "qwen3_120m", 1, 2, 64, forks=1),
}


def list_gpu_runs(models: Sequence[str]) -> dict[str, Measured]:
    """Return the runs of a GPU: each model in bfloat16, once with many completions and once with a large update."""
    runs: dict[str, Measured] = {}
    for model in models:
        runs[f"{model}_decoding"] = Measured(
            "bfloat16, many completions", model, 16, 16, 256, micro=4, dtype="bfloat16", credited=1
        )
        runs[f"{model}_update"] = Measured("bfloat16, one update of all", model, 2, 4, 256, dtype="bfloat16")
        runs[f"{model}_4bit"] = Measured(
            "4-bit, bfloat16 arithmetic", model, 4, 8, 128, micro=4, dtype="bfloat16", quantization="4bit", credited=1
        )
    return runs


class HalfRight(Task):
    """Questions of as many tokens as the forecast assumes; every second completion of the first prompts is right."""

    def __init__(self, texts: list[str], credited: int, **more: Any) -> None:
        super().__init__(**more)
        self.texts, self.credited = texts, credited

    def examples(self) -> tuple[list[Example], list[Example]]:
        """Return the questions, and the first ones as held out."""
        examples = [Example(text, "1", {}) for text in self.texts]
        return examples[self.validation_size :], examples[: self.validation_size]

    def judge(self, completions: Sequence[str], examples: Sequence[Example]) -> list[Verdict]:
        """Judge by place alone."""
        group = sum(each is examples[0] for each in examples)
        right = [row % 2 == 0 and row // group < self.credited for row in range(len(examples))]
        return [Verdict.RIGHT if each else Verdict.WRONG for each in right]


class ForeignEngine(Engine):
    """Answers with random tokens of full length and holds nothing, as a server elsewhere does."""

    def sample(
        self, policy: Policy, prompt_ids: Tensor, prompts: Sequence[int], sampling: Sampling, *, seed: int, step: int
    ) -> Samples:
        """Answer every prompt with uniform tokens."""
        shape = len(prompt_ids) * sampling.completions, sampling.max_tokens
        ids = torch.randint(3, 300, shape, generator=torch.Generator().manual_seed(seed + step)).to(prompt_ids.device)
        logprobs = torch.full(shape, -8.0, device=ids.device)
        truncated = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        return Samples(ids, torch.ones_like(ids, dtype=torch.bool), logprobs, truncated)


class PeakRecorder(Callback):
    """Keep the peak of each phase, in bytes above what the process took before the model was read."""

    def __init__(self, device: str, file: Path) -> None:
        self.device, self.file = device, file
        self.before = 0
        self.peaks: dict[str, int] = {}

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Measure what is there before the model."""
        self.before = self.reset()
        pl_module.between_steps.append(lambda: self.reset() and None)

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Keep the peak while the model was read, and what it holds now that it is in its place."""
        self.record("load")
        used = self.reset() + count_mapped_bytes(pl_module, self.file)
        self.peaks["weights"] = used - self.before

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """End the phase in which completions are drawn, judged and credited."""
        self.record("rollout")

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End the update."""
        self.record("update")

    def record(self, phase: str) -> None:
        """Keep the peak since the phase began."""
        cuda = self.device == "cuda"
        peak = torch.cuda.max_memory_allocated() if cuda else _read_status("VmHWM")
        self.peaks[phase] = max(self.peaks.get(phase, 0), peak - self.before)
        self.reset()

    def reset(self) -> int:
        """Begin a phase; return the bytes that are taken now."""
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            return torch.cuda.memory_allocated()
        ctypes.CDLL(None).malloc_trim(0)
        for start, end in list_mappings(self.file):
            ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), DONTNEED)
        Path("/proc/self/clear_refs").write_text("5")
        return _read_status("VmRSS")


def list_mappings(file: Path) -> list[tuple[int, int]]:
    """Return the addresses at which a file is mapped into this process."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ends = [line[0].split("-") for line in lines if line[-1] == str(file)]
    return [(int(start, 16), int(end, 16)) for start, end in ends]


def count_mapped_bytes(module: PolicyModule, file: Path) -> int:
    """Return the bytes of a module's weights that lie where a file is mapped."""
    places = list_mappings(file)
    weights = {weight.data_ptr(): weight.nbytes for weight in module.parameters()}
    return sum(size for place, size in weights.items() if any(start <= place < end for start, end in places))


def _read_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def build_model(run: Measured, folder: Path, device: str) -> None:
    """Write a model of random weights, in the precision in which it will be read, with the embedded tokenizer."""
    save_as_policy(make_random_model(run.model, torch.device(device), run.dtype), folder)


def write_questions(folder: Path, number: int) -> list[str]:
    """Return different questions whose prompts have as many tokens as the forecast assumes, but for the last few."""
    policy, texts = Policy(str(folder)), []
    policy.tokenizer = load_tokenizer(str(folder))
    for count in range(number):
        text = f"{count} "
        while policy.encode_questions([text + "7 + "]).shape[1] <= ASSUMED_PROMPT_TOKENS:
            text += "7 + "
        texts.append(text)
    return texts


def make_run(run: Measured, folder: Path, device: str) -> tuple[Trainer, PolicyModule, Task, PeakRecorder]:
    """Return a trainer, a module that is not loaded, its task, and what records the peaks."""
    texts, credited = write_questions(folder, run.processes + STEPS * run.prompts), run.credited or run.prompts
    task = HalfRight(texts, credited, prompts_per_step=run.prompts, validation_batch=1, validation_size=run.processes)
    recorder = PeakRecorder(device, folder.resolve() / "model.safetensors")
    module = PolicyModule(
        policy=Policy(str(folder), LoRA(), run.dtype, run.quantization),
        sampling=Sampling(run.completions, run.tokens, 1.0),
        validation=Sampling(1, 1, 1.0),
        pass_k=1,
        engine=InProcessEngine() if run.processes == 1 else ForeignEngine(),
        optimizer=partial(torch.optim.AdamW, lr=1e-4),
        micro_batch_tokens=run.micro * (ASSUMED_PROMPT_TOKENS + run.tokens) if run.micro else "auto",
        sampler_tolerance=float("inf"),
        mismatch_cap=None,
    )
    # Micro-batches are made of completions of similar length. Without an operator only right completions have credit,
    # one of each prompt here, so that those computed together have different prompts, as in most runs.
    operators = [Branches(run.forks, 2, "entropy_rank")] if run.forks else [] if run.micro else [GRPO()]
    trainer = make_unlogged_trainer(
        STEPS,
        [*operators, recorder],
        accelerator="gpu" if device == "cuda" else "cpu",
        devices=run.processes,
        strategy="auto" if run.processes == 1 else "sharded_base",
        use_distributed_sampler=False,
        default_root_dir=folder,
    )
    return trainer, module, task, recorder


def load_libraries(run: Measured, device: str) -> None:
    """Import what models need, as ``rlcredit fit`` has done before it reads one, and multiply two large matrices."""
    warm = Policy(dtype=run.dtype, quantization=run.quantization)
    warm.load()
    warm.to(device)  # a GPU has its context and the work space of its libraries from here on
    ids = torch.full((1, 8), 5, device=device)
    warm.score_prompts(ids, ids).logprobs.sum().backward()
    square = torch.ones(1024, 1024, dtype=getattr(torch, run.dtype), device=device)
    torch.mm(square, square)


def measure_run(run: Measured, folder: Path, device: str) -> dict[str, Any]:
    """Train for two steps in this process; return forecast and peak of each phase in bytes."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    trainer, module, task, recorder = make_run(run, folder, device)
    found = estimate_memory(trainer, module, task)
    assert found is not None
    parts = found.way.forecast
    decoding = parts.weights + parts.logits + parts.cache
    update = parts.weights + parts.logits + parts.activations
    forecast = dict(zip(PHASES, (parts.weights, decoding, update), strict=True))
    load_libraries(run, device)
    trainer.fit(module, task)
    phases = {phase: {"forecast": forecast[phase], "measured": recorder.peaks[phase]} for phase in PHASES}
    return {**phases, "libraries": recorder.before, "load": recorder.peaks["load"]}


def start_measurement(
    name: str, run: Measured, folder: Path, device: str, threads: int, malloc: str = "exact"
) -> dict[str, Any]:
    """Build the model in one process and measure the run in another; return what it has found."""
    settings = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
    if malloc == "exact":
        returned = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
        settings |= {"MALLOC_ARENA_MAX": "1", **dict.fromkeys(returned, str(2**17))}
    for part in ("build", "measure"):
        command = [
            sys.executable,
            "-m",
            "studies.machinery.measure_memory",
            "--part",
            part,
            "--folder",
            str(folder),
            "--device",
            device,
        ]
        done = subprocess.run(
            [*command, "--run", json.dumps(asdict(run))],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr}")
    return json.loads((folder / "rank0.json").read_text())


def main() -> None:
    """Measure each run and print forecast, measured peak and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of some of the runs")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--models", nargs="+", choices=list(PUBLISHED_SHAPES), default=["qwen3_0.6b"], help="models on a GPU"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--malloc", choices=["exact", "default"], default="exact", help="how blocks are given back")
    parser.add_argument("--out", type=Path, help="a file that gets all values as JSON")
    parser.add_argument("--part", choices=["build", "measure"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    silence_libraries()
    if args.part == "build":
        build_model(Measured(**json.loads(args.run)), args.folder, args.device)
        return
    if args.part == "measure":
        found = measure_run(Measured(**json.loads(args.run)), args.folder, args.device)
        rank = os.environ.get("LOCAL_RANK", "0")
        (args.folder / f"rank{rank}.json").write_text(json.dumps(found))
        return
    runs = CPU_RUNS if args.device == "cpu" else list_gpu_runs(args.models)
    rows, results = [], {}
    for name in args.only or runs:
        with tempfile.TemporaryDirectory() as folder:
            found = start_measurement(name, runs[name], Path(folder), args.device, args.threads, args.malloc)
        results[name] = {"run": asdict(runs[name]), **found}
        for phase in PHASES:
            forecast, measured = (found[phase][side] for side in ("forecast", "measured"))
            sizes = {"forecast MiB": f"{forecast / 2**20:,.0f}", "measured MiB": f"{measured / 2**20:,.0f}"}
            rows.append({"run": name, "phase": phase, **sizes, "ratio": f"{forecast / measured:.2f}"})
            print(*rows[-1].values(), file=sys.stderr)
    print_columns(rows)
    write_measurements(args.out, memory=results)


if __name__ == "__main__":
    main()
