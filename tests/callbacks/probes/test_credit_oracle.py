"""The oracle as a probe."""

import json
import re

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.episode.rloo import RLOO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_oracle import CreditOracle
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from callbacks.turns.last_turn import LastTurn
from rlcredit.formulas.turns import mark_turns
from rlcredit.oracle.credit_estimate import true_credit
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from tests.callbacks.turns.episodes import make_episodes
from tests.rlcredit.episodes.counting import Counting
from tests.rlcredit.oracle.test_episode_oracle import GROUP, Verdicts, play


def test_the_probe_holds_every_ledger_and_every_signal_against_the_truth(fit, tmp_path, capsys):
    oracle = CreditOracle(every_n_steps=1, completions=4, samples=8)
    fit(steps=1, stack=[GRPO(), StrategicGrams(), HICRA(), GTPO(), oracle], prompts=2)
    kinds = ("auc", "rank", "mass_10", "mass_20")
    for name in ("GRPO", "HICRA", "GTPO", "surprisal", "entropy", "predictive_variance", "random"):
        assert {f"{name}_{kind}" for kind in kinds} <= set(oracle.last)
    assert {f"{name}_{kind}" for name in ("GRPO", "GTPO") for kind in ("cosine", "cosine_within")} <= set(oracle.last)
    assert oracle.last["GRPO_cosine_within"] == pytest.approx(0, abs=1e-9)
    assert 0 < oracle.last["value"] < 1
    told = re.search(
        r"CreditOracle: ([\d,]+) prefixes x 8 continuations, of which .* at most ([\d,]+) tokens",
        capsys.readouterr().out,
    )
    assert 20 < oracle.last["decoded_tokens"] <= int(told[2].replace(",", "")) < 8 * 128 * int(told[1].replace(",", ""))
    records = json.loads((tmp_path / "probes" / "CreditOracle_step_000000.json").read_text())
    assert len(records) == 4
    for record in records:
        assert len(record["true_credit"]) == len(record["tokens"]) == len(record["GTPO"]) == len(record["values"]) - 1
        assert record["values"][-1] == record["correct"]
        assert sum(record["true_credit"]) == pytest.approx(record["correct"] - record["values"][0], abs=1e-2)


def test_episodes_are_measured_by_turns(fit, tmp_path):
    probe = CreditOracle(every_n_steps=1, completions=4, samples=8)
    task = Episodes(Counting(), train_size=16, validation_size=4, turn_tokens=8, prompts_per_step=2)
    policy = Policy(prompt=PromptFormat(chat=False))
    fit(steps=1, stack=[RLOO(), LastTurn(), probe], task=task, policy=policy)
    names = {"equal_credit", "last_turn", "random_turn", "RLOO", "LastTurn"}
    assert {f"{name}_cosine_within_by_turn" for name in names} <= set(probe.last)
    assert {f"{name}_auc_by_turn" for name in names | {"surprisal", "random"}} <= set(probe.last)
    for kind in ("cosine", "cosine_within", "auc"):
        assert probe.last[f"RLOO_{kind}_by_turn"] == pytest.approx(probe.last[f"equal_credit_{kind}_by_turn"], abs=1e-6)
        assert probe.last[f"LastTurn_{kind}_by_turn"] == pytest.approx(
            probe.last[f"last_turn_{kind}_by_turn"], abs=1e-6
        )
    assert 0 <= probe.last["decisive_fraction_by_turn"] <= probe.last["fork_fraction_by_turn"] < 1
    assert not any(name.startswith("verdict_") for name in probe.last), "rewards are thirds"
    records = json.loads((tmp_path / "probes" / "CreditOracle_step_000000.json").read_text())
    for record in records:
        assert len(record["true_credit"]) == len(record["tokens"]) == len(record["RLOO"]) == 3
        assert sum(record["true_credit"]) == pytest.approx(record["values"][-1] - record["values"][0], abs=1e-2)


def test_true_credit_that_other_noise_has_measured_agrees_with_it():
    rollout, oracle = play(Verdicts)
    truth = oracle.credit(rollout, range(2 * GROUP), samples=200)
    rollout.oracle, rollout.trail = oracle, (("truth", truth.spread_units(truth.credit)),)
    probe = CreditOracle(completions=2 * GROUP, samples=200)
    probe._publish_table = lambda *_: None
    metrics = probe._compare_ledgers(None, rollout)
    assert metrics["truth_cosine_by_turn"] > 0.98
    assert metrics["truth_opposite_by_turn"] == 0
    assert metrics["truth_auc_by_turn"] > 0.9
    assert metrics["verdict_information_by_turn"] > 0


def test_controls_have_the_credit_of_the_episode_on_one_turn_or_on_all():
    # Of three episodes with rewards 3, 1 and 2 and the mean of the others 1.5, 2.5 and 2.
    rollout = make_episodes([[1.0, 2.0], [1.0], [1.0, 0.0, 1.0]])
    rollout.task_rewards = torch.tensor([3.0, 1.0, 2.0])
    truth = true_credit([0, 1, 2], torch.zeros(3, 4, 2), mark_turns(rollout.turn, 3), rollout.turn)
    controls = CreditOracle()._place_controls(rollout, truth)
    assert controls["equal_credit"].tolist() == [[1.5, 1.5, 0.0], [-1.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert controls["last_turn"].tolist() == [[0.0, 1.5, 0.0], [-1.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert controls["random_turn"].sum(-1).tolist() == [1.5, -1.5, 0.0]
    assert controls["random_turn"][1, 0] == -1.5
