"""What is worth adopting: comparisons from kept results, and the noise of gradients by shape."""

import numpy as np
import pytest
import torch

from studies.adoption import join_comparisons
from studies.adoption.declare_adoption import COMPARISONS
from studies.adoption.measure_shapes import FLAT, GUARDED, compare_shapes, estimate_with_ends, measure_agreements
from studies.numbers import read_results


def test_kept_results_give_the_comparisons_that_the_campaigns_folders_gave(tmp_path, monkeypatch):
    kept = {name: (join_comparisons.FOLDER / "results" / "adoption" / name).read_text() for name in FILES}
    written = {}
    monkeypatch.setattr(join_comparisons, "write_atomically", lambda path, text: written.update({path.name: text}))
    join_comparisons.main()
    assert written == kept


FILES = ("study.csv", "collapses.csv")


def test_a_campaign_that_lacks_a_run_is_not_joined():
    evidence = join_comparisons.restore_evidence("batches_long_chains")
    name = "batches_long_chains"
    tokens = read_results(f"{name}/tokens")
    rows = [row for row in read_results(f"{name}/runs") if (row["condition"], row["seed"]) != ("reused", "660")]
    with pytest.raises(ValueError, match="batches_long_chains lacks 1 runs"):
        join_comparisons.restore_runs(evidence.declaration, rows, tokens)


def test_an_ablation_has_the_rate_of_what_it_ablates():
    falls = COMPARISONS["falls"]
    assert list(falls.rated_arms) == ["critic"]
    assert falls.share_rates({"critic": 0.5}) == {"critic": 0.5, "critic_mixed": 0.5}
    assert COMPARISONS["batches"].rated_arms == COMPARISONS["batches"].arms


def test_more_noise_agrees_less_and_differences_are_of_batches_of_their_own():
    noise = torch.Generator().manual_seed(0)

    def draw(size):
        return [torch.ones(8) + size * torch.randn(8, generator=noise) for _ in range(40)]

    agreements = {
        "4_by_8": measure_agreements({FLAT: draw(2.0), GUARDED: draw(0.5)}),
        "16_by_2": measure_agreements({FLAT: draw(2.0), GUARDED: draw(2.0)}),
    }
    rows = {(row["shape"], row["credit"], row["quantity"]): row for row in compare_shapes(agreements)}
    assert rows["4_by_8", GUARDED, "agreement"]["estimate"] == pytest.approx(1 / 1.25, abs=0.05)
    assert rows["4_by_8", FLAT, "agreement"]["estimate"] == pytest.approx(1 / 5, abs=0.1)
    lost, interaction = (rows["16_by_2", GUARDED, quantity] for quantity in ("more", "interaction"))
    assert lost["high"] < 0
    assert interaction["high"] < 0
    assert rows["16_by_2", FLAT, "more"]["low"] < 0 < rows["16_by_2", FLAT, "more"]["high"]


def test_the_ends_of_a_difference_are_as_far_as_both_together():
    parts = [np.array([2.0, 2.5, 2.0, 1.5]), np.array([-1.0, -1.5, -1.0, -0.5])]
    sums, alone = estimate_with_ends(parts), estimate_with_ends(parts[:1])
    assert sums["estimate"] == 1.0
    assert sums["high"] - 1 == pytest.approx(np.sqrt(2) * (alone["high"] - 2))
