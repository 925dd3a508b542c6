import torch

from rlcredit.formulas.quadrants import high_entropy_mask


def test_high_entropy_by_mean_median_and_share_of_any_scope():
    entropy = torch.tensor([[0.0, 0.1, 0.2, 0.9], [0.8, 0.7, 0.6, 0.5]])
    mask = torch.ones_like(entropy, dtype=torch.bool)
    found = {
        (threshold, scope): high_entropy_mask(entropy, mask, threshold, scope, 2, share=0.25).int().tolist()
        for threshold in ("mean", "median", "top")
        for scope in ("sequence", "group", "batch")
    }
    assert found["mean", "sequence"] == [[0, 0, 0, 1], [1, 1, 0, 0]]
    assert found["mean", "group"] == found["mean", "batch"] == [[0, 0, 0, 1], [1, 1, 1, 1]]
    assert found["median", "sequence"] == [[0, 0, 1, 1], [1, 1, 0, 0]]
    assert found["median", "group"] == found["median", "batch"] == [[0, 0, 0, 1], [1, 1, 1, 0]]
    assert found["top", "sequence"] == [[0, 0, 0, 1], [1, 0, 0, 0]]
    assert found["top", "group"] == found["top", "batch"] == [[0, 0, 0, 1], [1, 0, 0, 0]]
