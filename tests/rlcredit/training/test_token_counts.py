"""Tokens that runs count, against what their rollouts hold."""

import pytest
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.episode.grpo import GRPO
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.losses import ImportanceSampling, KLPenalty
from rlcredit.training.dynamic_sampling import DynamicSampling
from rlcredit.training.module import PolicyModule
from tests.spy import RolloutSpy


def prompt_tokens(rollout, rows):
    """Return the tokens of the prompts of some rows, each counted once, by another way than the code."""
    return sum(len(prompt) for prompt in {tuple(p for p in rollout.prompt_ids[row].tolist() if p >= 0) for row in rows})


def counts(run):
    return [{name: step[name] for name in step if name.startswith("tokens/")} for step in run.history]


def test_a_plain_run_counts_what_it_decodes_reads_and_learns_from(fit):
    spy = RolloutSpy()
    run, decoded, prefill, backward = fit(steps=3, stack=[GRPO(), spy]), 0, 0, 0
    for rollout, logged in zip(spy.seen, counts(run), strict=True):
        lengths, every = rollout.mask.sum(-1), range(len(rollout.mask))
        taught = rollout.advantages.abs().sum(-1).nonzero().squeeze(-1).tolist() or [0]
        decoded += int(lengths.sum())
        prefill += prompt_tokens(rollout, every)
        backward += int(lengths[taught].sum()) + prompt_tokens(rollout, taught)
        assert logged == {
            **{"tokens/decoded": decoded, "tokens/prefill": prefill, "tokens/backward": backward},
            **{"tokens/forward": 0, "tokens/decoded_by_probes": 0},
        }


def test_groups_that_dynamic_sampling_passes_over_count(fit, monkeypatch):
    sampled, decode = [], PolicyModule.collector.fget

    def watched(module):
        collector = decode(module)
        sample = collector.sample

        def note(*arguments):
            samples = sample(*arguments)
            sampled.append(int(samples.mask.sum()))
            return samples

        collector.sample = note
        return collector

    monkeypatch.setattr(PolicyModule, "collector", property(watched))
    spy = RolloutSpy()
    run = fit(steps=2, stack=[GRPO(), spy], completions=2, dynamic_sampling=DynamicSampling(rounds=4))
    assert len(sampled) > 2
    assert counts(run)[-1]["tokens/decoded"] == sum(sampled) > sum(int(rollout.mask.sum()) for rollout in spy.seen)


def test_a_reference_is_a_forward_pass_over_every_completion(fit):
    spy = RolloutSpy()
    run = fit(steps=1, stack=[GRPO(), spy], loss=KLPenalty(ImportanceSampling()))
    (rollout,) = spy.seen
    assert counts(run)[0]["tokens/forward"] == int(rollout.mask.sum()) + prompt_tokens(
        rollout, range(len(rollout.mask))
    )


def test_continuations_of_an_operator_count_and_those_of_a_probe_count_apart(fit):
    spy, probe = RolloutSpy(), CreditOracle(every_n_steps=1, completions=4, samples=4)
    other = CounterfactualProbe({"measured": [MonteCarloCredit(samples=2)]}, every_n_steps=1)
    run = fit(steps=1, stack=[MonteCarloCredit(samples=4), spy, probe, other])
    (rollout,), (logged,), (step,) = spy.seen, counts(run), run.history
    own = step["credit/MonteCarloCredit/decoded_tokens"]
    assert own > 0
    assert logged["tokens/decoded"] == int(rollout.mask.sum()) + own
    assert logged["tokens/decoded_by_probes"] > probe.last["decoded_tokens"] > 0
    assert logged["tokens/prefill"] > prompt_tokens(rollout, range(len(rollout.mask)))
    everything = int(rollout.mask.sum()) + prompt_tokens(rollout, range(len(rollout.mask)))
    assert 0 < logged["tokens/forward"] <= everything  # rows whose prefixes are known already are not read again


def test_probes_without_an_oracle_change_no_count(fit):
    plain = fit(steps=2, stack=[GRPO()])
    watched = fit(steps=2, stack=[GRPO(), CounterfactualProbe({"bare": [GRPO()]}, every_n_steps=1)])
    assert counts(watched) == counts(plain)


def test_every_update_of_a_rollout_counts_and_none_decodes_again(fit):
    first, second = counts(fit(steps=2, updates_per_rollout=2))
    assert first["tokens/decoded"] == second["tokens/decoded"]
    assert second["tokens/backward"] == 2 * first["tokens/backward"]


class Forward(CreditOperator, reads="advantages", writes="advantages"):
    """Report forward passes of one's own."""

    def assign(self, rollout):
        rollout.token_counts.add(forward=2**25 + 1)
        rollout.advantages = rollout.advantages * 1
        return {}


def test_an_operator_adds_its_own_passes_and_large_sums_stay_exact(fit):
    run = fit(steps=2, stack=[GRPO(), Forward()])
    assert [step["tokens/forward"] for step in counts(run)] == [2**25 + 1, 2**26 + 2]


def test_held_out_answers_are_not_counted(fit):
    assert counts(fit(limit_val_batches=1, val_check_interval=1)) == counts(fit())


def test_counts_go_on_from_a_checkpoint_and_are_not_made_up_where_it_has_none(fit, tmp_path):
    whole = fit(steps=1)
    saved = {}
    whole.module.on_save_checkpoint(saved := {"state_dict": whole.module.state_dict(), "optimizer_states": []})
    fresh = fit(steps=1).module
    fresh.on_load_checkpoint({**saved, "token_counts": {**saved["token_counts"], "decoded": 7}})
    assert fresh.state.token_counts == TokenCounts(**{**saved["token_counts"], "decoded": 7})
    fresh.on_load_checkpoint({name: value for name, value in saved.items() if name != "token_counts"})
    assert fresh.state.token_counts is None
    assert saved["token_counts"]["decoded"] == counts(whole)[-1]["tokens/decoded"]


def test_two_counts_are_told_apart_by_kind():
    tokens = TokenCounts(decoded=1)
    with pytest.raises(TypeError):
        tokens.add(forwards=1)  # pyright: ignore[reportCallIssue]
    assert tokens.take_counts() == {"decoded": 1, "decoded_by_probes": 0, "prefill": 0, "forward": 0, "backward": 0}
    assert tokens == TokenCounts()


class StateKeeper(CreditOperator, reads="advantages hidden", writes="advantages"):
    """Keep the hidden states of every rollout."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def assign(self, rollout):
        self.seen.append(rollout.hidden)
        rollout.advantages = rollout.advantages * 1.0
        return {}


@pytest.mark.parametrize("dynamic_sampling", [None, DynamicSampling(rounds=4)])
def test_hidden_states_of_the_decoder_cost_nothing_and_are_those_that_the_trainer_reads(
    fit, monkeypatch, dynamic_sampling
):
    kept, read = StateKeeper(), StateKeeper()
    free = fit(steps=2, stack=[GRPO(), kept], completions=4, dynamic_sampling=dynamic_sampling)
    monkeypatch.setattr(InProcessEngine, "can_keep_hidden", False)
    costly = fit(steps=2, stack=[GRPO(), read], completions=4, dynamic_sampling=dynamic_sampling)
    for by_decoder, by_trainer in zip(kept.seen, read.seen, strict=True):
        assert_close(by_decoder, by_trainer, rtol=1e-3, atol=1e-3)
    assert counts(free)[-1]["tokens/forward"] == 0 < counts(costly)[-1]["tokens/forward"]
