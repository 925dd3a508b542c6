"""CPU seconds to answer prompts: the embedded engine, its two forward passes, and transformers' own generation.

python -m studies.machinery.bench_decode
python -m studies.machinery.bench_decode --grow   how both grow with completions, length, vocabulary and width

``fused`` is the default, ``transformers`` the model's own forward in our loop, ``generate`` and ``continuous`` are
``model.generate`` and ``model.generate_batch`` of the policy with its adapter; they return tokens and no entropy.

"""

import copy
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks import (
    format_median_and_range,
    make_benchmark_parser,
    measure_in_turns,
    print_columns,
    round_ratios,
    write_measurements,
)
from small_policies import load_with_random_adapter, save_as_policy
from tiny_traces import CHAIN_SUM
from torch import Tensor

from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.policy.policy import Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

PROMPTS, GROUP, LENGTH, TEMPERATURE = 8, 16, 128, 0.7


def make_bench_questions(number: int) -> list[str]:
    """Questions of the embedded policy's task."""
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=max(number, 64), validation_size=16, prompts_per_step=8)
    task.setup()
    return [example.text for example in list(task.train_set)[:number]]


def measure_cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def answer_by_generate(policy: Policy, prompt_ids: Tensor) -> Tensor:
    """Answer with ``model.generate``."""
    rows = prompt_ids.repeat_interleave(GROUP, 0)
    with torch.no_grad(), policy.evaluation_mode():
        return policy.lm.generate(
            input_ids=rows.clamp(min=0),
            attention_mask=policy.prompt_mask(rows).long(),
            do_sample=True,
            temperature=TEMPERATURE,
            top_k=0,
            top_p=1.0,
            max_new_tokens=LENGTH,
            pad_token_id=policy.tokenizer.pad_token_id,
        )


def answer_by_generate_batch(policy: Policy, prompt_ids: Tensor) -> Any:
    """Answer with ``model.generate_batch``."""
    config = copy.deepcopy(policy.lm.generation_config)
    config.update(do_sample=True, temperature=TEMPERATURE, top_k=0, top_p=1.0, max_new_tokens=LENGTH)
    prompts = [ids[mask].tolist() for ids, mask in zip(prompt_ids, policy.prompt_mask(prompt_ids), strict=True)]
    rows = [ids for ids in prompts for _ in range(GROUP)]
    with policy.evaluation_mode():
        answers = policy.lm.get_base_model().generate_batch(inputs=rows, generation_config=config)
    if len(answers) < len(rows):
        raise RuntimeError(f"{len(answers)} of {len(rows)} prompts were answered")
    return answers


def compare_decoders(rounds: int) -> dict[str, list[float]]:
    """Measure all sides on the prompts of one step."""
    policy = load_with_random_adapter(Policy())
    prompt_ids = policy.encode_questions(make_bench_questions(PROMPTS))
    sampling = Sampling(GROUP, LENGTH, TEMPERATURE)
    engines = {"fused": InProcessEngine(), "transformers": InProcessEngine(fused=False)}

    def ours(engine: InProcessEngine) -> Samples:
        return engine.sample(policy, prompt_ids, list(range(PROMPTS)), sampling, seed=0, step=0)

    sides: dict[str, Callable[[], Any]] = {name: lambda e=engine: ours(e) for name, engine in engines.items()}
    sides["generate"] = lambda: answer_by_generate(policy, prompt_ids)
    sides["continuous"] = lambda: answer_by_generate_batch(policy, prompt_ids)
    for name, side in list(sides.items()):
        try:
            side()  # once, to warm up
        except Exception as error:  # noqa: BLE001  (that a side cannot run is a result)
            print(f"{name} does not run here: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            del sides[name]
    return measure_in_turns({name: lambda s=side: measure_cpu_seconds(s) for name, side in sides.items()}, rounds)


def make_random_policy(folder: Path, vocabulary: int, width: int) -> Policy:
    """Write a policy of the embedded architecture with random weights, and load it."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415

    config: Any = AutoConfig.from_pretrained(Policy().location)
    config.vocab_size, config.hidden_size, config.intermediate_size = vocabulary, width, 3 * width
    config.head_dim = width // config.num_attention_heads
    return load_with_random_adapter(save_as_policy(AutoModelForCausalLM.from_config(config), folder))


def measure_rollout_and_update(policy: Policy, group: int, length: int) -> tuple[float, float]:
    """Return CPU seconds of a rollout in which nothing ends early, and of the update on it."""
    module = PolicyModule(policy, Sampling(group, length, TEMPERATURE))
    prompt_ids = policy.encode_questions(make_bench_questions(PROMPTS))
    rollouts: list[Samples] = []
    engine = InProcessEngine()
    policy.lm.generation_config.eos_token_id = [len(policy.head) - 1]

    def decode() -> None:
        rollouts.append(engine.sample(policy, prompt_ids, list(range(PROMPTS)), module.sampling, seed=0, step=0))

    decode()
    rollout_seconds = measure_cpu_seconds(decode)
    samples = rollouts[-1]
    rows = len(samples.mask)
    rollout = Rollout(
        step=0,
        group_size=group,
        prompt_ids=prompt_ids.repeat_interleave(group, 0),
        completion_ids=samples.completion_ids,
        mask=samples.mask,
        old_logprobs=samples.logprobs,
        entropy=samples.entropy,
        correct=(torch.arange(rows) % 3 == 0).float(),
        tokens=[[]] * rows,
    )
    rollout.advantages = (rollout.correct - 0.5)[:, None].expand(rollout.mask.shape)

    def update() -> None:
        scores = module(rollout)
        module.loss(scores.logprobs, rollout.old_logprobs, rollout.advantages, rollout.mask).backward()
        policy.lm.zero_grad()

    update()
    return rollout_seconds, measure_cpu_seconds(update)


GROWTH = {
    "completions a prompt": [(group, 64, 384, 64) for group in (4, 8, 16, 32)],
    "tokens a completion": [(8, length, 384, 64) for length in (32, 64, 128, 256)],
    "vocabulary": [(4, 32, vocabulary, 64) for vocabulary in (384, 4_096, 32_000, 151_936)],
    "width": [(4, 32, 384, width) for width in (64, 128, 256, 512)],
}


def measure_growth() -> list[dict[str, Any]]:
    """Measure a step of the embedded architecture as one of its sizes grows."""
    rows = []
    for name, sizes in GROWTH.items():
        for group, length, vocabulary, width in sizes:
            with tempfile.TemporaryDirectory() as folder:
                policy = make_random_policy(Path(folder), vocabulary, width)
                rollout, update = measure_rollout_and_update(policy, group, length)
            value = {"completions a prompt": group, "tokens a completion": length, "vocabulary": vocabulary}
            tokens = PROMPTS * group * length
            rows.append(
                {
                    "what grows": name,
                    "to": value.get(name, width),
                    "tokens": tokens,
                    "rollout, s": f"{rollout:.3f}",
                    "us a token": f"{1e6 * rollout / tokens:.0f}",
                    "update, s": f"{update:.3f}",
                    "us a token ": f"{1e6 * update / tokens:.0f}",
                }
            )
    return rows


def main() -> None:
    """Print a row per side."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--grow", action="store_true")
    args = parser.parse_args()
    silence_libraries()
    warnings.simplefilter("ignore")
    torch.set_num_threads(args.threads)
    if args.grow:
        rows = measure_growth()
        print_columns(rows)
        write_measurements(args.out, growth=rows)
        return
    seconds = compare_decoders(args.rounds)
    names = {
        "CPU seconds": lambda v: format_median_and_range(v),
        "of fused": lambda v: format_median_and_range(round_ratios(v, seconds["fused"]), 2),
    }
    print_columns([{"side": side} | {name: show(v) for name, show in names.items()} for side, v in seconds.items()])
    write_measurements(args.out, decode=seconds)


if __name__ == "__main__":
    main()
