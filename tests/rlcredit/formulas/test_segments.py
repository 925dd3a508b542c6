import torch

from rlcredit.formulas.segments import segment_starts

TOKENS = ["let", " me", " think", ": ", "7", "-6", "=1", ". ", "no", "\n", "3.5", ".\n", "wait", ", let", " me", " see"]


def first_tokens(cuts, length=16):
    mask = (torch.arange(18) < length)[None]
    plan_mask = torch.zeros_like(mask)
    plan_mask[0, :3] = plan_mask[0, 12:] = True
    return segment_starts([TOKENS[:length]], plan_mask, mask, cuts)[0].nonzero().flatten().tolist()


def test_segments_by_hand():
    assert first_tokens("token") == list(range(16))
    assert first_tokens("sentence") == [0, 8, 10, 12]  # "3.5" is one number, the line break after "no" an end
    assert first_tokens("phrase") == [0, 3, 12]
    assert first_tokens("phrase", length=6) == [0, 3]
