"""Numbers that are none: who is named, what is kept, what is passed over, and that nothing of it is saved."""

import re
from functools import partial

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint

from callbacks.episode.grpo import GRPO
from rlcredit.base.exit_status import NotFinite
from rlcredit.credit.operator import CreditOperator
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.losses import ImportanceSampling, KLPenalty
from rlcredit.tasks import ReasoningGym
from rlcredit.training.scoring import RolloutScorer
from tests.slow_cases import mark_others_slow

FIRST = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight"
NO_EPS = partial(torch.optim.AdamW, lr=1e-3, eps=0.0)  # B is zero at first, and the gradient of A: 0 / 0


class Broken(CreditOperator, reads="advantages step", writes="advantages"):
    """Spoil the credit of one token at a step."""

    def __init__(self, at=1):
        super().__init__()
        self.at = at

    def assign(self, rollout):
        spoiled = rollout.advantages.clone()
        spoiled[3, 0] = torch.nan if rollout.step == self.at else spoiled[3, 0]
        rollout.advantages = spoiled
        return {}


class Hook(Callback):
    """Do something to the module at one hook of some steps."""

    def __init__(self, name, does, at=(1,)):
        self.does, self.at = does, at
        setattr(self, name, self.called)

    def called(self, trainer, module, *arguments):
        if trainer.global_step in self.at:
            self.does(module, *arguments)


def spoil_gradient(module, *_):
    weight = dict(module.named_parameters())[f"policy.lm.{FIRST}"]
    weight.grad = torch.full_like(weight, torch.inf)


def spoil_weight(module, *_):
    with torch.no_grad():
        dict(module.named_parameters())[f"policy.lm.{FIRST}"][0, 0] = torch.nan


def spoil_advantages(module, batch, *_):
    batch.advantages = batch.advantages / 0


class Spoiled(ImportanceSampling):
    """Be infinite."""

    def forward(self, *arguments, **facts):
        return super().forward(*arguments, **facts) + torch.inf


def spoiled_engine(monkeypatch):
    plain = InProcessEngine.sample

    def sample(self, *arguments, seed, step):
        samples = plain(self, *arguments, seed=seed, step=step)
        samples.entropy[2, 1] = torch.nan if step == 1 else samples.entropy[2, 1]
        return samples

    monkeypatch.setattr(InProcessEngine, "sample", sample)


def spoiled_forward(monkeypatch):
    plain, calls = RolloutScorer._score_part, []

    def score(self, plan, numbers):
        logprobs, entropy = plain(self, plan, numbers)
        calls.append(logprobs)
        return logprobs * (torch.nan if len(calls) > 1 else 1.0), entropy

    monkeypatch.setattr(RolloutScorer, "_score_part", score)


def spoiled_reference(monkeypatch):
    plain = RolloutScorer.score_without_graph

    def scores(self, *arguments):
        return plain(self, *arguments)._replace(logprobs=torch.tensor([[-torch.inf]]))

    monkeypatch.setattr(RolloutScorer, "score_without_graph", scores)


class Vague(ReasoningGym):
    """Return numbers instead of verdicts."""

    def judge(self, completions, examples):
        return [float("nan") for _ in completions]


CASES = {
    "sampling": (1, r"sampling gives entropy values that .*, 1 of \d+, the first \(nan\) at completion 2, token 1\."),
    "reference": (0, "scoring the reference gives log-probabilities that are not finite"),
    "operator": (1, r"Broken_2 assigning credit gives advantages .*, the first \(nan\) at completion 3, token 0\."),
    "callback": (1, "a callback outside the stack gives advantages that are not finite"),
    "forward": (1, "the scoring forward gives log-probabilities that are not finite"),
    "loss": (0, "the loss Spoiled is inf, from finite credit"),
    "gradient": (1, rf"the backward pass gives a gradient of norm inf, that of policy\.lm\.{re.escape(FIRST)} first"),
    "optimizer": (0, r"the optimizer step \(AdamW\) leaves weights that are not finite, policy\.lm\..* first"),
}


def broken(name, fit, monkeypatch, **more):
    """A run of three steps that one phase spoils."""
    spoiled = {"sampling": spoiled_engine, "reference": spoiled_reference, "forward": spoiled_forward}
    if name in spoiled:
        spoiled[name](monkeypatch)
    arguments = {
        "reference": lambda: {"loss": KLPenalty()},
        "operator": lambda: {"stack": [GRPO(), Broken(at=5), Broken(at=1)]},
        "callback": lambda: {"stack": [GRPO(), Hook("on_train_batch_start", spoil_advantages)]},
        "loss": lambda: {"loss": Spoiled()},
        "gradient": lambda: {"stack": [GRPO(), Hook("on_after_backward", spoil_gradient)]},
        "optimizer": lambda: {"optimizer": NO_EPS},
    }.get(name, dict)()
    return fit(**{"steps": 3, **arguments, **more})


@pytest.mark.parametrize("name", mark_others_slow(CASES, fast=4))
def test_the_first_phase_that_is_not_finite_is_named_and_its_batch_kept(name, fit, tmp_path, monkeypatch):
    step, message = CASES[name]
    with pytest.raises(NotFinite, match=rf"Step {step}: {message}") as ended:
        broken(name, fit, monkeypatch)
    path = tmp_path / "postmortem" / f"step_{step:06d}.pt"
    assert str(ended.value).endswith(f"The batch is kept in {path}.")
    assert ended.value.status == 3
    content = torch.load(path, weights_only=True)
    assert content["step"] == content["facts"]["step"] == step
    assert str(ended.value).startswith(content["message"])
    rows = len(content["facts"]["mask"])
    assert rows == len(content["facts"]["tokens"]) == len(content["ledger"]["advantages"]) == 16
    assert len(content["prompts"]) == 2
    trails = {"sampling": [], "reference": [], "operator": ["GRPO", "Broken"]}
    assert [label for label, _ in content["trail"]] == trails.get(name, ["GRPO"])
    assert ("loss" in content) == (name in ("callback", "forward", "loss", "gradient", "optimizer"))


def test_a_postmortem_holds_the_norms_of_all_gradients(fit, tmp_path, monkeypatch):
    with pytest.raises(NotFinite):
        broken("gradient", fit, monkeypatch)
    content = torch.load(tmp_path / "postmortem" / "step_000001.pt", weights_only=True)
    assert abs(content["loss"]) < 10
    assert content["gradient_norm"] == content["gradient_norms"][f"policy.lm.{FIRST}"] == float("inf")
    assert sum(norm == float("inf") for norm in content["gradient_norms"].values()) == 1


@pytest.mark.parametrize("name", mark_others_slow(["gradient", "sampling", "operator", "forward", "callback"]))
def test_the_last_good_checkpoint_stays_as_it_was(name, fit, tmp_path, monkeypatch):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1, save_last=True, filename="{step}")
    with pytest.raises(NotFinite):
        broken(name, partial(fit, enable_checkpointing=True), monkeypatch, stack=[*stacks(name), saved])
    for path in (tmp_path / "saved" / "last.ckpt", tmp_path / "saved" / "step=1.ckpt"):
        checkpoint = torch.load(path, weights_only=True)
        assert checkpoint["global_step"] == 1
        assert all(weight.isfinite().all() for weight in checkpoint["state_dict"].values())


def stacks(name):
    return {
        "operator": [GRPO(), Broken(at=1)],
        "gradient": [GRPO(), Hook("on_after_backward", spoil_gradient)],
        "callback": [GRPO(), Hook("on_train_batch_start", spoil_advantages)],
    }.get(name, [GRPO()])


def test_weights_that_are_not_finite_are_never_saved(fit, tmp_path):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1, save_top_k=-1, filename="{step}")
    stack = [GRPO(), Hook("on_train_batch_end", spoil_weight, at=(2,)), saved]
    with pytest.raises(NotFinite, match=rf"Step 2: policy\.lm\.{re.escape(FIRST)} is not finite. No such checkpoint"):
        fit(steps=3, stack=stack, enable_checkpointing=True)
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["step=1.ckpt"]


def test_a_moment_that_is_not_finite_is_never_saved(fit, tmp_path):
    def spoil_moment(module, *_):
        next(iter(module.trainer.optimizers[0].state.values()))["exp_avg_sq"][0, 0] = torch.inf

    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1, filename="{step}")
    with pytest.raises(NotFinite, match=r"Step 1: exp_avg_sq of policy\.lm\..*lora_A\.default\.weight is not finite"):
        fit(stack=[GRPO(), Hook("on_train_batch_end", spoil_moment), saved], enable_checkpointing=True)
    assert not list((tmp_path / "saved").glob("*"))


def test_weights_spoiled_after_the_last_step_do_not_end_as_success(fit):
    with pytest.raises(NotFinite, match=r"Step 2: training leaves weights that are not finite"):
        fit(steps=2, stack=[GRPO(), Hook("on_train_batch_end", spoil_weight, at=(2,))])


def test_a_last_update_that_divides_by_nothing_does_not_end_as_success(fit):
    with pytest.raises(NotFinite, match=r"Step 0: the optimizer step \(AdamW\) leaves weights that are not finite"):
        fit(steps=1, optimizer=NO_EPS)


def test_weights_spoiled_between_two_steps_are_not_blamed_on_sampling(fit):
    with pytest.raises(NotFinite, match=r"Step 1: whatever came between two steps leaves weights that are not finite"):
        fit(steps=2, stack=[GRPO(), Hook("on_train_batch_end", spoil_weight)])


def test_held_out_answers_that_no_distribution_gave_are_no_result(fit):
    stack = [GRPO(), Hook("on_validation_start", spoil_weight, at=(2,))]
    message = r"Step 2: sampling held-out answers gives log-probabilities that are not finite"
    with pytest.raises(NotFinite, match=message):
        fit(steps=2, stack=stack, limit_val_batches=1, val_check_interval=2)


def test_a_checkpoint_that_is_not_finite_is_not_continued(fit, tmp_path):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1, filename="{step}")
    fit(steps=1, stack=[GRPO(), saved], enable_checkpointing=True)
    path = tmp_path / "saved" / "step=1.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"][f"policy.lm.{FIRST}"][0, 0] = torch.nan
    torch.save(checkpoint, path)
    with pytest.raises(NotFinite, match=rf"ckpt_path: policy\.lm\.{re.escape(FIRST)} of the checkpoint is not finite"):
        fit(steps=2, ckpt_path=path)
