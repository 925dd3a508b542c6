import json

import torch

from callbacks.episode.grpo import GRPO
from callbacks.probes.top_tokens import TopTokens
from callbacks.tokens.gtpo import GTPO
from tests.conftest import make_rollout


def test_top_tokens_by_hand():
    rollout = make_rollout(rewards=(1.0, 0.0), group_size=2, width=6)
    rollout.mask = torch.tensor([[True] * 5 + [False], [True] * 3 + [False] * 3])
    rollout.old_logprobs = -torch.tensor([[0.1, 2.0, 0.3, 0.4, 0.5, 9.0], [0.6, 0.7, 3.0, 9.0, 9.0, 9.0]])
    advantages = torch.tensor([[0.5, 0.5, 0.9, 0.5, 0.5, 7.0], [-0.5, -1.0, -0.5, 7.0, 7.0, 7.0]])
    found = TopTokens(tokens=3).list_top_tokens(rollout, advantages)
    told = [(r["by"], r["rank"], r["advantage"], r["surprisal"], r["same_credit"]) for r in found]
    assert told == [
        ("credit", 1, -1.0, 0.7, 1),
        ("credit", 2, 0.9, 0.3, 1),
        ("credit", 3, -0.5, 3.0, 6),
        ("surprisal", 1, -0.5, 3.0, 6),
        ("surprisal", 2, 0.5, 2.0, 6),
        ("surprisal", 3, -1.0, 0.7, 1),
    ]
    assert found[1]["context"] == "let me« think»: 4+"
    assert [r["correct"] for r in found] == [0, 1, 0, 0, 1, 0]


def test_top_tokens_are_those_of_their_place_and_of_the_last_step(fit, tmp_path):
    fit(steps=3, stack=[GRPO(), TopTokens(every_n_steps=2), GTPO(beta=0.5), TopTokens(every_n_steps=2, tokens=5)])
    names = sorted(path.name for path in (tmp_path / "tokens").iterdir())
    assert names == sorted(f"TopTokens{n}_step_00000{step}.json" for n in ("", "_2") for step in (0, 2))
    above, below = (json.loads((tmp_path / "tokens" / name).read_text()) for name in names[::2][::-1])
    assert (len(above), len(below)) == (40, 10)
    assert all(record["same_credit"] > 5 for record in above[:20])
    assert below[0]["same_credit"] < 5
