import pytest

from callbacks.planning.semantic_planner import SemanticPlanner, word_windows
from tests.callbacks.planning.texts import of_texts, precision_and_recall


@pytest.mark.parametrize(("window", "stride", "precision", "recall"), [(12, 6, 0.74, 0.27), (4, 2, 0.68, 0.72)])
def test_meaning_finds_other_planning_too_and_is_less_exact(window, stride, precision, recall):
    found = precision_and_recall(SemanticPlanner(window=window, stride=stride))
    assert found == pytest.approx((precision, recall), abs=0.03)


def test_windows_overlap_and_the_last_one_may_be_short():
    text = "a b c d e f g"
    assert [text[start:end] for start, end in word_windows(text, 4, 2)] == ["a b c d", "c d e f", "e f g"]
    assert word_windows("a b", 4, 2) == []
    assert [text[start:end] for start, end in word_windows(text[:11], 4, 4)] == [
        "a b c d",
        "d e f",
    ]  # none is left over


def test_the_semantic_planner_encodes_no_window_twice_and_forgets_the_oldest():
    think, compute = "Let me think about another way to solve this.", "4 + 5 = 9 and 9 - 3 = 6."
    planner, rollout = SemanticPlanner(), of_texts([think, compute, compute])
    assert planner.assign(rollout)["encoded"] == 2
    assert rollout.plan_mask.any(-1).tolist() == [True, False, False]
    assert planner.assign(rollout)["encoded"] == 0
    forgetful = SemanticPlanner()
    forgetful.judge.remembered = 1
    encoded = [forgetful.assign(of_texts([text]))["encoded"] for text in (think, compute, compute, think)]
    assert encoded == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 2}, "window >= 3"),
        ({"stride": 20}, "window >= stride"),
        ({"anchors": "nowhere.toml"}, "no file nowhere.toml with anchors"),
    ],
)
def test_a_semantic_planner_that_cannot_work_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SemanticPlanner(**arguments)


def test_anchors_need_both_lists(tmp_path):
    (tmp_path / "a.toml").write_text('planning = ["Let me think."]')
    with pytest.raises(ValueError, match="has no list of sentences `execution`"):
        SemanticPlanner(anchors=str(tmp_path / "a.toml"))


def test_a_model_out_of_reach_is_named_with_its_repair(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"'nowhere/nothing' is not a folder and cannot be .*rlcredit\[offline\]"):
        SemanticPlanner(model="nowhere/nothing").assign(of_texts(["one two three four"]))
