"""Rollouts ahead, of a server and of other engines: drawn with which weights, when, and how a run goes on."""

import signal
import threading
import time
from dataclasses import replace

import pytest
import torch
from aiohttp import web
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from tiny_traces import CHAIN_SUM
from torch.utils.data import DataLoader

from callbacks.episode.grpo import GRPO
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.base.exit_status import EngineUnavailable, PolicyMismatch
from rlcredit.base.interrupts import SignalInterrupt
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.vllm_server import VLLMServer
from rlcredit.policy.adapters import install_adapter, load_adapter_weights
from rlcredit.policy.policy import Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.dynamic_sampling import DynamicSampling
from rlcredit.training.module import PolicyModule
from rlcredit.training.nan_and_mismatch import rms_difference
from tests.rlcredit.decoding.fake_vllm import FakeVLLM, served
from tests.rlcredit.decoding.test_background_coroutine import count_threads
from tests.slow_cases import mark_others_slow
from tests.small_runs import finish_small_run, read_recorded_steps, start_small_run, wait_for_small_run
from tests.spy import RolloutSpy

ROWS = 16
"""Completions of a step of the fixture ``fit``."""

pytestmark = pytest.mark.filterwarnings(
    "ignore:Be aware that when using `ckpt_path`", "ignore:You.re resuming from a checkpoint"
)


@pytest.fixture
def fake():
    return FakeVLLM()


class AdapterKeeper(Callback):
    """Keep the adapter as it is before every update."""

    def __init__(self):
        self.before = []

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self.before.append(module.policy.copy_adapter())


def fit_ahead(fit, fake, stack=(), **arguments):
    """Train against a fake server with one rollout ahead."""
    with served(fake) as url:
        return fit(engine=VLLMServer(url, ahead=1, patience=0.3), stack=[GRPO(), *stack], **arguments)


def measure_distances(rollout, adapters):
    """Return how far an engine's log-probabilities are from those of a policy with each of some adapters."""
    policy, distances = Policy(), []
    policy.load()
    for adapter in adapters:
        install_adapter(policy, adapter)
        with torch.no_grad():
            scores = policy.score_prompts(rollout.prompt_ids, rollout.completion_ids, 0.7)
        distances.append(rms_difference(rollout.engine_logprobs, scores.logprobs, rollout.mask))
    return distances


@pytest.mark.parametrize(("updates", "drawing"), [(1, [0, 0, 1, 2]), (2, [0, 0, 2])])
def test_a_rollout_is_drawn_with_the_weights_from_before_the_update_that_precedes_it(fit, fake, updates, drawing):
    spy, keeper, steps = RolloutSpy(), AdapterKeeper(), updates * len(drawing)
    run = fit_ahead(fit, fake, [spy, keeper], steps=steps, lr=1e-2, updates_per_rollout=updates)
    for rollout, step in zip(spy.seen, drawing, strict=True):
        distances = measure_distances(rollout, keeper.before)
        assert distances.pop(step) < 1e-5
        assert min(distances) > 1e-3
    assert len(fake.names) == len(set(drawing))  # the first two rollouts share an adapter
    assert fake.faults == []
    assert not fake.adapters
    first = run.history[::updates]
    assert all(0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001 for step in first)


def test_staleness_is_no_fault_of_the_engine_and_is_measured_and_corrected(fit, fake):
    spy = RolloutSpy()
    run = fit_ahead(fit, fake, [spy], steps=3, lr=3e-2)
    rollout = spy.seen[2]
    distance = rms_difference(rollout.engine_logprobs, rollout.old_logprobs, rollout.mask)
    assert distance > run.module.ratio_tolerance == 0.01  # with which a rollout that is not ahead is refused
    assert run.history[0]["train/mismatch_max"] < 1e-4
    assert run.history[2]["train/mismatch_max"] > 0.01
    ones = torch.ones(rollout.mask.shape)
    weights = run.module.update_loss.correct_engine_mismatch(rollout, ones)
    expected = (rollout.old_logprobs - rollout.engine_logprobs).exp().clamp(max=2)
    torch.testing.assert_close(weights, expected)
    assert (weights[rollout.mask] - 1).abs().max() > 0.01


class ReleaseAfterFirstUpdate(Callback):
    """Hold the answers to the second rollout until half a second after the first one has been used.

    Note what was asked before it was used, and the seconds from then, and from the end of the step, to the next update.
    """

    def __init__(self, fake):
        self.fake, self.asked, self.done = fake, None, threading.Event()
        self.from_update = self.from_end = 0.0
        fake.holds = lambda number: number >= ROWS and not self.done.is_set()

    def on_before_optimizer_step(self, trainer, module, optimizer):
        until = time.monotonic() + 60
        while trainer.global_step == 0 and self.fake.asked < 2 * ROWS and time.monotonic() < until:
            time.sleep(0.01)
        if trainer.global_step == 0:
            self.asked = self.fake.asked, len(self.fake.bodies)
            self.from_update -= time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == 1:
            threading.Timer(0.5, self.done.set).start()
            self.from_end -= time.perf_counter()

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.global_step == 1:
            self.from_update += time.perf_counter()
            self.from_end += time.perf_counter()


def test_the_next_rollout_is_asked_for_before_the_present_one_is_used_and_only_the_rest_is_waited_for(fit, fake):
    watch = ReleaseAfterFirstUpdate(fake)
    run = fit_ahead(fit, fake, [watch], steps=2)
    assert watch.asked == (2 * ROWS, ROWS)  # all of the second rollout is on its way, none of it answered
    first, second = run.history
    assert 0.3 < second["time/waited"] < watch.from_update  # for all the time that the second rollout took
    assert second["time/rollout"] + second["time/verify"] + second["time/waited"] < watch.from_end
    assert first["time/waited"] > 0
    last = run.module.trainer.callback_metrics
    clocks = sum(value for name, value in last.items() if name.startswith("time/"))
    tokens = last["train/completion_length"] * ROWS
    assert last["train/tokens_per_second"].item() == pytest.approx((tokens / clocks).item(), rel=1e-3)


def test_the_last_rollout_begins_no_other_and_tokens_count_when_they_are_used(fit, fake):
    spy = RolloutSpy()
    run = fit_ahead(fit, fake, [spy], steps=3)
    assert fake.asked == len({body["seed"] for body in fake.bodies}) == 3 * ROWS
    decoded = [int(rollout.mask.sum()) for rollout in spy.seen]
    assert [step["tokens/decoded"] for step in run.history] == [sum(decoded[:step]) for step in (1, 2, 3)]


def test_without_it_nothing_is_measured_and_nothing_is_stored(fit, fake, tmp_path):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1, filename="{step}")
    with served(fake) as url:
        run = fit(engine=VLLMServer(url), stack=[GRPO(), saved], steps=2, enable_checkpointing=True)
    assert not any("time/waited" in step for step in run.history)
    assert "drawing_adapter" not in torch.load(tmp_path / "saved" / "step=2.ckpt", weights_only=True)


@pytest.fixture
def save(tmp_path):
    """Return a callback that keeps every second checkpoint, and the path of the one after two steps."""
    folder = tmp_path / "saved"
    return ModelCheckpoint(folder, every_n_train_steps=2, save_top_k=-1, filename="{step}"), folder / "step=2.ckpt"


@pytest.mark.parametrize("ends_at", mark_others_slow([2, 4], fast=0))
def test_a_continued_run_is_the_uninterrupted_one_bit_for_bit(fit, save, ends_at):
    whole = fit_ahead(fit, FakeVLLM(), steps=4)
    fit_ahead(fit, FakeVLLM(), [save[0]], steps=ends_at, enable_checkpointing=True)
    fake = FakeVLLM()
    rest = fit_ahead(fit, fake, steps=4, ckpt_path=save[1])
    assert rest.losses == whole.losses[2:]
    clocks = ("time/", "train/tokens_per_second")
    for step, expected in zip(rest.history, whole.history[2:], strict=True):
        assert {name: value for name, value in step.items() if not name.startswith(clocks)} == {
            name: value for name, value in expected.items() if not name.startswith(clocks)
        }
    assert all(torch.equal(rest.adapter[name], weight) for name, weight in whole.adapter.items())
    assert len(fake.names) == 2  # the third rollout is drawn with the weights after one step, the fourth after two
    assert fake.faults == []


@pytest.mark.parametrize("ahead", mark_others_slow([(1, 0), (0, 1)]))
def test_a_checkpoint_is_continued_with_and_without(fit, fake, save, ahead):
    spy, keeper = RolloutSpy(), AdapterKeeper()
    with served(fake) as url:
        before, after = (VLLMServer(url, ahead=each) for each in ahead)
        fit(engine=before, stack=[GRPO(), save[0]], steps=2, lr=1e-2, enable_checkpointing=True)
        fit(engine=after, stack=[GRPO(), spy, keeper], steps=3, lr=1e-2, ckpt_path=save[1])
    assert measure_distances(spy.seen[0], keeper.before)[0] < 1e-5  # there is no rollout ahead to be made up for


@pytest.mark.slow
def test_held_out_questions_in_between_change_nothing_and_are_answered_by_the_present_weights(fit, fake):
    plain = fit_ahead(fit, FakeVLLM(), steps=3, lr=1e-2)
    run = fit_ahead(fit, fake, steps=3, lr=1e-2, limit_val_batches=1, val_check_interval=1)
    assert all(torch.equal(run.adapter[name], weight) for name, weight in plain.adapter.items())
    assert run.losses == plain.losses
    assert fake.faults == []
    assert len(fake.names) == 4  # the last one for the last validation, which no rollout follows


class InterruptInUpdate(Callback):
    """Interrupt the first update, while answers to the second rollout are held back."""

    def __init__(self, fake):
        self.fake, self.threads = fake, None
        fake.holds = lambda number: number >= ROWS

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.threads = count_threads()
        raise SignalInterrupt(2)


def test_an_interrupted_run_leaves_no_thread_no_adapter_and_no_folder(fit, fake, tmp_path):
    interrupt, folder = InterruptInUpdate(fake), tmp_path / "shared"
    with served(fake) as url, pytest.raises(SignalInterrupt):
        fit(engine=VLLMServer(url, folder=str(folder), ahead=1), stack=[GRPO(), interrupt])
    assert interrupt.threads == 1
    assert count_threads() == 0
    assert not fake.adapters
    assert not list(folder.iterdir())


class StopsJudging(ReasoningGym):
    """Interrupt the third rollout when its answers are there and the fourth one is on its way."""

    calls = 0

    def judge(self, completions, examples):
        self.calls += 1
        if self.calls == 3:
            raise SignalInterrupt(2)
        return super().judge(completions, examples)


@pytest.mark.slow
def test_a_checkpoint_inside_a_rollout_keeps_the_weights_that_drew_it(fit, fake):
    keeper, saved = AdapterKeeper(), {}

    class Save(Callback):
        def on_exception(self, trainer, module, exception):
            saved.update(state_dict=module.state_dict())
            module.on_save_checkpoint(saved)

    data = StopsJudging("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    with pytest.raises(SignalInterrupt):
        fit_ahead(fit, fake, [keeper, Save()], steps=4, task=data)
    assert len(keeper.before) == 2
    assert all(torch.equal(saved["drawing_adapter"][name], weight) for name, weight in keeper.before[1].items())
    assert any(
        not torch.equal(saved["state_dict"][f"policy.{name}"], weight) for name, weight in keeper.before[1].items()
    )


def test_a_run_that_ends_early_waits_for_no_rollout(fit, fake):
    class Enough(Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            trainer.should_stop = True

    fake.holds = lambda number: number >= ROWS
    run = fit_ahead(fit, fake, [Enough()], steps=50)
    assert len(run.history) == 1
    assert count_threads() == 0
    assert not fake.adapters


def test_a_server_that_fails_in_the_background_ends_the_run_one_step_later(fit, fake):
    complete, keeper = fake.complete, AdapterKeeper()
    fake.complete = lambda body: complete(body) if len(fake.bodies) < ROWS + 4 else fail()

    def fail():
        fake.busy = 10**6
        raise ConnectionResetError

    with pytest.raises(EngineUnavailable, match="start it again"):
        fit_ahead(fit, fake, [keeper], steps=3)
    assert len(keeper.before) == 1
    assert count_threads() == 0


def test_an_adapter_that_is_not_applied_stops_the_run_at_the_first_rollout_that_should_have_it(fit, fake):
    fake.deaf = True
    with pytest.raises(PolicyMismatch, match=r"^Step 2: .* the adapter has not been applied"):
        fit_ahead(fit, fake, steps=4, lr=1e-4, sampler_tolerance=1.0)


@pytest.mark.slow
def test_a_server_with_other_weights_is_refused(fit, fake):
    load = fake.load

    def load_other(body):
        answer, name = load(body), body["lora_name"]
        other = {key: weight + 0.01 for key, weight in fake.adapters[name].items()}
        fake.adapters[name] = other if len(fake.names) > 1 else fake.adapters[name]
        return answer

    fake.load = load_other
    with pytest.raises(PolicyMismatch, match=r"^Step 2: .* Likely causes: other weights"):
        fit_ahead(fit, fake, steps=4, lr=1e-4)


class Embedded(Engine):
    """Draw as the embedded engine does, and claim to be the trainer."""

    exact, ahead = True, 1

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        return InProcessEngine().sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step)


def test_an_engine_of_ones_own_says_that_it_is_ahead_and_is_scored_anew(fit, save):
    spy, keeper = RolloutSpy(), AdapterKeeper()
    whole = fit(engine=Embedded(), stack=[GRPO(), spy, keeper, save[0]], steps=4, lr=1e-2, enable_checkpointing=True)
    for rollout, step in zip(spy.seen, [0, 0, 1, 2], strict=True):
        assert measure_distances(rollout, [keeper.before[step]])[0] < 1e-5
        by_trainer = replace(rollout, engine_logprobs=rollout.old_logprobs)
        assert measure_distances(by_trainer, [keeper.before[rollout.step]])[0] < 1e-5
    rest = fit(engine=Embedded(), steps=4, lr=1e-2, ckpt_path=save[1])
    assert all(torch.equal(rest.adapter[name], weight) for name, weight in whole.adapter.items())


class Reversed(ReasoningGym):
    """Yield the prompts in an order of one's own."""

    def train_dataloader(self):
        examples = self._number_examples(self.train_set)[::-1]
        return DataLoader(examples, batch_size=2, collate_fn=self._collate_prompts)


def test_a_task_that_yields_other_prompts_than_it_has_named_is_refused(fit):
    data = Reversed("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    with pytest.raises(ValueError, match=r"ahead 1 .* yields \[61, 60\] first\. Let draw_prompts"):
        fit(engine=Embedded(), task=data)


class TwoAhead(Embedded):
    ahead = 2


class DecoderAhead(InProcessEngine):
    ahead = 1


def test_what_cannot_be_ahead_is_refused():
    with pytest.raises(ValueError, match="ahead must be 0 or 1, got 2"):
        PolicyModule(engine=TwoAhead())
    with pytest.raises(ValueError, match="ahead 0 or 1, got 2"):
        VLLMServer(ahead=2)
    with pytest.raises(ValueError, match=r"model\.dynamic_sampling asks prompts until .* Set .*ahead to 0"):
        PolicyModule(engine=Embedded(), dynamic_sampling=DynamicSampling())


def test_an_oracle_needs_the_policy_that_drew(fit):
    with pytest.raises(ValueError, match=r"CreditOracle continues answers with the policy that drew .* ahead of Decod"):
        fit(engine=DecoderAhead(), stack=[GRPO(), CreditOracle(every_n_steps=1)])


@pytest.mark.slow
def test_a_run_whose_server_dies_in_the_background_goes_on_as_if_it_had_not(tmp_path, mlflow_database, fake):
    complete = fake.complete

    def dying(body):
        # 32 held-out answers, two steps of 8 and 8 ahead, as many held-out answers again, a step, and half of one ahead
        return complete(body) if len(fake.bodies) < 92 else web.json_response({}, status=500)

    ahead = ("--model.engine=VLLMServer", "--model.engine.ahead=1", "--trainer.max_steps=4")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    with served(FakeVLLM()) as url:
        status, _, err = finish_small_run(whole, *ahead, f"--model.engine.url={url}")
    assert status == 0, err
    fake.complete = dying
    with served(fake) as url:
        asked = (*ahead, f"--model.engine.url={url}", "--model.engine.patience=0.5")
        status, _, err = finish_small_run(broken, *asked)
        assert status == 6, err
        assert "Traceback" not in err
        done = read_recorded_steps(broken)
        fake.complete = complete
        status, _, err = finish_small_run(broken, *asked, "--ckpt_path=auto")
    assert status == 0, err
    assert done == list(range(len(done)))
    assert 0 < len(done) < 4
    assert read_recorded_steps(broken) == [0, 1, 2, 3]
    expected, found = (load_adapter_weights(folder / "runs/grpo-seed0/adapter") for folder in (whole, broken))
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


@pytest.mark.slow
def test_ctrl_c_while_answers_are_on_their_way_ends_a_run_at_once(tmp_path, mlflow_database, fake):
    # 32 held-out answers and the first rollout are answered, the second one is not
    fake.holds, shared = lambda number: number >= 40, tmp_path / "shared"
    with served(fake) as url:
        process = start_small_run(
            tmp_path,
            *("--model.engine=VLLMServer", "--model.engine.ahead=1", f"--model.engine.url={url}"),
            *(f"--model.engine.folder={shared}", "--trainer.max_steps=4"),
        )
        until = time.monotonic() + 120
        while fake.asked < 48 or not read_steps(tmp_path):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        status, _, err = wait_for_small_run(process, 15)
    assert status == 130, err
    assert "to go on from step 1:" in err
    assert "Traceback" not in err
    assert not list(shared.iterdir())
    assert not fake.adapters


def read_steps(folder):
    """Return the steps that a run has recorded; none before it has begun."""
    try:
        return read_recorded_steps(folder)
    except (FileNotFoundError, ValueError):
        return []
