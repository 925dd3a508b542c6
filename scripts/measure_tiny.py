"""Measure the embedded policy before any training, on held-out questions: the figures in rlcredit/tiny/README.md.

python scripts/measure_tiny.py

"""

import argparse
from collections import Counter

import torch
from tiny_traces import CHAIN_SUM

from callbacks.planning.strategic_grams import PLANNING_PHRASES
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.spans import mask_from_spans, phrase_spans
from rlcredit.policy.policy import TINY, Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.verification.verifiers import Verdict


def strategic_share(rows: list[list[str]]) -> float:
    """Return the share of tokens that lie inside one of the 18 strategic phrases."""
    masks = [mask_from_spans(pieces, phrase_spans("".join(pieces), PLANNING_PHRASES)) for pieces in rows]
    return torch.cat(masks).float().mean().item()


def main() -> None:
    """Sample 16 completions for each held-out question and print what the organism is like."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default=TINY)
    parser.add_argument("--questions", type=int, default=1024)
    args = parser.parse_args()
    silence_libraries()
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=1, prompts_per_step=1, validation_size=args.questions)
    task.setup()
    policy = Policy(args.policy)
    policy.load()
    sampling = Sampling(completions=16)
    examples = task.held_out_set
    prompt_ids = policy.encode_questions([example.question for example in examples])
    samples = InProcessEngine(decode_batch_size=1024).sample(
        policy, prompt_ids, range(len(examples)), sampling, seed=0, step=0
    )
    rows = policy.decode_pieces(samples.completion_ids, samples.mask)
    verdicts = task.judge(["".join(row) for row in rows], [e for e in examples for _ in range(16)])
    right = torch.tensor([verdict is Verdict.RIGHT for verdict in verdicts]).float()
    solve_rates = right.view(-1, 16).mean(-1)
    print(f"{len(examples)} held-out questions x 16 completions, temperature {sampling.temperature}")
    print(f"pass@1                       {right.mean():.3f}")
    print(f"tokens in strategic phrases  {strategic_share(rows):.1%}")
    print(f"mean token entropy           {masked_mean(samples.entropy, samples.mask):.3f} nats")
    print(f"groups without variance      {((solve_rates == 0) | (solve_rates == 1)).float().mean():.1%}")
    print(f"mean length                  {samples.mask.sum(-1).float().mean():.1f} tokens")
    print(f"truncated                    {samples.truncated.float().mean():.2%}")
    openings = Counter(" ".join("".join(row).split()[:2]) for row in rows)
    print("opening        share   right")
    for opening, count in openings.most_common(4):
        has_opening = torch.tensor(["".join(row).startswith(opening) for row in rows])
        print(f"{opening:<14} {count / len(rows):5.1%}   {right[has_opening].mean():5.1%}")


if __name__ == "__main__":
    main()
