"""Two processes that hold half a batch each find what one finds that holds the whole."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.testing import assert_close

from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.tracked_baseline import TrackedBaseline
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.entropy_collapse import EntropyCollapse
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.quadrant_mask import QuadrantMask
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.stare import STARE
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import token_uniforms
from rlcredit.formulas.gates import AdaptiveEta
from rlcredit.losses import SIS, TEPO, ClipCov, ImportanceSampling, KLCov, KLPenalty
from rlcredit.training.dynamic_sampling import sample_until_informative
from tests.conftest import make_rollout

REWARDS = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)


def stack():
    """Every operator that looks at the whole batch."""
    return [
        *(TrackedBaseline(rate=0.5), StrategicGrams(), BatchNormalization(), Delight(eta=AdaptiveEta())),
        *(VarianceLambda(decay=0.5, warmup=1, threshold=2.0), CorrectnessGate(threshold=0.2)),
        *(
            EntropyMask(rho=0.3),
            EntropyMask(rho=0.7, denominator="kept"),
            RandomPlanner(),
            HICRA(),
            RandomMask(rho=0.8),
        ),
        *(STARE(target=9.0, adapt=0.1, down=0.9), EntropyCollapse()),
        QuadrantMask(threshold="median", scope="batch", keep=("PHR", "NLR", "NHR")),
    ]


def assigned(rollouts: list[Rollout]):
    """Credit and lambda after each of some rollouts."""
    operators, seen = stack(), []
    for step, rollout in enumerate(rollouts):
        rollout.step = step
        for operator in operators:
            operator.assign(rollout)
        gradients = [gradient(loss, rollout) for loss in LOSSES]
        seen.append((rollout.advantages, rollout.sepa_lambda, gradients))
    return seen


LOSSES = [ImportanceSampling(), KLCov(share=0.2), ClipCov(share=0.2, window_low=0.001)]
LOSSES += [SIS(envelope=2.0), TEPO(1.0, 1.0, first_update="covariance", reference="ref"), KLPenalty()]


def gradient(loss, rollout: Rollout):
    """Of the loss with respect to log-probabilities that have moved a little."""
    logprobs = (0.9 * rollout.old_logprobs).requires_grad_()
    known = {
        "update": 0 if isinstance(loss, TEPO) else 1,
        "token_uniforms": token_uniforms(0, rollout.step, 7, rollout.mask.shape, rollout.group_size),
        "ref_logprobs": 1.1 * rollout.old_logprobs,
        "entropy": rollout.entropy,
        "old_entropy": rollout.entropy,
    }
    facts = {name: known[name] for name in loss.needs}
    loss(logprobs, rollout.old_logprobs, rollout.advantages, rollout.mask, **facts).backward()
    return logprobs.grad


def half(rollout: Rollout, rank: int) -> Rollout:
    """One group of two, cut to the width of its longest completion."""
    rows = slice(4 * rank, 4 * rank + 4)
    width = int(rollout.mask[rows].sum(-1).max())
    part = {
        name: getattr(rollout, name)[rows, :width] for name in ("completion_ids", "mask", "old_logprobs", "entropy")
    }
    others = {"prompt_ids": rollout.prompt_ids[rows], "correct": rollout.correct[rows], "tokens": rollout.tokens[rows]}
    return Rollout(step=0, group_size=4, **part, **others)


def asked(rank: int):
    """Rounds of one group of two; only the third teaches the second process something."""
    verdicts = [(1, 0), (1, 1), (1, 0)] if rank == 0 else [(0, 0), (1, 1), (0, 1)]
    return (make_rollout([float(v) for v in pair], group_size=2, seed=place) for place, pair in enumerate(verdicts))


def work(rank: int, store: str, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    seen = assigned([half(make_rollout(REWARDS, seed=seed), rank) for seed in (4, 5)])
    rollout, counted = sample_until_informative(asked(rank), prompts=1)
    torch.save((seen, rollout.correct.tolist(), counted), f"{out}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.slow
def test_statistics_of_the_batch_are_those_of_all_processes(tmp_path):
    mp.spawn(work, args=(str(tmp_path / "store"), str(tmp_path)), nprocs=2)
    parts, refills, counts = zip(*(torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)))
    assert refills == ([1, 0], [0, 1])
    assert [counted["sampling_rounds"] for counted in counts] == [3, 3]
    whole = assigned([make_rollout(REWARDS, seed=seed) for seed in (4, 5)])
    for step, (advantages, sepa_lambda, gradients) in enumerate(whole):
        for rank in (0, 1):
            theirs, their_lambda, their_gradients = parts[rank][step]
            rows, width = slice(4 * rank, 4 * rank + 4), theirs.shape[1]
            assert_close(theirs, advantages[rows, :width])
            assert their_lambda == sepa_lambda
            for mine, all_of_it in zip(their_gradients, gradients):
                assert_close(mine / 2, all_of_it[rows, :width])  # data-parallel training averages over processes
    assert all(each.any() for each in whole[0][2])
    assert whole[0][1] == 0.0
    assert whole[1][1] > 0.0
