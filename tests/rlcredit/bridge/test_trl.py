"""A stack inside TRL's trainer: with flat credit the gradients of flat TRL, in every batching, under every loss."""

import inspect
import re
import warnings

import pytest
import torch

trl = pytest.importorskip("trl")
from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

import rlcredit.tiny  # noqa: E402
from callbacks import GRPO, GTPO, HICRA, REPO, Delight, Entropy, EntropyMask, StrategicGrams  # noqa: E402
from rlcredit.bridge import load_stack  # noqa: E402
from rlcredit.bridge.bridged_stack import FROM_POLICY  # noqa: E402
from rlcredit.bridge.trl import STACK_STATE_FILE, CreditGRPOTrainer, refuse_settings  # noqa: E402
from rlcredit.credit.catalogue import find_operator_classes  # noqa: E402
from rlcredit.credit.contract import StackError, StackWarning  # noqa: E402
from rlcredit.credit.heatmap import collect_heatmap  # noqa: E402
from rlcredit.formulas.gates import AdaptiveEta  # noqa: E402
from rlcredit.policy.pieces import make_piece_decoder  # noqa: E402
from tests.contracts.test_unjudged import PLAIN, stack_around  # noqa: E402

PATH = str(next(iter(rlcredit.tiny.__path__)))
TOKENIZER = AutoTokenizer.from_pretrained(PATH, padding_side="left")
QUESTIONS = Dataset.from_list(
    [{"prompt": f"{a} + {b} = ?", "answer": str(a + b)} for a in range(2, 6) for b in range(2, 6)]
)
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
BATCHINGS = [
    {},
    {"steps_per_generation": 2, "gradient_accumulation_steps": 2},
    {"num_iterations": 2},
    {"gradient_accumulation_steps": 4, "per_device_train_batch_size": 2, "generation_batch_size": 8},
    {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "steps_per_generation": 4},
]


SETTINGS = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 12,
    "max_steps": 2,
    "report_to": [],
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "disable_tqdm": True,
    "learning_rate": 1e-3,
    "seed": 0,
    "save_strategy": "no",
    "scale_rewards": "none",
}


def judge(completions, answer, **_):
    """Whether the answer stands in a completion."""
    return [float(right in completion) for completion, right in zip(completions, answer, strict=True)]


def train(folder, stack=None, reward=judge, resume=None, **settings):
    """A trainer after a few steps on the embedded policy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers and TRL, about their own settings
        config = trl.GRPOConfig(**SETTINGS | {"output_dir": str(folder), **settings})
    model = AutoModelForCausalLM.from_pretrained(PATH, dtype=torch.float32)
    shared = {"model": model, "reward_funcs": reward, "args": config, "train_dataset": QUESTIONS}
    kind, further = (trl.GRPOTrainer, {}) if stack is None else (CreditGRPOTrainer, {"stack": stack})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = kind(processing_class=TOKENIZER, **shared, **further)
        trainer.train(resume_from_checkpoint=resume)
    return trainer


def norms(trainer):
    return [round(entry["grad_norm"], 6) for entry in trainer.state.log_history if "grad_norm" in entry]


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_flat_credit_gives_the_gradients_of_flat_trl(batching, tmp_path):
    flat = norms(train(tmp_path, **batching))
    assert any(flat)
    assert norms(train(tmp_path, [GRPO()], **batching)) == flat
    assert norms(train(tmp_path, [GRPO(), Entropy(), GTPO(beta=0.5)], **batching)) != flat


@pytest.mark.parametrize("loss", LOSSES)
def test_flat_credit_gives_the_gradients_of_flat_trl_under_every_loss(loss, tmp_path):
    flat = norms(train(tmp_path, loss_type=loss))
    assert any(flat)
    assert norms(train(tmp_path, [GRPO()], loss_type=loss)) == pytest.approx(flat, rel=1e-5)


REDISTRIBUTING = ["GRPO", GTPO(beta=1.0)]
"""A stack that gives tokens of a completion different credit; its mean is that of flat credit."""

LOSING = {(loss, "sequence") for loss in LOSSES if loss not in ("cispo", "vespo")}
"""Losses and levels that hand on the mean credit of a completion only."""


def test_these_are_all_losses_and_levels_that_trl_has():
    source = inspect.getsource(trl.GRPOTrainer._compute_loss)
    named = re.findall(r"self\.(loss_type|importance_sampling_level) (?:==|in|!=) (\[[^]]*\]|\"\w+\")", source)
    found = {
        kind: {word for each, words in named if each == kind for word in re.findall(r"\w+", words)} for kind, _ in named
    }
    assert found == {"loss_type": {*LOSSES}, "importance_sampling_level": {"token", "sequence"}}


@pytest.fixture(scope="module")
def trainers(tmp_path_factory):
    """A trainer with flat credit, and one whose stack redistributes it."""
    return [train(tmp_path_factory.mktemp("trl"), stack, max_steps=1) for stack in (["GRPO"], REDISTRIBUTING)]


def compute_gradient(trainer, loss, level):
    """The gradient of a batch under a loss, the same batch for every trainer."""
    trainer.args.loss_type = trainer.loss_type = loss
    trainer.args.importance_sampling_level = trainer.importance_sampling_level = level
    torch.manual_seed(0)
    questions = [QUESTIONS[row // 4] for row in range(8)]
    model = AutoModelForCausalLM.from_pretrained(PATH, dtype=torch.float32)
    trainer.model.load_state_dict(model.state_dict())
    trainer.model.train().zero_grad()
    trainer._compute_loss(trainer.model, trainer._generate_and_score_completions(questions)).backward()
    return torch.cat([weight.grad.flatten() for weight in trainer.model.parameters()])


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss", LOSSES)
def test_credit_of_tokens_reaches_the_gradient_or_is_refused(loss, level, trainers):
    flat = compute_gradient(trainers[0], loss, level)
    assert flat.norm() > 0.1
    if (loss, level) in LOSING:
        with pytest.raises(ValueError, match="lets only the mean credit of a completion reach the gradient"):
            compute_gradient(trainers[1], loss, level)
        return
    assert (compute_gradient(trainers[1], loss, level) - flat).norm() > 0.1 * flat.norm()


@pytest.mark.parametrize(("loss", "level"), sorted(LOSING))
def test_what_is_refused_would_have_had_the_gradient_of_flat_credit(loss, level, trainers, monkeypatch):
    monkeypatch.setattr("rlcredit.bridge.trl.refuse_flattening", lambda _: None)
    flat, lost = (compute_gradient(trainer, loss, level) for trainer in trainers)
    torch.testing.assert_close(lost, flat, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"delta": 4.0},
        {"beta": 0.05},
        {"beta": 0.05, "use_bias_correction_kl": True},
        {"off_policy_mask_threshold": 0.1},
        {"num_iterations": 2},
        {"num_iterations": 2, "delta": 1.5},
        {"entropy_coef": 0.01},
        {"epsilon": 0.5, "epsilon_high": 2.0},
        {"mask_truncated_completions": True, "max_completion_length": 40},
        {"scale_rewards": "batch"},
        {"reward_weights": [0.5]},
        {"steps_per_generation": 2, "gradient_accumulation_steps": 2},
    ],
    ids=str,
)
def test_no_other_setting_keeps_the_credit_of_tokens_from_the_gradient(settings, tmp_path):
    flat, credited = (norms(train(tmp_path, stack, **settings))[0] for stack in (["GRPO"], REDISTRIBUTING))
    assert credited > 1.1 * flat > 0


def test_flat_stacks_train_at_every_level(tmp_path):
    for stack in (["GRPO"], ["OPO"], ["RLOO", "GTPO(beta=0)"]):
        assert norms(train(tmp_path, stack, importance_sampling_level="sequence", max_steps=1))[0] > 0


def test_every_operator_that_needs_no_policy_assigns_credit(tmp_path):
    seen = []
    trainer = train(tmp_path, [GRPO()], max_steps=1)
    batch = next(iter(trainer.get_train_dataloader()))
    for kind in find_operator_classes():
        if (
            kind.writes
            and not kind.reads & FROM_POLICY.keys()
            and not kind.costly
            and "sum_pi_squared" not in kind.reads
        ):
            stack = load_stack([GRPO()])
            stack.operators = [
                each
                for each in stack_around(PLAIN.get(kind, kind)())
                if type(each).__name__ not in ("ProcessSignal", "OutcomeAnchor") or type(each) is kind
            ]
            if any(each.reads & {"process", "ref_log_ratio"} for each in stack.operators):
                continue  # these need a reference policy
            trainer.stack = stack
            credited = trainer._generate_and_score_completions(batch)["advantages"]
            assert credited.ndim == 2
            assert credited.isfinite().all()
            seen.append(kind.__name__)
    assert len(seen) > 35


def test_several_rewards_are_weighted_and_what_none_can_tell_gives_no_credit(tmp_path):
    def short(completions, **_):
        return [None if index % 4 == 3 else float(len(text)) for index, text in enumerate(completions)]

    def silent(completions, **_):
        return [None if index % 4 == 3 else 1.0 for index, _text in enumerate(completions)]

    settings = {"reward_weights": [0.5, 2.0], "max_steps": 1}
    flat = norms(train(tmp_path, reward=[short, silent], **settings))
    assert norms(train(tmp_path, [GRPO()], reward=[short, silent], **settings)) == pytest.approx(flat, rel=1e-5)


def test_truncated_completions_have_no_tokens_and_texts_reach_operators(tmp_path):
    stack = [StrategicGrams(), GRPO(), HICRA()]
    trainer = train(tmp_path, stack, mask_truncated_completions=True, max_completion_length=40)
    lengths = {len(pieces) for pieces in trainer.stack.rollout.tokens}
    assert 0 in lengths
    assert len(lengths) > 2
    assert any(name.startswith("credit/HICRA/") for name in trainer.state.log_history[0])


def test_the_last_batch_is_a_rollout_with_texts_and_prompts_without_padding(tmp_path):
    batch = train(tmp_path, [GRPO(), Entropy(), GTPO()], max_steps=1).stack.rollout
    assert (batch.prompt_ids >= 0).sum(-1).tolist() == (batch.prompt_ids != TOKENIZER.pad_token_id).sum(-1).tolist()
    page = collect_heatmap(batch, decode=make_piece_decoder(TOKENIZER))
    assert [layer["name"] for layer in page["layers"]] == ["GRPO", "GTPO", "entropy", "surprisal"]
    for row in page["rows"]:
        assert "".join(row["tokens"]).strip()
        assert re.fullmatch(r"\d \+ \d = \?", row["prompt"])


def test_a_resumed_run_goes_on_with_what_operators_had_learned(tmp_path):
    def interrupt_and_resume(name, *stack):
        train(tmp_path / name, *stack, max_steps=2, save_strategy="steps", save_steps=2)
        checkpoint = tmp_path / name / "checkpoint-2"
        return train(tmp_path / name, *stack, max_steps=4, resume=str(checkpoint)), checkpoint

    flat, _ = interrupt_and_resume("flat")
    credited, _ = interrupt_and_resume("credited", [GRPO()])
    assert norms(credited)[-2:] == norms(flat)[-2:]
    learned, checkpoint = interrupt_and_resume("learned", [GRPO(), Delight(eta=AdaptiveEta(decay=0.9))])
    saved = torch.load(checkpoint / STACK_STATE_FILE, weights_only=True)
    assert saved["Delight"]["ema"] is not None
    fresh = train(tmp_path / "fresh", [GRPO(), Delight(eta=AdaptiveEta(decay=0.9))], max_steps=2)
    assert fresh.stack.state_dict() == saved
    assert learned.stack.state_dict() != saved


def test_evaluation_changes_no_state(tmp_path):
    trainer = train(tmp_path, [GRPO(), REPO()], max_steps=1, per_device_eval_batch_size=8)
    before = trainer.stack.state_dict()
    trainer.evaluate(eval_dataset=QUESTIONS.select(range(4)))
    assert trainer.stack.state_dict() == before


@pytest.mark.parametrize(
    ("stack", "settings", "message"),
    [
        ("rereadings/gradient_size_mask", {}, "GradientSizeMask needs `sum_pi_squared`, which TRL does not give"),
        ("systems/erpo", {}, "ProcessSignal needs `ref_logprobs`, which TRL does not give"),
        ([GRPO(), Entropy(), EntropyMask()], {"top_entropy_quantile": 0.5}, "takes away the credit of all other"),
        (["GRPO", "GTPO"], {"top_entropy_quantile": 0.5}, "takes away the credit of all other tokens"),
        (["MaxRL"], {"reward": lambda completions, **_: [0.5 for _ in completions]}, "Let the trainer's rewards be"),
        (["GRPO", "GTPOO"], {}, r"stack\[1\]: no class `GTPOO`. Did you mean `GTPO`\?"),
        ([GRPO()], {"multi_objective_aggregation": "normalize_then_sum"}, "makes advantages of its own"),
        (
            [GRPO()],
            {"per_device_train_batch_size": 2, "generation_batch_size": 4, "gradient_accumulation_steps": 2},
            None,
        ),
    ],
)
def test_what_trl_cannot_give_or_would_do_twice_is_refused(stack, settings, message, tmp_path):
    if message is None:
        assert norms(train(tmp_path, stack, **settings))
        return
    with pytest.raises((StackError, ValueError), match=message):
        train(tmp_path, stack, **settings)


def test_groups_over_several_processes_are_refused(tmp_path):
    trainer = train(tmp_path, [GRPO()], max_steps=1)
    batch = next(iter(trainer.get_train_dataloader()))[:6]
    parent = trl.GRPOTrainer._generate_and_score_completions
    try:
        trl.GRPOTrainer._generate_and_score_completions = lambda *_: {"completion_ids": torch.zeros(6, 3)}
        with pytest.raises(ValueError, match="a multiple of num_generations"):
            trainer._generate_and_score_completions(batch)
    finally:
        trl.GRPOTrainer._generate_and_score_completions = parent


def test_losses_that_change_the_size_of_credit_are_warned_of(tmp_path):
    trainer = train(tmp_path, [GRPO()], max_steps=1)
    for loss, message in (("cispo", "clamps the ratio"), ("luspo", "length")):
        trainer.args.loss_type = loss
        with pytest.warns(StackWarning, match=message):
            refuse_settings(trainer.args)


def test_the_methods_that_are_overridden_have_the_signatures_they_were_written_for():
    expected = {
        "_generate_and_score_completions": ["self", "inputs"],
        "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
        "_save_checkpoint": ["self", "model", "trial"],
        "_load_optimizer_and_scheduler": ["self", "checkpoint"],
    }
    for name, parameters in expected.items():
        assert [*inspect.signature(getattr(trl.GRPOTrainer, name)).parameters] == parameters
    scoring = inspect.signature(trl.GRPOTrainer._get_per_token_logps_and_entropies).parameters
    assert [*scoring][:5] == ["self", "model", "input_ids", "attention_mask", "logits_to_keep"]
    assert {"batch_size", "compute_entropy"} <= {*scoring}
