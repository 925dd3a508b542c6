import torch

from rlcredit.rewards import are, rewards
from rlcredit.verifiers import Verdict


def test_rewards_of_the_unjudged_are_the_mean_of_their_judged_group():
    right = torch.tensor([True, False, False, False, True, False])
    judged = torch.tensor([True, True, False, False, False, False])
    assert rewards(right, judged, 3).tolist() == [1.0, 0.0, 0.5, 0.0, 0.0, 0.0]


def test_verdicts_are_sorted_by_kind():
    verdicts = [Verdict.RIGHT, Verdict.UNJUDGED, Verdict.WRONG]
    assert are(verdicts, Verdict.RIGHT, Verdict.WRONG).tolist() == [True, False, True]
