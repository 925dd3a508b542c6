"""The oracle as a probe, and the scores it gives."""

import json
import re

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_oracle import CreditOracle, scored, signed
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from rlcredit.functional.ranking import area_under_curve, mass_captured, rank_correlation
from rlcredit.oracle import TrueCredit


def found(credit, error=0.1):
    credit = torch.tensor(credit, dtype=torch.float64)
    mask = torch.ones_like(credit, dtype=torch.bool)
    return TrueCredit([0], torch.zeros(len(credit), credit.shape[1] + 1), credit, torch.full_like(credit, error), mask)


def test_scores_by_hand():
    truth = found([[0.0, 0.5, -0.3, 0.1, 0.0]])
    # Forks: the second and third token. The score ranks one of them first and one third of five.
    scores = scored(truth, torch.tensor([[0.2, 0.9, -0.4, 0.5, 0.1]]))
    assert scores["auc"] == pytest.approx(5 / 6)
    assert scores["mass_20"] == pytest.approx(0.5 / 0.9)
    assert scores["mass_10"] == pytest.approx(0.25 / 0.9)
    assert signed(truth, truth.credit) == pytest.approx({"cosine": 1, "cosine_within": 1})
    flat = signed(truth, torch.ones(1, 5))
    assert flat["cosine"] == pytest.approx(0.3 / (5 * 0.35) ** 0.5)
    assert flat["cosine_within"] == 0


def test_constant_scores_find_as_much_as_chance():
    mass, flat = torch.tensor([3.0, 1.0, 0.0, 0.0]), torch.ones(4)
    assert mass_captured(mass, flat, 0.2) == pytest.approx(0.2)
    assert area_under_curve(flat, mass > 0) == 0.5
    assert rank_correlation(flat, mass) == 0
    assert mass_captured(0 * mass, mass, 0.5) == 0
    assert area_under_curve(mass, mass > 9) == 0.5


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
