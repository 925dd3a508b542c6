"""What a vLLM server may answer, as shapes; anything else ends the run before a token of it is believed."""

from collections.abc import Collection
from math import inf
from typing import Any

from rlcredit.config.json_shapes import Limited, Shape

FINISH_REASONS = ("stop", "length")
"""Why a completion may end; others, such as ``abort``, are faults."""

ADAPTER_LOADED: Shape = Limited(str, lambda text: text.startswith("Success"), "a text that begins with Success")
"""Answer to an adapter."""

LOGPROB_SHAPE: Shape = Limited(float, lambda value: -inf < value <= 0, "a log-probability, from 0 down")


def make_completion_shape(
    max_tokens: int, vocabulary: int, stops: Collection[int], turn_ends: Collection[str] = ()
) -> Shape:
    """Return the shape of an answer to one prompt.

    Args:
        max_tokens: Most tokens of the completion.
        vocabulary: Number of tokens that there are.
        stops: Tokens that end a completion.
        turn_ends: Texts that end it, too.

    """
    token = Limited(int, range(vocabulary).__contains__, f"a token id below {vocabulary}")
    lengths = range(1, max_tokens + 1)
    ids = Limited([token], lambda tokens: len(tokens) in lengths, f"a list of 1 to {max_tokens} token ids")
    ids = Limited(ids, lambda tokens: not {*tokens[:-1]} & {*stops}, "token ids that go no further than a stop token")
    choice: Shape = {
        "index?": Limited(int, lambda number: number == 0, "0, the only one"),
        "finish_reason": Limited(str, FINISH_REASONS.__contains__, " or ".join(FINISH_REASONS)),
        "token_ids": ids,
        "logprobs": {"token_logprobs": [LOGPROB_SHAPE]},
    }
    choice = Limited(choice, _has_logprob_per_token, "a completion with one log-probability for each token id")
    ends = Limited(choice, lambda given: _ends_as_said(given, stops), "a completion that stops with a stop token")
    return {
        "choices": Limited(
            [choice if turn_ends else ends], lambda choices: len(choices) == 1, "a list of one completion"
        )
    }


def _has_logprob_per_token(choice: dict[str, Any]) -> bool:
    return len(choice["token_ids"]) == len(choice["logprobs"]["token_logprobs"])


def _ends_as_said(choice: dict[str, Any], stops: Collection[int]) -> bool:
    return choice["finish_reason"] != "stop" or choice["token_ids"][-1] in stops
