"""Publishing an evaluation to MLflow: one run with metrics, files, and a table of answers."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice

from rlcredit.base.files import write_atomically
from rlcredit.evaluation.evaluation_folder import Answer, EvaluationFolder, PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest
from rlcredit.evaluation.result_files import EvaluationResults, iterate_answer_rows
from rlcredit.record.destination import MLflowDestination
from rlcredit.record.publication import publish_results

MAX_TABLE_ANSWERS = 1000
"""Answers in the table that MLflow's pages show; the file has all."""


def publish_evaluation(
    request: EvaluationRequest,
    folder: EvaluationFolder,
    results: EvaluationResults,
    answers: Mapping[PolicyTask, Sequence[Answer]],
    destination: MLflowDestination,
) -> None:
    """Record a finished evaluation and have it delivered; if MLflow is unreachable, say how to deliver it later.

    Args:
        request: Evaluation that was requested.
        folder: Folder of the evaluation, its files written.
        results: Results of the evaluation.
        answers: All answers of the evaluation.
        destination: Destination of the record.

    """
    write_atomically(folder.answer_table, json.dumps(_select_shown_answers(request, answers), ensure_ascii=False))
    former = MLflowDestination.load(folder.record.tracking)
    destination.removes += [former.run_id] if former and former.run_id else []  # of a record that was cut off
    publish_results(
        folder.record,
        destination,
        _list_mlflow_parameters(request),
        _collect_mlflow_metrics(results),
        files=(folder.results, folder.table, folder.answers),
        table=folder.answer_table.name,
    )


def _list_mlflow_parameters(request: EvaluationRequest) -> dict[str, str]:
    settings = {
        f"policy/{policy.name}": f"{policy.settings['init_args'].get('path', 'tiny')}, {policy.adapter or 'no adapter'}"
        for policy in request.policies
    }
    tasks = {f"task/{questions.name}": f"{questions.file}, {questions.size} questions" for questions in request.sets}
    return {**settings, **tasks, "completions": request.description, "margin": str(request.margin)}


def _collect_mlflow_metrics(results: EvaluationResults) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for (policy, task), scores in results.measured.items():
        place = f"{task}/{policy}"
        for name in scores.accuracy:
            interval = scores.interval(name)
            metrics |= {f"{place}/{name}": scores.mean(name)}
            metrics |= {f"{place}/{name}_low": interval.low, f"{place}/{name}_high": interval.high}
        metrics |= {f"{place}/{name}": value for name, value in scores.means.items()}
    for comparison in results.compared:
        for name, test in comparison.differences.items():
            metrics[f"{comparison.task}/{comparison.policy} - {comparison.baseline}/{name}"] = test.difference
    return metrics


def _select_shown_answers(
    request: EvaluationRequest, answers: Mapping[PolicyTask, Sequence[Answer]]
) -> list[dict[str, object]]:
    """Return answers for the table: the first to every question, then the second, until it is full."""
    rows = sorted(iterate_answer_rows(request, answers), key=lambda row: row["sample"])
    return list(
        islice(
            ({**row, "prompt": str(row["prompt"]), "answer": row["answer"] or ""} for row in rows), MAX_TABLE_ANSWERS
        )
    )
