"""Fixtures: a small rollout, the embedded policy, and a short training run."""

import copy
import functools
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback, Trainer, seed_everything
from small_policies import load_with_random_adapter
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.alternatives import Alternatives
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy
from rlcredit.record.mlflow_client import make_mlflow_database
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # runs that tests start share the cores with other tests
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started this with Ctrl-C ignored,
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup with hangups
silence_libraries()
THREADS = 1  # more are slower, the more so where other work goes on
torch.set_num_threads(THREADS)

MODULE = (
    *("micro_batch_size", "loss", "policy", "updates_per_rollout", "minibatches", "dynamic_sampling"),
    *("optimizer", "scheduler", "skip_not_finite", "sampler_tolerance", "mismatch_cap", "seed", "validation_seed"),
)
"""Arguments of the fixture ``fit`` that are the module's; unknown ones are the trainer's."""


@dataclass
class KnownOracle:
    """An oracle that knows: continuation m of t tokens of a completion of some length is right, or it is not."""

    decoded: int = 0

    def outcomes(self, rollout, rows, starts, samples):
        lengths = rollout.mask.sum(-1)[list(rows), None, None]
        place = torch.arange(rollout.mask.shape[1] + 1)[:, None].minimum(lengths)
        right = (5 * place + 3 * lengths + 7 * torch.arange(samples)) % 11 < 5
        return right.where(place < lengths, lengths % 2 == 0).double()

    def continue_prefixes(self, rollout, rows, places, samples):
        lengths, sample = rollout.mask.sum(-1)[rows], torch.arange(samples)
        right = (5 * places[:, None] + 3 * lengths[:, None] + 7 * sample) % 11 < 5
        rows, places = (values.repeat_interleave(samples) for values in (rows, places))
        ids = torch.stack([places + 3, places + 4], 1)
        mask = torch.stack([places >= 0, places % 2 == 0], 1)
        logprobs = -(1 + places[:, None]) / torch.tensor([7.0, 9.0])
        return Continuations(rows, places, ids, mask, logprobs, torch.zeros_like(logprobs)), right.double()


@dataclass
class KnownLookahead:
    """A policy whose states are waves of token ids: an alternative had half of what is left, if that is a tenth."""

    hidden_size: int = 4

    def embed(self, token_ids):
        return (token_ids[..., None] * torch.arange(1.0, 5.0)).sin()

    def decode_tokens(self, token_ids):
        return [f"<{token}>" for token in token_ids.tolist()]

    def create_adapter(self, noise):
        return [torch.rand(4, 2, generator=noise) - 0.5, torch.zeros(2, 4)]

    def iterate_states(self, rollout, factors):
        states = self.embed(torch.nn.functional.pad(rollout.completion_ids[:, :-1], (1, 0)))
        yield [(torch.arange(len(states)), states + states @ factors[0] @ factors[1])]

    def score_tokens(self, rollout, rows, states):
        logits = states @ self.embed(torch.arange(110)).T
        return logits.log_softmax(-1).gather(-1, rollout.completion_ids[rows][..., None]).squeeze(-1)

    def read_answers(self, rollout, starts, closing):
        return (-rollout.completion_ids / 50).where(starts, torch.nan)

    def read_alternatives(self, rollout, smallest, most):
        probability = rollout.old_logprobs.exp()
        rows, places = (rollout.mask & (probability < 0.9)).nonzero(as_tuple=True)
        tokens = rollout.completion_ids[rows, places] + 1
        logprobs = ((1 - probability) / 2)[rows, places].log()
        return Alternatives(rows, places, tokens, logprobs, self.embed(tokens))


@dataclass
class KnownCritic:
    """Values between zero and one, by state and surprisal."""

    def estimate(self, rollout, rows, hidden, path):
        return (hidden.sum(-1) - path[:, 0]).sigmoid()


def make_rollout(rewards=(1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0), group_size=4, width=6, seed=0) -> Rollout:
    """Two groups of four completions of different length, with random uncertainties."""
    generator = torch.Generator().manual_seed(seed)
    rows = len(rewards)
    lengths = torch.randint(2, width + 1, (rows,), generator=generator)
    lengths[0] = width
    mask = torch.arange(width) < lengths[:, None]
    old_logprobs = -torch.rand(rows, width, generator=generator).where(mask, 0)
    probability = old_logprobs.exp()
    return Rollout(
        step=3,
        group_size=group_size,
        prompt_ids=torch.ones(rows, 4, dtype=torch.long),
        completion_ids=torch.randint(3, 100, (rows, width), generator=generator),
        mask=mask,
        old_logprobs=old_logprobs,
        entropy=torch.rand(rows, width, generator=generator).where(mask, 0),
        correct=torch.tensor(rewards),
        sum_pi_squared=probability**2 + torch.rand(rows, width, generator=generator) * (1 - probability) ** 2,
        ref_logprobs=(reference := -torch.rand(rows, width, generator=generator).where(mask, 0)),
        ref_log_ratio=old_logprobs - reference,
        oracle=KnownOracle(),
        hidden=torch.randn(rows, width, 4, generator=generator).where(mask[..., None], 0),
        lookahead=KnownLookahead(),
        tokens=[["let", " me", " think", ": ", "4", "+"][:length] for length in lengths.tolist()],
    )


def copy_rollout_fields(rollout: Rollout) -> dict[str, object]:
    """Copy every field, so that a mutation shows."""
    return {field.name: copy.deepcopy(getattr(rollout, field.name)) for field in fields(rollout)}


@pytest.hookimpl(optionalhook=True)  # pytest may run without xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one worker more than cores for ``-n auto``: a third of the time, a test waits for another process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Look through nothing that is imported when garbage is collected; libraries ask for that often."""
    gc.freeze()


@pytest.fixture(autouse=True)
def restore_thread_count() -> Iterator[None]:
    """Give back the threads that a configuration has set for a run in this process."""
    yield
    torch.set_num_threads(THREADS)


@pytest.fixture
def rollout() -> Rollout:
    return make_rollout()


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The embedded policy with an adapter that does something; tests must not train it."""
    return load_with_random_adapter(Policy())


@pytest.fixture(scope="session")
def task() -> ReasoningGym:
    questions = ReasoningGym("chain_sum", CHAIN_SUM, train_size=256, validation_size=64, prompts_per_step=4)
    questions.setup()
    return questions


@functools.cache
def shared_task(prompts: int) -> ReasoningGym:
    """Return the task of short runs, which share its questions and the process that judges answers."""
    return ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=prompts)


@dataclass
class ShortRun:
    """What a short training run leaves behind."""

    module: PolicyModule
    history: list[dict[str, float]]

    @property
    def losses(self) -> list[float]:
        return [step["train/loss"] for step in self.history]

    @property
    def adapter(self) -> dict[str, torch.Tensor]:
        return {k: v.detach().clone() for k, v in self.module.named_parameters() if v.requires_grad}


class StepMetrics(Callback):
    """Keep the metrics of every step."""

    def __init__(self) -> None:
        self.steps = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        self.steps.append({name: float(value) for name, value in trainer.callback_metrics.items()})


@pytest.fixture
def fit(tmp_path) -> Callable[..., ShortRun]:
    """Train the embedded policy for a few steps."""

    def run(
        steps=2,
        stack=None,
        lr=1e-3,
        prompts=2,
        completions=8,
        max_tokens=48,
        decode=None,
        task=None,
        engine=None,
        **trainer,
    ):
        ckpt_path = trainer.pop("ckpt_path", None)
        module_args = {"optimizer": partial(torch.optim.AdamW, lr=lr, weight_decay=0.0)}
        module_args |= {key: trainer.pop(key) for key in MODULE if key in trainer}
        seed_everything(0, verbose=False)
        module = PolicyModule(
            sampling=Sampling(completions=completions, max_tokens=max_tokens),
            validation=Sampling(completions=4, max_tokens=96),
            engine=engine or InProcessEngine(decode),
            **module_args,
        )
        data = task or shared_task(prompts)
        history = StepMetrics()
        Trainer(
            **{
                "max_steps": steps,
                "accelerator": "cpu",
                "logger": False,
                "limit_val_batches": 0,
                "enable_checkpointing": False,
                "enable_progress_bar": False,
                "enable_model_summary": False,
                "log_every_n_steps": 1,
                "default_root_dir": tmp_path,
                "callbacks": [*([GRPO()] if stack is None else stack), history],
                **trainer,
            }
        ).fit(module, data, ckpt_path=ckpt_path, weights_only=None if ckpt_path is None else True)
        return ShortRun(module, history.steps)

    return run


@pytest.fixture(scope="session")
def mlflow_template(tmp_path_factory) -> Path:
    """An MLflow database that has its tables, which take seconds to make."""
    path = tmp_path_factory.mktemp("tables") / "mlflow.db"
    make_mlflow_database(f"sqlite:///{path}")
    return path


@pytest.fixture
def mlflow_database(mlflow_template, tmp_path) -> Path:
    """A copy of it where small runs look for one."""
    return Path(shutil.copyfile(mlflow_template, tmp_path / "mlflow.db"))
