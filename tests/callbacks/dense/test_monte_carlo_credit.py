import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack import check_stack
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
    with pytest.raises(ValueError, match="cuts to be one of token, sentence, phrase, got 'word'"):
        MonteCarloCredit(cuts="word")
    with pytest.raises(ValueError, match="baseline to be one of value, optimal, got 'best'"):
        MonteCarloCredit(baseline="best")
    with pytest.raises(ValueError, match="optimal baseline for tokens only, got cuts 'sentence'"):
        MonteCarloCredit(cuts="sentence", baseline="optimal")
