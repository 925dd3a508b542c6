import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import check_stack
from tests.conftest import make_rollout


def test_a_segment_earns_what_it_adds_to_the_share_of_right_continuations():
    class Told:
        decoded = 0

        def outcomes(self, rollout, rows, starts, samples):
            assert starts.tolist() == [[True, False, False, True, False, False]]
            nan = torch.nan
            share = torch.tensor([[0.25, nan, nan, 0.75, nan, nan, 0.0]], dtype=torch.float64)
            return share[..., None].expand(-1, -1, samples)

    rollout = make_rollout(rewards=(0.0,), group_size=1)
    rollout.oracle = Told()
    StrategicGrams().assign(rollout)  # "let me think", and a calculation
    metrics = MonteCarloCredit(samples=4, cuts="phrase").assign(rollout)
    assert_close(rollout.advantages, torch.tensor([[0.5, 0.5, 0.5, -0.75, -0.75, -0.75]]))
    assert metrics["value"] == 0.25
    assert metrics["credited_fraction"] == 1


def test_the_optimal_baseline_weighs_by_the_odds_of_the_token():
    plain, optimal = make_rollout(), make_rollout()
    MonteCarloCredit(samples=4).assign(plain)
    MonteCarloCredit(samples=4, baseline="optimal").assign(optimal)
    probability = plain.old_logprobs.exp()
    odds = (probability / (1 - probability)).where(plain.mask, 0)
    assert plain.advantages.abs().sum() > 0
    assert_close(optimal.advantages, plain.advantages * odds)


def test_with_tokens_it_estimates_the_credit_that_the_oracle_measures_with_other_noise(fit):
    credit, probe = MonteCarloCredit(samples=16), CreditOracle(every_n_steps=1, completions=16, samples=64)
    fit(steps=1, stack=[credit, probe], prompts=2)
    assert 0.4 < probe.last["MonteCarloCredit_cosine"] < 0.999, "alike, and not the same samples"
    assert probe.last["MonteCarloCredit_cosine_within"] > 0.4
    assert probe.last["decoded_tokens"] > 0


def test_only_phrases_need_a_planner():
    check_stack([MonteCarloCredit(cuts="sentence")])
    with pytest.raises(StackError, match="Put StrategicGrams above MonteCarloCredit"):
        check_stack([MonteCarloCredit(cuts="phrase")])
    check_stack([StrategicGrams(), MonteCarloCredit(cuts="phrase")])


def test_refused_arguments():
    with pytest.raises(ValueError, match="samples >= 1, got 0"):
        MonteCarloCredit(samples=0)
    with pytest.raises(ValueError, match="cuts to be one of token, sentence, phrase, turn, got 'word'"):
        MonteCarloCredit(cuts="word")
    with pytest.raises(ValueError, match="baseline to be one of value, optimal, got 'best'"):
        MonteCarloCredit(baseline="best")
    with pytest.raises(ValueError, match=r"trains on sentences, phrases and turns only, got 'token'\. Use Branches"):
        MonteCarloCredit(train="on_policy")
    with pytest.raises(ValueError, match="train to be one of none, on_policy, equal, got 'all'"):
        MonteCarloCredit(cuts="sentence", train="all")
    with pytest.raises(ValueError, match="optimal baseline for tokens only, got cuts 'sentence'"):
        MonteCarloCredit(cuts="sentence", baseline="optimal")


@pytest.mark.parametrize("train", ["on_policy", "equal"])
def test_continuations_that_measure_are_trained_on(train):
    rollout = make_rollout(rewards=(0.0,), group_size=1)
    StrategicGrams().assign(rollout)  # "let me think", and a calculation
    right = torch.tensor([[1.0, 0.0], [1.0, 1.0]])

    class Told:
        decoded = 0

        def continue_prefixes(self, rollout, rows, places, samples):
            assert (rows.tolist(), places.tolist(), samples) == ([0, 0], [0, 3], 2)
            rows, places = (values.repeat_interleave(samples) for values in (rows, places))
            zeros = torch.zeros(4, 1)
            return Continuations(rows, places, zeros.long(), zeros == 0, zeros, zeros), right.double()

    rollout.oracle = Told()
    operator = MonteCarloCredit(samples=2, cuts="phrase", train=train)
    assert operator.writes == {"advantages", "continuations"}
    metrics = operator.assign_checked(rollout)
    # The phrase leads from 1/2 to (1 + 1 + 0) / 3, and the rest from there, where both others were right, to 0.
    first, second = (1 / 3, 1 / 9) if train == "on_policy" else (1.0, 1.0)
    assert_close(rollout.advantages[0], torch.tensor([first * (2 / 3 - 1 / 2)] * 3 + [-second] * 3))
    told = [first * (1 - 1 / 3), first * (0 - 5 / 6), second * 0.5, second * 0.5]
    assert_close(rollout.continuations.credit[:, 0], torch.tensor(told))
    assert float(metrics["value"]) == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert float(metrics["credited_fraction"]) == 1


def test_without_training_nothing_else_is_written():
    assert MonteCarloCredit(cuts="sentence").writes == {"advantages"}
    rollout = make_rollout()
    MonteCarloCredit(cuts="sentence").assign_checked(rollout)
    assert rollout.continuations is None
