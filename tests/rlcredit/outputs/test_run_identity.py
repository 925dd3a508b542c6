from types import SimpleNamespace

import torch

from callbacks.episode.grpo import GRPO
from callbacks.tokens.delight import Delight
from callbacks.tokens.gtpo import GTPO
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.gates import AdaptiveEta
from rlcredit.losses import KLPenalty
from rlcredit.outputs.run_identity import REPEATED_PARAMETERS, collect_flat_parameters
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule


def test_numbers_of_stack_optimizer_sampling_and_task_have_names_of_their_own():
    stack = [GRPO(), GTPO(beta=0.5), GTPO(beta=0.1), Delight(eta=AdaptiveEta(decay=0.9))]
    trainer = SimpleNamespace(callbacks=stack, max_steps=7, precision="32-true", gradient_clip_val=1.0)
    module = PolicyModule(
        sampling=Sampling(completions=8, temperature=0.7),
        loss=KLPenalty(beta=0.04),
        optimizer=lambda weights: torch.optim.AdamW(weights, lr=5e-4, betas=(0.9, 0.95)),
    )
    task = ReasoningGym("chain_sum", {"min_terms": 3}, train_size=8, validation_size=4, prompts_per_step=2)
    flat = collect_flat_parameters(trainer, module, task)
    expected = {
        "optimizer.class": "AdamW",
        "optimizer.lr": 5e-4,
        "optimizer.betas": "0.9, 0.95",
        "GTPO.beta": 0.5,
        "GTPO_2.beta": 0.1,
        "Delight.eta.decay": 0.9,
        "GRPO.normalize_std": False,
        "loss.class": "KLPenalty",
        "loss.beta": 0.04,
        "loss.loss.class": "ImportanceSampling",
        "validation.completions": 4,
        "task.class": "ReasoningGym",
        "task.name": "chain_sum",
        "task.config.min_terms": 3,
    }
    assert {name: flat.get(name) for name in expected} == expected
    assert not flat.keys() & REPEATED_PARAMETERS
    assert "policy.path" not in flat  # the embedded policy is the default
    assert "optimizer.eps" not in flat
    assert not any("object at" in str(value) for value in flat.values())


def test_a_setting_that_is_no_default_is_a_parameter():
    trainer = SimpleNamespace(callbacks=[], max_steps=7, precision="bf16-mixed", gradient_clip_val=None)
    module = PolicyModule(policy=Policy(lora=LoRA(rank=8)), validation=Sampling(temperature=0.3))
    flat = collect_flat_parameters(trainer, module, ReasoningGym("chain_sum", solved_at=0.5))
    assert (flat["policy.lora.rank"], flat["validation.temperature"], flat["task.solved_at"]) == (8, 0.3, 0.5)
    assert flat["trainer.precision"] == "bf16-mixed"
    assert "trainer.gradient_clip_val" not in flat
