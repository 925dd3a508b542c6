import torch

from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.decoding.graphed_forward import KEY_BLOCK, GraphedForward
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
