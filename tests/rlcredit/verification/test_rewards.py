import pytest
import torch

from rlcredit.base.exit_status import RunStopped
from rlcredit.verification.rewards import judged_mask, require_verdicts, verdict_mask, verdict_rewards
from rlcredit.verification.verifiers import Verdict


def test_rewards_of_the_unjudged_are_the_mean_of_their_judged_group():
    right = torch.tensor([True, False, False, False, True, False])
    judged = torch.tensor([True, True, False, False, False, False])
    assert verdict_rewards(right, judged, 3).tolist() == [1.0, 0.0, 0.5, 0.0, 0.0, 0.0]


def test_verdicts_are_sorted_by_kind():
    verdicts = [Verdict.RIGHT, Verdict.UNJUDGED, Verdict.WRONG, Verdict.NO_ANSWER]
    assert verdict_mask(verdicts, Verdict.RIGHT, Verdict.WRONG).tolist() == [True, False, True, False]


def test_a_completion_without_an_answer_earns_what_a_wrong_one_earns():
    verdicts = [Verdict.RIGHT, Verdict.WRONG, Verdict.NO_ANSWER, Verdict.UNJUDGED]
    assert judged_mask(verdicts).tolist() == [True, True, True, False]
    assert verdict_rewards(verdict_mask(verdicts, Verdict.RIGHT), judged_mask(verdicts), 4).tolist() == pytest.approx(
        [1, 0, 0, 1 / 3]
    )


class Lenient:
    """A task of a user's."""


@pytest.mark.parametrize("strange", [True, 1.0, "right", None])
def test_what_is_no_verdict_is_refused_by_the_name_of_the_task(strange):
    with pytest.raises(
        RunStopped, match=rf"Lenient\.judge must return .* got {strange!r} of type {type(strange).__name__}"
    ):
        require_verdicts([Verdict.RIGHT, strange], 2, Lenient())


def test_every_completion_needs_a_verdict():
    assert require_verdicts([Verdict.RIGHT], 1, Lenient()) == [Verdict.RIGHT]
    with pytest.raises(RunStopped, match=r"Lenient\.judge must return a verdict for each of 2 completions, got 1"):
        require_verdicts([Verdict.RIGHT], 2, Lenient())
