"""On an accelerator: every condition trains, and what is computed is what the processor computes."""

import math
import warnings

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from small_policies import load_with_random_adapter

from callbacks import StackWarning
from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.gae import GAE
from callbacks.episode.grpo import GRPO
from rlcredit.decoding import in_process
from rlcredit.decoding.decoding_loop import TokenSampler
from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.decoding.graphed_forward import STOP_INTERVAL, GraphedForward
from rlcredit.decoding.in_process import InProcessEngine, has_matching_fused_forward
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.packed_forward import find_packed_forward
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PADDING
from tests.contracts.test_conditions import condition
from tests.shipped_conditions import CASES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator here"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CUDA = {"accelerator": "gpu", "devices": 1}


def load_on_device(device="cuda", **settings):
    policy = load_with_random_adapter(Policy(**settings))
    return policy.to(device)


@pytest.mark.parametrize("path", CASES)
def test_every_condition_trains_on_an_accelerator(path, fit):
    described = condition(path)
    how = {
        name: value
        for name, value in vars(described.model).items()
        if name not in ("optimizer", "sampling") and value is not None
    }
    steps = max(2, 2 * described.model.updates_per_rollout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StackWarning)
        run = fit(steps=steps, stack=described.trainer.callbacks, prompts=4, max_tokens=32, **how, **CUDA)
    assert len(run.history) == steps
    assert all(math.isfinite(value) for step in run.history for value in step.values())


def test_tokens_are_those_of_the_processor_but_for_ties_of_rounding():
    prompts = ["12 + 7 =", "3 - 40 + 8 ="]
    sampled = {}
    for device in ("cpu", "cuda"):
        policy = load_on_device(device)
        ids = policy.encode_questions(prompts).to(device)
        sampled[device] = InProcessEngine().sample(policy, ids, [0, 1], Sampling(16, 48), seed=0, step=0)
    both = min(sampled["cpu"].completion_ids.shape[1], sampled["cuda"].completion_ids.shape[1])
    same = (sampled["cpu"].completion_ids[:, :both] == sampled["cuda"].completion_ids.cpu()[:, :both]).all(-1)
    assert same.float().mean() >= 0.9
    torch.testing.assert_close(
        sampled["cpu"].logprobs[same, :both], sampled["cuda"].logprobs.cpu()[same, :both], atol=1e-4, rtol=0
    )


def test_scores_and_gradients_are_those_of_the_processor():
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, 100, (6, 20), generator=generator)
    gradients, scores = {}, {}
    for device in ("cpu", "cuda"):
        policy = load_on_device(device)
        prompts = policy.encode_questions(["12 + 7 ="] * 6).to(device)
        scored = policy.score_prompts(prompts, ids.to(device), 0.7)
        (scored.logprobs * torch.linspace(-1, 1, 20, device=device)).sum().backward()
        scores[device] = scored.logprobs.detach().cpu()
        gradients[device] = torch.cat(
            [weight.grad.flatten().cpu() for weight in policy.parameters() if weight.grad is not None]
        )
    torch.testing.assert_close(scores["cuda"], scores["cpu"], atol=1e-4, rtol=0)
    difference = (gradients["cuda"] - gradients["cpu"]).norm() / gradients["cpu"].norm()
    assert difference < 1e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_pass_of_few_operations_is_the_models_own(dtype):
    policy = load_on_device(dtype=dtype)
    with torch.no_grad(), policy.evaluation_mode():
        assert has_matching_fused_forward(policy)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 5e-2)])
def test_a_recorded_graph_is_the_pass_itself(dtype, tolerance):
    policy = load_on_device(dtype=dtype)
    ids = torch.randint(3, 100, (4, 160), generator=torch.Generator().manual_seed(0)).cuda()
    ids[1, :5] = PADDING
    of = torch.arange(4, device="cuda").repeat_interleave(8)
    tokens = torch.randint(3, 100, (140, 32), generator=torch.Generator().manual_seed(1)).cuda()
    kept = torch.arange(0, 32, 2, device="cuda")
    with torch.no_grad(), policy.evaluation_mode():
        plain, graphed = FusedForward(policy), GraphedForward(policy)
        for reader in (plain, graphed):
            reader.read_contexts(ids[:, :16], of, 140)
        for place, drawn in enumerate(tokens):  # 16 + 140 tokens: two blocks of keys
            if place == 70:
                plain.keep_rows(kept)
                graphed.keep_rows(kept)
            drawn = drawn if place < 70 else drawn[kept]
            expected, actual = (reader.append_tokens(drawn).float() for reader in (plain, graphed))
            assert (actual - expected).norm() <= tolerance * expected.norm(), place


def read_two_prompts(policy, reader_type, room):
    """Return a reader of two prompts of 16 tokens, with 16 rows each, and a sampler of the policy."""
    ids = torch.randint(3, 100, (2, 16), generator=torch.Generator().manual_seed(0)).cuda()
    reader = reader_type(policy)
    reader.read_contexts(ids, torch.arange(2, device="cuda").repeat_interleave(16), room)
    return reader, TokenSampler(policy.head, 0.7, policy.stop_ids)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_recorded_graph_draws_the_tokens_of_the_pass_itself(autocast):
    policy = load_on_device(dtype="bfloat16" if autocast else "float32")
    noise = torch.rand(32, 140, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).cuda()
    tokens = torch.full((32,), 5, device="cuda")
    with torch.no_grad(), policy.evaluation_mode(), torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        (plain, draw), (graphed, _) = (read_two_prompts(policy, each, 140) for each in (FusedForward, GraphedForward))
        for part in noise.split(STOP_INTERVAL, -1):  # 16 + 140 tokens: two blocks of keys
            expected, actual = (reader.draw_tokens(draw, tokens, part) for reader in (plain, graphed))
            same = (expected[1] == actual[1]).cumprod(0).bool()  # up to the first draw at the edge of two tokens
            assert same.float().mean() > (0.5 if autocast else 0.95)
            difference = (expected[2] - actual[2]).abs().amax(1)[same]
            assert difference.max() < (0.3 if autocast else 1e-3)
            tokens = expected[1][-1]
            if not torch.equal(expected[1], actual[1]):
                break  # from here on the caches are those of other tokens


def test_nothing_waits_for_the_accelerator_between_two_looks_for_ended_rows():
    policy = load_on_device(dtype="bfloat16")
    noise = torch.rand(32, 3 * STOP_INTERVAL, dtype=torch.float64, device="cuda")
    tokens = torch.full((32,), 5, device="cuda")
    with torch.no_grad(), policy.evaluation_mode(), torch.autocast("cuda", torch.bfloat16):
        reader, draw = read_two_prompts(policy, GraphedForward, 3 * STOP_INTERVAL)
        reader.draw_tokens(draw, tokens, noise[:, :STOP_INTERVAL])  # records the graph
        torch.cuda.set_sync_debug_mode("error")
        try:
            for start in (STOP_INTERVAL, 2 * STOP_INTERVAL):
                reader.draw_tokens(draw, tokens, noise[:, start : start + STOP_INTERVAL])
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_completions_are_the_same_in_as_many_parts_as_memory_asks_for(monkeypatch):
    policy = load_on_device()
    ids = policy.encode_questions(["12 + 7 =", "3 - 40 + 8 ="]).cuda()
    request = (policy, ids, [0, 1], Sampling(32, 48))
    whole = InProcessEngine().sample(*request, seed=0, step=0)
    monkeypatch.setattr(in_process, "find_free_bytes", lambda device: 1e6)
    cut = InProcessEngine().sample(*request, seed=0, step=0)
    width = min(whole.mask.shape[1], cut.mask.shape[1])
    same = (whole.completion_ids[:, :width] == cut.completion_ids[:, :width]).all(-1)
    assert same.float().mean() >= 0.9


@pytest.mark.parametrize("size", [120, 400])
def test_micro_batches_change_no_gradient_but_by_rounding(size, fit):
    whole, cut = (fit(steps=1, micro_batch_tokens=each, **CUDA) for each in ("auto", size))
    assert whole.losses == pytest.approx(cut.losses, abs=1e-5)
    for name, weight in whole.adapter.items():
        torch.testing.assert_close(cut.adapter[name], weight, atol=2e-3, rtol=0)  # Adam's first step is a sign
    assert whole.history[0]["train/gradient_norm"] == pytest.approx(cut.history[0]["train/gradient_norm"], rel=1e-3)


def test_a_run_continues_where_it_stopped(fit, tmp_path):
    def make_stack():
        return [GRPO(), HeadCritic(), GAE()]

    saving = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=2, save_top_k=-1)
    whole = fit(steps=3, stack=[*make_stack(), saving], enable_checkpointing=True, **CUDA)
    (saved,) = (tmp_path / "saved").glob("*step=2*.ckpt")
    resumed = fit(steps=3, stack=make_stack(), ckpt_path=saved, **CUDA)
    # gradients of attention add up in any order on an accelerator: what comes before an update is the same, bit for bit
    for name in ("train/solve_rate", "train/completion_length", "train/entropy", "credit/HeadCritic/brier"):
        assert whole.history[2][name] == resumed.history[0][name], name


def test_half_precision_stays_near_the_policy_that_sampled(fit):
    policy = Policy(dtype="bfloat16")
    run = fit(steps=3, policy=policy, precision="bf16-mixed", **CUDA)
    assert all(abs(step["train/kl_sampler"]) < 0.2 for step in run.history)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("bfloat16", 5e-2)])
def test_an_update_without_padding_is_the_models_own_on_an_accelerator(dtype, tolerance):
    policy, gradients = load_on_device(dtype=dtype), {}
    noise = torch.Generator().manual_seed(3)
    prompts, completions = (
        policy.encode_questions(["12 + 7 =", "3 - 4 ="]),
        torch.randint(3, 99, (8, 20), generator=noise),
    )
    prompts, lengths = prompts.repeat_interleave(4, 0), torch.tensor([20, 3, 1, 9, 20, 15, 6, 2])
    mask, weights = torch.arange(20) < lengths[:, None], [w for w in policy.parameters() if w.requires_grad]
    shares = torch.linspace(-1, 1, int(lengths.sum()), device="cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "bfloat16"):
        packed = find_packed_forward(policy)
        assert packed is not None
        for name in ("own", "packed"):
            if name == "own":
                logprobs = policy.score_prompts(prompts.cuda(), completions.cuda(), 0.7).logprobs[mask.cuda()]
            else:
                states, layout = packed.read_rows(prompts, completions, mask, 1)
                logprobs = policy.score_states(states, layout.targets, 0.7).logprobs
            parts = torch.autograd.grad((logprobs * shares).sum(), weights)
            gradients[name] = torch.cat([part.flatten().float() for part in parts])
    assert (gradients["packed"] - gradients["own"]).norm() <= tolerance * gradients["own"].norm()


def test_nothing_waits_for_the_accelerator_while_parts_are_scored_and_differentiated():
    policy = load_on_device(dtype="bfloat16")
    prompts = policy.encode_questions(["12 + 7 ="] * 4)
    mask = torch.arange(20) < torch.tensor([20, 3, 1, 9])[:, None]
    rows = (prompts, torch.randint(3, 99, (4, 20)), mask)
    weights = [weight for weight in policy.parameters() if weight.requires_grad]
    with torch.autocast("cuda", torch.bfloat16):
        packed = find_packed_forward(policy)
        for mode in ("default", "error"):  # the first time libraries prepare themselves
            torch.cuda.set_sync_debug_mode(mode)
            try:
                states, layout = packed.read_rows(*rows, 1)
                logprobs = policy.score_states(states, layout.targets, 0.7, keeps_entropy=False).logprobs
                torch.autograd.grad(logprobs.sum(), weights)
            finally:
                torch.cuda.set_sync_debug_mode("default")
