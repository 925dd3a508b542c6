import pytest
import torch
from small_policies import load_with_random_adapter

from rlcredit.decoding import in_process
from rlcredit.decoding.decoding_loop import TokenSampler
from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.decoding.graphed_forward import KEY_BLOCK, GraphedForward
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import sampling_uniforms
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PADDING


class ReplayedOnProcessor(GraphedForward):
    """Does at every replay what a graph would: the same operations on the same storage, with the shapes recorded."""

    recorded = 0

    def _record_graph(self):
        self.recorded += 1
        self.reach = self.find_reach()
        self.place = torch.tensor([self.column])
        self.graph = self

    def replay(self):
        self._store_token(self._compute_token())


def test_a_replay_of_fixed_shapes_is_the_pass_itself(policy, monkeypatch):
    empty = torch.Tensor.new_empty
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda tensor, *size: empty(tensor, *size).fill_(torch.nan)
    )  # as memory may be
    ids = torch.randint(3, 100, (3, 32), generator=torch.Generator().manual_seed(0))
    ids[1, :5] = PADDING
    of = torch.arange(3).repeat_interleave(4)
    tokens = torch.randint(3, 100, (140, 12), generator=torch.Generator().manual_seed(1))
    kept = torch.arange(0, 12, 2)
    with torch.no_grad(), policy.evaluation_mode():
        plain, replayed = FusedForward(policy), ReplayedOnProcessor(policy)
        starts = [reader.read_contexts(ids, of, 140) for reader in (plain, replayed)]
        torch.testing.assert_close(*starts)
        for place, drawn in enumerate(tokens):
            if place == 70:
                plain.keep_rows(kept)
                replayed.keep_rows(kept)
            drawn = drawn if place < 70 else drawn[kept]
            torch.testing.assert_close(plain.append_tokens(drawn), replayed.append_tokens(drawn), atol=2e-4, rtol=1e-4)
    # once at the start, once when rows leave, once for every further block of keys: 32 + 140 tokens
    assert replayed.recorded == 2 + (32 + 140 - 1) // KEY_BLOCK


def test_contexts_that_are_read_after_others_have_a_graph_of_their_own(policy):
    of = torch.arange(3).repeat_interleave(4)
    with torch.no_grad(), policy.evaluation_mode():
        plain, replayed = FusedForward(policy), ReplayedOnProcessor(policy)
        for part, width in (([0, 1, 2], 32), ([0, 0], 20)):
            ids = torch.randint(3, 100, (3, width), generator=torch.Generator().manual_seed(width))
            rows = of[: 4 * len(part)]
            for reader in (plain, replayed):
                reader.read_contexts(ids, rows, 140)
            for drawn in torch.randint(3, 100, (3, len(rows)), generator=torch.Generator().manual_seed(1)):
                torch.testing.assert_close(
                    plain.append_tokens(drawn), replayed.append_tokens(drawn), atol=2e-4, rtol=1e-4
                )
    assert replayed.recorded == 2


def test_a_replay_draws_what_the_sampler_draws_from_the_pass_itself(policy):
    ids = torch.randint(3, 100, (3, 32), generator=torch.Generator().manual_seed(0))
    rows, noise = torch.arange(3).repeat_interleave(4), torch.rand(12, 120, generator=torch.Generator().manual_seed(1))
    draw, tokens = TokenSampler(policy.head, 0.7, policy.stop_ids), torch.full((12,), 5)
    with torch.no_grad(), policy.evaluation_mode():
        drawn = []
        for reader in (FusedForward(policy), ReplayedOnProcessor(policy)):
            reader.read_contexts(ids, rows, 120)
            blocks = [reader.draw_tokens(draw, tokens, noise[:, :50])]
            # The last of the next block crosses the 128th key, where a graph is recorded anew.
            blocks += [reader.draw_tokens(draw, blocks[0][1][-1], noise[:, 50:100])]
            blocks += [reader.draw_tokens(draw, blocks[1][1][-1], noise[:, 100:])]
            drawn.append(list(map(torch.cat, zip(*blocks))))
    assert torch.equal(drawn[0][1], drawn[1][1])
    for expected, actual in zip(*drawn):
        torch.testing.assert_close(actual, expected, atol=2e-4, rtol=1e-4)
    assert reader.recorded == 2


def test_a_replay_in_fewer_bits_is_the_pass_itself_with_other_rows_too():
    policy = load_with_random_adapter(Policy(dtype="bfloat16"))
    ids, rows = torch.randint(3, 100, (3, 32), generator=torch.Generator().manual_seed(0)), torch.arange(12) // 4
    tokens = torch.randint(3, 100, (20, 12), generator=torch.Generator().manual_seed(1))
    kept = torch.tensor([0, 7, 7, 3])
    with torch.no_grad(), policy.evaluation_mode(), torch.autocast("cpu", torch.bfloat16):
        states = []
        for reader in (FusedForward(policy), ReplayedOnProcessor(policy)):
            reader.read_contexts(ids, rows, 40)
            states.append([reader.append_tokens(drawn) for drawn in tokens])
            reader.keep_rows(kept)
            states[-1] += [reader.append_tokens(drawn[kept]) for drawn in tokens]
    for expected, actual in zip(*states):
        assert (actual - expected).norm() <= 0.02 * expected.norm()


class RarelyStoppedForward(FusedForward):
    """Looks every seven tokens which rows have ended."""

    stop_interval = 7


@pytest.mark.parametrize("make_reader", [RarelyStoppedForward, ReplayedOnProcessor])
@pytest.mark.parametrize("token_filter", [None, TokenFilter(top_k=3)])
def test_samples_do_not_depend_on_how_often_one_looks_for_the_end(policy, make_reader, token_filter, monkeypatch):
    prompt_ids = policy.encode_questions(["1 + 2 = ?", "7 - 4 + 3 = ?", "8"])
    noise = sampling_uniforms(0, 0, [prompt for prompt in range(3) for _ in range(12)], list(range(12)) * 3, 60)
    limits = torch.tensor([60, 1, 7, 8, 20, 59] * 6)
    request = (policy, prompt_ids, noise, torch.arange(3).repeat_interleave(12), 1.0, limits, token_filter, True)
    expected = InProcessEngine().decode(*request)
    monkeypatch.setattr(in_process, "make_fused_forward", make_reader)
    samples = InProcessEngine().decode(*request)
    assert len(set(expected.mask.sum(-1).tolist())) > 6  # rows leave at many places
    assert set(expected.truncated.tolist()) == {True, False}
    for name in ("completion_ids", "mask", "truncated"):
        assert torch.equal(getattr(samples, name), getattr(expected, name)), name
    exact = {"atol": 0, "rtol": 0} if make_reader is RarelyStoppedForward else {"atol": 2e-4, "rtol": 1e-3}
    for name in ("logprobs", "entropy", "sum_pi_squared", "hidden"):
        torch.testing.assert_close(getattr(samples, name), getattr(expected, name), **exact)
