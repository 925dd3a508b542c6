"""Angles between the gradients of credit operators: on the toy of the SEPA paper's table, and on a trained policy.

python -m studies.credit_patterns.replicate_gradient_table --toy
python -m studies.credit_patterns.replicate_gradient_table --seed 0      # the policy, about five minutes

The toy, rebuilt from its description: a transformer of random weights that is never trained, one prompt with sixteen
completions a batch, reward one for the likelier half of them, Adam moments that start at zero. The other setting is
the embedded policy in the course of a GRPO run: eight prompts with the success rates they have, warm moments, and
beside every angle the one between the gradients of independent batches.

"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM
from torch import Tensor, nn

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.probes.noise_floor import NoiseFloor
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.entropy import Entropy
from callbacks.signals.sepa import SEPA
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hard_delight import HardDelight
from callbacks.tokens.hicra import HICRA
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.formulas.gradient_vectors import vector_agreement
from rlcredit.formulas.masked import masked_mean
from rlcredit.tasks import ReasoningGym
from rlcredit.training.credit_gradients import predict_adam_step
from rlcredit.training.module import PolicyModule
from studies import csv_rows
from studies.credit_patterns.tabulate_gradients import render_policy_angle_table, render_toy_angle_table

VOCABULARY, END, PROMPT, LENGTH, GROUP, BATCHES = 64, 1, 5, 8, 16, 20


def make_compared_stacks() -> dict[str, list[CreditOperator]]:
    """Return the stacks that are compared with GRPO."""
    plan = [GRPO(), StrategicGrams()]
    return {
        "MaxRL": [MaxRL()],
        "GTPO 0.1": [GRPO(), GTPO()],
        "SEPA 1 + GTPO": [*plan, ConstantLambda(1.0), SEPA(), GTPO()],
        "HICRA": [*plan, HICRA()],
        "Delight": [GRPO(), Delight(eta=0.5, normalization="scale", blend=0.5)],
        "hard Delight 20 %": [GRPO(), HardDelight(keep=0.2)],
        "top 20 % entropy": [GRPO(), Entropy(), EntropyMask(rho=0.2)],
    }


class ToyTransformer(nn.Module):
    """A transformer of about 110 thousand random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, 64), nn.Embedding(32, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """Return log-probabilities of the next token at every place, ``(B, L, V)``."""
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        hidden = self.body(self.tokens(ids) + self.places(torch.arange(ids.shape[1])), mask=mask, is_causal=True)
        return self.head(hidden).log_softmax(-1)


def sample_toy_rollout(toy: ToyTransformer, generator: torch.Generator) -> Rollout:
    """Sample sixteen completions of one random prompt at temperature 0.8; the likelier half is right."""
    prompt = torch.randint(2, 12, (1, PROMPT), generator=generator).expand(GROUP, -1)
    ids, alive_now, mask = prompt, torch.ones(GROUP, dtype=torch.bool), []
    with torch.no_grad():
        for _ in range(LENGTH):
            token = (toy(ids)[:, -1] / 0.8).softmax(-1).multinomial(1, generator=generator)
            ids = torch.cat([ids, token], -1)
            mask.append(alive_now)
            alive_now = alive_now & (token[:, 0] != END)
        alive = torch.stack(mask, -1)
        log_p = toy(ids)[:, PROMPT - 1 : -1]
        logprobs = log_p.gather(-1, ids[:, PROMPT:, None])[..., 0].where(alive, 0)
    total = logprobs.sum(-1)
    right = (total >= total.sort().values[GROUP // 2]).float()
    entropy = -(log_p.exp() * log_p).sum(-1)
    tokens = [["x"] * int(length) for length in alive.sum(-1)]
    return Rollout(0, GROUP, prompt, ids[:, PROMPT:], alive, logprobs, entropy, right, tokens)


def toy_gradient(toy: ToyTransformer, rollout: Rollout, advantages: Tensor) -> dict[str, Tensor]:
    """Return the gradient of the mean over completions of the mean over tokens, without a ratio."""
    log_p = toy(torch.cat([rollout.prompt_ids, rollout.completion_ids], -1))[:, PROMPT - 1 : -1]
    logprobs = log_p.gather(-1, rollout.completion_ids[..., None])[..., 0]
    loss = -masked_mean(advantages * logprobs, rollout.mask, dim=-1).mean()
    names, weights = zip(*toy.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def measure_toy_angles() -> Iterator[dict[str, str]]:
    """Yield what every batch says of every stack: cosines with GRPO, moments kept per stack and cold at first."""
    torch.manual_seed(42)
    toy, generator = ToyTransformer(), torch.Generator().manual_seed(42)
    compared_stacks = {"GRPO": [GRPO()], **make_compared_stacks()}
    optimizers = {
        name: torch.optim.Adam([nn.Parameter(w.detach().clone()) for w in toy.parameters()]) for name in compared_stacks
    }
    for batch in range(BATCHES):
        rollout, by_stack = sample_toy_rollout(toy, generator), {}
        for name, stack in compared_stacks.items():
            ledger = CreditStack(stack).assign(rollout)
            raw = toy_gradient(toy, rollout, ledger.advantages)
            weights = optimizers[name].param_groups[0]["params"]
            names = dict(zip(weights, raw, strict=True))
            step = predict_adam_step(optimizers[name], raw, names).change
            for weight in weights:
                weight.grad = raw[names[weight]]
            optimizers[name].step()
            deviation = (ledger.advantages - masked_mean(ledger.advantages, ledger.mask, dim=-1, keepdim=True)) ** 2
            by_stack[name] = (raw, step, masked_mean(deviation, ledger.mask).sqrt().item())
        for name in make_compared_stacks():
            raw, adam = (vector_agreement(by_stack[name][kind], by_stack["GRPO"][kind])["cosine"] for kind in (0, 1))
            found = {"raw_cosine": raw, "adam_cosine": adam, "deviation_within": by_stack[name][2]}
            yield {"stack": name, "batch": str(batch), **{key: f"{value:.6g}" for key, value in found.items()}}


def measure_policy_angles(steps: int, every: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield what every measured step says: angles on the embedded policy while GRPO trains it, and the noise floor."""
    seed_everything(seed, verbose=False)
    probe, floor = CounterfactualProbe(make_compared_stacks(), every), NoiseFloor(every)
    collector = ProbeMetricCollector(probe, floor)
    module = PolicyModule(optimizer=partial(torch.optim.AdamW, lr=5e-4, weight_decay=0.0), seed=seed)
    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=8, seed=seed)
    train_unlogged(module, task, steps, [GRPO(), probe, floor, collector], gradient_clip_val=1.0)
    for place, metrics in enumerate(collector.found[1:], start=1):  # the first has cold moments
        for name, value in sorted(metrics.items()):
            if "_vs_" not in name or name.startswith("this_stack_vs_"):
                yield {"seed": str(seed), "step": str(place * every), "quantity": name, "value": f"{value:.6g}"}


class ProbeMetricCollector(Callback):
    """Keep the last metrics of two probes above it."""

    def __init__(self, probe: CounterfactualProbe, floor: NoiseFloor) -> None:
        self.probes, self.found = (probe, floor), []

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Copy."""
        probe, floor = self.probes
        if trainer.global_step % probe.every_n_steps == 0:
            self.found.append({**probe.last, **floor.last})


def main() -> None:
    """Print a table, and append what it was made of to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="the toy, not the policy")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="CSV file to which the values are appended")
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(args.threads)
    rows = list(measure_toy_angles() if args.toy else measure_policy_angles(args.steps, args.every, args.seed))
    if args.out is not None:
        csv_rows.append_csv_rows(args.out, rows)
    print(render_toy_angle_table(rows) if args.toy else render_policy_angle_table(rows))


if __name__ == "__main__":
    main()
