"""Answers are those of validation in training, whatever lies beside them in a batch."""

import dataclasses
from pathlib import Path

import pytest
import torch

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import VALIDATION
from rlcredit.decoding.sampling import Sampling
from rlcredit.evaluation.answering import PolicyLoader, answer_question_batch, answer_remaining_questions
from rlcredit.evaluation.evaluated_policies import find_trained_policy, make_base_policy
from rlcredit.evaluation.evaluation_folder import EvaluationFolder, PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest, SamplingParameters
from rlcredit.evaluation.question_sets import read_question_set

DRAWING = SamplingParameters(completions=4, k=4, max_tokens=40, temperature=0.7)
CPU = torch.device("cpu")


@pytest.fixture
def questions(tasks):
    return read_question_set(Path(tasks[0]))


def answers(policy, questions, stride=8, **changes):
    drawing, engine = dataclasses.replace(DRAWING, **changes), InProcessEngine(32)
    parts = (answer_question_batch(policy, engine, questions, at, stride, drawing) for at in range(0, 8, stride))
    return [answer for part in parts for answer in part]


def test_they_are_those_of_validation_in_training(policy, questions):
    prompts = questions.task.held_out_prompts(0, 8)
    prompt_ids = policy.encode_questions(prompts.questions)
    samples = InProcessEngine().sample(policy, prompt_ids, list(range(8)), Sampling(4, 40), seed=0, step=VALIDATION)
    found = answers(policy, questions)
    assert [each["completion"] for each in found] == policy.decode_texts(samples.completion_ids, samples.mask)
    assert [each["tokens"] for each in found] == samples.mask.sum(-1).tolist()
    assert [(each["question"], each["sample"]) for each in found[:5]] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]


def test_log_probability_and_entropy_are_of_the_policy_at_the_temperature(policy, questions):
    prompt_ids = policy.encode_questions(questions.task.held_out_prompts(0, 1).questions)
    for changes in ({"temperature": 1.3}, {"top_k": 2}, {"greedy": True, "completions": 1, "k": 1}):
        found = answers(policy, questions, **changes)[0]
        drawing = dataclasses.replace(DRAWING, **changes)
        kept = InProcessEngine().decode(
            policy,
            prompt_ids,
            torch.from_numpy(noise(drawing)),
            torch.zeros(1, dtype=torch.long),
            drawing.temperature,
            token_filter=drawing.token_filter,
        )
        with torch.no_grad():
            scores = policy.score_prompts(prompt_ids, kept.completion_ids, drawing.temperature)
        assert found["logprob"] == pytest.approx(float(scores.logprobs.sum()), abs=1e-3)
        assert found["entropy"] == pytest.approx(float(scores.entropy.mean()), abs=1e-3)


def noise(drawing):
    from rlcredit.decoding.noise import sampling_uniforms

    return sampling_uniforms(drawing.seed, VALIDATION, [0], [0], drawing.max_tokens).numpy()


def test_they_do_not_depend_on_how_many_questions_are_asked_at_a_time(policy, questions):
    one, all_at_once = answers(policy, questions, stride=1), answers(policy, questions)
    for name in ("completion", "verdict", "answer", "tokens"):
        assert [each[name] for each in one] == [each[name] for each in all_at_once]


def test_another_seed_draws_others_and_greedy_heeds_none(policy, questions):
    assert answers(policy, questions, seed=1) != answers(policy, questions)
    greedy = {"greedy": True, "completions": 1, "k": 1}
    assert answers(policy, questions, seed=1, **greedy) == answers(policy, questions, **greedy)


def test_verdicts_are_the_tasks(policy, questions):
    found = answers(policy, questions)
    examples = [example for example in questions.task.held_out_set for _ in range(4)]
    judged = questions.task.judge([each["completion"] for each in found], examples)
    assert [each["verdict"] for each in found] == [verdict.name.lower() for verdict in judged]
    right = [each for each in found if each["verdict"] == "right"]
    assert 0 < len(right) < len(found)
    assert all(each["answer"] == examples[4 * each["question"]].answer for each in right)


def test_one_model_is_read_once_for_all_its_adapters(adapter, policy):
    loader, own = PolicyLoader(CPU), find_trained_policy(Path(adapter))
    first = loader.load_policy(own)
    assert loader.load_policy(dataclasses.replace(own, name="base", adapter=None)) is first
    # Other settings: all-linear is not a list of names.
    assert loader.load_policy(make_base_policy("tiny")) is not first


def test_a_full_disk_ends_it_with_one_sentence(tasks, adapter, questions, monkeypatch):
    request, folder = (
        EvaluationRequest([questions], [make_base_policy("tiny")], DRAWING, 0.01),
        EvaluationFolder(Path("e")),
    )
    folder.begin_or_resume(request.settings(), {})

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(
        StorageUnavailable, match=r"cannot be written. The evaluation stops here; once there is room, the same"
    ):
        answer_remaining_questions(request, folder, CPU, 16)


def test_what_is_kept_is_not_asked_again(tasks, questions, monkeypatch):
    request, folder = (
        EvaluationRequest([questions], [make_base_policy("tiny")], DRAWING, 0.01),
        EvaluationFolder(Path("e")),
    )
    folder.begin_or_resume(request.settings(), {})
    answer_remaining_questions(request, folder, CPU, 16)
    whole = folder.batches.read_bytes()
    assert len(whole.splitlines()) == 2  # 16 completions at a time are four questions
    monkeypatch.setattr("rlcredit.evaluation.answering.answer_question_batch", None)
    answer_remaining_questions(request, folder, CPU, 16)
    assert folder.batches.read_bytes() == whole
    assert len(folder.read_answers()[PolicyTask("base", "three")]) == 32
