"""Answers that no vLLM would give: each ends with one sentence, and no token of it is believed."""

import asyncio
import copy
import time

import pytest
from aiohttp import web
from small_policies import load_with_random_adapter

from rlcredit.base.exit_status import NO_ENGINE, EngineUnavailable
from rlcredit.config.json_shapes import find_shape_mismatch
from rlcredit.decoding.sampling import Sampling
from rlcredit.decoding.vllm_answers import make_completion_shape
from rlcredit.decoding.vllm_server import VLLMServer
from rlcredit.policy.policy import Policy
from tests.rlcredit.decoding.fake_vllm import FakeVLLM, served

END = 9
GOOD = {
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "token_ids": [5, 6, END],
            "logprobs": {"token_logprobs": [-0.5, 0.0, -3]},
        }
    ]
}


def change(**fields):
    """Return the good answer with other fields in its completion; ``lp`` are its log-probabilities."""
    answer = copy.deepcopy(GOOD)
    if "lp" in fields:
        fields["logprobs"] = {"token_logprobs": fields.pop("lp")}
    answer["choices"][0] |= fields
    return answer


def leave_out(name):
    answer = copy.deepcopy(GOOD)
    del answer["choices"][0][name]
    return answer


BAD = {
    "its content is [], not a mapping": [],
    "its content is None, not a mapping": None,
    "choices is missing": {},
    "choices is {}, not a list": {"choices": {}},
    "choices is [], not a list of one completion": {"choices": []},
    "choices is [{'finish_reason'": {"choices": GOOD["choices"] * 2},
    "choices[0] is [{'finish_reason'": {"choices": [GOOD["choices"]]},
    "choices[0].index is 1, not 0, the only one": change(index=1),
    "choices[0].finish_reason is 'abort', not stop or length": change(finish_reason="abort"),
    "choices[0].finish_reason is None, not a text": change(finish_reason=None),
    "choices[0].finish_reason is missing": leave_out("finish_reason"),
    "choices[0].token_ids is missing": leave_out("token_ids"),
    "choices[0].token_ids is None, not a list": change(token_ids=None),
    "choices[0].token_ids is [], not a list of 1 to 4 token ids": change(token_ids=[], lp=[]),
    "choices[0].token_ids is [5, 5, 5, 5, 5], not a list of 1 to 4 token ids": change(token_ids=[5] * 5, lp=[-1] * 5),
    "choices[0].token_ids[0] is [5], not a whole number": change(token_ids=[[5]]),
    "choices[0].token_ids[0] is 5.0, not a whole number": change(token_ids=[5.0]),
    "choices[0].token_ids[0] is True, not a whole number": change(token_ids=[True]),
    "choices[0].token_ids[0] is '5', not a whole number": change(token_ids=["5"]),
    "choices[0].token_ids[0] is -1, not a token id below 48": change(token_ids=[-1]),
    "choices[0].token_ids[1] is 48, not a token id below 48": change(token_ids=[47, 48]),
    "choices[0].token_ids[0] is a number of 100 bits": change(token_ids=[10**30]),
    "choices[0].token_ids is [9, 5, 9], not token ids that go no further than a stop token": change(
        token_ids=[END, 5, END]
    ),
    "choices[0].logprobs is None, not a mapping": change(logprobs=None),
    "choices[0].logprobs.token_logprobs is missing": change(logprobs={}),
    "choices[0].logprobs.token_logprobs[0] is None, not a number": change(lp=[None, -1, -1]),
    "choices[0].logprobs.token_logprobs[1] is nan, not a log-probability": change(lp=[-1, float("nan"), -1]),
    "choices[0].logprobs.token_logprobs[1] is -inf, not a log-probability": change(lp=[-1, -float("inf"), -1]),
    "choices[0].logprobs.token_logprobs[1] is 0.1, not a log-probability, from 0 down": change(lp=[-1, 0.1, -1]),
    "choices[0] is {'finish_reason'": change(lp=[-1]),
    "a completion that stops with a stop token": change(token_ids=[5, 6, 7]),
}


def find_problem(answer):
    return find_shape_mismatch(answer, make_completion_shape(max_tokens=4, vocabulary=48, stops=[END]))


def test_a_good_answer_has_the_shape():
    assert find_problem(GOOD) is None
    assert find_problem(change(finish_reason="length", token_ids=[5, 6, 7])) is None


@pytest.mark.parametrize("said", BAD)
def test_a_bad_answer_is_told_by_its_first_fault(said):
    assert said in find_problem(BAD[said])


@pytest.fixture
def ask():
    """Return a function that answers a prompt by what a server sends to each request for a completion."""
    policy = load_with_random_adapter(Policy())
    prompt_ids = policy.encode_questions(["1 + 2?"])

    def ask(complete=None, load=None, **arguments):
        fake = FakeVLLM()
        fake.load = load or fake.load
        if complete is not None:
            fake.complete_in_turn = complete
        with served(fake) as url:
            engine = VLLMServer(url, patience=0.1, **arguments)
            try:
                engine.sample(policy, prompt_ids, [0], Sampling(1, max_tokens=4), seed=0, step=0)
            finally:
                engine.close()

    return ask


def reply(body=b"", **headers):
    async def complete(request, asked):
        return web.Response(body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return complete


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"<html>", {}, "does not answer as vLLM does: its content is '<html>', not a mapping"),
        (b"", {}, "its content is '', not a mapping"),
        (bytes(range(256)), {}, "its content is '"),
        (b'{"choices": [{"ind', {}, "its content is '"),
        (b"[" * 5000, {}, "its content is '"),
        (b'{"choices": ' + b"9" * 5000 + b"}", {}, "its content is '"),
        (b'{"choices": ' + b"[" * 300 + b"]" * 300 + b"}", {}, r"choices\[0\] is \[\[\["),
        (b"{}", {"Content_Type": "application/json; charset=nonsense"}, "choices is missing"),
        (b"{}", {"Content_Encoding": "gzip"}, "no answer, tried for 0.1 seconds"),
        (b" " * 10**6, {}, "sends more than 81920 bytes"),
        (b'{"error": {"message": "out of memory"}}', {}, r"of 12 tokens \(200: out of memory\)"),
    ],
)
def test_garbage_ends_with_a_sentence(ask, body, headers, said):
    with pytest.raises(EngineUnavailable, match=said) as refusal:
        ask(reply(body, **headers))
    assert refusal.value.status == NO_ENGINE


@pytest.mark.parametrize("body", ["", "<html>log in</html>", '{"error": {"message": "no room"}}', "{}", "null", "[]"])
def test_an_adapter_is_loaded_only_where_the_server_says_so(ask, body):
    with pytest.raises(EngineUnavailable, match=r"does not accept the adapter \(200: "):
        ask(load=lambda asked: web.Response(text=body))


def test_a_server_that_drips_is_not_waited_for_longer_than_for_one_that_is_silent(ask):
    async def drip(request, asked):
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" ")
            await asyncio.sleep(0.1)
        return response

    began = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"no answer, tried for 0.1 seconds \(TimeoutError after 0.5 seconds\)"):
        ask(drip, timeout=0.5)
    assert time.monotonic() - began < 5
