import time

import torch
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.formulas.spans import (
    mask_from_spans,
    phrase_plan_mask,
    phrase_spans,
    plan_mask_from_spans,
    turn_texts,
)

TEXTS = st.text(alphabet="ab -'\n", max_size=30)


def test_overlapping_phrases_are_one_span_and_neighbours_are_two():
    assert phrase_spans("wait let me think", ["wait let me", "let me think"]) == [(0, 17)]
    assert phrase_spans("start over start over", ["start over"]) == [(0, 10), (11, 21)]


def test_the_longest_phrase_that_begins_somewhere_wins():
    assert phrase_spans("let me think it over", ["let me", "let me think"]) == [(0, 12)]


@given(TEXTS, st.lists(st.integers(1, 4), max_size=40))
def test_a_token_is_marked_if_and_only_if_a_span_touches_one_of_its_characters(text, cuts):
    tokens, place = [], 0
    for cut in cuts:
        tokens.append(text[place : place + cut])
        place += cut
    tokens.append(text[place:])
    spans = phrase_spans(text, ["a b", "ba"])
    inside = [any(start <= i < end for start, end in spans) for i in range(len(text))]
    expected, place = [], 0
    for token in tokens:
        if token:
            expected.append(any(inside[place : place + len(token)]))
        else:
            expected.append(any(start < place < end for start, end in spans))
        place += len(token)
    assert mask_from_spans(tokens, spans).tolist() == expected


def test_rows_may_be_shorter_than_the_batch_is_wide():
    turn = torch.tensor([[0, 0, -1], [0, -1, -1]])
    marked = plan_mask_from_spans([["ab", "cd"], ["ef"]], [[(1, 3)], []], turn)
    assert marked.tolist() == [[True, True, False], [False, False, False]]


def test_a_phrase_spans_no_two_turns_and_nothing_that_an_environment_has_said():
    rows = [["wait", " let", " me", "let", " me", " wait"], ["let", " me", "let", " me", "me"]]
    turn = torch.tensor([[0, 0, -1, 1, 1, 1], [0, -1, 1, 2, 2, -1]])
    assert turn_texts(rows, turn) == ["wait let", "let me wait", "let", "let", " meme"]
    assert phrase_plan_mask(rows, ["let me", "wait let me"], turn).int().tolist() == [[0, 0, 0, 1, 1, 0], [0] * 6]


def test_a_completion_that_trails_off_in_dots_is_searched_in_no_time():
    started, dots = time.perf_counter(), "." * 5000
    assert phrase_spans(f"wait{dots}x. the answer is{dots} 4", ["wait let me", "is this right"]) == []
    assert phrase_spans(f"wait{dots} let me", ["wait let me"]) == [(0, 5011)]
    assert time.perf_counter() - started < 1


def test_no_phrases_are_found_nowhere():
    assert phrase_spans("a: (b)..\n - c", []) == []
