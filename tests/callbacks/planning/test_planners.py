import json
import re
import tomllib
from pathlib import Path

import pytest
import torch

from callbacks.planning.mined_grams import MinedGrams
from callbacks.planning.random_planner import RandomPlanner, rotated_plan_mask
from callbacks.planning.semantic_planner import SemanticPlanner, word_windows
from callbacks.planning.strategic_grams import PHRASES, StrategicGrams
from rlcredit.policy import Policy
from tests.conftest import make_rollout

LABELLED = Path(__file__).with_name("labelled.toml")


def of_texts(texts, pieces=lambda text: re.findall(r"\s?\w{1,4}|\s?[^\w\s]|\s", text)):
    """A rollout that spells these texts, words split into pieces of four letters."""
    rows = [pieces(text) for text in texts]
    assert list(map("".join, rows)) == texts
    rollout = make_rollout([0.0] * len(texts), group_size=1, width=max(2, *map(len, rows)))
    rollout.tokens = rows
    rollout.mask = torch.arange(rollout.mask.shape[1]) < torch.tensor(list(map(len, rows)))[:, None]
    return rollout


def labelled():
    """The passages, and which of their tokens plan."""
    texts, plans = [], []
    for passage in tomllib.loads(LABELLED.read_text(encoding="utf-8"))["passage"]:
        parts = re.split("[«»]", passage["text"])
        texts.append("".join(parts))
        plans.append([i % 2 == 1 for i, part in enumerate(parts) for _ in part])
    rollout = of_texts(texts)
    truth = torch.zeros_like(rollout.mask)
    for row, (tokens, plan) in enumerate(zip(rollout.tokens, plans)):
        place = 0
        for column, token in enumerate(tokens):
            marked = [plan[place + i] for i, letter in enumerate(token) if not letter.isspace()]
            truth[row, column] = any(marked)
            place += len(token)
    return rollout, truth


def precision_and_recall(planner):
    rollout, truth = labelled()
    planner.assign(rollout)
    words = torch.zeros_like(truth)
    for row, tokens in enumerate(rollout.tokens):
        words[row, : len(tokens)] = torch.tensor([any(map(str.isalnum, token)) for token in tokens])
    found, right = rollout.plan_mask & words, truth & words
    return (found & right).sum().item() / found.sum().item(), (found & right).sum().item() / right.sum().item()


def test_phrases_are_found_exactly_and_other_planning_is_missed():
    precision, recall = precision_and_recall(StrategicGrams())
    assert precision == 1.0
    assert recall == pytest.approx(0.56, abs=0.01)


@pytest.mark.parametrize(("window", "stride", "precision", "recall"), [(12, 6, 0.74, 0.27), (4, 2, 0.68, 0.72)])
def test_meaning_finds_other_planning_too_and_is_less_exact(window, stride, precision, recall):
    found = precision_and_recall(SemanticPlanner(window=window, stride=stride))
    assert found == pytest.approx((precision, recall), abs=0.03)


def planned(text, planner=None, **kwargs):
    """The text with what was marked in brackets."""
    rollout = of_texts([text], **kwargs)
    (planner or StrategicGrams()).assign(rollout)
    marked = ["[" + t + "]" if plan else t for t, plan in zip(rollout.tokens[0], rollout.plan_mask[0].tolist())]
    return "".join(marked).replace("][", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait , let me check", "[Wait , let me check]"),  # "wait let me" and "let me check" overlap
        ("A B C notice that", "A B C[ notice that]"),
        ("That's not right.", "[That's not right]."),
        ("that’s not right", "[that’s not right]"),
        ("it doesn't work, that doesn't work", "it doesn't work,[ that doesn't work]"),
        ("double-check it", "[double-check] it"),
        ("double - check it", "[double - check] it"),
        ("let me\nthink", "[let me\nthink]"),
        ("LET ME THINK", "[LET ME THINK]"),
        ("So the key insight is", "So[ the key insight] is"),
        ("outlet me think", "outlet me think"),
        ("notice thatch", "notice thatch"),
        ("wait... let me see", "[wait... let me] see"),
        ("", ""),
    ],
)
def test_what_is_marked_is_the_phrase_and_nothing_beside_it(text, expected):
    assert planned(text) == expected


def test_every_phrase_is_found_in_any_split_and_in_the_embedded_tokenizer():
    policy = Policy()
    policy.load()

    def embedded(text):
        ids = torch.tensor([policy.tokenizer(text, add_special_tokens=False)["input_ids"]])
        return policy.pieces(ids, torch.ones_like(ids, dtype=torch.bool))[0]

    def words(text):
        return re.findall(r"\S+|\s+", text)

    for phrase in PHRASES:
        for text in (phrase, phrase.replace("'", "’"), phrase.replace(" ", "\n").capitalize()):
            for pieces in (embedded, list, words):
                rollout = of_texts([f"4. {text} , 5"], pieces)
                StrategicGrams().assign(rollout)
                marked = [token for token, plan in zip(rollout.tokens[0], rollout.plan_mask[0].tolist()) if plan]
                assert "".join(marked) == text


def test_pieces_without_text_belong_to_the_character_that_they_begin():
    tokens = ["that", "", "", "’", "s", " not", " right", "", "<end>"]
    rollout = make_rollout([0.0], group_size=1, width=9)
    rollout.tokens, rollout.mask = [tokens], torch.ones(1, 9, dtype=torch.bool)
    StrategicGrams().assign(rollout)
    assert rollout.plan_mask.tolist() == [[True] * 7 + [False, False]]


def test_a_list_of_ones_own_replaces_the_default_and_an_empty_one_marks_nothing():
    own = StrategicGrams(["consider this"])
    assert planned("so consider this: let me think", own) == "so[ consider this]: let me think"
    assert planned("let me think: (4) .\n 5", StrategicGrams([])) == "let me think: (4) .\n 5"
    for wrong in (["..."], "let me think"):
        with pytest.raises(ValueError, match="expects a list of phrases made of words"):
            StrategicGrams(wrong)


def test_coverage_counts_tokens_and_completions(rollout):
    metrics = StrategicGrams().assign(rollout)
    lengths = rollout.mask.sum(-1)
    planning = (lengths >= 3).sum().item()  # "let me think" needs three tokens
    assert metrics["planning_completions"].item() == pytest.approx(planning / 8)
    assert metrics["coverage"].item() == pytest.approx(3 * planning / lengths.sum().item())


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
    with pytest.raises(ValueError, match=r"'nowhere/nothing' is no folder and not in reach.*rlcredit\[offline\]"):
        SemanticPlanner(model="nowhere/nothing").assign(of_texts(["one two three four"]))


def test_mined_grams_are_those_of_the_file(tmp_path):
    assert "let me think" in MinedGrams().grams
    file = tmp_path / "grams.json"
    file.write_text(json.dumps({"grams": ["carry the one"]}))
    assert planned("now carry the one", MinedGrams(str(file))) == "now[ carry the one]"
    for wrong in ("", "[1]", "{}", '{"grams": [1]}'):
        file.write_text(wrong)
        with pytest.raises(ValueError, match=r"expects a JSON object with a list of phrases `grams` in .*grams.json"):
            MinedGrams(str(file))
    with pytest.raises(ValueError, match=r"found no file nowhere.json. Write one with scripts/mine_grams.py"):
        MinedGrams("nowhere.json")


def test_the_placebo_marks_as_many_tokens_in_every_completion_at_other_places(rollout):
    StrategicGrams().assign(rollout)
    before, masks = rollout.plan_mask, []
    for step in (3, 4, 3):
        rollout.plan_mask, rollout.step = before, step
        metrics = RandomPlanner().assign(rollout)
        assert rollout.plan_mask.sum(-1).tolist() == before.sum(-1).tolist()
        assert not (rollout.plan_mask & ~rollout.mask).any()
        assert metrics["overlap"] < 1
        moved = (rollout.plan_mask != before).any(-1)
        assert moved.tolist() == (before.any(-1) & (before != rollout.mask).any(-1)).tolist()
        masks.append(rollout.plan_mask)
    assert not torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


def test_a_rotation_by_nothing_is_the_identity_and_one_keeps_the_run_together():
    plan, mask = torch.tensor([[True, True, False, False, False, False]]), torch.tensor([[True] * 5 + [False]])
    assert torch.equal(rotated_plan_mask(plan, mask, torch.tensor([0])), plan)
    assert rotated_plan_mask(plan, mask, torch.tensor([4])).tolist() == [[True, False, False, False, True, False]]
