"""The result files of an evaluation: numbers as JSON, tables as Markdown, answers one per line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rlcredit.base.files import write_atomically
from rlcredit.evaluation.evaluation_folder import Answer, EvaluationFolder, PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest
from rlcredit.evaluation.evaluation_tables import render_evaluation_page
from rlcredit.evaluation.policy_accuracy import PolicyAccuracy, measure_policy_accuracy
from rlcredit.evaluation.policy_comparison import PolicyComparison, compare_policies


class EvaluationResults(NamedTuple):
    """Results of an evaluation."""

    measured: Mapping[PolicyTask, PolicyAccuracy]
    compared: Sequence[PolicyComparison]


def compute_evaluation_results(
    request: EvaluationRequest, answers: Mapping[PolicyTask, Sequence[Answer]]
) -> EvaluationResults:
    """Compute all accuracies and compare the policies.

    Args:
        request: Evaluation that was requested.
        answers: All answers of the evaluation.

    """
    sampling = request.sampling
    names = [policy.name for policy in request.policies]
    accuracies = {
        PolicyTask(name, question_set.name): measure_policy_accuracy(
            answers[PolicyTask(name, question_set.name)], sampling.completions, sampling.ks
        )
        for question_set in request.sets
        for name in names
    }
    return EvaluationResults(accuracies, compare_policies(accuracies, names, request.margin) if len(names) > 1 else [])


def write_evaluation_files(
    request: EvaluationRequest,
    folder: EvaluationFolder,
    results: EvaluationResults,
    answers: Mapping[PolicyTask, Sequence[Answer]],
    versions: Mapping[str, str],
) -> None:
    """Write the files of a finished evaluation.

    Args:
        request: Evaluation that was requested.
        folder: Folder of the evaluation.
        results: Results of the evaluation.
        answers: All answers of the evaluation.
        versions: Versions of the code and its libraries.

    """
    tasks = {
        question_set.name: {
            name: scores.to_dict() for (name, task), scores in results.measured.items() if task == question_set.name
        }
        for question_set in request.sets
    }
    content = {
        "results": tasks,
        "comparisons": [comparison.to_dict() for comparison in results.compared],
        "margin": request.margin,
        "drawing": asdict(request.sampling),
        "settings": request.settings(),
        "versions": dict(versions),
    }
    write_atomically(folder.results, json.dumps(content, indent=1, ensure_ascii=False))
    write_atomically(folder.table, render_evaluation_page(request, *results))
    lines = (json.dumps(row, ensure_ascii=False) for row in iterate_answer_rows(request, answers))
    write_atomically(folder.answers, "".join(f"{line}\n" for line in lines))


def iterate_answer_rows(
    request: EvaluationRequest, answers: Mapping[PolicyTask, Sequence[Answer]]
) -> Iterator[dict[str, Any]]:
    """Yield every answer with its policy, its question as the policy read it, and the reference.

    Args:
        request: Evaluation that was requested.
        answers: All answers of the evaluation.

    """
    for question_set in request.sets:
        prompts = question_set.task.held_out_prompts(0, question_set.size)
        prompts_by_number = dict(
            zip(prompts.numbers, zip(prompts.questions, prompts.examples, strict=True), strict=True)
        )
        for policy in request.policies:
            for answer in answers[PolicyTask(policy.name, question_set.name)]:
                prompt, example = prompts_by_number[answer["question"]]
                question = {
                    "policy": policy.name,
                    "task": question_set.name,
                    "prompt": prompt,
                    "reference": example.reference,
                }
                yield {**question, **answer}
