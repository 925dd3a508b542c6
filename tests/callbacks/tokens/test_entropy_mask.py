import pytest
import torch
from torch.testing import assert_close

from callbacks.tokens.entropy_mask import EntropyMask, entropy_mask
from callbacks.tokens.random_mask import RandomMask
from tests.callbacks.worked_example import SIGNAL
from tests.conftest import make_rollout


def kept(signal, rho, scope="sequence", group_size=1, **ties):
    return entropy_mask(signal, torch.ones_like(signal, dtype=torch.bool), rho, scope, group_size, **ties)


@pytest.mark.parametrize(("rho", "places"), [(0.2, [2, 6]), (0.05, [6]), (1.0, list(range(10)))])
def test_the_worked_example_keeps_its_most_uncertain(rho, places):
    assert kept(SIGNAL, rho).nonzero()[:, 1].tolist() == places


def test_ties_are_cut_to_the_share_asked_for_and_a_threshold_would_keep_everything():
    signal = torch.zeros(1, 100)
    signal[0, 85:] = torch.linspace(0.1, 2.0, 15)
    exact = kept(signal, 0.2)
    assert exact.sum() == 20
    assert exact[0, 85:].all()
    assert exact[0, :5].all()  # among equals the first
    assert kept(signal, 0.2, keep_ties=True).all()


def test_the_scope_says_among_which_tokens():
    signal = torch.tensor([[9.0, 8.0], [7.0, 6.0], [1.0, 2.0], [0.0, 3.0]])
    places = {scope: kept(signal, 0.5, scope, 2).tolist() for scope in ("sequence", "group", "batch")}
    assert places["sequence"] == [[True, False], [True, False], [False, True], [False, True]]
    assert places["group"] == [[True, True], [False, False], [False, True], [False, True]]
    assert places["batch"] == [[True, True], [True, True], [False, False], [False, False]]


@pytest.mark.parametrize(("count", "rho", "expected"), [(100, 0.29, 29), (10, 0.3, 3), (8, 0.2, 1), (3, 0.2, 1)])
def test_the_count_is_the_floor_of_the_product_and_never_zero(count, rho, expected):
    assert kept(torch.rand(1, count), rho).sum() == expected


def test_padding_is_neither_counted_nor_kept():
    mask = torch.tensor([[True, True, False, False]])
    assert entropy_mask(torch.tensor([[0.1, 0.2, 9.0, 9.0]]), mask, 0.5, "batch", 1).tolist() == [
        [False, True, False, False]
    ]


@pytest.mark.parametrize("scope", ["sequence", "group", "batch"])
def test_the_denominator_says_what_the_loss_is_divided_by(scope):
    rollouts = {name: make_rollout() for name in ("all", "kept")}
    for denominator, rollout in rollouts.items():
        rollout.advantages = torch.ones(8, 6)
        EntropyMask(rho=0.5, scope=scope, denominator=denominator).assign(rollout)
    mask, of_all, of_kept = rollouts["all"].mask, rollouts["all"].advantages, rollouts["kept"].advantages
    rows = {"sequence": 8, "group": 2, "batch": 1}[scope]
    shares = of_all.view(rows, -1).sum(-1) / mask.view(rows, -1).sum(-1)
    assert_close(of_kept.view(rows, -1).sum(-1), mask.view(rows, -1).sum(-1).float())
    assert_close(of_kept, of_all / shares.repeat_interleave(8 // rows)[:, None])


def test_what_was_asked_and_what_was_done_are_both_reported(rollout):
    rollout.signal = torch.zeros_like(rollout.signal)
    tokens = rollout.mask.sum().item()
    exact = EntropyMask(rho=0.2).assign(rollout)
    assert exact["requested_fraction"] == 0.2
    assert exact["kept_fraction"].item() == pytest.approx(int(tokens * 0.2) / tokens)
    assert exact["tied_fraction"].item() == pytest.approx(1 - int(tokens * 0.2) / tokens)
    published = EntropyMask(rho=0.2, keep_ties=True).assign(rollout)
    assert published["kept_fraction"] == 1


def test_the_placebo_keeps_as_many_tokens_others_at_every_step_and_the_same_again():
    masks = []
    for step in (3, 4, 3):
        rollout = make_rollout()
        rollout.step, rollout.advantages = step, torch.ones(8, 6)
        metrics = RandomMask(rho=0.5, scope="group").assign(rollout)
        assert rollout.advantages.view(2, -1).sum(-1).tolist() == (rollout.mask.view(2, -1).sum(-1) // 2).tolist()
        assert metrics["kept_fraction"].item() == pytest.approx(0.5, abs=0.05)
        masks.append(rollout.advantages)
    assert not torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


def test_a_misspelt_word_selects_no_other_formula():
    with pytest.raises(ValueError, match="scope to be one of sequence, group, batch, got 'batches'"):
        kept(SIGNAL, 0.2, "batches")
    with pytest.raises(ValueError, match="denominator to be one of all, kept, got 'keep'"):
        EntropyMask(denominator="keep")


@pytest.mark.parametrize("operator", [EntropyMask, RandomMask])
@pytest.mark.parametrize("rho", [0.0, -0.1, 1.1])
def test_a_share_that_is_none_is_refused(operator, rho):
    with pytest.raises(ValueError, match=r"rho in \(0, 1\], got .* It is the share of tokens"):
        operator(rho=rho)
