import torch

from rlcredit.formulas.segments import segment_starts
from rlcredit.formulas.turns import number_turns

TOKENS = ["let", " me", " think", ": ", "7", "-6", "=1", ". ", "no", "\n", "3.5", ".\n", "wait", ", let", " me", " see"]


def first_tokens(cuts, length=16):
    mask = (torch.arange(18) < length)[None]
    plan_mask = torch.zeros_like(mask)
    plan_mask[0, :3] = plan_mask[0, 12:] = True
    return segment_starts([TOKENS[:length]], plan_mask, number_turns(mask), cuts)[0].nonzero().flatten().tolist()


def test_segments_by_hand():
    assert first_tokens("token") == list(range(16))
    assert first_tokens("sentence") == [0, 8, 10, 12]  # "3.5" is one number, the line break after "no" an end
    assert first_tokens("phrase") == [0, 3, 12]
    assert first_tokens("phrase", length=6) == [0, 3]


def test_no_segment_goes_beyond_the_end_of_a_turn():
    pieces = ["Go", " on", "\n", "Wall.", "\n", "go", " back", ". ", "Stop", "."]
    turn = torch.tensor([[0, 0, 0, -1, -1, 1, 1, 1, 2, 2, -1]])
    plan_mask = torch.tensor([[False, True, True, True, True, True, False, False, False, False, True]])
    expected = {"token": [0, 1, 2, 5, 6, 7, 8, 9], "sentence": [0, 5, 8], "phrase": [0, 1, 5, 6, 8]}
    for cuts, columns in expected.items():
        assert segment_starts([pieces], plan_mask, turn, cuts)[0].nonzero().flatten().tolist() == columns
