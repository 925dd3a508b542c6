import re

import pytest
import torch

from callbacks.planning.strategic_grams import PLANNING_PHRASES, StrategicGrams
from rlcredit.policy.policy import Policy
from tests.callbacks.planning.texts import of_texts, planned, precision_and_recall
from tests.conftest import make_rollout


def test_phrases_are_found_exactly_and_other_planning_is_missed():
    precision, recall = precision_and_recall(StrategicGrams())
    assert precision == 1.0
    assert recall == pytest.approx(0.56, abs=0.01)


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
        return policy.decode_pieces(ids, torch.ones_like(ids, dtype=torch.bool))[0]

    def words(text):
        return re.findall(r"\S+|\s+", text)

    for phrase in PLANNING_PHRASES:
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
