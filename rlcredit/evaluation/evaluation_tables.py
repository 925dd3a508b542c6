"""Results as tables, for a terminal and as a page of Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest
from rlcredit.evaluation.policy_accuracy import PRIMARY_ACCURACY, PolicyAccuracy
from rlcredit.evaluation.policy_comparison import PolicyComparison
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.page_template import load_page_template
from rlcredit.pages.tables import Table
from rlcredit.statistics.t_test import TTest


def make_accuracy_table(
    request: EvaluationRequest, accuracies: Mapping[PolicyTask, PolicyAccuracy], task: str, whole: bool
) -> Table:
    """Return a table of every policy's accuracy on one task.

    Args:
        request: Evaluation that names the policies and the values of k.
        accuracies: Accuracy by policy and task.
        task: Name of the task.
        whole: Whether to show every accuracy with its interval; otherwise no smaller votes, and the interval of pass@1
            only.

    """
    lines: list[dict[str, str]] = []
    for policy in request.policies:
        scores = accuracies[PolicyTask(policy.name, task)]
        cells = {
            _make_column_title(name, request.sampling.completions): _format_accuracy(
                scores, name, whole or name == PRIMARY_ACCURACY
            )
            for name in scores.accuracy
            if whole or not name.startswith("maj_") or name == f"maj_at_{request.sampling.k}"
        }
        counts = {name.replace("_", " "): _format_completion_mean(name, value) for name, value in scores.means.items()}
        lines.append({"policy": policy.name, **cells, **counts})
    return Table(list(lines[0]), [list(line.values()) for line in lines])


def make_difference_table(comparisons: Sequence[PolicyComparison], whole: bool) -> Table:
    """Return a table of differences from the first policy, in percentage points.

    Args:
        comparisons: Comparisons, at least one.
        whole: Whether to show every accuracy; otherwise pass@1 only.

    """
    names = list(comparisons[0].differences) if whole else [PRIMARY_ACCURACY]
    columns = ["task", "policy", "against", *(f"{_shorten_accuracy_name(name)}, points" for name in names)]
    rows = [
        [
            comparison.task,
            comparison.policy,
            comparison.baseline,
            *(_format_difference(comparison.differences[name]) for name in names),
            f"{comparison.p:.2g}",
            comparison.verdict,
        ]
        for comparison in comparisons
    ]
    return Table([*columns, "p", "verdict"], rows, text_columns=("policy", "against", "verdict"))


def render_evaluation_page(
    request: EvaluationRequest, accuracies: Mapping[PolicyTask, PolicyAccuracy], comparisons: Sequence[PolicyComparison]
) -> str:
    """Return all results as a page of Markdown."""
    return load_page_template(Path(__file__).with_name("evaluation.md")).render(
        sampling=request.sampling,
        accuracies=[
            (question_set, make_accuracy_table(request, accuracies, question_set.name, whole=True))
            for question_set in request.sets
        ],
        differences=make_difference_table(comparisons, whole=True) if comparisons else None,
        margin_points=100 * request.margin,
    )


def render_evaluation_summary(
    request: EvaluationRequest, accuracies: Mapping[PolicyTask, PolicyAccuracy], comparisons: Sequence[PolicyComparison]
) -> str:
    """Return the main results as text for a terminal."""
    parts = [request.description]
    for question_set in request.sets:
        table = make_accuracy_table(request, accuracies, question_set.name, whole=False)
        parts.append(f"{question_set.name}: {question_set.size:,} questions\n{table.to_text()}")
    if comparisons:
        parts.append(f"paired by question\n{make_difference_table(comparisons, whole=False).to_text()}")
    return "\n\n".join(parts)


def _make_column_title(name: str, completions: int) -> str:
    return (
        f"pass@1 = avg@{completions}" if name == PRIMARY_ACCURACY and completions > 1 else _shorten_accuracy_name(name)
    )


def _shorten_accuracy_name(name: str) -> str:
    return name.replace("_at_", "@")


def _format_accuracy(scores: PolicyAccuracy, name: str, interval: bool) -> str:
    if scores.means.get("unjudged") == 1:
        return "not judged"
    if not interval:
        return f"{scores.mean(name):.3f}"
    low, high, _ = scores.interval(name)
    return format_with_interval(scores.mean(name), low, high, ".3f")


def _format_difference(test: TTest) -> str:
    return format_with_interval(100 * test.difference, 100 * test.interval.low, 100 * test.interval.high, "+.1f")


def _format_completion_mean(name: str, value: float) -> str:
    formats = {"tokens": ".1f", "entropy": ".3f", "turns": ".1f", "reward": ".3f"}
    return format(value, formats[name]) if name in formats else f"{100 * value:.1f} %"
