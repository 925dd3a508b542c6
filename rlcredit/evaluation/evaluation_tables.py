"""Results as tables, for a terminal and as Markdown."""

from collections.abc import Mapping, Sequence

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest
from rlcredit.evaluation.policy_accuracy import FIRST, PolicyAccuracy
from rlcredit.evaluation.policy_comparison import PolicyComparison
from rlcredit.statistics.intervals import Interval

Table = Sequence[Sequence[str]]
"""Rows of cells, the first with the names of the columns."""


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
    rows: list[list[str]] = []
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
        columns = {"policy": policy.name, **cells, **counts}
        rows += [[*columns]] if not rows else []
        rows.append([*columns.values()])
    return rows


def make_difference_table(compared: Sequence[PolicyComparison], whole: bool) -> Table:
    """Return a table of differences from the first policy, in percentage points.

    Args:
        compared: Comparisons, at least one.
        whole: Whether to show every accuracy; otherwise pass@1 only.

    """
    names = list(compared[0].differences) if whole else [FIRST]
    header = [
        "task",
        "policy",
        "against",
        *(f"{_shorten_accuracy_name(name)}, points" for name in names),
        "p",
        "verdict",
    ]
    rows = [header]
    for each in compared:
        tests = [each.differences[name] for name in names]
        cells = [f"{100 * test.difference:+.1f} {_format_interval_ends(test.interval, 1, sign=True)}" for test in tests]
        rows.append([each.task, each.policy, each.baseline, *cells, f"{each.p:.2g}", each.verdict])
    return rows


def format_terminal_table(table: Table) -> str:
    """Format a table for a terminal: aligned columns, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "   ".join(
            cell.ljust(width) if _is_text_column(table, place) else cell.rjust(width) for place, (cell, width) in row
        )
        for row in (enumerate(zip(cells, widths, strict=True)) for cells in table)
    )
    return "\n".join(line.rstrip() for line in lines)


def format_markdown_table(table: Table) -> str:
    """Format a table as Markdown."""
    header, *rows = ([cell.replace("|", "\\|") for cell in row] for row in table)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def render_evaluation_page(
    request: EvaluationRequest, measured: Mapping[PolicyTask, PolicyAccuracy], compared: Sequence[PolicyComparison]
) -> str:
    """Return all results as a page of Markdown."""
    parts = ["# Evaluation", f"Completions: {request.sampling.description}. {NOTES}"]
    for each in request.sets:
        parts += [
            f"## {each.name}: {each.size:,} questions",
            format_markdown_table(make_accuracy_table(request, measured, each.name, whole=True)),
        ]
    if compared:
        parts += [
            "## Paired by question",
            COMPARED.format(100 * request.margin),
            format_markdown_table(make_difference_table(compared, whole=True)),
        ]
    return "\n\n".join(parts) + "\n"


def render_evaluation_summary(
    request: EvaluationRequest, measured: Mapping[PolicyTask, PolicyAccuracy], compared: Sequence[PolicyComparison]
) -> str:
    """Return the main results as text for a terminal."""
    parts = [request.sampling.description]
    for each in request.sets:
        table = format_terminal_table(make_accuracy_table(request, measured, each.name, whole=False))
        parts.append(f"{each.name}: {each.size:,} questions\n{table}")
    if compared:
        parts.append(f"paired by question\n{format_terminal_table(make_difference_table(compared, whole=False))}")
    return "\n\n".join(parts)


NOTES = (
    "pass@k is the unbiased estimate over all completions of a question; maj@k is the vote of k of them, over all "
    "subsets, ties shared. Intervals are for other questions of the kind, 95 %. What could not be judged is not right. "
    "Entropy is per token, in nats, of the policy at that temperature over the whole vocabulary."
)
COMPARED = (
    "Differences of accuracy in percentage points, with Student's 95 % interval over questions. p and verdict are of "
    "pass@1, corrected by Holm for all rows; equivalent means within {:g} points."
)


def _make_column_title(name: str, completions: int) -> str:
    return f"pass@1 = avg@{completions}" if name == FIRST and completions > 1 else _shorten_accuracy_name(name)


def _shorten_accuracy_name(name: str) -> str:
    return name.replace("_at_", "@")


def _format_accuracy(scores: PolicyAccuracy, name: str, interval: bool) -> str:
    ends = f" {_format_interval_ends(scores.interval(name), 3)}" if interval else ""
    return f"{scores.mean(name):.3f}{ends}"


def _format_interval_ends(interval: Interval, digits: int, sign: bool = False) -> str:
    low, high = ((f"{100 * end:+.1f}" if sign else f"{end:.{digits}f}") for end in (interval.low, interval.high))
    return f"({low} to {high})"


def _format_completion_mean(name: str, value: float) -> str:
    return {"tokens": f"{value:.1f}", "entropy": f"{value:.3f}"}.get(name, f"{100 * value:.1f} %")


def _is_text_column(table: Table, place: int) -> bool:
    return table[0][place] in ("task", "policy", "against", "verdict")
