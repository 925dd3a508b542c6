"""Results as tables, for a terminal and as a page of Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest
from rlcredit.evaluation.policy_accuracy import FIRST, PolicyAccuracy
from rlcredit.evaluation.policy_comparison import PolicyComparison
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.page_template import load_page_template
from rlcredit.pages.tables import Table
from rlcredit.statistics.t_test import TTest


def make_accuracy_table(
    request: EvaluationRequest, measured: Mapping[PolicyTask, PolicyAccuracy], task: str, whole: bool
) -> Table:
    """Return a table of every policy's accuracy on one task.

    Args:
        request: Evaluation that names the policies and the values of k.
        measured: Accuracy by policy and task.
        task: Name of the task.
        whole: Whether to show every accuracy with its interval; otherwise no smaller votes, and the interval of pass@1
            only.

    """
    lines: list[dict[str, str]] = []
    for policy in request.policies:
        scores = measured[PolicyTask(policy.name, task)]
        cells = {
            _make_column_title(name, request.sampling.completions): _format_accuracy(
                scores, name, whole or name == FIRST
            )
            for name in scores.accuracy
            if whole or not name.startswith("maj_") or name == f"maj_at_{request.sampling.k}"
        }
        counts = {name.replace("_", " "): _format_completion_mean(name, value) for name, value in scores.means.items()}
        lines.append({"policy": policy.name, **cells, **counts})
    return Table(list(lines[0]), [list(line.values()) for line in lines])


def make_difference_table(compared: Sequence[PolicyComparison], whole: bool) -> Table:
    """Return a table of differences from the first policy, in percentage points.

    Args:
        compared: Comparisons, at least one.
        whole: Whether to show every accuracy; otherwise pass@1 only.

    """
    names = list(compared[0].differences) if whole else [FIRST]
    columns = ["task", "policy", "against", *(f"{_shorten_accuracy_name(name)}, points" for name in names)]
    rows = [
        [
            each.task,
            each.policy,
            each.baseline,
            *(_format_difference(each.differences[name]) for name in names),
            f"{each.p:.2g}",
            each.verdict,
        ]
        for each in compared
    ]
    return Table([*columns, "p", "verdict"], rows, text_columns=("policy", "against", "verdict"))


def render_evaluation_page(
    request: EvaluationRequest, measured: Mapping[PolicyTask, PolicyAccuracy], compared: Sequence[PolicyComparison]
) -> str:
    """Return all results as a page of Markdown."""
    return load_page_template(Path(__file__).with_name("evaluation.md")).render(
        sampling=request.sampling,
        accuracies=[(each, make_accuracy_table(request, measured, each.name, whole=True)) for each in request.sets],
        differences=make_difference_table(compared, whole=True) if compared else None,
        margin_points=100 * request.margin,
    )


def render_evaluation_summary(
    request: EvaluationRequest, measured: Mapping[PolicyTask, PolicyAccuracy], compared: Sequence[PolicyComparison]
) -> str:
    """Return the main results as text for a terminal."""
    parts = [request.description]
    for each in request.sets:
        table = make_accuracy_table(request, measured, each.name, whole=False)
        parts.append(f"{each.name}: {each.size:,} questions\n{table.to_text()}")
    if compared:
        parts.append(f"paired by question\n{make_difference_table(compared, whole=False).to_text()}")
    return "\n\n".join(parts)


def _make_column_title(name: str, completions: int) -> str:
    return f"pass@1 = avg@{completions}" if name == FIRST and completions > 1 else _shorten_accuracy_name(name)


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
    return {"tokens": f"{value:.1f}", "entropy": f"{value:.3f}"}.get(name, f"{100 * value:.1f} %")
