"""Fixtures: a small rollout, the embedded policy, and a short training run.

Fixtures import Lightning and models themselves, so that tests of formulas begin at once.
"""

import copy
import gc
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.alternatives import Alternatives
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps

gc.disable()  # until all tests are collected: what is imported stays
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # runs that tests start share the cores with other tests
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started this with Ctrl-C ignored,
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup with hangups
silence_libraries()
THREADS = 1  # more are slower, the more so where other work goes on
torch.set_num_threads(THREADS)
_BEGUN = time.monotonic()


def pytest_addoption(parser):
    """Let a slow machine run a part of the tests, and another part the next time."""
    parser.addoption("--minutes", type=float, default=math.inf, help="skip tests that have not begun by then")
    parser.addoption("--begin-at", type=float, default=0, help="per cent of the tests that are run behind the others")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    first = int(len(items) * config.getoption("--begin-at") / 100)
    items[:] = items[first:] + items[:first]


def pytest_runtest_setup(item):
    if time.monotonic() - _BEGUN > 60 * item.config.getoption("--minutes"):
        pytest.skip("its minutes are over")


@dataclass
class KnownOracle:
    """An oracle that knows: continuation m of t tokens of a completion of some length is right, or it is not."""

    decoded: int = 0

    def outcomes(self, rollout, rows, starts, samples):
        lengths = rollout.mask.sum(-1)[list(rows), None, None]
        place = torch.nn.functional.pad(rollout.mask[list(rows)].cumsum(-1), (1, 0))[..., None]
        right = (5 * place + 3 * lengths + 7 * torch.arange(samples)) % 11 < 5
        return right.where(place < lengths, lengths % 2 == 0).double()

    def continue_prefixes(self, rollout, rows, places, samples):
        lengths, sample = rollout.mask.sum(-1)[rows], torch.arange(samples)
        counts = rollout.mask.cumsum(-1)[rows, places] - 1
        right = (5 * counts[:, None] + 3 * lengths[:, None] + 7 * sample) % 11 < 5
        rows, places, counts = (values.repeat_interleave(samples) for values in (rows, places, counts))
        ids = torch.stack([counts + 3, counts + 4], 1)
        mask = torch.stack([counts >= 0, counts % 2 == 0], 1)
        logprobs = -(1 + counts[:, None]) / torch.tensor([7.0, 9.0])
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
        places = number_places(rollout.mask)
        ids = close_gaps(rollout.completion_ids, places)
        states = self.embed(open_gaps(torch.nn.functional.pad(ids[:, :-1], (1, 0)), places))
        yield [(torch.arange(len(states)), states + states @ factors[0] @ factors[1])]

    def score_tokens(self, rollout, rows, states):
        logits = states @ self.embed(torch.arange(110)).T
        return logits.log_softmax(-1).gather(-1, rollout.completion_ids[rows][..., None]).squeeze(-1)

    def list_answers(self, rollout):
        return [("4",), ("think", "let me"), *[("4",)] * len(rollout.mask)][: len(rollout.mask) // rollout.group_size]

    def read_answers(self, rollout, starts, closing):
        return (-rollout.completion_ids / 50).where(starts, torch.nan)

    def score_with_hint(self, rollout, row_mask, hint):
        mask = rollout.mask & row_mask[:, None]
        logprobs = -((rollout.completion_ids + len(hint)) % 7 / 5).where(mask, 0)
        return logprobs, (rollout.completion_ids % 3 / 2).where(mask, 0)

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
    gc.enable()


@pytest.fixture(autouse=True)
def restore_thread_count() -> Iterator[None]:
    """Give back the threads that a configuration has set for a run in this process."""
    yield
    torch.set_num_threads(THREADS)


@pytest.fixture(autouse=True, scope="session")
def generate_questions_quietly() -> Iterator[None]:
    """Report nothing of questions that a slow machine takes long to generate: tests compare what is printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlcredit.tasks.reasoning_gym.PATIENCE_SECONDS", 600.0)
        yield


@pytest.fixture
def rollout() -> Rollout:
    return make_rollout()


@pytest.fixture(scope="session")
def policy() -> Any:
    """The embedded policy with an adapter that does something; tests must not train it."""
    from small_policies import load_with_random_adapter

    from rlcredit.policy.policy import Policy

    return load_with_random_adapter(Policy())


@pytest.fixture(scope="session")
def task() -> Any:
    """Questions that are generated once."""
    from tiny_traces import CHAIN_SUM

    from rlcredit.tasks import ReasoningGym

    questions = ReasoningGym("chain_sum", CHAIN_SUM, train_size=256, validation_size=64, prompts_per_step=4)
    questions.setup()
    return questions


@pytest.fixture
def fit(tmp_path) -> Callable[..., Any]:
    """Train the embedded policy for a few steps; see :func:`tests.training_runs.train_policy`."""
    from tests.training_runs import train_policy

    return partial(train_policy, tmp_path)


@pytest.fixture(scope="session")
def mlflow_template(tmp_path_factory) -> Path:
    """An MLflow database that has its tables, which take seconds to make."""
    from rlcredit.record.mlflow_client import make_mlflow_database

    path = tmp_path_factory.mktemp("tables") / "mlflow.db"
    make_mlflow_database(f"sqlite:///{path}")
    return path


@pytest.fixture
def mlflow_database(mlflow_template, tmp_path) -> Path:
    """A copy of it where small runs look for one."""
    return Path(shutil.copyfile(mlflow_template, tmp_path / "mlflow.db"))
