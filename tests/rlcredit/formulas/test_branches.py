import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.episode.rloo import rloo_advantages
from rlcredit.formulas.branches import branch_credit, branch_shares, branch_values, fork_places, forks_passed

NAN = torch.nan


def list_leaves(reward, forks):
    """Return every leaf of one completion as (forks passed by the path, number at the fork it leaves, share, reward).

    The completion itself is the leaf that passes all forks; ``forks`` holds lists of rewards.
    """
    leaves, share = [], 1.0
    for fork, rewards in enumerate(forks):
        share /= 1 + len(rewards)
        leaves += [(fork, number, share, told) for number, told in enumerate(rewards)]
    return [*leaves, (len(forks), None, share, reward)]


def mean_below(leaves, fork):
    """Return the mean reward of the leaves behind so many forks of the completion, weighted by their shares."""
    below = [leaf for leaf in leaves if leaf[0] >= fork]
    return sum(share * told for _, _, share, told in below) / sum(leaf[2] for leaf in below)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000))
def test_credit_is_what_an_enumeration_of_the_leaves_gives(seed):
    generator = torch.Generator().manual_seed(seed)
    size, forks, width = (
        int(torch.randint(low, high, (1,), generator=generator)) for low, high in ((1, 5), (0, 4), (1, 4))
    )
    rewards = torch.randint(0, 2, (2 * size,), generator=generator).double()
    ends = torch.randint(0, 2, (2 * size, forks, width), generator=generator).double()
    ends[torch.rand(ends.shape, generator=generator) < 0.3] = NAN
    own, others = branch_credit(rewards, ends, size)
    shares, values = branch_shares(ends), branch_values(rewards, ends)
    known = [[[told for told in fork if told == told] for fork in row] for row in ends.tolist()]
    trees = [list_leaves(reward, row) for reward, row in zip(rewards.tolist(), known)]
    for row, (leaves, listed) in enumerate(zip(trees, known)):
        group = range(row // size * size, row // size * size + size)
        rest = [mean_below(trees[other], 0) for other in group if other != row]
        baseline = sum(rest) / len(rest) if rest else mean_below(leaves, 0)
        for fork in range(forks + 1):
            value = mean_below(leaves, fork)
            siblings = listed[fork - 1] if fork else []
            baseline = sum(siblings) / len(siblings) if siblings else baseline
            assert abs(values[row, fork].item() - value) < 1e-9
            assert abs(own[row, fork].item() - (value - baseline)) < 1e-9
            share = 1.0
            for passed in listed[:fork]:
                share /= 1 + len(passed)
            assert abs(shares[row, fork].item() - share) < 1e-12
            for number, told in enumerate(siblings):
                mates = [value, *siblings[:number], *siblings[number + 1 :]]
                expected = told - sum(mates) / len(mates)
                place = (~ends[row, fork - 1].isnan()).nonzero().flatten()[number]
                assert abs(others[row, fork - 1, place].item() - expected) < 1e-9
    assert not others[ends.isnan()].any()


def test_branches_of_a_fork_share_out_what_it_adds_to_nothing():
    ends = torch.tensor([[[1.0, 0.0, 1.0], [NAN, 1.0, 0.0]], [[0.0, 0.0, NAN], [NAN, NAN, NAN]]])
    own, others = branch_credit(torch.tensor([1.0, 0.0]), ends, group_size=2)
    assert_close(own[:, 1] + others[:, 0].sum(-1), torch.zeros(2).double())
    assert_close(own[0, 2] + others[0, 1].sum(), torch.zeros(()).double())
    assert own[1, 2] == own[1, 1]  # nothing leaves at the second fork


def test_without_forks_and_without_continuations_it_is_rloo():
    rewards = torch.tensor([1.0, 0.0, NAN, 1.0, 0.0, 0.0])
    for ends in (torch.zeros(6, 0, 2), torch.full((6, 2, 3), NAN), torch.zeros(6, 2, 0)):
        own, others = branch_credit(rewards, ends, group_size=3)
        for column in own.T:
            assert torch.equal(column.float(), rloo_advantages(rewards, group_size=3))
        assert not others.any()
        assert (branch_shares(ends) == 1).all()


def test_a_completion_without_a_verdict_is_nobodys_baseline():
    ends = torch.tensor([[[1.0]], [[NAN]], [[NAN]]])
    with_it, _ = branch_credit(torch.tensor([0.0, 1.0, NAN]), ends, group_size=3)
    without, _ = branch_credit(torch.tensor([0.0, 1.0]), ends[:2], group_size=2)
    assert torch.equal(with_it[:2], without)
    assert not with_it[2].any()


def test_forks_keep_their_distance_and_stand_in_order():
    entropy = torch.tensor([[0.1, 0.9, 0.8, 0.2, 0.7, 0.6]])
    everywhere, columns = torch.ones_like(entropy, dtype=torch.bool), torch.arange(6).expand(1, 6)
    assert fork_places(entropy, everywhere, columns, forks=3, spacing=1).tolist() == [[1, 2, 4]]
    assert fork_places(entropy, everywhere, columns, forks=3, spacing=2).tolist() == [[1, 4, -1]]
    in_order = -columns
    numbers = torch.tensor([[0, 1, 4, 5, 2, 3]])  # an environment's two tokens stand in the columns 2 and 3
    allowed = torch.tensor([[True, True, False, False, True, True]])
    assert fork_places(in_order, allowed, numbers, forks=3, spacing=2).tolist() == [[0, 4, -1]]
    assert fork_places(in_order, entropy > 0.5, columns, forks=3, spacing=1).tolist() == [[1, 2, 4]]
    assert fork_places(in_order, entropy > 0.5, columns, forks=3, spacing=2).tolist() == [[1, 4, -1]]
    assert fork_places(in_order, entropy > 0.5, columns, forks=0, spacing=2).shape == (1, 0)
    assert fork_places(in_order, entropy > 1.0, columns, forks=2, spacing=2).tolist() == [[-1, -1]]
    assert fork_places(in_order[:, :0], everywhere[:, :0], columns[:, :0], forks=2, spacing=1).shape == (1, 0)


def test_a_token_has_passed_the_forks_at_and_before_it():
    forks = torch.tensor([[0, 2], [3, -1], [-1, -1]])
    assert forks_passed(forks, 4).tolist() == [[1, 1, 2, 2], [0, 0, 0, 1], [0, 0, 0, 0]]
