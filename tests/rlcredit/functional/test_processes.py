"""Two processes that hold half a batch each find what one finds that holds the whole."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.testing import assert_close

from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.grpo import GRPO
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.random_mask import RandomMask
from rlcredit.functional.gates import AdaptiveEta
from rlcredit.rollout import Rollout
from tests.conftest import make_rollout

REWARDS = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)


def stack():
    """Every operator that looks at the whole batch."""
    return [
        *(GRPO(), StrategicGrams(), BatchNormalization(), Delight(eta=AdaptiveEta())),
        *(VarianceLambda(decay=0.5, warmup=1, threshold=2.0), CorrectnessGate(threshold=0.2)),
        *(
            EntropyMask(rho=0.3),
            EntropyMask(rho=0.7, denominator="kept"),
            RandomPlanner(),
            HICRA(),
            RandomMask(rho=0.8),
        ),
    ]


def assigned(rollouts: list[Rollout]):
    """Credit and lambda after each of some rollouts."""
    operators, seen = stack(), []
    for step, rollout in enumerate(rollouts):
        rollout.step = step
        for operator in operators:
            operator.assign(rollout)
        seen.append((rollout.advantages, rollout.sepa_lambda))
    return seen


def half(rollout: Rollout, rank: int) -> Rollout:
    """One group of two, cut to the width of its longest completion."""
    rows = slice(4 * rank, 4 * rank + 4)
    width = int(rollout.mask[rows].sum(-1).max())
    part = {
        name: getattr(rollout, name)[rows, :width] for name in ("completion_ids", "mask", "old_logprobs", "entropy")
    }
    others = {"prompt_ids": rollout.prompt_ids[rows], "rewards": rollout.rewards[rows], "tokens": rollout.tokens[rows]}
    return Rollout(step=0, group_size=4, **part, **others)


def work(rank: int, store: str, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    seen = assigned([half(make_rollout(REWARDS, seed=seed), rank) for seed in (4, 5)])
    torch.save(seen, f"{out}/{rank}.pt")
    dist.destroy_process_group()


def test_statistics_of_the_batch_are_those_of_all_processes(tmp_path):
    mp.spawn(work, args=(str(tmp_path / "store"), str(tmp_path)), nprocs=2)
    parts = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    whole = assigned([make_rollout(REWARDS, seed=seed) for seed in (4, 5)])
    for step, (advantages, sepa_lambda) in enumerate(whole):
        for rank in (0, 1):
            theirs, their_lambda = parts[rank][step]
            assert_close(theirs, advantages[4 * rank : 4 * rank + 4, : theirs.shape[1]])
            assert their_lambda == sepa_lambda
    assert whole[0][1] == 0.0
    assert whole[1][1] > 0.0
