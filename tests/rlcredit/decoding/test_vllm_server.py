"""The engine against a server that speaks vLLM's protocol; what a real one says to it is asked where one is at hand."""

import asyncio
import socket
import threading

import pytest
import torch
from aiohttp import web
from small_policies import load_with_random_adapter

from rlcredit.base.exit_status import NO_ENGINE, EngineUnavailable, PolicyMismatch
from rlcredit.decoding.sampling import Sampling
from rlcredit.decoding.vllm_server import VLLMServer
from rlcredit.policy.adapters import install_adapter
from rlcredit.policy.policy import Policy
from tests.rlcredit.decoding.fake_vllm import FakeVLLM, served
from tests.small_runs import finish_small_run, read_recorded_steps


@pytest.fixture
def fake():
    return FakeVLLM()


def test_every_update_is_answered_by_its_own_adapter_and_every_completion_by_its_own_seed(fit, fake, tmp_path):
    with served(fake) as url:
        run = fit(steps=3, engine=VLLMServer(f"{url}/v1/", folder=str(tmp_path / "shared")))
    assert all(step["train/mismatch_max"] < 1e-4 for step in run.history)
    assert all(0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001 for step in run.history)
    assert len(set(fake.names)) == 3
    assert not fake.adapters
    assert not list((tmp_path / "shared").iterdir())
    assert len({body["seed"] for body in fake.bodies}) == len(fake.bodies) == 3 * 16
    assert {body["model"] for body in fake.bodies} == set(fake.names)
    assert all(body["top_p"] == 1 and body["top_k"] == 0 and body["repetition_penalty"] == 1 for body in fake.bodies)


@pytest.mark.slow
def test_two_runs_ask_the_same(fit, fake):
    asked = []
    for _ in range(2):
        fake.bodies = []
        with served(fake) as url:
            fit(steps=1, engine=VLLMServer(url))
        asked.append(sorted((body["seed"], tuple(body["prompt"])) for body in fake.bodies))
    assert asked[0] == asked[1]


@pytest.mark.slow
def test_several_servers_share_the_prompts(fit, fake):
    other = FakeVLLM()
    with served(fake) as first, served(other) as second:
        run = fit(steps=2, engine=VLLMServer([first, second]))
    assert [step["train/mismatch_max"] < 1e-4 for step in run.history] == [True, True]
    assert len(fake.bodies) == len(other.bodies) == 2 * 8
    assert {tuple(body["prompt"]) for body in fake.bodies}.isdisjoint(tuple(body["prompt"]) for body in other.bodies)


def test_a_server_that_is_busy_or_loses_answers_is_asked_again(fit, fake):
    fake.busy, fake.lost = 2, 2
    with served(fake) as url:
        run = fit(steps=1, engine=VLLMServer(url))
    assert run.history[0]["train/mismatch_max"] < 1e-4


@pytest.mark.slow
def test_a_server_that_has_been_started_again_gets_the_adapter_again(fit, fake):
    complete = fake.complete

    def forgetful(body):
        if len(fake.bodies) == 5 and len(fake.names) == 1:
            fake.adapters.clear()
        return complete(body)

    fake.complete = forgetful
    with served(fake) as url:
        run = fit(steps=1, engine=VLLMServer(url))
    assert len(fake.names) == 2
    assert len(set(fake.names)) == 1
    assert run.history[0]["train/mismatch_max"] < 1e-4


def test_a_dead_server_ends_the_run_with_one_sentence(fit):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            EngineUnavailable, match=r"no answer, tried for 0.5 seconds \(Client.*server.s own log and start it again"
        ):
            fit(engine=VLLMServer(url, patience=0.5))


@pytest.mark.slow
def test_a_run_whose_server_dies_keeps_its_last_step_and_goes_on(tmp_path, mlflow_database, fake):
    complete = fake.complete

    def dying(body):
        # 32 held-out answers, two steps of 8, as many held-out answers again, a step, and half of one
        return complete(body) if len(fake.bodies) < 92 else web.json_response({}, status=500)

    fake.complete = dying
    with served(fake) as url:
        asked = ("--model.engine=VLLMServer", f"--model.engine.url={url}", "--model.engine.patience=0.5")
        status, _, err = finish_small_run(tmp_path, *asked, "--trainer.max_steps=4")
        assert status == NO_ENGINE, err
        assert "Traceback" not in err
        assert "no answer, tried for 0.5 seconds (status 500" in err
        assert read_recorded_steps(tmp_path) == [0, 1, 2]
        fake.complete = complete
        status, _, err = finish_small_run(tmp_path, *asked, "--trainer.max_steps=4", "--ckpt_path=auto")
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert len(fake.bodies) == 92 + 8 + 32  # no step was sampled twice


def test_a_server_that_refuses_is_quoted(fit, fake):
    fake.complete = lambda body: _refusal("This model's maximum context length is 8 tokens.")
    with served(fake) as url, pytest.raises(EngineUnavailable, match="maximum context length is 8 tokens"):
        fit(engine=VLLMServer(url))


def test_a_server_without_adapters_is_told_what_it_needs(fit, fake):
    fake.load = lambda body: _refusal("Not Found", 404)
    with served(fake) as url, pytest.raises(EngineUnavailable, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
        fit(engine=VLLMServer(url))


@pytest.mark.slow
def test_an_adapter_that_is_not_applied_stops_the_run_at_the_first_step_after_an_update(fit, fake):
    fake.deaf = True
    with served(fake) as url, pytest.raises(PolicyMismatch, match=r"^Step 1: .* the adapter has not been applied"):
        fit(steps=3, lr=1e-4, engine=VLLMServer(url), sampler_tolerance=1.0)


@pytest.mark.slow
def test_held_out_questions_are_not_answered_by_other_weights_either(fit, fake):
    fake.deaf = True
    with served(fake) as url, pytest.raises(PolicyMismatch, match="the adapter has not been applied"):
        fit(
            steps=1,
            engine=VLLMServer(url),
            limit_val_batches=1,
            val_check_interval=1,
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "127.0.0.1:8000"}, "url to be http://HOST:PORT"),
        ({"url": []}, "url to be http://HOST:PORT"),
        ({"requests": 0}, "requests >= 1"),
        ({"timeout": 0.0}, "timeout > 0"),
        ({"ahead": 2}, "ahead 0 or 1, got 2"),
    ],
)
def test_arguments_that_cannot_be_meant(arguments, said):
    with pytest.raises(ValueError, match=said):
        VLLMServer(**arguments)


@pytest.fixture
def begin(fake):
    """Return a function that has an engine begin to answer two prompts, with the adapter times a factor."""
    policy = load_with_random_adapter(Policy())
    adapter = policy.copy_adapter()
    prompt_ids = policy.encode_questions(["1 + 2?", "3 + 4?"])

    def begin(engine, factor, **asked):
        install_adapter(policy, {name: factor * weight for name, weight in adapter.items()})
        arguments = (policy, prompt_ids, [0, 1], Sampling(completions=2, max_tokens=12))
        wait = engine.start_sampling(*arguments, seed=0, **asked)
        install_adapter(policy, adapter)
        return wait

    return begin


def test_answers_on_their_way_arrive_before_another_adapter_is_sent_and_are_kept(fake, begin):
    with served(fake) as url:
        alone, engine = VLLMServer(url), VLLMServer(url, ahead=1)
        expected = [begin(alone, factor, step=step)() for factor, step in ((1, 5), (2, 6))]
        alone.close()
        asked = fake.asked
        held = threading.Event()
        fake.holds = lambda number: number == asked and not held.is_set()
        first = begin(engine, 1, step=5)
        threading.Timer(0.2, held.set).start()
        second = begin(engine, 2, step=6)
        assert held.is_set()
        found = [first(), second()]
        engine.close()
    for samples, alike in zip(found, expected, strict=True):
        assert torch.equal(samples.completion_ids, alike.completion_ids)
        assert torch.equal(samples.logprobs, alike.logprobs)
    assert fake.faults == []
    assert not fake.adapters


def test_closed_it_gives_up_what_is_on_its_way_and_can_be_used_again(fake, begin, tmp_path):
    fake.holds = lambda number: True
    with served(fake) as url:
        engine = VLLMServer(url, folder=str(tmp_path), ahead=1)
        begin(engine, 1, step=5)
        assert [thread.name for thread in threading.enumerate()].count("rlcredit-requests") == 1
        engine.close()
        assert not any(thread.name == "rlcredit-requests" for thread in threading.enumerate())
        assert not list(tmp_path.iterdir())
        assert not fake.adapters
        fake.holds = lambda number: False
        assert begin(engine, 1, step=5)().mask.any()
        engine.close()


def test_it_samples_and_is_closed_where_an_event_loop_runs_as_in_a_notebook(fake, begin, tmp_path):
    async def run_cell():
        with served(fake) as url:
            engine = VLLMServer(url, folder=str(tmp_path))
            samples = begin(engine, 1, step=5)()
            engine.close()
        return samples

    assert asyncio.run(run_cell()).mask.any()
    assert not list(tmp_path.iterdir())
    assert not fake.adapters


def test_an_adapter_that_is_refused_is_reported_to_whoever_waits(fake, begin):
    fake.load = lambda body: _refusal("too large")
    with served(fake) as url:
        wait = begin(VLLMServer(url, ahead=1), 1, step=5)
        with pytest.raises(EngineUnavailable, match="too large"):
            wait()


def _refusal(said, status=400):
    return web.json_response({"error": {"message": said}}, status=status)
