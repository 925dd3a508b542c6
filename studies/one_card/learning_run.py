"""Pretrain a policy on synthetic traces on this card, then compare flat GRPO with rollouts that are used twice.

python -m studies.one_card.learning_run --out FOLDER
python -m studies.one_card.learning_run --out FOLDER --tiny        # on a CPU, in a minute or two, to see that it runs
python -m studies.one_card.learning_run --out FOLDER --runs RUNS --tabulate      # of runs that were cut

FOLDER gets ``pretraining.csv``, ``curves.csv`` and ``curves.png``, rewritten every few seconds, so that a call that is
cut leaves what there is. The policy has the sizes of ``llama_70m`` beside the embedded tokenizer, 60 M parameters. Its
traces are those of the embedded policy for chains of 4 to 10 terms, of which 30 % are right. The runs are those of
``campaigns/learning_run.yaml``: both spend the same number of decoded tokens.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import yaml
from benchmarks import print_columns
from model_shapes import make_random_model
from organism_traces import ORGANISM_RECIPES, lengthen_chains
from pretrain_tiny import generate_batches
from small_policies import save_as_policy

from rlcredit.base.plot_style import ACCENT_COLOUR, SECOND_COLOUR, create_figure, style_axes
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.policy.model_loading import find_fastest_device, load_tokenizer
from rlcredit.policy.policy import Policy
from studies.csv_rows import read_csv_rows, write_csv_rows

CAMPAIGN = Path(__file__).parent / "campaigns" / "learning_run.yaml"
TINY_SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY_SIZES |= {"num_key_value_heads": 2, "head_dim": 32}
TINY_SETTINGS = {
    **{"trainer.accelerator": "cpu", "model.sampling.max_tokens": 16, "model.validation.max_tokens": 16},
    **{"data.init_args.prompts_per_step": 2, "data.init_args.validation_size": 8, "model.sampling.completions": 4},
}
"""Sizes with which two updates of each condition take seconds on a CPU."""
TINY_TOKENS = 100
"""Decoded tokens of a run with these: one rollout, of which one condition makes two updates."""

CURVE_METRICS = {
    "decoded_tokens": "tokens/decoded",
    "backward_tokens": "tokens/backward",
    "reward": "train/reward",
    "rollout": "time/rollout",
    "update": "time/update",
    "gradient_norm": "train/gradient_norm",
    "ratio_max": "train/ratio_max",
    "pass_at_1": "val/pass_at_1",
}
"""Columns of ``curves.csv`` and the metrics that they hold."""


def pretrain_policy(args: argparse.Namespace) -> None:
    """Train a policy from nothing on traces and save it."""
    device, tokenizer = find_fastest_device(), load_tokenizer(Policy().location)
    organism = lengthen_chains(ORGANISM_RECIPES["aligned"], 4, 10)
    sizes = TINY_SIZES if args.tiny else {}
    model = make_random_model("llama_70m", device, "float32", vocab_size=len(tokenizer), **sizes).requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.pretraining, pct_start=0.1)
    start, rows = time.perf_counter(), []
    stream = generate_batches(tokenizer, args.batch, seed=1, organism=organism)
    batches = list(itertools.islice(stream, min(args.batches, args.pretraining)))
    for step, (ids, labels) in enumerate(itertools.islice(itertools.cycle(batches), args.pretraining)):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            inputs = {"input_ids": ids.to(device), "labels": labels.to(device)}
            loss = model(**inputs, num_items_in_batch=organism.tokens * args.batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step == args.pretraining - 1:
            rows.append({"step": step, "loss": f"{loss.item():.4f}", "seconds": f"{time.perf_counter() - start:.1f}"})
            write_csv_rows(args.out / "pretraining.csv", rows)
    save_as_policy(model, args.policy)


def write_declaration(args: argparse.Namespace) -> Path:
    """Write the campaign with the policy and the seeds of this call, and return its file."""
    content = yaml.safe_load(CAMPAIGN.read_text(encoding="utf-8"))
    content["settings"]["model.policy.path"] = str(args.policy)
    content["seeds"] = args.seeds
    content["budget"]["decoded_tokens"] = TINY_TOKENS if args.tiny else args.tokens
    if args.tiny:
        content["settings"] |= TINY_SETTINGS
        content["budget"]["evaluations"] = 1
    beside = str(CAMPAIGN.parents[1] / "conditions")  # where the declaration that is copied would find them
    for name, files in content["conditions"].items():
        content["conditions"][name] = [file.replace("configs/conditions/one_card", beside) for file in files]
    path = args.out / CAMPAIGN.name
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def run_campaign(args: argparse.Namespace) -> int:
    """Run all conditions one after the other, tabulate meanwhile, and return the exit status."""
    command = [sys.executable, "-m", "rlcredit", "campaign", str(write_declaration(args)), "--slots", "1"]
    with (args.out / "campaign.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen([*command, "--out", str(args.runs)], stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            time.sleep(5)
            tabulate_curves(args)
    return process.returncode


def tabulate_curves(args: argparse.Namespace) -> None:
    """Write the curves of all runs that have begun, as a table and as a picture."""
    records = sorted(args.runs.glob(f"{CAMPAIGN.stem}/*/seed*/record.jsonl"))
    if rows := [row for record in records for row in read_curve(record)]:
        write_csv_rows(args.out / "curves.csv", rows)
        draw_curves(rows, args.out / "curves.png")


def read_curve(record: Path) -> list[dict[str, Any]]:
    """Return a row for each line of a run's record that holds metrics: of an update, or of an evaluation after it.

    Args:
        record: File ``record.jsonl`` of a run, perhaps of one that is running.

    """
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    lines = [line for line in lines if "metrics" in line]
    condition, seed = record.parents[1].name, record.parent.name.removeprefix("seed")
    rows, tokens = [], 0.0
    for line in lines:
        metrics = line["metrics"]
        tokens = metrics.get("tokens/decoded", tokens)
        row = {"condition": condition, "seed": seed, "step": line["step"]}
        row["seconds"] = f"{(line['time'] - lines[0]['time']) / 1000:.1f}"
        row |= {column: metrics.get(name, "") for column, name in CURVE_METRICS.items()}
        rows.append(row | {"decoded_tokens": f"{tokens:.0f}"})
    return rows


def draw_curves(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw held-out pass@1 over decoded tokens and over seconds, a line for each run."""
    figure = create_figure(9, 3.4)
    panels = {"decoded_tokens": "Decoded tokens", "seconds": "Seconds"}
    colours = {"flat": SECOND_COLOUR, "twice": ACCENT_COLOUR}
    for axes, (column, label) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
        style_axes(axes, "pass@1, held out" if column == "decoded_tokens" else "")
        axes.set_xlabel(label)
        for (condition, _), run in split_runs(rows).items():
            evaluations = [row for row in run if row["pass_at_1"] != ""]
            places, shares = ([float(row[name]) for row in evaluations] for name in (column, "pass_at_1"))
            axes.plot(places, shares, color=colours[condition], label=condition)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def summarise_runs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each run: how often it was right before and after, and what it took."""
    summaries = []
    for (condition, seed), run in split_runs(rows).items():
        shares = [f"{float(row['pass_at_1']):.3f}" for row in run if row["pass_at_1"] != ""] or [""]
        updates = sum(row["update"] != "" for row in run)
        row = {"condition": condition, "seed": seed, "updates": updates, "before": shares[0], "after": shares[-1]}
        summaries.append(row | {name: run[-1][name] for name in ("seconds", "decoded_tokens")})
    return summaries


def split_runs(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the rows of each run, by condition and seed."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["condition"], row["seed"]), []).append(row)
    return runs


def parse_arguments() -> argparse.Namespace:
    """Return the settings of a call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables and the picture")
    parser.add_argument("--runs", type=Path, default=Path("campaigns/one_card"), help="folder of the runs")
    parser.add_argument("--policy", type=Path, default=Path("policies/one_card"), help="made if it is not there")
    parser.add_argument("--pretraining", type=int, default=2_000, help="steps of pretraining")
    parser.add_argument("--batches", type=int, default=320, help="steps whose traces are made; later ones repeat them")
    parser.add_argument("--batch", type=int, default=128, help="traces of a step of pretraining")
    parser.add_argument("--lr", type=float, default=6e-4, help="largest learning rate of pretraining")
    parser.add_argument("--seeds", type=int, nargs="+", default=[600])
    parser.add_argument("--tokens", type=int, default=2_000_000, help="decoded tokens of a run")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU, to see that it runs")
    parser.add_argument("--tabulate", action="store_true", help="only write the tables of runs that there are")
    return parser.parse_args()


def main() -> None:
    """Pretrain, run, and tabulate."""
    args = parse_arguments()
    silence_libraries()
    args.out.mkdir(parents=True, exist_ok=True)
    status = 0
    if not args.tabulate:
        if not (args.policy / "config.json").exists():
            pretrain_policy(args)
        status = run_campaign(args)
    tabulate_curves(args)
    print_columns(summarise_runs(read_csv_rows(args.out / "curves.csv")))
    sys.exit(status)


if __name__ == "__main__":
    main()
